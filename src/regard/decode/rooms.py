"""Beam search that never waits: all of it happens where the network is, in memory of fixed size.

Sentences that need about as much room are searched together, in slots (`slots.py`). Only every so
many steps does anybody look which sentences are done. Their slots go to sentences that wait, so
that none idles for the longest; and when nobody waits any more, the last ones move to fewer slots.

On a GPU the step of the slots is recorded and replayed, and what a look has found is asked only
when the next steps, if any, are issued, so that the GPU waits for nobody either. Slots and
recordings are kept for the next search that wants such ones, as making them takes longer than
searching some sentences.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from threading import Lock
from typing import NamedTuple

import numpy as np
import torch

from regard.attention.scores import ScaledDotScore
from regard.decode.finished import Coming, Finished
from regard.decode.ready import limit
from regard.decode.rules import Numbers, rules_of
from regard.decode.search import Found, Hear, Search, Sentence
from regard.decode.slots import Slots
from regard.model.transformer import Transformer

ROWS = 4096  # beams of all slots together
MEMORY = 0.5  # of what the GPU has free, for what they have said
ROOM = 64  # words; sentences that may have about as many go together ...
WIDE_ROOM = 256  # ... and where room that nobody uses costs no time
SOURCE = 128  # words of a source, for which there is room by so many
LOOK = 8  # steps between two looks at which sentences are done
READ = 0.125  # share of the slots that is free before new sentences are read ...
LEFT = 0.25  # ... and that is not when the last sentences move to fewer slots; at most a half
FEWEST = 16  # beams of all slots, of which there need not be fewer
TOLD = 256  # sentences, at least, that are read off while the GPU is at its steps


def is_plain(sentences: Sequence[Sentence], search: Search, eos: int) -> bool:
    """Whether the search asks for no more than the likeliest words."""
    asks_more = search.temperature or search.groups > 1 or search.coverage_penalty
    return not asks_more and not rules_of(sentences, search, eos)


class Shape(NamedTuple):
    """What slots that can stand in for one another have in common."""

    beam: int
    length_penalty: float
    src_len: int
    max_len: int


class Look(NamedTuple):
    """A look at all slots that was asked for: who was in them then, and what it will find."""

    owners: Numbers
    numbers: Coming

    def closed(self, owners: Numbers) -> tuple[Numbers, Numbers, Numbers]:
        """Slots whose sentences are done and still in them, and words and ends of all slots."""
        n_said, n_finished, is_open = self.numbers.here()
        is_same = (self.owners >= 0) & (self.owners == owners)  # not given to another since
        return np.flatnonzero(is_same & ~is_open), n_said, n_finished


class Done(NamedTuple):
    """Sentences that are done: what was written, which will come, and what is read off it."""

    written: Coming
    told: Iterator[tuple[int, Found]]


class Rooms:
    """A network's searches, and the slots that the last ones were in."""

    def __init__(
        self,
        network: Transformer,
        *,
        pad: int,
        bos: int,
        eos: int,
        longest: int,
        device: torch.device,
    ) -> None:
        """`longest` is as far as the network's positions go."""
        self.network, self.device = network, device
        self.pad, self.bos, self.eos, self.longest = pad, bos, eos, longest
        self.behind = 1 if device.type == "cuda" else 0  # looks under way while steps are issued
        self.lock = Lock()  # slots are for one search at a time
        self.end: torch.cuda.Event | None = None  # of the last one
        self.shape: Shape | None = None
        self.most = 0  # slots of this shape
        self.kept: dict[int, tuple[Slots, Callable[[], None]]] = {}  # by number, with their step

    @torch.inference_mode()
    def search(
        self, sentences: Sequence[Sentence], search: Search, hear: Hear | None = None
    ) -> list[Found]:
        """For each sentence its `nbest` hypotheses, the best first; heard of as they are found."""
        rooms: dict[int, list[int]] = defaultdict(list)
        size = WIDE_ROOM if _reads_what_is_there(self.network) else ROOM
        limits = [limit(one, search, self.longest) for one in sentences]
        for number, own_limit in enumerate(limits):
            rooms[_up_to(own_limit, size)].append(number)
        found: list[Found] = [[] for _ in sentences]

        def keep(number: int, hypotheses: Found) -> None:
            found[number] = hypotheses
            if hear is not None:
                hear(number, hypotheses)

        with self._alone():
            for room, chosen in sorted(rooms.items()):
                some = {number: sentences[number] for number in chosen}
                self._search_in(room, some, limits, search, keep)
        return found

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One search at a time, on its device; narrower weights by autocast are gone after it.

        The last one's steps may still be under way, and another stream would not wait for them.
        """
        with self.lock, _on(self.device):
            is_narrow = torch.is_autocast_enabled(self.device.type)
            if is_narrow:
                self.forget()
            if self.end is not None:
                self.end.wait()
            try:
                yield
            finally:
                self.end = torch.cuda.Event() if self.device.type == "cuda" else None
                if self.end is not None:
                    self.end.record()
                if is_narrow:
                    self.forget()

    def forget(self) -> None:
        """Let go of all slots, and of the memory that they are in."""
        self.kept.clear()
        self.shape = None

    def _search_in(
        self,
        room: int,
        sentences: Mapping[int, Sentence],
        limits: Sequence[int],
        search: Search,
        keep: Hear,
    ) -> None:
        """Sentences by number, each of which is kept when it is found."""
        src_len = _up_to(max(len(one.ids) for one in sentences.values()), SOURCE)
        shape = Shape(search.beam, search.length_penalty, src_len, room)
        slots, step = self._slots(len(sentences), shape, search)
        # the longest first: those that end together are read together, and few are left to wait for
        waiting = deque(sorted(sentences, key=limits.__getitem__, reverse=True))
        owners = np.full(slots.n_slots, -1)
        n_steps, ends = 0, np.array(limits)  # so far, and when each sentence ends at the latest
        looks: deque[Look] = deque()
        done: deque[Done] = deque()
        while waiting or owners.max() >= 0:
            free = np.flatnonzero(owners < 0)
            if waiting and len(free) >= READ * len(owners):
                free = free[: len(waiting)]
                chosen = [waiting.popleft() for _ in free]
                owners[free] = chosen
                rows = [sentences[number].ids for number in chosen]
                slots.read(free, rows, ends[chosen], self.pad)
                ends[chosen] += n_steps
            goes_on = not looks or ends[owners[owners >= 0]].max() > n_steps
            if goes_on:
                for _ in range(LOOK):
                    step()
                n_steps += LOOK
                looks.append(Look(owners.copy(), slots.look()))
            _read_off(done, keep, max(TOLD, len(owners)))  # while the GPU is at its steps
            if goes_on and len(looks) <= self.behind:
                continue
            closed, n_said, n_finished = looks.popleft().closed(owners)  # where somebody waits
            if len(closed):
                written = slots.finished(closed, int(n_said[closed].max()))
                counts = n_said[closed], n_finished[closed]
                done.append(Done(written, _told(owners[closed], *counts, written, search)))
            owners[closed] = -1
            left = np.flatnonzero(owners >= 0)
            is_crowd = search.beam * len(owners) > FEWEST and len(left) <= LEFT * len(owners)
            if len(left) and not waiting and is_crowd:
                fewer, step = self._slots(len(left), shape, search, beside=slots)
                said = int(n_said[left].max()) + LOOK * len(looks)
                read = max(len(sentences[number].ids) for number in owners[left])
                fewer.take(slots, left, min(said, room), read)
                looks.clear()  # they are at the slots that were left
                staying, owners = owners[left], np.full(fewer.n_slots, -1)
                slots, owners[: len(left)] = fewer, staying
        _read_off(done, keep)

    def _slots(
        self, n_sentences: int, shape: Shape, search: Search, beside: Slots | None = None
    ) -> tuple[Slots, Callable[[], None]]:
        """Slots for so many sentences, or as many as there can be, all closed; and their step.

        Those that are kept will do if they are not too many; not those `beside`, which are in use.
        """
        if shape != self.shape:
            self.forget()  # first, so that there is memory for the new ones
            self.most = _slots_that_fit(self.network, shape, self.device)
            self.shape = shape
        n_slots = min(_in_eighths(n_sentences), self.most)
        others = [n for n, (own, _) in self.kept.items() if own is not beside]
        fitting = [n for n in others if n_slots <= n <= 2 * n_slots]
        if fitting:
            n_slots = min(fitting)
        else:
            if n_slots + sum(self.kept) > 2 * self.most:
                self.kept = {n: own for n, own in self.kept.items() if n == max(self.kept)}
            slots = Slots(
                self.network,
                search,
                n_slots,
                shape.src_len,
                shape.max_len,
                bos=self.bos,
                eos=self.eos,
                device=self.device,
            )
            self.kept[n_slots] = slots, _recorded(slots.step, self.device)
        slots, step = self.kept[n_slots]
        slots.close()
        return slots, step


def _told(
    sentences: Numbers, n_said: Numbers, n_finished: Numbers, written: Coming, search: Search
) -> Iterator[tuple[int, Found]]:
    """What sentences have come to, of words and ends and what was written."""
    hypotheses = Finished(n_said, n_finished, *written.here()).hypotheses(search)
    yield from zip(sentences.tolist(), hypotheses, strict=True)


def _read_off(done: deque[Done], keep: Hear, most: int | None = None) -> None:
    """Keep what sentences have come to: all, or at most so many that are there without waiting."""
    while done and (most is None or done[0].written.is_here()):
        some = list(islice(done[0].told, most))
        for number, hypotheses in some:
            keep(number, hypotheses)
        most = None if most is None else most - len(some)
        if most == 0:
            return  # the rest is told later
        done.popleft()


def _up_to(n: int, step: int) -> int:
    """The next multiple."""
    return -(-n // step) * step


def _in_eighths(n: int) -> int:
    """The next multiple of an eighth of the next power of two."""
    return _up_to(n, max((1 << (n - 1).bit_length()) // 8, 1))


def _reads_what_is_there(network: Transformer) -> bool:
    """Whether attention to what was said takes no longer where there is room for more."""
    return isinstance(network.decoder.layers[0].attention.heads.score, ScaledDotScore)


def _slots_that_fit(network: Transformer, shape: Shape, device: torch.device) -> int:
    """As many as `ROWS` allows whose keys and values, twice, leave the GPU enough for all else.

    Twice, because fewer slots for the last sentences may be there beside them.
    """
    most = max(ROWS // shape.beam, 1)
    if device.type != "cuda":
        return most
    width, itemsize = network.source.weight.shape[1], network.source.weight.element_size()
    a_token = 2 * len(network.decoder.layers) * width * itemsize
    a_slot = (shape.beam * shape.max_len + shape.src_len) * a_token
    unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    free = torch.cuda.mem_get_info(device)[0] + unused
    return max(min(most, int(MEMORY * free) // (2 * a_slot)), 1)


@contextmanager
def _on(device: torch.device) -> Iterator[None]:
    """Streams, recordings and kernels are the current device's."""
    if device.type != "cuda":
        yield
        return
    with torch.cuda.device(device):
        yield


def _recorded(step: Callable[[], None], device: torch.device) -> Callable[[], None]:
    """The same step, replayed from a recording where that is possible; nothing is open yet."""
    if device.type != "cuda":
        return step
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        step()  # what is made once, is made now
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):  # others may go on meanwhile
        step()
    return graph.replay
