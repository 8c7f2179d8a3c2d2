"""Texts with tags in them, as protocols send them, through `regard.document`.

The document room asks for sentences and waits for them, so it runs beside the loop; its questions
go through the same queue as everybody's.
"""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from regard.decode.results import Translation
from regard.document.markup import Marked, translate_marked
from regard.document.parts import Rules
from regard.errors import DataError, RegardError
from regard.serve.beside import Beside
from regard.serve.languages import has_words
from regard.serve.models import Way
from regard.serve.refusals import Refused
from regard.serve.service import Service, Wanted

_TAG = re.compile(r"<[^<>]*>")


@dataclass(frozen=True, slots=True)
class MarkedAnswer:
    """A marked text's translation, its markup in place."""

    text: str
    source: str
    target: str
    confidence: float


async def translate_markup(service: Service, wanted: Wanted, rules: Rules) -> list[MarkedAnswer]:
    """Each text with its tags, translated; one whose tags cannot be kept is refused."""
    service.check(wanted)
    ways = [_way(service, text, wanted) for text in wanted.texts]
    answers: list[MarkedAnswer | None] = [None] * len(ways)
    for direction in dict.fromkeys((way.direction, way.served.name) for way in ways):
        places = [n for n, w in enumerate(ways) if (w.direction, w.served.name) == direction]
        texts = [wanted.texts[place] for place in places]
        own = replace(wanted, source=wanted.source or direction[0][0], model=direction[1])
        for place, marked in zip(places, await _marked(service, own, texts, rules), strict=True):
            if marked.text is None:
                raise _not_kept(place, marked.reason or "")
            way = ways[place]
            answers[place] = MarkedAnswer(marked.text, *way.direction, way.confidence)
    return [answer for answer in answers if answer is not None]


async def _marked(
    service: Service, wanted: Wanted, texts: Sequence[str], rules: Rules
) -> list[Marked]:
    beside = Beside(asyncio.get_running_loop())

    def translate(sentences: list[str]) -> list[Translation]:
        own = replace(wanted, texts=sentences, wants_alignment=True, is_part=True)
        return [
            Translation(sentence, answer.source, answer.target, answer.alternatives)
            for sentence, answer in zip(sentences, beside.wait(service.translate(own)), strict=True)
        ]

    return await beside.run(translate_marked, texts, translate, rules)


def _way(service: Service, text: str, wanted: Wanted) -> Way:
    bare = _TAG.sub(" ", text)
    shown = bare if has_words(bare) else ""
    return service.models.way(shown, wanted.source, wanted.target, wanted.model)


def _not_kept(place: int, reason: str) -> Refused:
    error: RegardError = DataError(
        "text {number} could not be translated with all its tags in place ({reason}); send it in "
        "smaller parts",
        number=place + 1,
        reason=reason,
    )
    return Refused(400, "tags", error)
