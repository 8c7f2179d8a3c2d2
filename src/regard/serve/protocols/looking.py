"""The server's own API for looking inside: weights, one head's arithmetic, a search, occlusion."""

import base64
from dataclasses import replace
from typing import Any

import numpy as np
from fastapi import APIRouter, Request
from numpy.typing import NDArray
from starlette.responses import JSONResponse, Response

from regard.decode.results import links_of
from regard.decode.search import Ids, Sentence
from regard.decode.wording import pieces_of
from regard.errors import DataError
from regard.serve.asking import admit, owner_of
from regard.serve.fields import Fields
from regard.serve.languages import canonical
from regard.serve.models import Way
from regard.serve.refusals import Refused, missing
from regard.serve.schema import REFUSALS, Asking, Attend, Pair, Trace, asked, described
from regard.serve.service import Service, Wanted

MOST = 200  # pieces of either side that can be looked at: more cannot be seen


def router(service: Service) -> APIRouter:
    """Its addresses."""
    routes = APIRouter(prefix="/api/v1", tags=["native"], responses=REFUSALS)
    _add_weights(routes, service)
    _add_probabilities(routes, service)
    return routes


def _add_weights(routes: APIRouter, service: Service) -> None:
    @routes.post("/attend", openapi_extra=described(Attend))
    async def attend(request: Request) -> Response:
        """All attention weights of a translation as bytes, or one head in float32."""
        owner = owner_of(service, request, Fields({}))
        wanted = await asked(Attend, request)
        admit(service, request, owner, [wanted.text])
        pair = await _Looked.at(service, wanted)
        table = pair.table(request)
        if wanted.kind is None:
            names = ("cross", "encoder", "decoder")
            weights = await service.ask("attend", pair.number, pair.src, pair.tgt)
            table["weights"] = {
                name: None if one is None else {"shape": list(one.shape), "uint8": _bytes(one)}
                for name, one in zip(names, weights, strict=True)
            }
            return JSONResponse(table)
        place = (wanted.kind, wanted.layer, wanted.head)
        head = await service.ask("head", pair.number, pair.src, pair.tgt, *place)
        table.update(kind=wanted.kind, layer=wanted.layer, head=wanted.head)
        table.update(scale=head.scale, causal=head.is_causal, score=pair.score)
        table["weights"] = floats(head.weights)
        if wanted.vectors:
            table["query"], table["key"], table["value"] = map(
                floats, (head.query, head.key, head.value)
            )
        return JSONResponse(table)

    @routes.post("/align", openapi_extra=described(Pair))
    async def align(request: Request) -> Response:
        """Which piece of a translation comes from which piece of its source."""
        owner = owner_of(service, request, Fields({}))
        wanted = await asked(Pair, request)
        admit(service, request, owner, [wanted.text])
        pair = await _Looked.at(service, wanted)
        cross, _, _ = await service.ask("attend", pair.number, pair.src, pair.tgt)
        rows = cross[-1].mean(axis=0)[:, pair.n_asking :].tolist()
        n_src, n_tgt = len(pair.src) - 1 - pair.n_asking, len(pair.tgt) - 1
        table = pair.table(request)
        table["src_pieces"], table["tgt_pieces"] = (
            table["src_pieces"][pair.n_asking : -1],
            table["tgt_pieces"][:-1],
        )
        table["links"] = links_of(rows, n_src, n_tgt)
        table["pharaoh"] = " ".join(f"{a}-{b}" for a, b in table["links"])
        return JSONResponse(table)


def _add_probabilities(routes: APIRouter, service: Service) -> None:
    @routes.post("/occlude", openapi_extra=described(Pair))
    async def occlude(request: Request) -> Response:
        """How much less probable each piece of a translation is without each piece of its source.

        delta[i][j] = log p(target j | source) - log p(target j | source without piece i)
        """
        owner = owner_of(service, request, Fields({}))
        wanted = await asked(Pair, request)
        admit(service, request, owner, [wanted.text])
        pair = await _Looked.at(service, wanted)
        places = range(pair.n_asking, len(pair.src) - 1)
        without = [(pair.src[:i] + pair.src[i + 1 :], pair.tgt) for i in places]
        scored = await service.score(pair.way.served, [(pair.src, pair.tgt), *without])
        whole, *rest = (np.array(one.log_probs) for one in scored)
        table = pair.table(request)
        table["src_pieces"] = [table["src_pieces"][i] for i in places]
        table["log_probs"] = whole.tolist()
        table["delta"] = [(whole - one).tolist() for one in rest]
        table["total"] = [float((whole - one).sum()) for one in rest]
        return JSONResponse(table)

    @routes.post("/trace", openapi_extra=described(Trace))
    async def trace(request: Request) -> Response:
        """Every candidate of every step of a beam search, kept, finished or pruned."""
        owner = owner_of(service, request, Fields({}))
        wanted = await asked(Trace, request)
        admit(service, request, owner, [wanted.text])
        return JSONResponse(await _traced(service, wanted, request))


class _Looked:
    """A source and a translation as ids, and the model that looks at them."""

    def __init__(self, way: Way, src: Ids, tgt: Ids, text: str) -> None:
        self.way, self.src, self.tgt, self.text = way, src, tgt, text
        self.number = way.served.number
        self.n_asking = int(src[0] in way.served.wording.asking)  # tokens that are no text
        self.score = way.served.bundle.model.score

    @classmethod
    async def at(cls, service: Service, wanted: Pair) -> "_Looked":
        """The pair that is asked for; without a translation it is the model's own."""
        said = wanted.translation
        service.check(Wanted(texts=[wanted.text, said or ""]))
        way = way_of(service, wanted, wanted.text)
        if said is None:
            source, target = way.direction
            name = way.served.name
            own = Wanted(texts=[wanted.text], source=source, target=target, model=name)
            said = (await service.translate(own))[0].text
        wording = way.served.whole
        src, tgt = wording.pair(wanted.text, said, way.direction[1])
        _check_length(len(src), len(tgt))
        return cls(way, src, tgt, said)

    def table(self, request: Request) -> dict[str, Any]:
        """What every answer says."""
        wording = self.way.served.wording
        return {
            "translation": self.text,
            "from": self.way.direction[0],
            "to": self.way.direction[1],
            "model": self.way.served.name,
            "src_pieces": list(pieces_of(wording.src, self.src)),
            "tgt_pieces": list(pieces_of(wording.tgt, self.tgt)),
            "trace_id": request.scope["heard"].trace,
        }


async def _traced(service: Service, wanted: Trace, request: Request) -> dict[str, Any]:
    asking = Wanted(texts=[wanted.text], beam=wanted.beam, prefix=wanted.prefix)
    service.check(asking)
    way = way_of(service, wanted, wanted.text)
    wording = way.served.whole
    [ready] = wording.asked([wanted.text], [way.direction], prefix=wanted.prefix)
    sentences: list[Sentence] = [one for one in ready.sentences if one is not None]
    if len(sentences) != 1:
        reason = DataError(
            "a search is traced for one sentence; this text has {n}", n=len(sentences)
        )
        raise Refused(400, "too_many", reason, field="text")
    search = service.search_of(way.served, asking)
    search = replace(search, nbest=search.beam)
    _check_length(len(sentences[0].ids), len(sentences[0].prefix))
    found = await service.ask("trace", way.served.number, sentences[0], search)
    pieces = wording.tgt.vocab.pieces
    return {
        "from": way.direction[0],
        "to": way.direction[1],
        "model": way.served.name,
        "beam": search.beam,
        "length_penalty": search.length_penalty,
        "src_pieces": list(pieces_of(wording.src, sentences[0].ids)),
        "steps": [
            [
                {
                    "parent": one.parent,
                    "piece": pieces[one.word],
                    "log_prob": one.log_prob,
                    "total": one.total,
                    "score": one.score,
                    "fate": one.fate,
                }
                for one in step
            ]
            for step in found.steps
        ],
        "hypotheses": [
            {
                "text": wording.tgt.decode(one.ids),
                "pieces": list(pieces_of(wording.tgt, one.ids)),
                "score": one.score,
                "finished": one.is_finished,
            }
            for one in found.hypotheses
        ],
        "trace_id": request.scope["heard"].trace,
    }


def way_of(service: Service, wanted: Asking, text: str) -> Way:
    """Where a text that is to be looked at goes."""
    if not text.strip():
        raise missing("text")
    source, target = (code if canonical(code) else "" for code in (wanted.source, wanted.target))
    return service.models.way(text, source, target, wanted.model)


def _check_length(n_src: int, n_tgt: int) -> None:
    if max(n_src, n_tgt) > MOST:
        reason = DataError(
            "{pieces} pieces are more than the {most} that can be looked at; give one sentence",
            pieces=max(n_src, n_tgt),
            most=MOST,
        )
        raise Refused(400, "too_many", reason, field="text")


def _bytes(weights: NDArray[np.float32]) -> str:
    """Weights from 0 to 1 as bytes from 0 to 255."""
    return base64.b64encode(np.rint(weights * 255).astype(np.uint8).tobytes()).decode()


def floats(numbers: NDArray[np.float32]) -> dict[str, Any]:
    """Numbers as little-endian float32."""
    data = np.ascontiguousarray(numbers, dtype="<f4").tobytes()
    return {"shape": list(numbers.shape), "float32": base64.b64encode(data).decode()}
