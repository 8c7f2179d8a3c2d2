"""The API that 沉浸式翻译 (Immersive Translate) asks of a server of one's own: /imme."""

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, Response

from regard.serve.asking import admit, owner_of
from regard.serve.described import TEXT, takes
from regard.serve.fields import fields_of
from regard.serve.languages import canonical
from regard.serve.refusals import Refused, missing
from regard.serve.service import Service, Wanted

NAME = "immersive"
TRANSLATES = takes(
    {
        "source_lang": TEXT,
        "target_lang": TEXT,
        "text_list": {"type": "array", "items": TEXT},
    },
    ["target_lang", "text_list"],
)


def router(service: Service) -> APIRouter:
    """Its one address."""
    routes = APIRouter(tags=[NAME])

    @routes.post("/imme", openapi_extra=TRANSLATES)
    async def translate(request: Request) -> Response:
        """Translate a list of texts: as many come back, or none and an error."""
        fields = await fields_of(request)
        owner = owner_of(service, request, fields)
        texts = fields.texts("text_list")
        source, target = fields.text("source_lang", ""), fields.text("target_lang")
        if not canonical(target):
            raise missing("target_lang")
        admit(service, request, owner, texts)
        wanted = Wanted(texts=texts, source=source if canonical(source) else "", target=target)
        answers = await service.translate(wanted)
        codes = {"zh": "zh-CN"}
        return JSONResponse(
            {
                "translations": [
                    {
                        "detected_source_lang": codes.get(one.source, one.source),
                        "text": one.text,
                    }
                    for one in answers
                ]
            }
        )

    return routes


def error_table(refused: Refused) -> tuple[int, dict[str, Any]]:
    """A refusal; the reader of this client reads Chinese."""
    return refused.status, {
        "code": refused.status,
        "message": f"{refused.message_zh} ({refused.message})",
    }
