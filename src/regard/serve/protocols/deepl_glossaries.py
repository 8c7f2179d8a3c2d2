"""DeepL's glossaries, version 2: one language to one other."""

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, Response

from regard.errors import ConfigError
from regard.serve.asking import owner_of
from regard.serve.described import TEXT, choice, takes
from regard.serve.fields import fields_of, shown
from regard.serve.glossaries import Glossaries, Glossary, entries_of
from regard.serve.languages import canonical
from regard.serve.refusals import Refused, missing, wrong
from regard.serve.service import Service

CREATES = takes(
    {
        "name": TEXT,
        "source_lang": TEXT,
        "target_lang": TEXT,
        "entries": TEXT,
        "entries_format": choice("tsv", "csv"),
    },
    ["name", "source_lang", "target_lang", "entries", "entries_format"],
)


def router(service: Service, glossaries: Glossaries) -> APIRouter:
    """Their addresses."""
    routes = APIRouter(prefix="/v2", tags=["deepl"])
    _add_new(routes, service, glossaries)
    _add_old(routes, service, glossaries)
    return routes


def _add_new(routes: APIRouter, service: Service, glossaries: Glossaries) -> None:
    @routes.get("/glossary-language-pairs")
    async def pairs(request: Request) -> dict[str, Any]:
        """From which language to which there can be a glossary."""
        owner_of(service, request, await fields_of(request))
        ways = dict.fromkeys(
            (canonical(src), canonical(tgt)) for src, tgt in service.models.directions
        )
        return {
            "supported_languages": [{"source_lang": src, "target_lang": tgt} for src, tgt in ways]
        }

    @routes.post("/glossaries", openapi_extra=CREATES)
    async def create(request: Request) -> Response:
        """Keep a new glossary."""
        fields = await fields_of(request)
        owner = owner_of(service, request, fields)
        name = fields.text("name")
        if not name.strip():
            raise missing("name")
        source, target = (canonical(fields.text(f"{side}_lang")) for side in ("source", "target"))
        if (source, target) not in service.models.directions:
            reason = ConfigError("{code} is not supported", code=f"{source} to {target}"[:20])
            raise Refused(400, "pair", reason, field="target")
        kind = fields.text("entries_format")
        if kind not in ("tsv", "csv"):
            raise wrong("entries_format", shown(kind), "tsv, csv")
        entries = entries_of(fields.text("entries"), kind)
        made = glossaries.create(owner, name[:1000], source, target, entries)
        return JSONResponse(_shape(made), 201)


def _add_old(routes: APIRouter, service: Service, glossaries: Glossaries) -> None:
    @routes.get("/glossaries")
    async def every(request: Request) -> dict[str, Any]:
        """All glossaries of the key."""
        owner = owner_of(service, request, await fields_of(request))
        return {"glossaries": [_shape(one) for one in glossaries.of(owner).values()]}

    @routes.get("/glossaries/{glossary_id}")
    async def one(request: Request, glossary_id: str) -> dict[str, Any]:
        """What is known of a glossary."""
        owner = owner_of(service, request, await fields_of(request))
        return _shape(glossaries.get(owner, glossary_id))

    @routes.get("/glossaries/{glossary_id}/entries")
    async def entries(request: Request, glossary_id: str) -> Response:
        """What is in a glossary, as tab-separated lines."""
        owner = owner_of(service, request, await fields_of(request))
        text = glossaries.get(owner, glossary_id).as_tsv()
        return Response(text, media_type="text/tab-separated-values")

    @routes.delete("/glossaries/{glossary_id}")
    async def delete(request: Request, glossary_id: str) -> Response:
        """Forget a glossary."""
        owner = owner_of(service, request, await fields_of(request))
        glossaries.delete(owner, glossary_id)
        return Response(status_code=204)


def _shape(glossary: Glossary) -> dict[str, Any]:
    return {
        "glossary_id": glossary.id,
        "name": glossary.name,
        "ready": True,
        "source_lang": glossary.source,
        "target_lang": glossary.target,
        "creation_time": glossary.created,
        "entry_count": len(glossary.entries),
    }
