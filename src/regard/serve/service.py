"""What all protocols ask for: texts in, translations out, through the queues of two workers.

The quick worker runs CTranslate2. The thorough one runs torch, for what CTranslate2 cannot do and
for looking inside; it is started after the quick one, or when it is first needed.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypeVar

from regard.decode.engines.ctranslate2 import ROWS, cannot
from regard.decode.results import Alternative, Translation
from regard.decode.search import Hypothesis, Ids, Scored, Search, Sentence
from regard.decode.wording import Asked, pieces_of, sentences_of
from regard.errors import ResourceError, Word
from regard.interchange.ctranslate2 import inexpressible
from regard.processors import n_processors
from regard.serve.batcher import ANY, Batcher
from regard.serve.keys import Keys, Owner
from regard.serve.languages import TRADITIONAL, canonical, has_words
from regard.serve.limits import Limits, Rates
from regard.serve.metrics import Metrics
from regard.serve.models import Models, Served, Way
from regard.serve.refusals import Refused, too_many, wrong
from regard.serve.worker import Lane, Loading, Worker
from regard.text.normalize import Normalizer

T = TypeVar("T")
MANY = 2000  # characters that are better split and counted beside the loop than in it
SIMPLIFIED, TRADITIONAL_HAN = Normalizer(han="simplified"), Normalizer(han="traditional")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Texts, and how they are to be translated; what is left open is the model's own choice."""

    texts: Sequence[str]
    source: str = ""  # empty: told by the script
    target: str = ""
    model: str = ""
    beam: int | None = None
    nbest: int = 1
    prefix: str = ""
    terms: Mapping[str, str] = field(default_factory=dict)
    wants_alignment: bool = False
    wants_log_probs: bool = False
    is_part: bool = False  # of a request whose size was checked
    is_document: bool = False  # not refused for its size or the time it takes


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of a translation, or its end, and how probable it was."""

    piece: str
    log_prob: float


@dataclass(frozen=True, slots=True)
class Answer:
    """A translation, and how it came about."""

    text: str
    source: str  # the language it was translated from
    target: str
    confidence: float  # from 0 to 100, that the text was in that language
    model: str
    alternatives: tuple[Alternative, ...]
    pieces: tuple[tuple[Piece, ...], ...] = ()  # of each alternative, where asked for


class Service:
    """Models, queues, keys and limits: all that a protocol needs."""

    def __init__(
        self,
        models: Models,
        *,
        limits: Limits,
        keys: Keys,
        device: str = "cpu",
        dtype: Literal["auto", "float32", "int8"] = "auto",
        logs_text: bool = False,
        is_lean: bool = False,
        runs: Sequence[Path] = (),
    ) -> None:
        self.models, self.limits, self.keys, self.runs = models, limits, keys, tuple(runs)
        self.metrics = Metrics()
        self.request_rates = Rates(limits.requests_per_minute)
        self.char_rates = Rates(limits.chars_per_minute)
        self.is_leaving = False
        self.device, self.dtype = device, dtype
        self.logs_text, self.is_lean = logs_text, is_lean
        self.lanes: dict[Lane, Batcher] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._count()

    # --- a life

    def start(self) -> None:
        """Begin to load what every request needs."""
        self.lane(self.main_lane)

    def start_rest(self) -> None:
        """Begin to load what some requests need, when all others can be answered already."""
        if not self.is_lean:
            self.lane("thorough")

    async def stop(self) -> None:
        """Let the workers go."""
        await asyncio.gather(*(lane.worker.stop() for lane in self.lanes.values()))
        for task in self._tasks:
            task.cancel()

    @property
    def main_lane(self) -> Lane:
        """The lane without which there is no service."""
        is_quick = any(self._has_quick(served) for served in self.models.all)
        return "quick" if is_quick else "thorough"

    @property
    def is_ready(self) -> bool:
        """Whether a request would be answered now."""
        lane = self.lanes.get(self.main_lane)
        is_loaded = lane is not None and lane.worker.ready.is_set()
        return is_loaded and lane is not None and not lane.is_full and not self.is_leaving

    def lane(self, name: Lane) -> Batcher:
        """A lane, started if it is not there yet."""
        if name not in self.lanes:
            paths = tuple(served.bundle.path for served in self.models.all)
            metrics = self.metrics
            worker = Worker(
                name,
                Loading(paths, self.device, self.dtype),
                on_restart=lambda: metrics.restarts.update([name]),
            )
            rows = ROWS * n_processors() if name == "quick" else ANY
            self.lanes[name] = Batcher(worker, self.limits, metrics, rows)
            for run in (worker.run(), self.lanes[name].run()):
                self._tasks.append(asyncio.get_running_loop().create_task(run))
        return self.lanes[name]

    # --- who asks

    def admit(self, owner: Owner, address: str, n_chars: int) -> None:
        """Count a request and its characters, or refuse it."""
        # Limits are each key's own; without keys, each address's.
        client = f"key {owner.name}" if owner.is_known else f"address {address}"
        self.request_rates.take(client, 1)
        self.char_rates.take(client, n_chars)
        owner.count(n_chars)
        self.metrics.chars += n_chars

    # --- what is asked

    async def translate(self, wanted: Wanted) -> list[Answer]:
        """The translation of each text, in order."""
        self.check(wanted)
        # Documents have time, and what goes to the other queue need not wait in this one.
        is_elsewhere = wanted.is_document or wanted.terms or wanted.prefix
        n_chars = 0 if is_elsewhere else sum(map(len, wanted.texts))
        self.lane(self.main_lane).check_room(n_chars)  # before there is any work in it
        answers: list[Answer | None] = [None] * len(wanted.texts)
        groups: dict[int, list[tuple[int, Way]]] = {}
        for place, text in enumerate(wanted.texts):
            way = self.models.way(
                text if has_words(text) else "", wanted.source, wanted.target, wanted.model
            )
            if has_words(text):
                groups.setdefault(way.served.number, []).append((place, way))
            else:  # nothing to translate, so nothing to get wrong
                answers[place] = _as_it_is(text, way)
        asking = [self._translate_group(wanted, group) for group in groups.values()]
        found = [await asking[0]] if len(asking) == 1 else await asyncio.gather(*asking)
        for group, some in zip(groups.values(), found, strict=True):
            for (place, _), answer in zip(group, some, strict=True):
                answers[place] = answer
        return [answer for answer in answers if answer is not None]

    async def ask(self, question: str, *arguments: Any) -> Any:
        """A question for the thorough worker."""
        return await self.lane("thorough").ask(question, *arguments)

    async def score(self, served: Served, pairs: Sequence[tuple[Ids, Ids]]) -> list[Scored]:
        """How probable each target is after its source."""
        lane = self.lane("quick" if self._has_quick(served) else "thorough")
        scored: list[Scored] = await lane.ask("score", served.number, list(pairs))
        return scored

    async def _translate_group(
        self, wanted: Wanted, group: Sequence[tuple[int, Way]]
    ) -> list[Answer]:
        """The texts that go through one model."""
        served = group[0][1].served
        search = self.search_of(served, wanted)
        n_chars = sum(len(wanted.texts[place]) for place, _ in group)
        asked: list[Asked] = await _aside(n_chars, self._asked, wanted, group)
        sentences = sentences_of(asked)
        lane = self.lane_for(served, search, sentences)
        found = await lane.search(served.number, sentences, search, is_patient=wanted.is_document)
        translations = await _aside(n_chars, served.wording.translations, asked, found)
        answers = [
            _answer(translation, way, wanted)
            for translation, (_, way) in zip(translations, group, strict=True)
        ]
        if not wanted.wants_log_probs:
            return answers
        pieces = await self._pieces(served, sentences, found)
        return _with_pieces(answers, asked, pieces)

    async def _pieces(
        self,
        served: Served,
        sentences: Sequence[Sentence],
        found: Sequence[Sequence[Hypothesis]],
    ) -> list[list[tuple[Piece, ...]]]:
        """How probable each piece of each hypothesis of each sentence is."""
        eos = served.wording.tgt.vocab.eos
        pairs = [
            (sentence.ids, (*one.ids, eos) if one.is_finished else one.ids)
            for sentence, own in zip(sentences, found, strict=True)
            for one in own
        ]
        scored = iter(await self.score(served, pairs))
        names = iter([pieces_of(served.wording.tgt, ids) for _, ids in pairs])
        return [
            [tuple(map(Piece, next(names), next(scored).log_probs)) for _ in own] for own in found
        ]

    def lane_for(self, served: Served, search: Search, sentences: Sequence[Sentence]) -> Batcher:
        """The quick lane where it can do what is asked, else the thorough one."""
        if not self._has_quick(served) or cannot(served.bundle.model, search, sentences):
            return self.lane("thorough")
        return self.lane("quick")

    def search_of(self, served: Served, wanted: Wanted) -> Search:
        """The model's own search, but for what is asked otherwise."""
        beam = served.search.beam if wanted.beam is None else wanted.beam
        return replace(
            served.search,
            beam=max(beam, wanted.nbest),
            nbest=wanted.nbest,
            wants_attention=wanted.wants_alignment,
        )

    def _asked(self, wanted: Wanted, group: Sequence[tuple[int, Way]]) -> list[Asked]:
        texts = [wanted.texts[place] for place, _ in group]
        if canonical(wanted.source) == TRADITIONAL:
            texts = [SIMPLIFIED(text) for text in texts]
        directions = [way.direction for _, way in group]
        wording = group[0][1].served.wording
        return wording.asked(texts, directions, prefix=wanted.prefix, terms=wanted.terms)

    def check(self, wanted: Wanted) -> None:
        """Refuse more than is taken in one request."""
        if wanted.nbest > self.limits.beam or (wanted.beam or 1) > self.limits.beam:
            raise wrong(
                "beam", str(max(wanted.nbest, wanted.beam or 1)), f"1 to {self.limits.beam}"
            )
        if len(wanted.terms) > self.limits.terms:
            raise too_many("terms", len(wanted.terms), self.limits.terms)
        if wanted.is_document or wanted.is_part:
            return
        if len(wanted.texts) > self.limits.texts:
            raise too_many(Word("the number of texts"), len(wanted.texts), self.limits.texts)
        for text in (*wanted.texts, wanted.prefix):
            if len(text) > self.limits.chars:
                raise too_many(Word("the number of characters"), len(text), self.limits.chars)

    def _has_quick(self, served: Served) -> bool:
        return self.device == "cpu" and inexpressible(served.bundle.model) is None

    def _count(self) -> None:
        """Let the metrics see what waits."""
        now = self.metrics.now
        now["regard_ready"] = lambda: float(self.is_ready)
        lanes = self.lanes
        now["regard_queue_requests"] = lambda: float(sum(len(x.queue) for x in lanes.values()))
        now["regard_queue_tokens"] = lambda: float(sum(x.n_tokens for x in lanes.values()))
        now["regard_queue_seconds"] = lambda: sum(x.seconds() for x in lanes.values())


def out_of_time(seconds: float) -> Refused:
    """The deadline has passed."""
    reason = ResourceError(
        "the request was not done within {seconds:g} s; ask for less at once, or again later",
        seconds=seconds,
    )
    return Refused(503, "deadline", reason, retry_after=2)


def _answer(translation: Translation, way: Way, wanted: Wanted) -> Answer:
    alternatives = translation.alternatives
    target = way.direction[1]
    if canonical(wanted.target) == TRADITIONAL:
        target = TRADITIONAL
        alternatives = tuple(replace(one, text=TRADITIONAL_HAN(one.text)) for one in alternatives)
    return Answer(
        alternatives[0].text,
        way.direction[0],
        target,
        way.confidence,
        way.served.name,
        alternatives,
    )


def _as_it_is(text: str, way: Way) -> Answer:
    alternative = Alternative(text, 0.0, True)
    return Answer(
        text, way.direction[0], way.direction[1], way.confidence, way.served.name, (alternative,)
    )


def _with_pieces(
    answers: Sequence[Answer], asked: Sequence[Asked], pieces: Sequence[list[tuple[Piece, ...]]]
) -> list[Answer]:
    """The answers with the pieces of all their sentences, one after the other."""
    rest = iter(pieces)
    completed = []
    for answer, one in zip(answers, asked, strict=True):
        parts = [next(rest) for sentence in one.sentences if sentence is not None]
        ranks = range(len(answer.alternatives))
        own = tuple(
            tuple(piece for part in parts for piece in part[min(rank, len(part) - 1)])
            for rank in ranks
        )
        completed.append(replace(answer, pieces=own))
    return completed


async def _aside(n_chars: int, function: Callable[..., T], *arguments: Any) -> T:
    """A function's result; where there is much text, it runs beside the loop and not in it."""
    if n_chars <= MANY:
        return function(*arguments)
    return await asyncio.to_thread(function, *arguments)
