"""Which keys each query sees, and which queries each key, as ranges of rows.

    query i sees keys     first_key[i] <= j < end_key[i]
    key j is seen by      first_query[j] <= i < end_query[j]

Whole sentences, sentences up to one's own place and those of another text are all of this kind,
packed into one row or not. And all four lists rise. So what a tile of rows sees starts where its
first row does and ends where its last row does: tiles need no table, and no sentence a tile.
"""

from dataclasses import dataclass
from weakref import ref

import torch
from jaxtyping import Int
from torch import Tensor

from regard.attention.layout import Packed
from regard.attention.masks import Blocks, Causal

MASKS = 3  # that are remembered: of the source, of the target, and between them


@dataclass(frozen=True, slots=True)
class Spans:
    """The ranges of one mask, for all rows of both sides."""

    first_key: Int[Tensor, "Q"]
    end_key: Int[Tensor, "Q"]
    first_query: Int[Tensor, "K"]
    end_query: Int[Tensor, "K"]


def spans_of(
    mask: Blocks | Causal | None, n_queries: int, n_keys: int, device: torch.device
) -> Spans:
    """The ranges that the mask stands for; all of them if there is none."""
    if isinstance(mask, Blocks):
        if torch.compiler.is_compiling():  # what is compiled works it out once by itself
            return _spans_of_blocks(mask, n_queries, n_keys)
        return _remembered(mask, n_queries, n_keys)
    queries = torch.arange(n_queries, dtype=torch.int32, device=device)
    keys = torch.arange(n_keys, dtype=torch.int32, device=device)
    none, all_keys, all_queries = (
        torch.zeros_like(queries),
        torch.full_like(queries, n_keys),
        torch.full_like(keys, n_queries),
    )
    if mask is None:
        return Spans(none, all_keys, torch.zeros_like(keys), all_queries)
    end_key = (queries + 1).clamp(max=n_keys)
    return Spans(none, end_key, keys.clamp(max=n_queries), all_queries)


_last: tuple[tuple[ref[Blocks], tuple[int, int, bool], Spans], ...] = ()


def _remembered(mask: Blocks, n_queries: int, n_keys: int) -> Spans:
    """The ranges of one of the last masks, as all layers ask for the same two or three."""
    global _last
    key = n_queries, n_keys, torch.is_inference_mode_enabled()  # which makes another kind of tensor
    known = _last  # another thread may ask meanwhile
    for own, own_key, spans in known:
        if own() is mask and own_key == key:
            return spans
    spans = _spans_of_blocks(mask, n_queries, n_keys)
    _last = ((ref(mask), key, spans), *known[: MASKS - 1])
    return spans


def _spans_of_blocks(mask: Blocks, n_queries: int, n_keys: int) -> Spans:
    first_key, end_key, place = _of_the_other_side(mask.query, mask.key, n_queries)
    if mask.query is mask.key:
        first_query, end_query, key_place = first_key, end_key, place
    else:
        first_query, end_query, key_place = _of_the_other_side(mask.key, mask.query, n_keys)
    if mask.causal:
        end_key = torch.minimum(end_key, first_key + place + 1)
        first_query = torch.minimum(end_query, first_query + key_place)
    return Spans(first_key, end_key, first_query, end_query)


def _of_the_other_side(
    own: Packed, other: Packed, n_tokens: int
) -> tuple[Int[Tensor, "P"], Int[Tensor, "P"], Int[Tensor, "P"]]:
    """For each row, where the other side's sentence starts and ends, and its place in its own."""
    slots = own.sentences(n_tokens).clamp(max=len(own.offsets) - 2)
    tokens = torch.arange(n_tokens, dtype=torch.int32, device=slots.device)
    offsets = other.offsets.to(torch.int32)
    return offsets[slots], offsets[slots + 1], tokens - own.offsets.to(torch.int32)[slots]
