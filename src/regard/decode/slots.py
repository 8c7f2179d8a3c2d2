"""Beam search that never waits: all of it happens where the network is, in memory of fixed size.

A sentence has a slot, which is a row for each beam. Every step is the same program on the same
memory, so a GPU can replay it as it was recorded; only every so many steps does anybody look which
sentences are done. Their slots go to sentences that wait, so that none idles for the longest.

Nothing is copied to remember what was said: each step writes down its words, and which beam each
came from, and a hypothesis is read off backwards when its sentence is done. The hypotheses are
those of `beam.py`, for searches without rules; one beam is the greedy search.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor

from regard.attention import kernels
from regard.attention.cache import Lineage, SlotKVCache
from regard.attention.masks import padding_mask
from regard.attention.scores import ScaledDotScore
from regard.decode.ready import padded_ids
from regard.decode.rules import rules_of
from regard.decode.search import Hypothesis, Ids, Search, Sentence
from regard.model.transformer import Transformer, TransformerState

if kernels.ARE_HERE:
    from regard.attention.kernels.likeliest import can_hold, likeliest

ROWS = 4096  # beams of all slots together
MEMORY = 0.5  # of what the GPU has free, for what they have said
ROOM = 64  # words; sentences that may have about as many go together ...
WIDE_ROOM = 256  # ... and where room that nobody uses costs no time
LOOK = 8  # steps between two looks at which sentences are done
READ = 0.125  # share of the slots that is free before new sentences are read ...
LEFT = 0.125  # ... and that is not when the last sentences move to fewer slots
FEWEST = 64  # beams of all slots, of which there need not be fewer


def is_plain(sentences: Sequence[Sentence], search: Search, eos: int) -> bool:
    """Whether the search asks for no more than the likeliest words."""
    asks_more = search.temperature or search.groups > 1 or search.coverage_penalty
    return not asks_more and not rules_of(sentences, search, eos)


def search_by_room(
    network: Transformer,
    sentences: Sequence[Sentence],
    search: Search,
    *,
    pad: int,
    bos: int,
    eos: int,
    longest: int,
    device: torch.device,
) -> list[list[Hypothesis]]:
    """`search_in_slots`, sentences that need about as much room together."""
    rooms: dict[int, list[int]] = defaultdict(list)
    size = WIDE_ROOM if _reads_what_is_there(network) else ROOM
    for number, one in enumerate(sentences):
        rooms[-(-_limit(one, search, longest) // size) * size].append(number)
    found: list[list[Hypothesis]] = [[] for _ in sentences]
    for room, chosen in sorted(rooms.items()):
        own = search_in_slots(
            network,
            [sentences[number] for number in chosen],
            search,
            pad=pad,
            bos=bos,
            eos=eos,
            longest=longest,
            n_slots=max(min(ROWS, _rows_that_fit(network, room, device)) // search.beam, 1),
            device=device,
        )
        for number, hypotheses in zip(chosen, own, strict=True):
            found[number] = hypotheses
    return found


@torch.inference_mode()
def search_in_slots(
    network: Transformer,
    sentences: Sequence[Sentence],
    search: Search,
    *,
    pad: int,
    bos: int,
    eos: int,
    longest: int,
    n_slots: int,
    device: torch.device,
) -> list[list[Hypothesis]]:
    """For each sentence its `nbest` hypotheses, the best first."""
    limits = [_limit(one, search, longest) for one in sentences]
    src_len = max(len(one.ids) for one in sentences)
    n_slots = min(n_slots, len(sentences))
    slots = Slots(network, search, n_slots, src_len, max(limits), bos=bos, eos=eos, device=device)
    step = _recorded(slots.step, device)
    found: list[list[Hypothesis]] = [[] for _ in sentences]
    # the longest first: those that end together are read together, and few are left to wait for
    waiting = deque(sorted(range(len(sentences)), key=limits.__getitem__, reverse=True))
    owners = [-1] * n_slots
    done: list[tuple[int, _Finished]] = []
    while waiting or max(owners) >= 0:
        free = [slot for slot, owner in enumerate(owners) if owner < 0]
        if waiting and len(free) >= READ * n_slots:
            free = free[: len(waiting)]
            chosen = [waiting.popleft() for _ in free]
            for slot, number in zip(free, chosen, strict=True):
                owners[slot] = number
            slots.read(free, [sentences[n].ids for n in chosen], [limits[n] for n in chosen], pad)
        for _ in range(LOOK):
            step()
        for number, own in done:  # read off while the GPU is at the next steps
            found[number] = own.hypotheses(search)
        is_open = slots.is_open.tolist()  # the one place where anybody waits
        closed = [slot for slot, owner in enumerate(owners) if owner >= 0 and not is_open[slot]]
        done = [
            (owners[slot], own) for slot, own in zip(closed, slots.finished(closed), strict=True)
        ]
        for slot in closed:
            owners[slot] = -1
        left = [slot for slot, owner in enumerate(owners) if owner >= 0]
        is_worth = search.beam * len(owners) > FEWEST and len(left) <= LEFT * len(owners)
        if left and not waiting and is_worth:  # nobody waits for the last ones in a crowd
            slots, owners = slots.moved(left), [owners[slot] for slot in left]
            step = _recorded(slots.step, device)
    for number, own in done:
        found[number] = own.hypotheses(search)
    return found


@dataclass(frozen=True, slots=True)
class _Written:
    """What the steps of each slot wrote down, by step and beam; the last step is nobody's."""

    words: Int[Tensor, "B T W"]
    parents: Int[Tensor, "B T W"]  # the beam that each word followed
    end_scores: Float[Tensor, "B T W"]  # of those that ended; minus infinity where none did
    end_parents: Int[Tensor, "B T W"]

    @classmethod
    def empty(cls, n_slots: int, n_steps: int, beam: int, device: torch.device) -> "_Written":
        """Room for so many steps, and one for slots that are closed."""
        room = (n_slots, n_steps + 1, beam)
        words, parents, ends = torch.zeros(3, *room, dtype=torch.int64, device=device)
        scores = torch.zeros(room, dtype=torch.float64, device=device)
        return cls(words, parents, scores, ends)

    def write(self, step_B: Tensor, *columns_BW: Tensor) -> None:
        """One step of every slot, each at its own place."""
        parts = (self.words, self.parents, self.end_scores, self.end_parents)
        for part, column in zip(parts, columns_BW, strict=True):
            place = step_B[:, None, None].expand(-1, 1, part.shape[2])
            part.scatter_(1, place, column[:, None])

    def taken(self, slots: Int[Tensor, "_"]) -> "_Written":
        """What these slots wrote."""
        parts = (self.words, self.parents, self.end_scores, self.end_parents)
        return _Written(*(part.index_select(0, slots) for part in parts))

    def beside(self) -> tuple[NDArray[Any], ...]:
        """All of it, where it can be looked at."""
        parts = (self.words, self.parents, self.end_scores, self.end_parents)
        return tuple(part.cpu().numpy() for part in parts)


class Slots:
    """Places for sentences, and the search in all of them at once."""

    def __init__(
        self,
        network: Transformer,
        search: Search,
        n_slots: int,
        src_len: int,
        max_len: int,
        *,
        bos: int,
        eos: int,
        device: torch.device,
    ) -> None:
        self.network, self.device = network, device
        self.beam, self.penalty = search.beam, search.length_penalty
        self.bos, self.eos, self.max_len = bos, eos, max_len
        like = network.decoder.remember(network.source.weight.new_zeros(1, 1, _width(network)))
        n_rows = n_slots * self.beam
        self.lineage = Lineage.empty(n_rows, max_len, device)
        self.caches = tuple(SlotKVCache.empty(key, self.lineage) for key, _ in like)
        self.memory = tuple(
            (_room(key, n_slots, src_len), _room(value, n_slots, src_len)) for key, value in like
        )
        self.sees = torch.ones(n_slots, 1, src_len, dtype=torch.bool, device=device)
        self.token = torch.full((n_rows,), bos, device=device)
        self.totals = torch.zeros(n_slots, self.beam, dtype=torch.float64, device=device)
        self.is_open: Bool[Tensor, "B"] = torch.zeros(n_slots, dtype=torch.bool, device=device)
        self.n_said, self.limits, self.n_finished = torch.zeros(
            3, n_slots, dtype=torch.int64, device=device
        )
        self.first_rows = torch.arange(n_slots, device=device)[:, None] * self.beam
        self.written = _Written.empty(n_slots, max_len, self.beam, device)

    def read(
        self, slots: Sequence[int], rows: Sequence[Ids], limits: Sequence[int], pad: int
    ) -> None:
        """New sentences into slots that are free."""
        at = torch.tensor(slots, device=self.device)
        ids, layout = padded_ids(rows, pad, self.device)
        remembered = self.network.decoder.remember(self.network.encode(ids, layout).output)
        for own, new in zip(self.memory, remembered, strict=True):
            for part, fresh in zip(own, new, strict=True):
                part[:, :, : ids.shape[1]].index_copy_(0, at, fresh)
        self.sees.index_copy_(0, at, padding_mask(layout.lens, self.sees.shape[-1]))
        first = torch.full((self.beam,), -torch.inf, dtype=torch.float64, device=self.device)
        first[0] = 0.0  # all beams begin alike, so one of them does
        self.totals[at] = first
        self.token.view(-1, self.beam)[at] = self.bos
        self.n_said[at], self.n_finished[at] = 0, 0
        self.limits[at] = torch.tensor(limits, device=self.device)
        self.is_open[at] = True
        own_rows = self.first_rows[at] + torch.arange(self.beam, device=self.device)
        self.lineage.begin_anew(own_rows.flatten())

    def moved(self, slots: Sequence[int]) -> "Slots":
        """These alone, in as many slots as they are."""
        at = torch.tensor(slots, device=self.device)
        beams = torch.arange(self.beam, device=self.device)
        rows = (self.first_rows[at] + beams).flatten()
        other = copy(self)
        other.lineage = self.lineage.taken(rows, self.beam)
        other.caches = tuple(cache.taken(rows, other.lineage) for cache in self.caches)
        other.memory = tuple((key[at], value[at]) for key, value in self.memory)
        other.sees, other.token = self.sees[at], self.token[rows]
        other.totals, other.is_open = self.totals[at], self.is_open[at]
        other.n_said, other.limits = self.n_said[at], self.limits[at]
        other.n_finished = self.n_finished[at]
        other.first_rows = self.first_rows[: len(slots)]
        other.written = self.written.taken(at)
        return other

    def step(self) -> None:
        """One word more in every slot that is open."""
        state = TransformerState(self.caches, self.memory, self.sees)
        logits, _ = self.network.step(self.token, state)
        best, beams, words = self._candidates(logits)
        is_end = words == self.eos
        length = (self.n_said + 1).double()[:, None]
        ends = torch.where(is_end, best / length**self.penalty, -torch.inf)[:, : self.beam]
        n_finished = self.n_finished + ends.isfinite().sum(1)
        goes_on = self.is_open & (n_finished < self.beam)

        others = is_end.long().argsort(dim=1, stable=True)[:, : self.beam]
        totals = best.masked_fill(is_end, -torch.inf).gather(1, others)
        totals = torch.where(goes_on[:, None], totals, -torch.inf)
        parents, said = beams.gather(1, others), words.gather(1, others)
        place = torch.where(self.is_open, self.n_said, self.max_len)
        self.written.write(place, said, parents, ends, beams[:, : self.beam])

        rows = self.first_rows + torch.where(self.is_open[:, None], parents, 0)
        self.token.copy_(said.flatten())
        self.totals.copy_(torch.where(self.is_open[:, None], totals, self.totals))
        self.n_finished.copy_(torch.where(self.is_open, n_finished, self.n_finished))
        self.n_said.add_(self.is_open)
        has_more = goes_on & (self.n_said < self.limits) & totals.isfinite().any(1)
        self.is_open.copy_(has_more)
        self.lineage.follow(rows.flatten(), has_more.repeat_interleave(self.beam))

    def _candidates(self, logits: Float[Tensor, "N V"]) -> tuple[Tensor, Tensor, Tensor]:
        """Twice as many as there are beams, the best first: totals, beams and words."""
        n = min(2 * self.beam, logits.shape[-1])
        if kernels.can_take(logits) and can_hold(logits, n):
            log_p, words = likeliest(logits, n)
        else:
            log_p, words = logits.float().log_softmax(-1).topk(n)
        totals = (self.totals.flatten()[:, None] + log_p.double()).view(len(self.totals), -1)
        order = totals.argsort(dim=1, descending=True, stable=True)[:, : 2 * self.beam]
        words = words.view(len(self.totals), -1).gather(1, order)
        return totals.gather(1, order), order // n, words

    def finished(self, slots: Sequence[int]) -> list["_Finished"]:
        """What the sentences in these slots have come to; the slots may be used again."""
        if not slots:
            return []
        at = torch.tensor(slots, device=self.device)
        counts = torch.stack([self.n_said[at], self.n_finished[at]]).tolist()
        columns = *self.written.taken(at).beside(), self.totals[at].cpu().numpy(), *counts
        return [_Finished(*own) for own in zip(*columns, strict=True)]


@dataclass(frozen=True, slots=True)
class _Finished:
    """All that one sentence's search has written down."""

    words: NDArray[Any]
    parents: NDArray[Any]
    end_scores: NDArray[Any]
    end_parents: NDArray[Any]
    totals: NDArray[Any]
    n_said: int
    n_finished: int

    def hypotheses(self, search: Search) -> list[Hypothesis]:
        """The best of them, the best first; only these are read off."""
        n = self.n_said
        ended = np.argwhere(np.isfinite(self.end_scores[:n])).tolist()
        found = [(float(self.end_scores[t, c]), t, self.end_parents[t, c]) for t, c in ended]
        if self.n_finished < search.beam:  # the others have not come to an end
            scores = (self.totals / n**search.length_penalty).tolist()
            found += [(score, n, beam) for beam, score in enumerate(scores) if np.isfinite(score)]
        found.sort(key=lambda one: -one[0])
        return [
            Hypothesis(_said(self.words, self.parents, t, beam), score, t < n)
            for score, t, beam in found[: search.nbest]
        ]


def _reads_what_is_there(network: Transformer) -> bool:
    """Whether attention to what was said takes no longer where there is room for more."""
    return isinstance(network.decoder.layers[0].attention.heads.score, ScaledDotScore)


def _rows_that_fit(network: Transformer, room: int, device: torch.device) -> int:
    """Beams whose keys and values in all layers leave the GPU enough for all else."""
    if device.type != "cuda":
        return ROWS
    a_token = 2 * len(network.decoder.layers) * _width(network)
    a_row = room * a_token * network.source.weight.element_size()
    return int(MEMORY * torch.cuda.mem_get_info(device)[0]) // a_row


def _limit(sentence: Sentence, search: Search, longest: int) -> int:
    return min(search.max_len or 2 * len(sentence.ids) + 20, longest)


def _said(words: NDArray[np.int64], parents: NDArray[np.int64], n: int, beam: int) -> Ids:
    """The first n words of a beam, followed back."""
    said = []
    for t in range(n - 1, -1, -1):
        said.append(int(words[t, beam]))
        beam = parents[t, beam]
    return tuple(reversed(said))


def _recorded(step: Callable[[], None], device: torch.device) -> Callable[[], None]:
    """The same step, replayed from a recording where that is possible; one is made for it."""
    if device.type != "cuda":
        return step
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        step()  # what is made once, is made now
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def _room(like: Tensor, n_slots: int, src_len: int) -> Tensor:
    return like.new_zeros(n_slots, like.shape[1], src_len, like.shape[3])


def _width(network: Transformer) -> int:
    return network.source.weight.shape[1]
