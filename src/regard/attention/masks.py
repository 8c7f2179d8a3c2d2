"""Who may attend to whom. Boolean, and True means "may attend".

Two masks are so regular that writing them out would only cost time: `Causal` and `Blocks` say what
they are, the fast paths use them as they stand, and `dense` writes them out for everyone else.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from regard.attention.layout import Layout, Packed, Padded
from regard.errors import ModelError, Word


@dataclass(frozen=True, slots=True)
class Causal:
    """Each token sees itself and those before it."""


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Blocks:
    """The mask of packed rows: a token sees only the sentence in the same slot as its own."""

    query: Packed
    key: Packed
    causal: bool = False

    def padded(self, n_queries: int, n_keys: int) -> Bool[Tensor, "B #T S"]:
        """The same mask for the unpacked rows."""
        mask = padding_mask(self.key.lens, n_keys)
        return mask & causal_mask(n_queries, n_keys, device=mask.device) if self.causal else mask


Mask = Bool[Tensor, "... #Q K"] | Causal | Blocks
"""A boolean tensor, or one of the two that are never written out."""


def padding_mask(lens: Int[Tensor, "B"], n_keys: int) -> Bool[Tensor, "B 1 K"]:
    """The first `lens[b]` keys of sentence b."""
    return (torch.arange(n_keys, device=lens.device) < lens[:, None])[:, None, :]


def causal_mask(
    n_queries: int, n_keys: int | None = None, *, device: torch.device | None = None
) -> Bool[Tensor, "Q K"]:
    """Query i sees keys 0 to i, so that no token is predicted from itself or what follows."""
    n_keys = n_queries if n_keys is None else n_keys
    return torch.ones(n_queries, n_keys, dtype=torch.bool, device=device).tril()


def causal_padding_mask(lens: Int[Tensor, "B"], n_keys: int) -> Bool[Tensor, "B K K"]:
    """Both at once: the keys of sentence b up to the query's own place."""
    return padding_mask(lens, n_keys) & causal_mask(n_keys, device=lens.device)


def valid_lens_mask(valid_lens: Int[Tensor, "B *Q"], n_keys: int) -> Bool[Tensor, "B _ K"]:
    """The notes' `valid_lens` as a mask: one length for each sentence, or one for each query."""
    if valid_lens.ndim > 2 or valid_lens.dtype.is_floating_point:
        raise ModelError(
            "valid_lens is {dtype} of shape {shape} but must be integers, one for each sentence "
            "(batch) or one for each query (batch, queries)",
            dtype=valid_lens.dtype,
            shape=tuple(valid_lens.shape),
        )
    lens_BQ = valid_lens if valid_lens.ndim == 2 else valid_lens[:, None]
    return torch.arange(n_keys, device=valid_lens.device) < lens_BQ[:, :, None]


def encoder_mask(src: Layout | None, n_keys: int) -> Mask | None:
    """A source token sees its whole sentence."""
    match src:
        case None:
            return None
        case Padded(lens):
            return padding_mask(lens, n_keys)
        case Packed():
            return Blocks(src, src)


def decoder_mask(tgt: Layout | None) -> Mask:
    """A target token sees itself and those before it; padding comes after, so it is never seen."""
    return Blocks(tgt, tgt, causal=True) if isinstance(tgt, Packed) else Causal()


def memory_mask(tgt: Layout | None, src: Layout | None, n_keys: int) -> Mask | None:
    """A target token sees the whole source sentence of its own pair."""
    if isinstance(src, Packed) != isinstance(tgt, Packed):
        raise ModelError(
            "source is {src} but target is {tgt}; pack both or pad both",
            src=Word("packed" if isinstance(src, Packed) else "padded"),
            tgt=Word("packed" if isinstance(tgt, Packed) else "padded"),
        )
    if isinstance(src, Packed) and isinstance(tgt, Packed):
        return Blocks(tgt, src)
    return encoder_mask(src, n_keys)


def dense(
    mask: Mask | None, n_queries: int, n_keys: int, device: torch.device | None = None
) -> Bool[Tensor, "... #Q K"] | None:
    """Any mask as the boolean tensor it stands for."""
    match mask:
        case Causal():
            return causal_mask(n_queries, n_keys, device=device)
        case Blocks(query, key, causal):
            same = query.sentences(n_queries)[:, None] == key.sentences(n_keys)
            earlier = query.positions(n_queries)[:, None] >= key.positions(n_keys)
            return same & earlier if causal else same
        case _:
            return mask
