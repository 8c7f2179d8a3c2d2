"""Apertium-APy's API, which OmegaT and Weblate speak; /translate is shared with LibreTranslate."""

from http import HTTPStatus
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, Response

from regard.document.parts import Rules
from regard.serve.asking import admit, owner_of
from regard.serve.fields import Fields, fields_of, shown
from regard.serve.languages import canonical, detect, name_of
from regard.serve.markup import translate_markup
from regard.serve.refusals import Refused, wrong
from regard.serve.service import Service, Wanted

NAME = "apertium"
CODES = {"zh": "zho", "en": "eng", "de": "deu", "fr": "fra", "es": "spa", "ja": "jpn", "ko": "kor",
         "ru": "rus", "it": "ita", "pt": "por", "ar": "ara", "nl": "nld", "vi": "vie", "th": "tha",
         "id": "ind", "tr": "tur"}  # fmt: skip
"""Three letters, as Apertium writes languages; those of two are taken as well."""


def router(service: Service) -> APIRouter:
    """Its addresses, but for /translate."""
    routes = APIRouter(tags=[NAME])

    @routes.get("/listPairs")
    @routes.post("/listPairs")
    async def pairs(request: Request) -> dict[str, Any]:
        """From which language to which one can translate."""
        owner_of(service, request, await fields_of(request))
        ways = service.models.directions
        data = [{"sourceLanguage": _code(src), "targetLanguage": _code(tgt)} for src, tgt in ways]
        return _shape(data)

    @routes.get("/listLanguageNames")
    @routes.post("/listLanguageNames")
    async def names(request: Request) -> dict[str, str]:
        """What languages are called."""
        fields = await fields_of(request)
        in_chinese = canonical(fields.text("locale", "en")) == "zh"
        codes = dict.fromkeys(code for way in service.models.directions for code in way)
        return {_code(code): name_of(code, in_chinese) for code in codes}

    @routes.get("/identifyLang")
    @routes.post("/identifyLang")
    async def identify(request: Request) -> dict[str, float]:
        """The language of a text, by its script."""
        fields = await fields_of(request)
        owner = owner_of(service, request, fields)
        text = fields.text("q")
        admit(service, request, owner, [text])
        found = detect(text)
        return {_code(found.language): found.confidence / 100} if found.language else {}

    return routes


async def translate(service: Service, request: Request, fields: Fields) -> Response:
    """One text, from and to the languages of `langpair`."""
    request.scope["protocol"] = NAME
    owner = owner_of(service, request, fields)
    text = fields.text("q")
    source, bar, target = fields.text("langpair").partition("|")
    if not bar or not canonical(source) or not canonical(target):
        raise wrong("langpair", shown(fields.text("langpair")), "two languages, as zho|eng")
    admit(service, request, owner, [text])
    wanted = Wanted(texts=[text], source=source, target=target)
    if fields.text("format", "txt") in ("html", "html-noent"):
        said = (await translate_markup(service, wanted, Rules(kind="html")))[0].text
    else:
        said = (await service.translate(wanted))[0].text
    return JSONResponse(_shape({"translatedText": said}))


def error_table(refused: Refused) -> tuple[int, dict[str, Any]]:
    """A refusal in Apertium's words."""
    status = HTTPStatus(refused.status) if refused.status in _KNOWN else HTTPStatus.BAD_REQUEST
    return status.value, {
        "status": "error",
        "code": status.value,
        "message": status.phrase,
        "explanation": refused.message,
    }


_KNOWN = {status.value for status in HTTPStatus}


def _shape(data: Any) -> dict[str, Any]:
    return {"responseData": data, "responseDetails": None, "responseStatus": 200}


def _code(language: str) -> str:
    return CODES.get(canonical(language), language)
