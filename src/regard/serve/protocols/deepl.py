"""DeepL's API v2: text, languages and usage; glossaries and documents have files of their own."""

from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, Response

from regard.document.parts import Rules
from regard.errors import ConfigError
from regard.serve.asking import admit, owner_of
from regard.serve.described import FLAG, TEXT, TEXTS, choice, takes
from regard.serve.fields import Fields, fields_of, shown
from regard.serve.glossaries import Glossaries
from regard.serve.keys import Owner
from regard.serve.languages import TRADITIONAL, canonical, name_of
from regard.serve.markup import MarkedAnswer, translate_markup
from regard.serve.refusals import Refused, missing, wrong
from regard.serve.service import Answer, Service, Wanted

NAME = "deepl"
TRANSLATES = takes(
    {
        "text": TEXTS,
        "target_lang": TEXT,
        "source_lang": TEXT,
        "tag_handling": choice("xml", "html"),
        "ignore_tags": TEXTS,
        "splitting_tags": TEXTS,
        "outline_detection": FLAG,
        "formality": choice("default", "more", "less", "prefer_more", "prefer_less"),
        "glossary_id": TEXT,
    },
    ["text", "target_lang"],
)
UNLIMITED = 1_000_000_000_000  # what DeepL says for a key without a limit
TARGETS = {
    "zh": [("ZH", "Chinese (simplified)"), ("ZH-HANS", "Chinese (simplified)")],
    TRADITIONAL: [("ZH-HANT", "Chinese (traditional)")],
    "en": [("EN-GB", "English (British)"), ("EN-US", "English (American)")],
}
"""Targets as DeepL lists them; all others are their codes in capitals."""
FORMALITIES = ("default", "more", "less", "prefer_more", "prefer_less")


def router(service: Service, glossaries: Glossaries) -> APIRouter:
    """Its addresses."""
    routes = APIRouter(prefix="/v2", tags=[NAME])

    @routes.get("/translate")
    @routes.post("/translate", openapi_extra=TRANSLATES)
    async def translate(request: Request) -> Response:
        """Translate texts, with tags or without."""
        fields = await fields_of(request)
        owner = owner_of(service, request, fields)
        texts = fields.texts("text")
        wanted = wanted_of(fields, owner, glossaries, texts)
        rules = rules_of(fields)
        admit(service, request, owner, texts)
        answers: list[Any]
        if rules is None:
            answers = list(await service.translate(wanted))
        else:
            answers = list(await translate_markup(service, wanted, rules))
        pairs = zip(texts, answers, strict=True)
        return JSONResponse({"translations": [_shape(*pair, fields) for pair in pairs]})

    @routes.get("/languages")
    async def languages(request: Request) -> list[dict[str, Any]]:
        """Languages to translate from, or with type=target to translate to."""
        fields = await fields_of(request)
        owner_of(service, request, fields)
        kind = fields.text("type", "source") or "source"
        if kind not in ("source", "target"):
            raise wrong("type", shown(kind), "source, target")
        if kind == "source":
            sources = service.models.sources()
            return [{"language": one.upper(), "name": name_of(one)} for one in sources]
        return [
            {"language": code, "name": name, "supports_formality": False}
            for target in service.models.targets()
            for code, name in TARGETS.get(target, [(target.upper(), name_of(target))])
        ]

    @routes.get("/usage")
    async def usage(request: Request) -> dict[str, int]:
        """How many characters the key has had translated since the server was started."""
        owner = owner_of(service, request, await fields_of(request))
        limit = owner.chars_limit or UNLIMITED
        return {"character_count": owner.chars, "character_limit": limit}

    return routes


def wanted_of(fields: Fields, owner: Owner, glossaries: Glossaries, texts: list[str]) -> Wanted:
    """What is asked for, with the terms of its glossaries."""
    if not fields.text("target_lang", ""):
        raise missing("target_lang")
    source = fields.text("source_lang", "")
    source, target = source if canonical(source) else "", fields.text("target_lang")
    if not canonical(target):
        reason = ConfigError("{code} is not supported", code=target[:20])
        raise Refused(400, "language", reason, field="target")
    _check_options(fields)
    terms: Mapping[str, str] = {}
    ids = [*fields.words("glossary_id"), *fields.words("glossary_ids")]
    if ids:
        if not source:
            raise missing("source_lang")
        terms = glossaries.terms(owner, ids, source, target, texts)
    return Wanted(texts=texts, source=source, target=target, terms=terms)


def rules_of(fields: Fields) -> Rules | None:
    """How tags are read; None where there are none."""
    kind = fields.text("tag_handling", "")
    if kind in ("xml", "html"):
        return Rules(
            kind="xml" if kind == "xml" else "html",
            verbatim=frozenset(fields.words("ignore_tags")),
            breaks=frozenset(fields.words("splitting_tags")),
            outline=kind == "xml" and fields.flag("outline_detection", True),
        )
    if kind:
        raise wrong("tag_handling", shown(kind), "xml, html")
    return None


def error_table(refused: Refused) -> tuple[int, dict[str, Any]]:
    """A refusal in DeepL's words."""
    names = {"source": "source_lang", "target": "target_lang"}
    field = names.get(refused.field, refused.field)
    match refused.code:
        case "missing":
            return 400, {"message": f"Parameter '{field}' not specified."}
        case "language" | "pair" if field:
            return 400, {
                "message": f"Value for '{field}' not supported.",
                "detail": refused.message,
            }
        case "formality":
            message = "'formality' is not supported for given 'target_lang'."
            return 400, {"message": message, "detail": refused.message}
        case "wrong_value":
            return 400, {
                "message": f"Value for '{field}' not supported.",
                "detail": refused.message,
            }
        case _:
            return refused.status, {"message": refused.message}


def _check_options(fields: Fields) -> None:
    """Options that change nothing here are still to be spelled right."""
    formality = fields.text("formality", "default") or "default"
    if formality not in FORMALITIES:
        raise wrong("formality", shown(formality), ", ".join(FORMALITIES))
    if formality in ("more", "less"):
        reason = ConfigError(
            "a formality of its own has no model here; ask for prefer_{said}", said=formality
        )
        raise Refused(400, "formality", reason, field="formality")
    if fields.has("split_sentences"):
        split = str(fields.table["split_sentences"]).lower()
        if split not in ("0", "1", "nonewlines", "true", "false"):
            raise wrong("split_sentences", shown(split), "0, 1, nonewlines")
    fields.flag("preserve_formatting")


def _shape(text: str, answer: Answer | MarkedAnswer, fields: Fields) -> dict[str, Any]:
    table: dict[str, Any] = {
        "detected_source_language": canonical(answer.source).upper(),
        "text": answer.text,
        "billed_characters": len(text),
    }
    if fields.text("model_type", ""):
        table["model_type_used"] = "latency_optimized"
    return table
