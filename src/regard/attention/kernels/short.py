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
    query: Tensor, key: Tensor, value: Tensor, spans: Spans, scale: float, dropout: float
) -> Tensor:
    """Heads of packed rows (H P E), attended; as `attend` with dot scores and that mask."""
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
) -> tuple[Tensor, Tensor]:
    """(P H U) and (H P): what `Saved` says. The spans of keys are for the way back."""
    tiles = forward_tiles(value.shape[-1], value.element_size())
    return attend_forward(query, key, value, first_key, end_key, seed, scale, dropout, tiles)


@_attend.register_fake
def _(query, key, value, first_key, end_key, first_query, end_query, seed, scale, dropout):
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
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of query, key and value, each (P H E) like the output."""
    spans = Spans(first_key, end_key, first_query, end_query)
    tiles = backward_tiles(value.shape[-1], value.element_size())
    saved = Saved(output, log_sum)
    return attend_backward(grad, query, key, value, saved, spans, seed, scale, dropout, tiles)


@_attend_backward.register_fake
def _(grad, query, key, value, *_):
    return tuple(x.new_empty(x.shape[1], x.shape[0], x.shape[2]) for x in (query, key, value))


def _keep(ctx, inputs, output) -> None:
    query, key, value, first_key, end_key, first_query, end_query, seed, scale, dropout = inputs
    ctx.save_for_backward(
        query, key, value, *output, first_key, end_key, first_query, end_query, seed
    )
    ctx.scale, ctx.dropout = scale, dropout


def _differentiate(ctx, grad: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
    grads = _attend_backward(grad, *ctx.saved_tensors, ctx.scale, ctx.dropout)
    return *(x.transpose(0, 1) for x in grads), *[None] * 7


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
) -> tuple[Tensor, Tensor, Tensor]:
    """Two launches: delta for each query, then a program for each tile of either side and head."""
    query, key, value = (_with_rows_in_one_piece(x) for x in (query, key, value))
    grad = _with_rows_in_one_piece(grad)
    n_heads, n_queries, _ = query.shape
    n_keys, d_value = value.shape[1:]
    d_query, d_key, d_values = (
        x.new_empty(x.shape[1], n_heads, x.shape[2]) for x in (query, key, value)
    )
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
        d_query,
        d_key,
        d_values,
        _strides(query, key, value, grad.transpose(0, 1)),
        n_queries,
        n_keys,
        n_heads,
        scale,
        dropout,
        **_constants(query, value, dropout, tiles),
    )
    return d_query, d_key, d_values


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
