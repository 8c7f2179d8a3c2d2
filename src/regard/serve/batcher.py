"""One queue for all clients: sentences of many requests become batches for one worker.

request -> sentences -> queue, bounded in requests, tokens and time -> batch -> worker -> answers

- A batch goes out when the worker is free. If there has just been company it is waited for, as
  long as some keep coming and a tenth of what the last batch took, because many sentences cost
  little more than one.
- A batch is about a second of work at most, by how long the last ones took. So a long request is
  answered in many batches, with those of others between them, and who is gone, or out of time,
  has no sentence in the next one.
- Who has waited longest comes first, but for a quarter of each batch, which is for those who want
  little: a sentence does not wait for a book, and the book has its deadline too.
- What would not be done in time is refused at once, for work that is thrown away helps nobody.
- Those in a batch whose worker died are asked once more, each alone; who kills two is refused.

Inside a batch the engine puts sentences of like lengths together.
"""

import asyncio
import logging
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from regard.decode.search import Hypothesis, Search, Sentence
from regard.errors import RegardError, ResourceError
from regard.serve.limits import Limits
from regard.serve.metrics import Metrics
from regard.serve.refusals import Refused, fault_inside
from regard.serve.worker import Worker, WorkerDied

log = logging.getLogger("regard.serve")

SLOW = 1 / 500  # seconds for the work of a token, until it has been measured
FEWEST = 256.0  # tokens' work in a batch: less does not pay
LONG = 128  # tokens, each of which is twice the work of one in a short sentence
HANGS = 60.0  # seconds after which a worker is taken for dead
LITTLE = 64.0  # tokens' work, of who need not wait for the others
MUCH = 256  # characters, which are more than little in any language
# The pace of late was maybe learned while it was quiet. When many come at once it falls, for to
# answer them all, if only with a refusal, takes the same processors. So who is let in has to be
# done in time at a slower pace; a guess is slow enough. Of the deadline there may be taken:
SLOWER = 2.0  # times what a token took of late
FULL = 0.5  # before one who wants more than little
DONE = 0.8  # with that one; the rest is for the batch that it shares with those behind it
LAST = 0.6  # by the pace of late, with one who wants little, who goes before others
QUIET = 0.004  # seconds in which nobody comes, so that nobody else is waited for
WAITS = 0.1  # of the time the last batch took may be waited for company
LEARNS = 0.3  # how much the last batch counts when the next is estimated

ANY = 10**6

Key = tuple[int, Search]


@dataclass(eq=False)
class Waiting:
    """A request in the queue: sentences to search for, or one other question."""

    key: Key | None  # None: another question
    answer: asyncio.Future[Any]
    sentences: Sequence[Sentence] = ()
    question: tuple[str, tuple[Any, ...]] | None = None
    on_part: Callable[[Any], None] | None = None
    asked: int = 0  # how many of the sentences are in a batch or found
    found: list[list[Hypothesis]] = field(default_factory=list)
    deaths: int = 0  # of workers at its hands, maybe

    def __post_init__(self) -> None:
        self.n_tokens = sum(len(one.ids) for one in self.sentences)
        self.ends = list(accumulate(map(work_of, self.sentences), initial=0.0))

    def rest(self) -> float:
        """Work not asked for yet."""
        return self.ends[-1] - self.ends[min(self.asked, len(self.sentences))]


Part = tuple[Waiting, int, int]
"""Of a request, from which sentence to which."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Sentences of several requests: of each so many, from where it has come to."""

    key: Key
    parts: list[Part]

    @property
    def sentences(self) -> list[Sentence]:
        """All of them."""
        return [one for who, start, end in self.parts for one in who.sentences[start:end]]

    @property
    def work(self) -> float:
        """The work of all of them."""
        return sum(who.ends[end] - who.ends[start] for who, start, end in self.parts)

    @property
    def requests(self) -> list[Waiting]:
        """Each request of which there is a part, once."""
        return list(dict.fromkeys(who for who, _, _ in self.parts))


class Batcher:
    """The queue of one worker."""

    def __init__(self, worker: Worker, limits: Limits, metrics: Metrics, rows: int = ANY) -> None:
        """`rows` are the hypotheses, of all sentences together, that the engine has at once."""
        self.worker, self.limits, self.metrics, self.rows = worker, limits, metrics, rows
        self.queue: list[Waiting] = []  # in the order they came; also those being answered
        self.pace: dict[
            tuple[int, int], float
        ] = {}  # seconds for a token's work, by model and beam
        self._is_new = asyncio.Event()
        self._n_came = 0
        self._company_for = 0.0  # seconds to wait for company; 0 if there has been none
        self._free_at = 0.0  # when the batch that runs will be done, by the pace

    # --- for those who ask

    async def search(
        self, model: int, sentences: Sequence[Sentence], search: Search, *, is_patient: bool = False
    ) -> list[list[Hypothesis]]:
        """For each sentence its hypotheses. Who is patient is not refused for the time it takes."""
        if not sentences:
            return []
        who = Waiting((model, search), asyncio.get_running_loop().create_future(), sentences)
        self._admit(who, is_patient)
        found: list[list[Hypothesis]] = await self._answered(who)
        return found

    async def ask(
        self, question: str, *arguments: Any, on_part: Callable[[Any], None] | None = None
    ) -> Any:
        """The answer to another question; `on_part` is given parts of it as they come."""
        future = asyncio.get_running_loop().create_future()
        who = Waiting(None, future, question=(question, arguments), on_part=on_part)
        self._admit(who, is_patient=False)
        return await self._answered(who)

    @property
    def n_tokens(self) -> int:
        """Source tokens of all that waits."""
        return sum(who.n_tokens for who in self.queue)

    @property
    def is_full(self) -> bool:
        """Whether the next request would be refused for the number of them."""
        return len(self.queue) >= self.limits.queue_requests

    def seconds(self, slower: float = 1.0) -> float:
        """How long until all that waits is done, by the pace of late or so many times slower."""
        running = slower * max(0.0, self._free_at - time.monotonic())
        return running + sum(self._pace(who.key, slower) * who.rest() for who in self.queue)

    def check_room(self, n_chars: int = 0) -> None:
        """Refuse what would be refused in any case, before its characters are looked at."""
        is_much = n_chars > MUCH and bool(self.queue)
        if self.is_full or (is_much and self.seconds(SLOWER) > FULL * self.limits.deadline):
            raise self._busy()

    def _admit(self, who: Waiting, is_patient: bool) -> None:
        """Put it in the queue, or refuse it."""
        self.check_room()
        if self.queue:
            is_late = not is_patient and self._would_be_late(who)
            if is_late or self.n_tokens + who.n_tokens > self.limits.queue_tokens:
                raise self._busy()
        self.queue.append(who)
        self._n_came += 1
        self._is_new.set()

    def _would_be_late(self, who: Waiting) -> bool:
        deadline = self.limits.deadline
        if who.rest() <= LITTLE:
            return self.seconds() + self._pace(who.key) * who.rest() > LAST * deadline
        before = self.seconds(SLOWER)
        own = self._pace(who.key, SLOWER) * who.rest()
        return before > FULL * deadline or before + own > DONE * deadline

    def _busy(self) -> Refused:
        seconds = max(1, math.ceil(self.seconds()))
        reason = ResourceError(
            "the server has as much to do as it takes; ask again in {seconds} s", seconds=seconds
        )
        return Refused(429, "busy", reason, retry_after=seconds)

    async def _answered(self, who: Waiting) -> Any:
        try:
            return await who.answer
        finally:  # answered, out of time or gone: in no case does it wait any longer
            self.queue.remove(who)

    # --- for the worker

    async def run(self) -> None:
        """Batch after batch; a coroutine for a task of its own."""
        while True:
            self._is_new.clear()
            if not any(map(_wants, self.queue)):
                await self._is_new.wait()
            await self.worker.ready.wait()
            await self._gather()
            try:
                await self._answer_next()
            except Exception:  # a fault of the queue itself is not to be the end of all requests
                log.exception("fault", extra={"facts": {"lane": self.worker.lane}})

    async def _answer_next(self) -> None:
        first = next(filter(_wants, self.queue), None)
        if first is None:
            return
        if first.key is None:
            await self._answer_one(first)
        else:
            await self._answer_batch(self._batch(first, first.key))

    async def _gather(self) -> None:
        """Wait for company while it comes, but not for long, nor for more than a batch."""
        until = time.monotonic() + self._company_for
        while time.monotonic() < until:
            wanting = list(filter(_wants, self.queue))
            if not wanting or sum(map(Waiting.rest, wanting)) >= self._room(wanting[0].key):
                return
            before = self._n_came
            await asyncio.sleep(QUIET)
            if self._n_came == before:
                return

    def _batch(self, first: Waiting, key: Key) -> Batch:
        """What goes out next: the oldest, and others that are asked in the same way."""
        if first.deaths:
            return Batch(key, [_Room(math.inf, ANY).take(first)])
        alike = [who for who in self.queue if _wants(who) and who.key == key and not who.deaths]
        little = [who for who in alike if who.rest() <= LITTLE]
        # The engine has so many rows at once; a few more would be a small batch of their own.
        room = _Room(self._room(key), max(1, self.rows // key[1].beam))
        parts = room.fill(little, 0.75 * room.work)
        return Batch(key, parts + room.fill(alike))

    async def _answer_batch(self, batch: Batch) -> None:
        sentences = batch.sentences
        model, search = batch.key
        started = time.monotonic()
        self._free_at = started + self._pace(batch.key) * batch.work
        try:
            found = await self._asked("search", model, sentences, search)
        except WorkerDied:
            for who in batch.requests:
                _died(who)
            return
        except Exception as error:
            for who in batch.requests:
                _refuse(who, error)
            return
        self._learn(batch, time.monotonic() - started)
        rest = iter(found)
        for who, start, end in batch.parts:
            who.found += [next(rest) for _ in range(start, end)]
            if len(who.found) == len(who.sentences) and not who.answer.done():
                who.answer.set_result(who.found)

    async def _answer_one(self, who: Waiting) -> None:
        assert who.question is not None
        question, arguments = who.question
        who.asked = 1
        try:
            answer = await self._asked(question, *arguments, on_part=who.on_part)
        except WorkerDied:
            _died(who)
        except Exception as error:
            _refuse(who, error)
        else:
            if not who.answer.done():
                who.answer.set_result(answer)

    async def _asked(
        self, question: str, *arguments: Any, on_part: Callable[[Any], None] | None = None
    ) -> Any:
        try:
            async with asyncio.timeout(HANGS):
                return await self.worker.ask(question, *arguments, on_part=on_part)
        except TimeoutError:
            self.worker.kill()
            raise WorkerDied from None

    def _learn(self, batch: Batch, seconds: float) -> None:
        before, now = self._pace(batch.key), seconds / batch.work
        # A small batch takes long for its size, so it says only that large ones take no longer.
        # Half of the fewest is not small: a sentence that did not fit in may be as long.
        if batch.work >= FEWEST / 2 or now < before:
            at = (batch.key[0], batch.key[1].beam)
            self.pace[at] = (1 - LEARNS) * before + LEARNS * now
        has_company = len(batch.requests) > 1
        self._company_for = min(self.limits.gather, WAITS * seconds) if has_company else 0.0
        self.metrics.tokens += sum(len(one.ids) for one in batch.sentences)
        self.metrics.batch_seconds.add(seconds)
        self.metrics.batch_sentences.add(len(batch.sentences))

    def _pace(self, key: Key | None, slower: float = 1.0) -> float:
        known = self.pace.get((key[0], key[1].beam)) if key else None
        return SLOW if known is None else slower * known

    def _room(self, key: Key | None) -> float:
        """How much work a batch may have."""
        return max(FEWEST, self.limits.batch / self._pace(key))


def work_of(sentence: Sentence) -> float:
    """How much work a sentence is, counted in tokens of short ones.

    Every step of a long one looks at more, and some long ones come to no end of their own.
    """
    n = len(sentence.ids)
    return n * (1 + n / LONG)


def _wants(who: Waiting) -> bool:
    """Whether there is something of it to be asked; nothing is of those who are gone."""
    is_all_asked = who.asked == (len(who.sentences) if who.key else 1)
    return not who.answer.done() and not is_all_asked


class _Room:
    """What a batch still has room for: work, and sentences."""

    def __init__(self, work: float, sentences: int) -> None:
        self.work, self.sentences = work, sentences

    def fill(self, waiting: Sequence[Waiting], left: float = 0.0) -> list[Part]:
        """As much of what they want, in this order, until so much work is left."""
        parts = []
        for who in waiting:
            if self.work > left and self.sentences > 0 and _wants(who):
                parts.append(self.take(who))
        return parts

    def take(self, who: Waiting) -> Part:
        """The next sentences of one that there is room for; one at least."""
        start, last = who.asked, min(len(who.sentences), who.asked + self.sentences)
        end = start + 1
        while end < last and who.ends[end + 1] - who.ends[start] <= self.work:
            end += 1
        who.asked = end
        self.work -= who.ends[end] - who.ends[start]
        self.sentences -= end - start
        return who, start, end


def _died(who: Waiting) -> None:
    """Ask once more for what was in hand when a worker died, or refuse it the second time."""
    who.deaths += 1
    who.asked = len(who.found)
    if who.deaths > 1 and not who.answer.done():
        who.answer.set_exception(fault_inside())


def _refuse(who: Waiting, error: Exception) -> None:
    if who.answer.done():
        return
    if not isinstance(error, RegardError):
        log.error("worker failed", extra={"facts": {"error": str(error)[:200]}})
        error = fault_inside()
    who.answer.set_exception(error)
