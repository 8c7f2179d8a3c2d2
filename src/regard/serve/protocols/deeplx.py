"""DeepLX's API, which Pot, 陪读蛙 and others speak: one text, at two addresses."""

import secrets
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, Response

from regard.serve.asking import admit, owner_of
from regard.serve.described import TEXT, takes
from regard.serve.fields import Fields, fields_of
from regard.serve.languages import canonical
from regard.serve.refusals import Refused, missing
from regard.serve.service import Service, Wanted

NAME = "deeplx"
TRANSLATES = takes(
    {"text": TEXT, "source_lang": TEXT, "target_lang": TEXT}, ["text", "target_lang"]
)
ALTERNATIVES = 3  # as many as its clients show


def router(service: Service) -> APIRouter:
    """Its own address."""
    routes = APIRouter(tags=[NAME])

    @routes.post("/deeplx/translate", openapi_extra=TRANSLATES)
    async def translate_own(request: Request) -> Response:
        """Translate one text."""
        return await translate(service, request, await fields_of(request))

    return routes


async def translate(service: Service, request: Request, fields: Fields) -> Response:
    """One text and some alternatives."""
    request.scope["protocol"] = NAME
    owner = owner_of(service, request, fields)
    text = fields.text("text")
    source, target = fields.text("source_lang", ""), fields.text("target_lang")
    if not canonical(target):
        raise missing("target_lang")
    admit(service, request, owner, [text])
    wanted = Wanted(
        texts=[text],
        source=source if canonical(source) else "",
        target=target,
        nbest=1 + min(ALTERNATIVES, service.limits.beam - 1),
    )
    [answer] = await service.translate(wanted)
    others = dict.fromkeys(one.text for one in answer.alternatives if one.text != answer.text)
    return JSONResponse(
        {
            "code": 200,
            "id": secrets.randbits(33),
            "data": answer.text,
            "alternatives": list(others),
            "source_lang": canonical(answer.source).upper(),
            "target_lang": target.upper(),
            "method": "Free",
        }
    )


def error_table(refused: Refused) -> tuple[int, dict[str, Any]]:
    """A refusal in DeepLX's words."""
    return refused.status, {"code": refused.status, "message": refused.message}
