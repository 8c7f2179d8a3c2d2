"""LibreTranslate's API: what its clients, Weblate and Mastodon send, and what they expect back."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from regard.document.parts import Rules
from regard.errors import ConfigError
from regard.serve.asking import admit, base_of, owner_of
from regard.serve.described import TEXT, TEXTS, WHOLE, choice, takes
from regard.serve.documents import FORMATS, Documents
from regard.serve.fields import Fields, fields_of
from regard.serve.languages import canonical, detect, name_of
from regard.serve.markup import translate_markup
from regard.serve.protocols import apertium, deeplx
from regard.serve.refusals import Refused, missing
from regard.serve.service import Answer, Service, Wanted

NAME = "libretranslate"
TRANSLATES = takes(
    {
        "q": TEXTS,
        "source": TEXT,
        "target": TEXT,
        "format": choice("text", "html"),
        "alternatives": WHOLE,
        "api_key": TEXT,
    },
    ["q", "source", "target"],
)
DETECTS = takes({"q": TEXT, "api_key": TEXT}, ["q"])
CODES = {"zh": "zh-Hans"}  # as LibreTranslate writes them now; it takes any


def router(service: Service, documents: Documents) -> APIRouter:
    """Its addresses."""
    routes = APIRouter(tags=[NAME])
    _add_texts(routes, service)
    _add_files(routes, service, documents)
    _add_facts(routes, service)
    _add_rest(routes)
    return routes


def _add_texts(routes: APIRouter, service: Service) -> None:
    @routes.get("/translate")
    @routes.post("/translate", openapi_extra=TRANSLATES)
    async def translate(request: Request) -> Response:
        """Translate a text or a list. Apertium's and DeepLX's clients call this address too."""
        fields = await fields_of(request)
        if fields.has("langpair"):
            return await apertium.translate(service, request, fields)
        if fields.has("text") and not fields.has("q"):
            return await deeplx.translate(service, request, fields)
        return await _translate(service, request, fields)

    @routes.get("/languages")
    async def languages(request: Request) -> list[dict[str, Any]]:
        """Which languages there are, and into which each can be translated."""
        owner_of(service, request, await fields_of(request))
        in_chinese = request.headers.get("accept-language", "").lower().startswith("zh")
        return [
            {
                "code": _code(source),
                "name": name_of(source, in_chinese),
                "targets": [_code(target) for target in service.models.targets(source)],
            }
            for source in service.models.sources()
        ]

    @routes.post("/detect", openapi_extra=DETECTS)
    async def detect_language(request: Request) -> list[dict[str, Any]]:
        """The language of a text, by its script."""
        fields = await fields_of(request)
        owner = owner_of(service, request, fields)
        text = fields.text("q")
        admit(service, request, owner, [text])
        found = detect(text)
        return [{"confidence": found.confidence, "language": _code(found.language or "en")}]


def _add_facts(routes: APIRouter, service: Service) -> None:
    @routes.get("/frontend/settings")
    async def settings() -> dict[str, Any]:
        """What a front end may ask for."""
        targets = service.models.targets() or ["en"]
        return {
            "apiKeys": bool(service.keys.owners),
            "charLimit": service.limits.chars,
            "filesTranslation": True,
            "frontendTimeout": 500,
            "keyRequired": bool(service.keys.owners),
            "language": {
                "source": {"code": "auto", "name": "Auto Detect"},
                "target": {"code": _code(targets[0]), "name": name_of(targets[0])},
            },
            "suggestions": False,
            "supportedFilesFormat": list(FORMATS),
        }


def _add_files(routes: APIRouter, service: Service, documents: Documents) -> None:
    @routes.post("/translate_file")
    async def translate_file(request: Request) -> dict[str, Any]:
        """Translate a file; the answer says where the translation is to be had."""
        fields = await fields_of(request)
        owner = owner_of(service, request, fields)
        file = fields.file("file")
        wanted = _wanted(fields, [])
        job = await documents.take(service, file, wanted)
        admit(service, request, owner, job.texts)
        await documents.translate(service, job, wanted)
        url = f"{base_of(request)}download_file/{job.id}.{quote(file.name)}"
        return {"translatedFileUrl": url, **({"untranslated": job.n_left} if job.n_left else {})}

    @routes.get("/download_file/{name}")
    async def download_file(name: str) -> Response:
        """A translated file."""
        return documents.download(name.partition(".")[0])


def _add_rest(routes: APIRouter) -> None:
    @routes.post("/suggest")
    async def suggest() -> Response:
        """Suggestions are not collected."""
        return JSONResponse({"error": "Suggestions are disabled on this server."}, 403)

    @routes.get("/health")
    async def health() -> dict[str, str]:
        """Whether the server is there."""
        return {"status": "ok"}

    @routes.get("/spec", include_in_schema=False)
    async def spec() -> Response:
        return RedirectResponse("openapi.json")


def error_table(refused: Refused) -> tuple[int, dict[str, Any]]:
    """A refusal in LibreTranslate's words."""
    values = refused.reason.values
    match refused.code:
        case "missing":
            return 400, {"error": f"Invalid request: missing {refused.field} parameter"}
        case "too_many":
            sizes = f"request ({values['found']}) exceeds text limit ({values['most']})"
            return 400, {"error": f"Invalid request: {sizes}"}
        case "wrong_value" if refused.field == "alternatives":
            most = str(values["right"]).split()[-1]
            return 400, {"error": f"Invalid request: alternatives parameter must be <= {most}"}
        case "key_missing":
            return 400, {"error": "Visit whoever runs this server to get an API key"}
        case "key_wrong":
            return 403, {"error": "Invalid API key"}
        case "busy" | "too_often":
            return 429, {"error": f"Slowdown: {refused.message}"}
        case _:
            return refused.status, {"error": refused.message}


async def _translate(service: Service, request: Request, fields: Fields) -> Response:
    owner = owner_of(service, request, fields)
    texts = fields.texts("q")
    is_list = not isinstance(fields.table["q"], str)
    wanted = _wanted(fields, texts)
    most = service.limits.beam - 1
    n_more = fields.number("alternatives", 0, most)
    admit(service, request, owner, texts)
    kind = fields.text("format", "text") or "text"
    if kind == "html":
        marked = await translate_markup(service, wanted, Rules(kind="html"))
        table = _shape(wanted, is_list, marked, [[] for _ in texts] if n_more else None)
    elif kind == "text":
        answers = await service.translate(_with_more(wanted, n_more))
        table = _shape(wanted, is_list, answers, [_others(a) for a in answers] if n_more else None)
    else:
        reason = ConfigError("{kind} format is not supported", kind=kind[:20])
        raise Refused(400, "format", reason, field="format")
    return JSONResponse(table)


def _wanted(fields: Fields, texts: Sequence[str]) -> Wanted:
    for name in ("source", "target"):
        if not fields.text(name, ""):
            raise missing(name)
    return Wanted(
        texts=texts,
        source="" if not canonical(fields.text("source")) else fields.text("source"),
        target=_target(fields.text("target")),
    )


def _target(code: str) -> str:
    if not canonical(code):
        reason = ConfigError("{code} is not supported", code=code[:20])
        raise Refused(400, "language", reason, field="target")
    return code


def _with_more(wanted: Wanted, n_more: int) -> Wanted:
    return Wanted(texts=wanted.texts, source=wanted.source, target=wanted.target, nbest=1 + n_more)


def _shape(
    wanted: Wanted, is_list: bool, answers: Sequence[Any], others: list[list[str]] | None
) -> dict[str, Any]:
    """One text has one answer, a list has lists, in the order they came."""
    table: dict[str, Any] = {"translatedText": [one.text for one in answers]}
    if not wanted.source:
        table["detectedLanguage"] = [
            {"confidence": one.confidence, "language": _code(one.source)} for one in answers
        ]
    if others is not None:
        table["alternatives"] = others
    return table if is_list else {name: values[0] for name, values in table.items()}


def _others(answer: Answer) -> list[str]:
    """The alternatives that say something else than the translation."""
    texts = dict.fromkeys(one.text for one in answer.alternatives)
    return [text for text in texts if text != answer.text]


def _code(language: str) -> str:
    return CODES.get(language, language)
