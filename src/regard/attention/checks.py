"""Input that cannot be right, refused in one sentence that names the value."""

import torch
from torch import Tensor, nn

from regard.attention.layout import Layout, Packed
from regard.errors import DataError, ModelError, Word


def check_same_width(query: Tensor, key: Tensor) -> None:
    """Queries and keys are compared coordinate by coordinate, so they need one width."""
    if query.shape[-1] != key.shape[-1]:
        raise ModelError(
            "query is {query} wide but key is {key}; this score compares them coordinate by "
            "coordinate, so project both to one width first",
            query=query.shape[-1],
            key=key.shape[-1],
        )


def check_values(key: Tensor, value: Tensor) -> None:
    """Every key has its value."""
    if key.shape[-2] != value.shape[-2]:
        raise ModelError(
            "there are {keys} keys but {values} values; each key needs its own value",
            keys=key.shape[-2],
            values=value.shape[-2],
        )


def check_mask(mask: Tensor, n_queries: int, n_keys: int) -> None:
    """A mask is boolean and covers exactly the scores, or one row of it serves every query."""
    if mask.dtype != torch.bool:
        raise ModelError(
            "mask is {dtype} but must be torch.bool, True where a query may attend; "
            "make it of zeros and ones with mask.bool(), of lengths with valid_lens_mask",
            dtype=mask.dtype,
        )
    if mask.shape[-1] != n_keys:
        raise ModelError(
            "mask covers {covered} keys but there are {keys} (mask {shape})",
            covered=mask.shape[-1],
            keys=n_keys,
            shape=tuple(mask.shape),
        )
    if mask.ndim > 1 and mask.shape[-2] not in (1, n_queries):
        raise ModelError(
            "mask covers {covered} queries but there are {queries} (mask {shape}); "
            "give one row for each query, or one row for all",
            covered=mask.shape[-2],
            queries=n_queries,
            shape=tuple(mask.shape),
        )


def check_width(x: Tensor, linear: nn.Linear, name: str) -> None:
    """The input of a linear map is as wide as the map expects."""
    if x.shape[-1] != linear.in_features:
        raise ModelError(
            "{name} is {width} wide but must be {expected}",
            name=name,
            width=x.shape[-1],
            expected=linear.in_features,
        )


def check_layout(ids: Tensor, layout: Layout | None, side: str) -> None:
    """A layout speaks of the rows it came with."""
    if layout is None:
        return
    if isinstance(layout, Packed):
        _check_packed(ids, layout, side)
        return
    n_rows, width = ids.shape
    if len(layout.lens) != n_rows:
        raise DataError(
            "{side} has {n_rows} sentences but {n_lens} lengths",
            side=Word(side),
            n_rows=n_rows,
            n_lens=len(layout.lens),
        )
    if may_look_at(layout.lens) and int(layout.lens.min()) < 0:
        raise DataError(
            "{side} has a sentence of length {length}",
            side=Word(side),
            length=int(layout.lens.min()),
        )
    if may_look_at(layout.lens) and (longest := int(layout.lens.max())) > width:
        raise DataError(
            "{side} has a sentence of length {longest} in rows of {width} tokens",
            side=Word(side),
            longest=longest,
            width=width,
        )


def _check_packed(ids: Tensor, layout: Packed, side: str) -> None:
    if ids.ndim != 1:
        raise DataError(
            "{side} is packed, so its ids are one row, but they have shape {shape}",
            side=Word(side),
            shape=tuple(ids.shape),
        )
    if not may_look_at(layout.offsets):
        return
    first, last = int(layout.offsets[0]), int(layout.offsets[-1])
    if first != 0 or last != len(ids) or int(layout.lens.min()) < 0:
        raise DataError(
            "{side} has offsets from {first} to {last} for {n_tokens} tokens; "
            "they must rise from 0 to the number of tokens",
            side=Word(side),
            first=first,
            last=last,
            n_tokens=len(ids),
        )
    if (longest := int(layout.lens.max())) > layout.max_len:
        raise DataError(
            "{side} has a sentence of length {longest} but says that none exceeds {max_len}",
            side=Word(side),
            longest=longest,
            max_len=layout.max_len,
        )


def check_packed_rows(heads: Tensor, layout: Packed) -> None:
    """What a packed mask is used on is one row of exactly its tokens."""
    if heads.ndim != 3:
        raise ModelError(
            "a packed mask is for one row of tokens without a batch, but the heads have shape "
            "{shape}",
            shape=tuple(heads.shape),
        )
    if may_look_at(layout.offsets) and (n_tokens := int(layout.offsets[-1])) != heads.shape[-2]:
        raise ModelError(
            "a packed mask covers {covered} tokens but there are {tokens}",
            covered=n_tokens,
            tokens=heads.shape[-2],
        )


def check_pairs(n_sources: int, n_targets: int) -> None:
    """Every target has its source."""
    if n_sources != n_targets:
        raise DataError(
            "there are {sources} source sentences but {targets} target sentences",
            sources=n_sources,
            targets=n_targets,
        )


def check_max_len(positions: Tensor, max_len: int) -> None:
    """A table of positions has a last row."""
    if may_look_at(positions) and (longest := int(positions.max()) + 1) > max_len:
        raise ModelError(
            "the text has {longest} tokens but the model's positions end at {max_len}; "
            "split it, or build the model with a larger max_len",
            longest=longest,
            max_len=max_len,
        )


def may_look_at(x: Tensor) -> bool:
    """Whether a check of values is free: a compiled pass cannot stop to look, nor a GPU unasked."""
    return x.numel() > 0 and not x.is_cuda and not torch.compiler.is_compiling()
