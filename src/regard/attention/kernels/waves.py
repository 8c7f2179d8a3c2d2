"""Additive attention of long rows as products of matrices, on a GPU.

    s_ij = sum_a v_a tanh(q_ia + k_ja)

A tanh that turns back at P and again at -P is a wave of period 2P, and a wave is a sum of sines:

    tanh x = sum_n b_n sin(w_n x),   w_n = (2n + 1) pi / P,   b_n = 2 pi / (P sinh(pi w_n / 2))
    sin(w (q + k)) = sin(wq) cos(wk) + cos(wq) sin(wk)

So a score is a dot product of two longer vectors, sines of the query and cosines of the key, and
what takes eleven instructions a tanh elsewhere (`additive.py`) is what a GPU is best at. The sines
needed grow with the farthest that q + k can be: eleven are right to half of a bfloat16's last digit
up to 10. Farther than `FARTHEST` it is for `additive.py` again.

Scores are made for some heads and rows at a time, so memory stays linear in length.
"""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
import triton
from jaxtyping import Bool, Float
from torch import Tensor

from regard.attention.kernels import additive, waves_programs
from regard.attention.kernels.spans import Spans

FARTHEST = 24.0  # of |q| + |k|: here as many instructions are saved as are spent
LONG = 512  # keys, from which on whole matrices pay
MOST = 16_384  # keys that a program holds a row of
PAIRS, PAIRS_BACK = 2**25, 2**24  # scores at once; on the way back more is there beside them
ROWS = 8  # of waves to a program


class Series(NamedTuple):
    """How many sines, and half of the period."""

    n_waves: int
    half_period: float


def series_for(reach: float, error: float) -> Series:
    """The shortest series that is tanh for |x| <= reach, but for the error.

    Half of the error for the turning back, 1 - tanh(P - x), half for the sines left out.
    """
    half_period = reach + math.atanh(1.0 - error / 2)
    n_waves = 1
    while _rest(n_waves, half_period) > error / 2:
        n_waves += 1
    return Series(n_waves, half_period)


def _rest(n_waves: int, half_period: float) -> float:
    """The amplitudes beyond n: less than a geometric series from the first of them."""
    x = (2 * n_waves + 1) * math.pi**2 / (2 * half_period)
    first = 2 * math.pi / (half_period * math.sinh(x))
    return first / (1 - math.exp(-(math.pi**2) / half_period))


def wave_attention(
    query: Float[Tensor, "B H Q A"],
    key: Float[Tensor, "B H K A"],
    value: Float[Tensor, "B H K U"],
    v: Float[Tensor, "#H A"],
    spans: Spans,
    mask: Bool[Tensor, "#B #H #Q K"] | None,
    dropout: float,
) -> Float[Tensor, "B H Q U"]:
    """As `attend` with `additive_scores`: keys within the spans that the mask, if any, allows."""
    if mask is not None:
        mask = mask.expand(*query.shape[:3], key.shape[2])
    seed = torch.randint(2**62, (), device=query.device) if dropout else spans.first_key[0]
    v = v.float().expand(query.shape[1], -1).contiguous()
    rows = spans.first_query, spans.end_query, spans.first_key, spans.end_key
    output, _ = _attend(query, key, value, v, *rows, mask, seed, dropout)
    return output


def is_for_waves(query: Tensor, key: Tensor, value: Tensor) -> bool:
    """Long rows of half precision, in widths that products of matrices like."""
    is_wide = query.shape[-1] % 8 == 0 and value.shape[-1] % 8 == 0
    return query.dtype.itemsize == 2 and LONG <= key.shape[-2] <= MOST and is_wide


class Rules(NamedTuple):
    """Which keys each query sees, and which of its weights are dropped."""

    first_key: Tensor
    end_key: Tensor
    mask: Tensor | None
    seed: Tensor
    dropout: float


@torch.library.custom_op("regard::wave_attention", mutates_args=())
def _attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    v: Tensor,
    first_query: Tensor,
    end_query: Tensor,
    first_key: Tensor,
    end_key: Tensor,
    mask: Tensor | None,
    seed: Tensor,
    dropout: float,
) -> tuple[Tensor, Tensor]:
    """The averaged values, and the base-2 logarithm of each query's sum of exponentials."""
    rules = Rules(first_key, end_key, mask, seed, dropout)
    series = _series(query, key)
    if series is None:
        tiles = additive.forward_tiles(is_long=True)
        x, y = additive.exponentials(query), additive.exponentials(key)
        return additive.attend_forward(x, y, v, value, *rules, tiles)
    output = value.new_empty(*query.shape[:3], value.shape[-1])
    log_sum = v.new_empty(query.shape[:3])
    for part in _parts(query, key, PAIRS):
        at, own = (part.batch, part.heads), v[part.heads]
        of_queries = _waves(query[at][:, part.rows], own, series, is_query=True)
        scores = torch.bmm(of_queries, _waves(key[at], own, series, is_query=False).mT)
        weights = _weights(scores, part, rules, log_sum[at], value.dtype)
        del scores, of_queries
        output[at][:, part.rows] = torch.bmm(weights, value[at])
        del weights  # the next ones may lie in their place
    return output, log_sum


@_attend.register_fake
def _(query, key, value, v, *_):
    return value.new_empty(*query.shape[:3], value.shape[-1]), v.new_empty(query.shape[:3])


@torch.library.custom_op("regard::wave_attention_backward", mutates_args=())
def _attend_backward(
    grad: Tensor,
    output: Tensor,
    log_sum: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    v: Tensor,
    first_query: Tensor,
    end_query: Tensor,
    first_key: Tensor,
    end_key: Tensor,
    mask: Tensor | None,
    seed: Tensor,
    dropout: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Gradients of query, key, value and v."""
    rules = Rules(first_key, end_key, mask, seed, dropout)
    series = _series(query, key)
    if series is None:
        delta = (grad.float() * output.float()).sum(-1)
        rows = query, key, additive.exponentials(query), additive.exponentials(key)
        spans, tiles = (first_query, end_query), additive.backward_tiles(is_long=True)
        d_query, d_key, d_v, d_value = additive.attend_backward(
            grad, rows, v, value, log_sum, delta, spans, mask, seed, dropout, tiles
        )
        d_query, d_v = (d[..., : v.shape[-1]] for d in (d_query, d_v))
        return d_query.to(query.dtype), d_key, d_value, d_v.sum(0)
    d_query, d_key, d_value = map(_like, (query, key, value))
    d_v, scale = torch.zeros_like(v), _scale(grad, value)
    sums: tuple[Tensor, ...] = ()  # for the waves of keys, and for values, over parts of queries
    for part in _parts(query, key, PAIRS_BACK):
        at, own = (part.batch, part.heads), v[part.heads]
        q, do = query[at][:, part.rows], grad[at][:, part.rows]
        of_queries = _waves(q, own, series, is_query=True)
        of_keys = _waves(key[at], own, series, is_query=False)
        scores, d_weights = torch.bmm(of_queries, of_keys.mT), torch.bmm(do, value[at].mT)
        used, ds = _weights_back(scores, d_weights, part, rules, log_sum[at], scale)
        d_waves = torch.bmm(ds, of_keys)
        _back_to(d_query[at][:, part.rows], q, own, d_waves, scale, d_v[part.heads], series)
        del d_waves, of_keys  # what comes next may lie in their place
        now = _product(ds.mT, of_queries), _product(used.mT, do)
        del scores, d_weights, used, ds, of_queries
        sums = now if part.is_first else tuple(a.add_(b) for a, b in zip(now, sums, strict=True))
        if part.is_last:
            _back_to(d_key[at], key[at], own, sums[0], scale, None, series)
            d_value[at] = sums[1]
    return d_query, d_key, d_value, d_v


@_attend_backward.register_fake
def _(grad, output, log_sum, query, key, value, v, *_):
    return *map(_like, (query, key, value)), torch.empty_like(v)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    *tensors, ctx.dropout = inputs
    ctx.save_for_backward(*output, *tensors)


def _differentiate(ctx: Any, grad: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
    gradients = _attend_backward(grad.contiguous(), *ctx.saved_tensors, ctx.dropout)
    return *gradients, *[None] * 7


_attend.register_autograd(_differentiate, setup_context=_keep)


def _like(x: Tensor) -> Tensor:
    return torch.empty_like(x, memory_format=torch.contiguous_format)


def _series(query: Tensor, key: Tensor) -> Series | None:
    """The sines that these rows need; none where they are too far, or it cannot be known.

    The number decides how large matrices are, so the GPU has to be asked and waited for, which
    it cannot be while what it does is recorded.
    """
    if query.is_cuda and torch.cuda.is_current_stream_capturing():
        return None
    reach = float(torch.stack([x.abs().amax() for x in (query, key)]).float().sum())
    if not reach <= FARTHEST:  # and not if it is no number
        return None
    digit = torch.finfo(query.dtype).eps / 4  # half of the last one, just below 1
    return series_for(reach, max(digit, 1e-6))


class Part(NamedTuple):
    """Some heads of a sentence and some of their queries, and whether all come before or after."""

    batch: int
    heads: slice
    rows: slice
    n_heads: int
    n_rows: int
    group: int  # of the first head, among those of all sentences
    is_first: bool
    is_last: bool


def _parts(query: Tensor, key: Tensor, most_pairs: int) -> Iterator[Part]:
    """All of them, so large that no more scores are there at once."""
    n_batch, all_heads, n_queries, _ = query.shape
    most_rows = min(n_queries, max(most_pairs // key.shape[2], 1))
    most_heads = max(most_pairs // (most_rows * key.shape[2]), 1)
    for batch in range(n_batch):
        for head in range(0, all_heads, most_heads):
            n_heads = min(most_heads, all_heads - head)
            for row in range(0, n_queries, most_rows):
                n_rows = min(most_rows, n_queries - row)
                places = slice(head, head + n_heads), slice(row, row + n_rows)
                is_last = row + n_rows == n_queries
                group = batch * all_heads + head
                yield Part(batch, *places, n_heads, n_rows, group, row == 0, is_last)


def _waves(x: Tensor, v: Tensor, series: Series, *, is_query: bool) -> Tensor:
    """(heads, rows, frequencies * 2 * hidden), of half precision if x is."""
    n_heads, n_rows, width = x.shape
    dtype = torch.float16 if x.dtype.itemsize == 2 else x.dtype
    waves = x.new_empty(n_heads, n_rows, series.n_waves * 2 * width, dtype=dtype)
    waves_programs.make_waves[(triton.cdiv(n_rows, ROWS), n_heads)](
        x, v, waves, x.stride(), n_rows, *series, **_constants(width, is_query)
    )
    return waves


def _back_to(
    d_x: Tensor,
    x: Tensor,
    v: Tensor,
    d_waves: Tensor,
    scale: Tensor,
    d_v: Tensor | None,
    series: Series,
) -> None:
    """Write the gradient of what the waves were made of; of queries, add to that of v."""
    n_heads, n_rows, width = x.shape
    waves_programs.gradients_of_waves[(triton.cdiv(n_rows, ROWS), n_heads)](
        *(x, v, d_waves, scale, d_x, v if d_v is None else d_v, x.stride(), d_x.stride(), n_rows),
        *series,
        **_constants(width, d_v is not None),
    )


def _constants(width: int, is_query: bool) -> dict[str, int]:
    room = triton.next_power_of_2(width)
    return {"WIDTH": width, "ROOM": room, "ROWS": ROWS, "IS_QUERY": is_query, "num_warps": 4}


def _weights(
    scores: Tensor, part: Part, rules: Rules, log_sum: Tensor, dtype: torch.dtype
) -> Tensor:
    """Softmax of the scores, in their place; what a query sees adds up to its logarithm."""
    weights = scores.view(dtype)
    mask, strides = _mask(rules.mask, part, scores)
    waves_programs.weights[(part.n_rows, part.n_heads)](
        *(scores, rules.first_key, rules.end_key, mask, rules.seed, weights, log_sum, strides),
        *(part.group, part.rows.start, log_sum.shape[-1], scores.shape[-1], rules.dropout),
        **_row_constants(scores, rules),
    )
    return weights


def _weights_back(
    scores: Tensor,
    d_weights: Tensor,
    part: Part,
    rules: Rules,
    log_sum: Tensor,
    scale: Tensor,
) -> tuple[Tensor, Tensor]:
    """The weights as they were used, and the gradient of the scores, scaled.

    They lie where the gradient of the weights and the scores were, which nobody needs any more.
    """
    mask, strides = _mask(rules.mask, part, scores)
    waves_programs.weights_back[(part.n_rows, part.n_heads)](
        *(scores, d_weights, rules.first_key, rules.end_key, mask, rules.seed, log_sum, scale),
        *(strides, part.group, part.rows.start, log_sum.shape[-1], scores.shape[-1], rules.dropout),
        **_row_constants(scores, rules),
    )
    return d_weights, scores


def _mask(mask: Tensor | None, part: Part, other: Tensor) -> tuple[Tensor, tuple[int, ...]]:
    """The part's mask as bytes, and its strides; anything if there is none."""
    if mask is None:
        return other, (0, 0, 0)
    own = mask[part.batch, part.heads].view(torch.uint8)
    return own, own.stride()


def _row_constants(scores: Tensor, rules: Rules) -> dict[str, int]:
    columns = triton.next_power_of_2(scores.shape[-1])
    return {
        "COLUMNS": columns,
        "MASKED": rules.mask is not None,
        "DROPS": rules.dropout > 0,
        "num_warps": min(max(columns // 512, 1), 16),
    }


def _scale(grad: Tensor, value: Tensor) -> Tensor:
    """The power of two that makes gradients of scores fill half precision.

    |ds| <= |dp| + |sum p dp| <= 2 max |grad|_1 max |value|, which becomes 2^13 at most.
    """
    if value.dtype.itemsize > 2:
        return torch.ones((), device=value.device)
    largest = torch.linalg.vector_norm(grad, 1, -1, dtype=torch.float32).amax()
    bound = 2.0 * largest * value.abs().amax()
    return (13.0 - bound.clamp(min=1e-30).log2().ceil()).exp2()


def _product(a: Tensor, b: Tensor) -> Tensor:
    """a b in float32 however narrow they are."""
    if a.is_cuda and a.dtype.itemsize == 2:
        return torch.bmm(a, b, out_dtype=torch.float32)
    return torch.bmm(a.float(), b.float())
