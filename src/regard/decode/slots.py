"""Slots: places for sentences in memory of fixed size, and one step of a search in all of them.

A sentence has a slot, which is a row for each beam. Every step is the same program on the same
memory, so a GPU can replay it as it was recorded (`rooms.py`).

Nothing is copied to remember what was said: each step writes down its words, and which beam each
came from, and a hypothesis is read off backwards when its sentence is done. The hypotheses are
those of `beam.py`, for searches without rules; one beam is the greedy search.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.attention import kernels
from regard.attention.cache import Lineage, SlotKVCache
from regard.attention.layout import Packed
from regard.attention.masks import padding_mask
from regard.decode.finished import Coming
from regard.decode.ready import moved, packed_ids
from regard.decode.rules import Numbers
from regard.decode.search import Ids, Search
from regard.model.transformer import Transformer, TransformerState

if kernels.ARE_HERE:
    from regard.attention.kernels.choose import MOST_BEAMS, choose
    from regard.attention.kernels.likeliest import can_hold, likeliest


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
        words, parents, ends = torch.zeros(3, *room, dtype=torch.int32, device=device)
        scores = torch.zeros(room, dtype=torch.float64, device=device)
        return cls(words, parents, scores, ends)

    @property
    def parts(self) -> tuple[Tensor, ...]:
        """All that is written down."""
        return self.words, self.parents, self.end_scores, self.end_parents

    def write(self, step_B: Tensor, *columns_BW: Tensor) -> None:
        """One step of every slot, each at its own place."""
        for part, column in zip(self.parts, columns_BW, strict=True):
            place = step_B[:, None, None].expand(-1, 1, part.shape[2])
            part.scatter_(1, place, column[:, None].to(part.dtype))

    def of(self, slots: Int[Tensor, "_"], n_steps: int) -> tuple[Tensor, ...]:
        """What these slots wrote in their first steps."""
        return tuple(part[:, :n_steps].index_select(0, slots) for part in self.parts)


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
        self.beam, self.bos, self.eos, self.max_len = search.beam, bos, eos, max_len
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
        lengths = torch.arange(1, max_len + 2, dtype=torch.float64, device=device)
        self.norms = lengths**search.length_penalty  # of scores, by how many words were said before
        self.first_rows = torch.arange(n_slots, device=device)[:, None] * self.beam
        self.written = _Written.empty(n_slots, max_len, self.beam, device)

    @property
    def n_slots(self) -> int:
        """How many there are."""
        return len(self.is_open)

    def read(self, slots: Numbers, rows: Sequence[Ids], limits: Numbers, pad: int) -> None:
        """New sentences into slots that are free."""
        packed, ends, lens = packed_ids(rows, pad)
        self.network.source.check(torch.from_numpy(packed), "source")
        ids, offsets, at, own_limits = moved([packed, ends, slots, limits], self.device)
        layout = Packed(offsets.int(), int(lens.max()))
        self._remember(at, ids, layout, n_tokens=int(lens.sum()))
        self.totals.index_fill_(0, at, -torch.inf)
        self.totals[:, 0].index_fill_(0, at, 0.0)  # all beams begin alike, so one of them does
        self.token.view(-1, self.beam).index_fill_(0, at, self.bos)
        for count in (self.n_said, self.n_finished):
            count.index_fill_(0, at, 0)
        self.limits.index_copy_(0, at, own_limits)
        self.is_open.index_fill_(0, at, True)
        own_rows = self.first_rows[at] + torch.arange(self.beam, device=self.device)
        self.lineage.begin_anew(own_rows.flatten())

    def _remember(
        self, at: Int[Tensor, "_"], ids: Int[Tensor, "P"], layout: Packed, n_tokens: int
    ) -> None:
        """The sources, packed while they are read, as no two need be of one length."""
        output = self.network.encode(ids, layout, are_words=True).output
        slots = at[layout.sentences(len(ids))[:n_tokens]]
        places = layout.positions(len(ids))[:n_tokens]
        remembered = self.network.decoder.remember(output[None, :n_tokens])
        for own, new in zip(self.memory, remembered, strict=True):
            for part, [fresh] in zip(own, new, strict=True):
                part[slots, :, places] = fresh.transpose(0, 1)
        lens = layout.lens[: len(at)]
        self.sees.index_copy_(0, at, padding_mask(lens, self.sees.shape[-1]))

    def close(self) -> None:
        """Nobody is in any slot."""
        self.is_open.zero_()
        self.lineage.lengths.zero_()

    def take(self, others: "Slots", slots: Numbers, n_said: int, n_read: int) -> None:
        """Go on with what is in these slots of others that are as long, in the first ones here.

        Nobody there has said or read more words than these.
        """
        [at] = moved([slots], self.device)
        n_rows = len(slots) * self.beam
        rows = (others.first_rows[at] + torch.arange(self.beam, device=self.device)).flatten()
        self.lineage.take(others.lineage, rows, self.beam)
        for cache, other in zip(self.caches, others.caches, strict=True):
            _take(cache.keys, other.keys, rows, n_said)
            _take(cache.values, other.values, rows, n_said)
        for own, theirs in zip(self.memory, others.memory, strict=True):
            for part, other_part in zip(own, theirs, strict=True):
                _take(part, other_part, at, n_read)
        self.token[:n_rows] = others.token[rows]
        for part, other_part in zip(self._by_slot(), others._by_slot(), strict=True):
            part[: len(slots)] = other_part[at]

    def _by_slot(self) -> tuple[Tensor, ...]:
        """All that there is one of for each slot."""
        counts = self.n_said, self.limits, self.n_finished
        return self.sees, self.totals, self.is_open, *counts, *self.written.parts

    def step(self) -> None:
        """One word more in every slot that is open."""
        state = TransformerState(self.caches, self.memory, self.sees)
        logits, _ = self.network.step(self.token, state)
        n = min(2 * self.beam, logits.shape[-1])
        has_kernels = kernels.can_take(logits)
        if has_kernels and can_hold(logits, n):
            likely = likeliest(logits, n)
        else:
            likely = logits.float().log_softmax(-1).topk(n)
        if has_kernels and self.beam <= MOST_BEAMS:
            own = self.token, self.totals, self.is_open
            counts = self.n_said, self.limits, self.n_finished
            choose(*likely, self.norms, self.eos, *own, counts, self.written.parts, self.lineage)
        else:
            self._choose(*likely)

    def _choose(self, log_p: Float[Tensor, "N _"], likely: Int[Tensor, "N _"]) -> None:
        """One word more in every slot that is open, of the likeliest of each row."""
        best, beams, words = self._candidates(log_p, likely)
        is_end = words == self.eos
        ends = torch.where(is_end, best / self.norms[self.n_said][:, None], -torch.inf)
        ends = ends[:, : self.beam]
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

    def _candidates(self, log_p: Tensor, words: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Twice as many as there are beams, the best first: totals, beams and words."""
        totals = (self.totals.flatten()[:, None] + log_p.double()).view(len(self.totals), -1)
        order = totals.argsort(dim=1, descending=True, stable=True)[:, : 2 * self.beam]
        words = words.view(len(self.totals), -1).gather(1, order)
        return totals.gather(1, order), order // log_p.shape[1], words

    def look(self) -> Coming:
        """How many words and ends each slot has, and whether it is open."""
        return Coming([self.n_said, self.n_finished, self.is_open])

    def finished(self, slots: Numbers, n_steps: int) -> Coming:
        """What `Finished` reads off, of slots that are closed; they may be used again at once."""
        [at] = moved([slots], self.device)
        words, parents, end_scores, end_parents = self.written.of(at, n_steps)
        return Coming([end_scores, self.totals[at], words, parents, end_parents])


def _take(own: Tensor, other: Tensor, rows: Int[Tensor, "_"], n_places: int) -> None:
    """The first places of these rows of another, into the first rows."""
    own[: len(rows), :, :n_places] = other[:, :, :n_places].index_select(0, rows)


def _room(like: Tensor, n_slots: int, src_len: int) -> Tensor:
    return like.new_zeros(n_slots, like.shape[1], src_len, like.shape[3])


def _width(network: Transformer) -> int:
    return network.source.weight.shape[1]
