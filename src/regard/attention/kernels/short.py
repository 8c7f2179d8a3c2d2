"""Dot-product attention in packed rows, for many short sentences, on a GPU.

    S = scale q k^T,   P = softmax of S over the keys a query sees,   O = dropout(P) v

A tile is some tens of consecutive rows, whatever sentences they belong to, and it walks over the
rows that any of them sees: a sentence of 24 tokens does not pay for a tile of its own, and one of a
thousand is many tiles. Nothing of the size of S is kept: the backward pass makes P again from the
logarithm of each query's sum.

    dV = dropout(P)^T dO        dP = dropout'(dO v^T)        dS = P (dP - delta)
    dQ = scale dS k             dK = scale dS^T q            delta = rowsum(dO O)

Exponentials are to base 2, which is what the chip has.
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
import triton
from torch import Tensor

from regard.attention.kernels import short_programs
from regard.attention.kernels.spans import Spans

DELTA_ROWS = 64


@dataclass(frozen=True, slots=True)
class Tiles:
    """How many rows a program has, how many of the other side it takes at a time, and how."""

    rows: int
    step: int
    n_warps: int
    n_stages: int


def forward_tiles(width: int, itemsize: int) -> Tiles:
    """What was fastest for heads of this width; `benchmarks/kernels_gpu.py` compares."""
    if itemsize > 2:
        return Tiles(32 if width <= 64 else 16, 32, 4, 1)
    return Tiles(64, 32, 4, 3) if width <= 64 else Tiles(64, 32, 4, 2)


def backward_tiles(width: int, itemsize: int) -> Tiles:
    """The same for the way back."""
    if itemsize > 2:
        return Tiles(32 if width <= 64 else 16, 16, 4, 1)
    return Tiles(64, 32, 4, 2) if width <= 64 else Tiles(32, 32, 4, 1)


class Saved(NamedTuple):
    """The averaged values, and the base-2 logarithm of each query's sum of exponentials."""

    output: Tensor
    log_sum: Tensor


def short_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    spans: Spans,
    scale: float,
    dropout: float,
    *,
    is_own: bool = False,
) -> Tensor:
    """Heads of packed rows (H P E), attended; as `attend` with dot scores and that mask.

    Where all three are of the same rows, `is_own`, one projection has made them, else key and
    value. Their gradients are left side by side, so that nobody has to put them together again.
    """
    seed = _seed(query.device) if dropout else spans.first_key[0]  # any: it is not read
    output, _ = _attend(
        query,
        key,
        value,
        spans.first_key,
        spans.end_key,
        spans.first_query,
        spans.end_query,
        seed,
        scale,
        dropout,
        1 if query.shape[-1] != value.shape[-1] else 3 if is_own else 2,
    )
    return output.transpose(0, 1)


def _seed(device: torch.device) -> Tensor:
    """Drawn where it is used, from torch's own generator: a seeded run repeats, nobody waits."""
    return torch.randint(2**62, (), device=device)


@torch.library.custom_op("regard::short_attention", mutates_args=())
def _attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    first_key: Tensor,
    end_key: Tensor,
    first_query: Tensor,
    end_query: Tensor,
    seed: Tensor,
    scale: float,
    dropout: float,
    together: int,
) -> tuple[Tensor, Tensor]:
    """(P H U) and (H P): what `Saved` says. The spans of keys are for the way back, and so is how
    many gradients are wanted side by side."""
    tiles = forward_tiles(value.shape[-1], value.element_size())
    return attend_forward(query, key, value, first_key, end_key, seed, scale, dropout, tiles)


@_attend.register_fake
def _(query, key, value, *_):
    n_heads, n_queries, _ = query.shape
    output = query.new_empty(n_queries, n_heads, value.shape[-1])
    return output, query.new_empty(n_heads, n_queries, dtype=torch.float32)


@torch.library.custom_op("regard::short_attention_backward", mutates_args=())
def _attend_backward(
    grad: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    output: Tensor,
    log_sum: Tensor,
    first_key: Tensor,
    end_key: Tensor,
    first_query: Tensor,
    end_query: Tensor,
    seed: Tensor,
    scale: float,
    dropout: float,
    together: int,
) -> list[Tensor]:
    """What `attend_backward` says."""
    spans = Spans(first_key, end_key, first_query, end_query)
    tiles = backward_tiles(value.shape[-1], value.element_size())
    rest = Saved(output, log_sum), spans, seed, scale, dropout, tiles, together
    return attend_backward(grad, query, key, value, *rest)


@_attend_backward.register_fake
def _(grad, query, key, value, *rest):
    return _room(query, key, value, rest[-1])


def _keep(ctx, inputs, output) -> None:
    query, key, value, *spans_and_seed, ctx.scale, ctx.dropout, ctx.together = inputs
    ctx.save_for_backward(query, key, value, *output, *spans_and_seed)


def _differentiate(ctx, grad: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
    settings = ctx.scale, ctx.dropout, ctx.together
    room = _attend_backward(grad, *ctx.saved_tensors, *settings)
    return *_parts(room, len(ctx.saved_tensors[0])), *[None] * 8


def _room(query: Tensor, key: Tensor, value: Tensor, together: int) -> list[Tensor]:
    """Where gradients go, as projections have made what they are of: all three side by side, key
    and value, or each by itself."""
    sides = {
        1: ((query, 1), (key, 1), (value, 1)),
        2: ((query, 1), (key, 2)),
        3: ((query, 3),),
    }
    return [x.new_empty(x.shape[1], n * len(x), x.shape[2]) for x, n in sides[together]]


def _parts(room: list[Tensor], n_heads: int) -> list[Tensor]:
    """That room as the gradients of query, key and value."""
    # by sizes and along an axis that is not the first: so the compiler knows the inverse of a cat
    split = [side.split_with_sizes([n_heads] * (side.shape[1] // n_heads), 1) for side in room]
    return [part.transpose(0, 1) for side in split for part in side]


_attend.register_autograd(_differentiate, setup_context=_keep)


def attend_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    first_key: Tensor,
    end_key: Tensor,
    seed: Tensor,
    scale: float,
    dropout: float,
    tiles: Tiles,
) -> Saved:
    """One launch: a program for each tile of queries and head."""
    query, key, value = (_with_rows_in_one_piece(x) for x in (query, key, value))
    n_heads, n_queries, _ = query.shape
    output = query.new_empty(n_queries, n_heads, value.shape[-1])
    log_sum = query.new_empty(n_heads, n_queries, dtype=torch.float32)
    short_programs.forward[(triton.cdiv(n_queries, tiles.rows) * n_heads,)](
        query,
        key,
        value,
        first_key,
        end_key,
        seed,
        output,
        log_sum,
        _strides(query, key, value),
        n_queries,
        n_heads,
        scale,
        dropout,
        **_constants(query, value, dropout, tiles),
    )
    return Saved(output, log_sum)


def attend_backward(
    grad: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    saved: Saved,
    spans: Spans,
    seed: Tensor,
    scale: float,
    dropout: float,
    tiles: Tiles,
    together: int,
) -> list[Tensor]:
    """The gradients of query, key and value, so many of them side by side.

    Two launches: delta for each query, then a program for each tile of either side and head.
    """
    query, key, value = (_with_rows_in_one_piece(x) for x in (query, key, value))
    grad = _with_rows_in_one_piece(grad)
    n_heads, n_queries, _ = query.shape
    n_keys, d_value = value.shape[1:]
    room = _room(query, key, value, together)
    parts = _parts(room, n_heads)
    delta = torch.empty_like(saved.log_sum)
    short_programs.dot_of_rows[(triton.cdiv(n_queries * n_heads, DELTA_ROWS),)](
        grad,
        saved.output,
        delta,
        grad.stride(1),
        grad.stride(0),
        n_queries,
        n_heads,
        WIDTH=d_value,
        PADDED=_padded(d_value),
        ROWS=DELTA_ROWS,
    )
    n_tiles = triton.cdiv(max(n_queries, n_keys), tiles.rows)
    short_programs.backward[(n_tiles * n_heads,)](
        query,
        key,
        value,
        grad,
        saved.log_sum,
        delta,
        spans.first_key,
        spans.end_key,
        spans.first_query,
        spans.end_query,
        seed,
        *parts,
        _strides(query, key, value, grad.transpose(0, 1)),
        tuple(x.stride(1) for x in parts),
        n_queries,
        n_keys,
        n_heads,
        scale,
        dropout,
        **_constants(query, value, dropout, tiles),
    )
    return room


def _constants(query: Tensor, value: Tensor, dropout: float, tiles: Tiles) -> dict[str, int]:
    """What is compiled into a program."""
    width, d_value = query.shape[-1], value.shape[-1]
    return {
        "WIDTH": width,
        "VALUE_WIDTH": d_value,
        "PADDED": _padded(width),
        "VALUE_PADDED": _padded(d_value),
        "ROWS": tiles.rows,
        "STEP": tiles.step,
        "DROPS": dropout > 0,
        "num_warps": tiles.n_warps,
        "num_stages": tiles.n_stages,
    }


def _with_rows_in_one_piece(x: Tensor) -> Tensor:
    return x if x.stride(-1) == 1 else x.contiguous()


def _strides(*tensors: Tensor) -> tuple[int, ...]:
    """Head and row, of each."""
    return tuple(x.stride(axis) for x in tensors for axis in (0, 1))


def _padded(width: int) -> int:
    return max(triton.next_power_of_2(width), 16)
