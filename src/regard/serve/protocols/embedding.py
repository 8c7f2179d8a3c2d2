"""The server's own API for the first step of a network: what a token is before it looks around."""

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, Response

from regard.serve.asking import admit, owner_of
from regard.serve.fields import Fields
from regard.serve.protocols.looking import MOST, floats, way_of
from regard.serve.refusals import too_many
from regard.serve.schema import REFUSALS, Asking, asked, described
from regard.serve.service import Service, Wanted


class Embed(Asking):
    """A text whose tokens are looked up."""

    text: str


def router(service: Service) -> APIRouter:
    """Its address."""
    routes = APIRouter(prefix="/api/v1", tags=["native"], responses=REFUSALS)

    @routes.post("/embed", openapi_extra=described(Embed))
    async def embed(request: Request) -> Response:
        """The tokens of a source, their ids and their vectors, before positions are added."""
        owner = owner_of(service, request, Fields({}))
        wanted = await asked(Embed, request)
        admit(service, request, owner, [wanted.text])
        service.check(Wanted(texts=[wanted.text]))
        way = way_of(service, wanted, wanted.text)
        src, _ = way.served.whole.pair(wanted.text, "", way.direction[1])
        if len(src) > MOST:
            raise too_many("text", len(src), MOST)
        vectors = await service.ask("embed", way.served.number, src)
        pieces = [way.served.whole.src.vocab.pieces[number] for number in src]
        table: dict[str, Any] = {"ids": list(src), "pieces": pieces, "vectors": floats(vectors)}
        return JSONResponse({**table, "trace_id": request.scope["heard"].trace})

    return routes
