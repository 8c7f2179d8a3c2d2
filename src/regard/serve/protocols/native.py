"""The server's own API, which its page speaks: translations, scores, models."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from dataclasses import asdict
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from regard.decode.search import Hypothesis
from regard.decode.wording import Asked, pieces_of
from regard.errors import DataError, RegardError, Word
from regard.serve.asking import admit, owner_of
from regard.serve.fields import Fields
from regard.serve.languages import TRADITIONAL, canonical
from regard.serve.models import Way
from regard.serve.refusals import Refused, too_many, wrong
from regard.serve.schema import REFUSALS, Score, Translate, asked, described
from regard.serve.service import Answer, Service, Wanted, out_of_time

NAME = "native"
LAST_LINE = 0.05  # seconds before the deadline, in which a stream says that it is cut


def router(service: Service) -> APIRouter:
    """Its addresses."""
    routes = APIRouter(prefix="/api/v1", tags=[NAME], responses=REFUSALS)
    _add_texts(routes, service)
    _add_models(routes, service)
    return routes


def _add_texts(routes: APIRouter, service: Service) -> None:
    @routes.post("/translate", openapi_extra=described(Translate))
    async def translate(request: Request) -> Response:
        """Translate a text or a list of texts."""
        owner = owner_of(service, request, Fields({}))
        wanted = await asked(Translate, request)
        texts = [wanted.text] if isinstance(wanted.text, str) else wanted.text
        admit(service, request, owner, texts)
        if wanted.stream:
            return await _stream(service, wanted, texts)
        started = time.monotonic()
        answers = await service.translate(_wanted(wanted, texts))
        return JSONResponse(
            {
                "translations": [_shape(one) for one in answers],
                "ms": round(1000 * (time.monotonic() - started), 1),
                "trace_id": request.scope["heard"].trace,
            }
        )

    @routes.post("/score", openapi_extra=described(Score))
    async def score(request: Request) -> Response:
        """How probable translations are, piece by piece."""
        owner = owner_of(service, request, Fields({}))
        wanted = await asked(Score, request)
        texts, said = (
            [side] if isinstance(side, str) else side for side in (wanted.text, wanted.translation)
        )
        if len(texts) != len(said):
            reason = DataError(
                "there are {sources} sources but {targets} translations; they are scored in pairs",
                sources=len(texts),
                targets=len(said),
            )
            raise Refused(400, "wrong_value", reason, field="translation")
        admit(service, request, owner, texts)
        scores = await _scores(service, wanted, texts, said)
        return JSONResponse({"scores": scores, "trace_id": request.scope["heard"].trace})


def _add_models(routes: APIRouter, service: Service) -> None:
    @routes.get("/models")
    async def models() -> dict[str, Any]:
        """Which models there are, what they are, and how much is taken at once."""
        limits = service.limits
        return {
            "models": [
                {
                    "name": served.name,
                    "directions": [{"from": src, "to": tgt} for src, tgt in served.directions],
                    "network": served.bundle.model.in_words,
                    "beam": served.search.beam,
                    "longest": served.whole.longest,
                    "vocabulary": [
                        len(served.wording.src.vocab.pieces),
                        len(served.wording.tgt.vocab.pieces),
                    ],
                    "model": asdict(served.bundle.model),
                    "dev": served.bundle.facts.get("dev", {}),
                }
                for served in service.models.all
            ],
            "limits": {"texts": limits.texts, "chars": limits.chars, "beam": limits.beam},
        }


def error_table(refused: Refused, trace: str = "") -> tuple[int, dict[str, Any]]:
    """A refusal, typed."""
    return refused.status, {
        "error": {
            "code": refused.code,
            "message": refused.message,
            "message_zh": refused.message_zh,
            "field": refused.field,
            "trace_id": trace,
        }
    }


def _wanted(asked: Translate, texts: list[str]) -> Wanted:
    return Wanted(
        texts=texts,
        source=asked.source if canonical(asked.source) else "",
        target=asked.target if canonical(asked.target) else "",
        model=asked.model,
        beam=asked.beam,
        nbest=asked.nbest,
        prefix=asked.prefix,
        terms=asked.terms,
        wants_alignment=asked.alignments,
        wants_log_probs=asked.log_probs,
    )


def _shape(answer: Answer) -> dict[str, Any]:
    alternatives = []
    for rank, one in enumerate(answer.alternatives):
        table: dict[str, Any] = {
            "text": one.text,
            "score": one.score,
            "finished": one.is_finished,
        }
        if one.alignment is not None:
            found = one.alignment
            table["alignment"] = {
                "src_pieces": found.src_pieces,
                "tgt_pieces": found.tgt_pieces,
                "links": found.links,
            }
        if answer.pieces:
            table["pieces"] = [asdict(piece) for piece in answer.pieces[rank]]
        alternatives.append(table)
    return {
        "text": answer.text,
        "from": answer.source,
        "to": answer.target,
        "confidence": answer.confidence,
        "model": answer.model,
        "score": answer.alternatives[0].score,
        "finished": answer.alternatives[0].is_finished,
        "alternatives": alternatives,
    }


async def _scores(
    service: Service, asked: Score, texts: list[str], said: list[str]
) -> list[dict[str, Any]]:
    service.check(Wanted(texts=texts))
    service.check(Wanted(texts=said))
    scores = []
    for text, translation in zip(texts, said, strict=True):
        way = service.models.way(text, asked.source, asked.target, asked.model)
        wording = way.served.whole
        src, tgt = wording.pair(text, translation, way.direction[1])
        [found] = await service.score(way.served, [(src, tgt)])
        total = sum(found.log_probs)
        scores.append(
            {
                "pieces": list(pieces_of(wording.tgt, tgt)),
                "log_probs": list(found.log_probs),
                "log_prob": total,
                "mean_log_prob": total / len(tgt),
            }
        )
    return scores


async def _stream(service: Service, asked: Translate, texts: list[str]) -> Response:
    """The pieces of one sentence as the network chooses them, and at last the whole."""
    way, ready = _to_stream(service, asked, texts)
    wording = way.served.wording
    sentences = [one for one in ready.sentences if one is not None]
    parts: asyncio.Queue[dict[str, Any] | Exception] = asyncio.Queue()

    async def write() -> None:
        found: list[list[Hypothesis]] = []
        try:
            for number, sentence in enumerate(sentences):
                said: list[int] = []

                def on_part(word: int, number: int = number, said: list[int] = said) -> None:
                    said.append(word)
                    ended = word == wording.tgt.vocab.eos
                    text = wording.tgt.decode(said[:-1] if ended else said)
                    piece = wording.tgt.vocab.pieces[word]
                    parts.put_nowait({"part": number, "piece": piece, "text": text})

                lane = service.lane("thorough")
                question = ("write", way.served.number, sentence)
                found.append([await lane.ask(*question, on_part=on_part)])
            [translation] = wording.translations([ready], found)
            done = {"text": translation.text, "finished": translation.is_finished}
            parts.put_nowait(
                {"done": True, **done, "from": way.direction[0], "to": way.direction[1]}
            )
        except (Refused, RegardError) as error:
            parts.put_nowait(error)

    until = asyncio.get_running_loop().time() + service.limits.deadline - LAST_LINE
    writing = asyncio.ensure_future(write())
    try:
        # Before anything is said, a refusal has a status, and the deadline is everybody's.
        first = await parts.get()
        if isinstance(first, Exception):
            raise first
    except BaseException:
        writing.cancel()
        raise

    async def lines() -> AsyncIterator[bytes]:
        part: dict[str, Any] | Exception = first
        try:
            while True:
                table = _error_line(part) if isinstance(part, Exception) else part
                yield json.dumps(table, ensure_ascii=False).encode() + b"\n"
                if "done" in table or "error" in table:
                    return
                try:
                    async with asyncio.timeout_at(until):
                        part = await parts.get()
                except TimeoutError:
                    part = out_of_time(service.limits.deadline)
        finally:
            writing.cancel()

    return StreamingResponse(lines(), media_type="application/x-ndjson")


def _error_line(error: Exception) -> dict[str, Any]:
    """What went wrong after the first word, as the last line."""
    if isinstance(error, Refused):
        return error_table(error)[1]
    return {"error": {"message": str(error)}}


def _to_stream(service: Service, asked: Translate, texts: list[str]) -> tuple[Way, Asked]:
    """By which model, and the text as it is asked; or why it cannot come piece by piece."""
    wanted = _wanted(asked, texts)
    service.check(wanted)
    if len(texts) != 1:
        raise too_many(Word("the number of texts"), len(texts), 1)
    if asked.nbest != 1 or asked.terms or asked.alignments or (asked.beam or 1) != 1:
        raise wrong("stream", "true", "alone: greedy, without nbest, terms and alignments")
    if canonical(asked.target) == TRADITIONAL:
        raise wrong("stream", "true", "to another language: this script is made of the whole text")
    way = service.models.way(texts[0], wanted.source, wanted.target, wanted.model)
    [ready] = way.served.wording.asked(texts, [way.direction], prefix=wanted.prefix)
    return way, ready
