"""Additive attention without its (queries, keys, hidden) tensor, on a GPU.

    s_ij = sum_a v_a tanh(q_ia + k_ja)

Tiles as in `short.py`, and memory linear in length. There is no tanh in it: with x = e^(2q) and
y = e^(2k), which are one number for each row and coordinate and not for each pair,

    tanh(q + k) = 1 - 2 / (1 + x y)

and softmax does not see the sum of the ones. What is left for each pair and coordinate are some
products and a share of a reciprocal. Beyond 43, where e^(2q) ends, coordinates of q and k count
as 43. Scores of short sentences are kept for the way back; those of long ones would be more than
all else, and are made again.
"""

from typing import Any

import torch
import triton
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional as F

from regard.attention.kernels import additive_programs
from regard.attention.kernels.short import Tiles
from regard.attention.kernels.spans import Spans

FARTHEST = 43.0
LONG = 128  # tokens a sentence, from which on larger tiles pay
KEPT = 256  # keys of a query, up to which its scores are kept for the way back


def forward_tiles(is_long: bool) -> Tiles:
    """What was fastest; `benchmarks/kernels_gpu.py` compares."""
    return Tiles(16, 64, 1, 1) if is_long else Tiles(16, 32, 1, 1)


def backward_tiles(is_long: bool) -> Tiles:
    """The same for the way back."""
    return Tiles(16, 64, 1, 1) if is_long else Tiles(16, 16, 1, 1)


def tiled_additive_attention(
    query: Float[Tensor, "B H Q A"],
    key: Float[Tensor, "B H K A"],
    value: Float[Tensor, "B H K U"],
    v: Float[Tensor, "#H A"],
    spans: Spans,
    mask: Bool[Tensor, "#B #H #Q K"] | None,
    dropout: float,
    mean_len: float,
    longest: int,
) -> Float[Tensor, "B H Q U"]:
    """As `attend` with `additive_scores`: keys within the spans that the mask, if any, allows.

    No span is longer than the longest.
    """
    if mask is not None:
        mask = mask.expand(*query.shape[:3], key.shape[2])
    seed = torch.randint(2**62, (), device=query.device) if dropout else spans.first_key[0]
    output, *_ = _attend(
        query,
        key,
        value,
        v.float().expand(query.shape[1], -1),
        *(exponentials(x.detach()) for x in (query, key)),
        spans.first_key,
        spans.end_key,
        spans.first_query,
        spans.end_query,
        mask,
        seed,
        dropout,
        mean_len >= LONG,
        longest if longest <= KEPT and torch.is_grad_enabled() else 0,
    )
    return output


def exponentials(x: Float[Tensor, "B H P A"]) -> Float[Tensor, "B H _ P"]:
    """e^(2x), a row for each coordinate, with zeros up to a power of two of them.

    In bfloat16 if x is: half of the bytes, and the mistake that a bfloat16 has for x about 1.
    """
    powers = (2.0 * x.float().clamp(-FARTHEST, FARTHEST)).exp()
    powers = powers.to(x.dtype if x.dtype is torch.bfloat16 else torch.float32)
    return F.pad(powers, (0, room(x.shape[-1]) - x.shape[-1])).transpose(-2, -1).contiguous()


def room(n_hidden: int) -> int:
    """How many coordinates a row has room for."""
    return max(triton.next_power_of_2(n_hidden), 16)


@torch.library.custom_op("regard::additive_attention", mutates_args=())
def _attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    v: Tensor,
    x: Tensor,
    y: Tensor,
    first_key: Tensor,
    end_key: Tensor,
    first_query: Tensor,
    end_query: Tensor,
    mask: Tensor | None,
    seed: Tensor,
    dropout: float,
    is_long: bool,
    n_kept: int,
) -> tuple[Tensor, Tensor, Tensor]:
    """The averaged values, the base-2 logarithm of each query's sum of exponentials, the scores.

    Scores are of so many keys from the first that a query sees, or none. Query, key and the spans
    of keys are for the way back.
    """
    tiles, spans = forward_tiles(is_long), (first_key, end_key)
    return attend_forward(x, y, v, value, *spans, mask, seed, dropout, tiles, n_kept)


@_attend.register_fake
def _(query, key, value, v, x, y, a, b, c, d, mask, seed, dropout, is_long, n_kept):
    output = value.new_empty(*query.shape[:3], value.shape[-1])
    return output, v.new_empty(query.shape[:3]), _room_for_scores(value, query.shape[2], n_kept)


@torch.library.custom_op("regard::additive_attention_backward", mutates_args=())
def _attend_backward(
    grad: Tensor,
    query: Tensor,
    key: Tensor,
    x: Tensor | None,
    y: Tensor | None,
    scores: Tensor,
    v: Tensor,
    value: Tensor,
    log_sum: Tensor,
    delta: Tensor,
    first_key: Tensor,
    first_query: Tensor,
    end_query: Tensor,
    mask: Tensor | None,
    seed: Tensor,
    dropout: float,
    is_long: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Gradients of query, which are sums in float32, of key, of v for each group, of the values."""
    rows, spans = (query, key, x, y), (first_key, first_query, end_query)
    known, tiles = (log_sum, delta, scores), backward_tiles(is_long)
    return attend_backward(grad, rows, v, value, known, spans, mask, seed, dropout, tiles)


@_attend_backward.register_fake
def _(grad, query, key, x, y, scores, v, value, *_):
    n_room = room(v.shape[-1])
    return (
        v.new_empty(*query.shape[:3], n_room),
        torch.empty_like(key, memory_format=torch.contiguous_format),
        v.new_empty(*query.shape[:2], n_room),
        torch.empty_like(value, memory_format=torch.contiguous_format),
    )


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    query, key, value, v, _, _, first_key, _, *more, dropout, is_long, _ = inputs
    ctx.settings = dropout, is_long
    ctx.set_materialize_grads(False)  # nobody asks for those of the sums and scores
    ctx.save_for_backward(query, key, value, v, *output, first_key, *more)


def _differentiate(ctx: Any, grad: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
    query, key, value, v, output, log_sum, scores, *more = ctx.saved_tensors
    delta = (grad.float() * output.float()).sum(-1)
    powers = (None, None) if scores.numel() else (exponentials(query), exponentials(key))
    d_query, d_key, d_v, d_value = _attend_backward(
        *(grad, query, key, *powers, scores, v, value, log_sum, delta, *more, *ctx.settings)
    )
    n_hidden = v.shape[-1]
    return (
        d_query[..., :n_hidden].to(query.dtype),
        d_key,
        d_value,
        d_v[..., :n_hidden].sum(0),
        *[None] * 11,
    )


_attend.register_autograd(_differentiate, setup_context=_keep)


def attend_forward(
    x: Tensor,
    y: Tensor,
    v: Tensor,
    value: Tensor,
    first_key: Tensor,
    end_key: Tensor,
    mask: Tensor | None,
    seed: Tensor,
    dropout: float,
    tiles: Tiles,
    n_kept: int = 0,
) -> tuple[Tensor, Tensor, Tensor]:
    """One launch: a program for each tile of queries and group."""
    n_batch, n_heads, n_room, n_queries = x.shape
    n_keys, width = value.shape[2:]
    value = value if value.stride(-1) == 1 else value.contiguous()
    output = value.new_empty(n_batch, n_heads, n_queries, width)
    log_sum = v.new_empty(n_batch, n_heads, n_queries)
    scores = _room_for_scores(value, n_queries, n_kept)
    additive_programs.forward[(triton.cdiv(n_queries, tiles.rows) * n_batch * n_heads,)](
        x,
        y,
        _like_rows(v, n_room),
        value,
        first_key,
        end_key,
        value if mask is None else mask.view(torch.uint8),
        seed,
        output,
        log_sum,
        scores,
        _strides(value, mask),
        n_queries,
        n_keys,
        n_heads,
        n_kept,
        dropout,
        KEEPS=n_kept > 0,
        **_constants(v, value, mask, dropout, tiles),
    )
    return output, log_sum, scores


def attend_backward(
    grad: Tensor,
    rows: tuple[Tensor, Tensor, Tensor | None, Tensor | None],
    v: Tensor,
    value: Tensor,
    known: tuple[Tensor, Tensor, Tensor],
    spans: tuple[Tensor, Tensor, Tensor],
    mask: Tensor | None,
    seed: Tensor,
    dropout: float,
    tiles: Tiles,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """One launch: a program for each tile of keys and group, with some memory of its own.

    The rows are queries and keys as they are, and their exponentials, unless scores are known.
    """
    query, key = (one if one.stride(-1) == 1 else one.contiguous() for one in rows[:2])
    log_sum, delta, scores = known
    n_batch, n_heads, n_queries, _ = query.shape
    n_keys, n_room = value.shape[2], room(v.shape[-1])
    n_programs = triton.cdiv(n_keys, tiles.rows) * n_batch * n_heads
    value = value if value.stride(-1) == 1 else value.contiguous()
    d_query = v.new_zeros(n_batch, n_heads, n_queries, n_room)
    d_v = v.new_zeros(n_batch, n_heads, n_room)
    d_key, d_value = (
        torch.empty_like(one, memory_format=torch.contiguous_format) for one in (key, value)
    )
    additive_programs.backward[(n_programs,)](
        *(scores if x is None else x for x in rows[2:]),
        scores,
        query,
        key,
        _like_rows(v, n_room),
        value,
        grad.contiguous(),
        log_sum,
        delta.contiguous(),
        *spans,
        value if mask is None else mask.view(torch.uint8),
        seed,
        v.new_empty(n_programs, tiles.rows, tiles.step),
        d_query,
        d_key,
        d_v,
        d_value,
        _strides(value, mask),
        (*query.stride()[:3], *key.stride()[:3]),
        n_queries,
        n_keys,
        n_heads,
        scores.shape[-1],
        dropout,
        N_HIDDEN=v.shape[-1],
        KEEPS=scores.numel() > 0,
        **_constants(v, value, mask, dropout, tiles),
    )
    return d_query, d_key, d_v, d_value


def _room_for_scores(value: Tensor, n_queries: int, n_kept: int) -> Tensor:
    """In half precision if values are; none if nothing is kept."""
    dtype = torch.float16 if value.dtype.itemsize == 2 else torch.float32
    return value.new_empty(*value.shape[:2], n_queries if n_kept else 0, n_kept, dtype=dtype)


def _constants(
    v: Tensor, value: Tensor, mask: Tensor | None, dropout: float, tiles: Tiles
) -> dict[str, int]:
    """What is compiled into a program."""
    n_hidden, width = v.shape[-1], value.shape[-1]
    return {
        "HIDDEN": -(-n_hidden // 4) * 4,  # four at a time
        "ROOM": room(n_hidden),
        "WIDTH": width,
        "PADDED": max(triton.next_power_of_2(width), 16),
        "ROWS": tiles.rows,
        "STEP": tiles.step,
        "MASKED": mask is not None,
        "DROPS": dropout > 0,
        "FAST": value.is_cuda,
        "num_warps": tiles.n_warps * max(room(n_hidden) // 64, 1),
        "num_stages": tiles.n_stages,
    }


def _like_rows(v: Tensor, n_room: int) -> Tensor:
    return F.pad(v, (0, n_room - v.shape[-1])).contiguous()


def _strides(value: Tensor, mask: Tensor | None) -> tuple[int, ...]:
    """Batch, head and row of the values; all four of the mask."""
    return (*value.stride()[:3], *((0, 0, 0, 0) if mask is None else mask.stride()))
