"""How sentences of different lengths lie in one tensor.

    Padded   a row for each sentence, filled up to the longest      (B, T, ...)
    Packed   all sentences end to end in one row, nothing between   (P, ...)

Both give the same numbers. Padded is what people write; packed wastes nothing and, with a fixed
number of tokens and offsets, has one shape for ever, so nothing is compiled or planned twice.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Int, Shaped
from torch import Tensor

from regard.errors import DataError


@dataclass(frozen=True, slots=True)
class Padded:
    """Row b holds `lens[b]` tokens, then padding."""

    lens: Int[Tensor, "B"]


@dataclass(frozen=True, slots=True)
class Packed:
    """Sentence b is tokens `offsets[b]` to `offsets[b + 1]`; none is longer than `max_len`.

    Every token belongs to a sentence: what a packer cannot fill at the end of the row is one or
    more sentences of padding, whose loss nobody counts. Slots it does not need repeat the last
    offset and are empty sentences.
    """

    offsets: Int[Tensor, "O"]
    max_len: int

    @classmethod
    def of(
        cls, lens: list[int], *, n_tokens: int, n_slots: int, max_len: int, device: str = "cpu"
    ) -> "Packed":
        """The layout of sentences of these lengths in a row of `n_tokens`, in `n_slots` slots."""
        left_over = n_tokens - sum(lens)
        padding = [max_len] * (left_over // max_len) + [left_over % max_len] * (
            left_over % max_len > 0
        )
        if left_over < 0 or len(lens) + len(padding) > n_slots or max(lens, default=0) > max_len:
            raise DataError(
                "{sentences} sentences of {tokens} tokens, the longest {longest}, do not fit a "
                "packed row of {n_tokens} tokens in {n_slots} sentences of at most {max_len}",
                sentences=len(lens),
                tokens=sum(lens),
                longest=max(lens, default=0),
                n_tokens=n_tokens,
                n_slots=n_slots,
                max_len=max_len,
            )
        empty = [0] * (n_slots - len(lens) - len(padding))
        ends = torch.tensor([0, *lens, *padding, *empty], dtype=torch.int32, device=device)
        return cls(ends.cumsum(0, dtype=torch.int32), max_len)

    @property
    def lens(self) -> Int[Tensor, "B"]:
        """The length of each sentence, zero for an empty slot."""
        return self.offsets.diff()

    def sentences(self, n_tokens: int) -> Int[Tensor, "P"]:
        """For each token of the row, which sentence it belongs to."""
        # As many as have ended by then. (Not searchsorted: compiled for a GPU, torch 2.11 gets it
        # wrong; experiments/LOG.md.)
        ends = self.offsets[1:].long()
        ended = torch.zeros(n_tokens + 1, dtype=torch.int64, device=ends.device)
        return ended.scatter_add(0, ends, torch.ones_like(ends)).cumsum(0)[:n_tokens]

    def positions(self, n_tokens: int) -> Int[Tensor, "P"]:
        """For each token of the row, its place in its own sentence."""
        tokens = torch.arange(n_tokens, device=self.offsets.device)
        return tokens - self.offsets[self.sentences(n_tokens)]

    def unpack(self, x: Shaped[Tensor, "*H P _"]) -> Shaped[Tensor, "B *H T _"]:
        """The same tokens as padded rows; the places after a sentence hold other tokens, unread."""
        width = self._padded_width()
        places_BT = self.offsets[:-1, None] + torch.arange(width, device=x.device)
        places_BT = places_BT.clamp(max=x.shape[-2] - 1)
        rows = x.index_select(-2, places_BT.flatten()).unflatten(-2, places_BT.shape)
        return rows.movedim(-3, 0)

    def pack(self, x: Shaped[Tensor, "B *H T _"], n_tokens: int) -> Shaped[Tensor, "*H P _"]:
        """The inverse of `unpack`."""
        places_P = self.sentences(n_tokens) * x.shape[-2] + self.positions(n_tokens)
        return x.movedim(0, -3).flatten(-3, -2).index_select(-2, places_P)

    def _padded_width(self) -> int:
        """As narrow as these sentences allow, unless the shape must not depend on them."""
        if torch.compiler.is_compiling():
            return self.max_len
        return max(int(self.lens.max()), 1)


Layout = Padded | Packed


def as_rows(
    ids: Int[Tensor, "*B T"], layout: Layout | None
) -> tuple[Int[Tensor, "_ _"], Padded | None]:
    """Ids in padded rows, however they came."""
    if isinstance(layout, Packed):
        return layout.unpack(ids[:, None])[..., 0], Padded(layout.lens)
    return ids, layout


def positions_of(layout: Layout | None, n_tokens: int, device: torch.device) -> Int[Tensor, "T"]:
    """The place of each token in its sentence, the same for all rows unless they are packed."""
    if isinstance(layout, Packed):
        return layout.positions(n_tokens)
    return torch.arange(n_tokens, device=device)
