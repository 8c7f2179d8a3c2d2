"""The application: every protocol at its addresses, one gate before them all."""

from collections.abc import Callable
from typing import Any, get_type_hints

from fastapi import APIRouter, FastAPI, Request
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Scope

from regard import __version__
from regard.errors import DataError, RegardError, Word
from regard.serve import pages
from regard.serve.asking import owner_of
from regard.serve.documents import Documents
from regard.serve.fields import fields_of
from regard.serve.gate import Doors, Gate
from regard.serve.glossaries import Glossaries
from regard.serve.protocols import (
    apertium,
    deepl,
    deepl_documents,
    deepl_glossaries,
    deeplx,
    embedding,
    immersive,
    libretranslate,
    looking,
    native,
    runs,
)
from regard.serve.refusals import Refused, fault_inside, not_found, refusal_of
from regard.serve.service import Service

PREFIXES = (
    ("/api/", native.NAME),
    ("/v2/", deepl.NAME),
    ("/imme", immersive.NAME),
    ("/deeplx", deeplx.NAME),
    ("/listPairs", apertium.NAME),
    ("/listLanguageNames", apertium.NAME),
    ("/identifyLang", apertium.NAME),
    *((path, "server") for path in ("/healthz", "/readyz", "/metrics", "/openapi.json", "/page")),
)
"""Who speaks at an address; at all others it is LibreTranslate."""
SHAPES: dict[str, Callable[[Refused], tuple[int, dict[str, Any]]]] = {
    apertium.NAME: apertium.error_table,
    deepl.NAME: deepl.error_table,
    deeplx.NAME: deeplx.error_table,
    immersive.NAME: immersive.error_table,
    libretranslate.NAME: libretranslate.error_table,
}


def build_app(service: Service, doors: Doors) -> ASGIApp:
    """All of it."""
    # No pages of FastAPI's own: they load their scripts from elsewhere.
    app = FastAPI(
        title="regard", version=__version__, docs_url=None, redoc_url=None, redirect_slashes=False
    )
    glossaries, documents = Glossaries(service.limits), Documents(service.limits)
    routers = (  # those that are asked most come first, for they are looked through in order
        libretranslate.router(service, documents),
        deepl.router(service, glossaries),
        immersive.router(service),
        deeplx.router(service),
        native.router(service),
        looking.router(service),
        embedding.router(service),
        runs.router(service),
        deepl_glossaries.router(service, glossaries),
        deepl_documents.router(service, documents, glossaries),
        apertium.router(service),
        pages.router(service),
    )
    app.router.routes += [plain for router in routers for plain in _plain(router)]
    for router in routers:
        app.include_router(router)
    _watch(app, service)
    _refuse_in_shape(app)
    return Gate(app, service, doors, shaped, protocol_of)


def protocol_of(scope: Scope) -> str:
    """Which protocol a request speaks: by its address, or as its handler has found."""
    if "protocol" in scope:
        return str(scope["protocol"])
    path: str = scope["path"]
    return next((name for prefix, name in PREFIXES if path.startswith(prefix)), "libretranslate")


def shaped(scope: Scope, refused: Refused) -> Response:
    """A refusal as the client's protocol says it."""
    heard = scope["heard"]
    heard.facts["refused"] = refused.code
    shape = SHAPES.get(protocol_of(scope))
    if shape is None:
        status, table = native.error_table(refused, heard.trace)
    else:
        status, table = shape(refused)
    headers = {"retry-after": str(refused.retry_after)} if refused.retry_after else {}
    if refused.code in ("too_large", "bad_length"):  # what was not read is not read later either
        headers["connection"] = "close"
    return JSONResponse(table, status, headers)


def _plain(router: APIRouter) -> list[Route]:
    """Handlers that take a request and give a response, to be called without more ado.

    FastAPI's own routes describe them; what else it does for a call is not needed for these, and
    takes as long as they do.
    """
    return [
        Route(route.path, route.endpoint, methods=sorted(route.methods or ()))
        for route in router.routes
        if isinstance(route, APIRoute)
        and get_type_hints(route.endpoint) == {"request": Request, "return": Response}
    ]


def _watch(app: FastAPI, service: Service) -> None:
    """What those who run the server ask."""

    @app.get("/healthz", tags=["server"])
    async def healthz() -> dict[str, str]:
        """Whether the process is there."""
        return {"status": "ok"}

    @app.get("/readyz", tags=["server"], responses={503: {"description": "Not yet, or no more."}})
    async def readyz() -> Response:
        """Whether a translation would be answered now."""
        is_ready = service.is_ready
        return JSONResponse({"ready": is_ready}, 200 if is_ready else 503)

    @app.get("/metrics", tags=["server"])
    async def metrics(request: Request) -> Response:
        """Numbers for Prometheus; where there are keys, for who has one."""
        owner_of(service, request, await fields_of(request))
        return PlainTextResponse(service.metrics.text(), media_type="text/plain; version=0.0.4")


def _refuse_in_shape(app: FastAPI) -> None:
    """Every way to fail ends in the words of the protocol."""

    async def refused(request: Request, error: Exception) -> Response:
        match error:
            case Refused():
                return shaped(request.scope, error)
            case RegardError():
                return shaped(request.scope, refusal_of(error))
            case HTTPException(status_code=405):
                reason = DataError("this address does not take {method}", method=request.method)
                response = shaped(request.scope, Refused(405, "method", reason))
                response.headers.update(error.headers or {})
                return response
            case HTTPException(status_code=404):
                return shaped(request.scope, not_found(Word("such address")))
            case _:
                return shaped(request.scope, fault_inside())

    for kind in (Refused, RegardError, HTTPException, Exception):
        app.add_exception_handler(kind, refused)
