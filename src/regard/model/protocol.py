"""What every network of regard can do, so that training and search need not know which it is."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from jaxtyping import Float, Int
from torch import Tensor

from regard.attention.layout import Layout


@dataclass(frozen=True, slots=True)
class Memory:
    """A source as the encoder leaves it, and how its sentences lie in it."""

    output: Float[Tensor, "*B S D"]
    layout: Layout | None


@dataclass(frozen=True, slots=True)
class Explained:
    """One pass with all its attention, by layer, sentence, head, query and key."""

    logits: Float[Tensor, "*B T V"]
    encoder: Float[Tensor, "_ *B _ S S"] | None
    decoder: Float[Tensor, "_ *B _ T T"] | None
    cross: Float[Tensor, "_ *B _ T S"]


@runtime_checkable
class DecoderState(Protocol):
    """All that one step of decoding hands to the next."""

    def reorder(
        self, rows: Int[Tensor, "N"], sentences: Int[Tensor, "B"] | None = None
    ) -> "DecoderState":
        """Row i becomes what row `rows[i]` was; rows may be repeated or left out.

        A sentence has as many rows as every other, and they stand together. `sentences`, where not
        all stay, are those that do.
        """


@runtime_checkable
class Translating(Protocol):
    """A network from source ids to target ids."""

    def forward(
        self,
        src_ids: Int[Tensor, "*B S"],
        tgt_ids: Int[Tensor, "*B T"],
        src: Layout | None = None,
        tgt: Layout | None = None,
    ) -> Float[Tensor, "*B T V"]:
        """Teacher forcing: logits of the word after each of `tgt_ids`, all places at once."""

    def encode(self, src_ids: Int[Tensor, "*B S"], src: Layout | None = None) -> Memory:
        """The source, read once."""

    def start(self, memory: Memory, *, max_len: int | None = None) -> DecoderState:
        """Nothing written yet, a row for each sentence; with `max_len`, in memory of fixed size."""

    def step(
        self, token: Int[Tensor, "N"], state: DecoderState
    ) -> tuple[Float[Tensor, "N V"], DecoderState]:
        """Logits of the word after `token`, which is now written."""

    def explain(
        self,
        src_ids: Int[Tensor, "*B S"],
        tgt_ids: Int[Tensor, "*B T"],
        src: Layout | None = None,
        tgt: Layout | None = None,
    ) -> Explained:
        """`forward` with every weight of every attention; packed rows come back padded."""
