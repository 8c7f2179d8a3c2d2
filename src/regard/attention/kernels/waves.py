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
    output, *_ = _attend(query, key, value, v, *rows, mask, seed, dropout)
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
) -> tuple[Tensor, Tensor, Tensor]:
    """The averaged values, the base-2 logarithm of each query's sum of exponentials, the series.

    The series is beside the GPU, so that the way back need not ask for it; none is two zeros.
    """
    rules = Rules(first_key, end_key, mask, seed, dropout)
    series = _series(query, key)
    if series is None:
        tiles = additive.forward_tiles(is_long=True)
        x, y = additive.exponentials(query), additive.exponentials(key)
        found = additive.attend_forward(x, y, v, value, *rules, tiles)
        return *found, torch.zeros(2, dtype=torch.float64)
    output = value.new_empty(*query.shape[:3], value.shape[-1])
    log_sum = v.new_empty(query.shape[:3])
    for part in _parts(query, key, PAIRS):
        at, own = (part.batch, part.heads), v[part.heads]
        of_queries, of_keys = _waves(query[at][:, part.rows], key[at], own, series)
        scores = torch.bmm(of_queries, of_keys.mT)
        del of_queries, of_keys
        weights = _weights(scores, part, rules, log_sum[at], value.dtype)
        torch.bmm(weights, value[at], out=output[at][:, part.rows])
        del scores, weights  # the next ones may lie in their place
    return output, log_sum, torch.tensor(series, dtype=torch.float64)


@_attend.register_fake
def _(query, key, value, v, *_):
    output = value.new_empty(*query.shape[:3], value.shape[-1])
    return output, v.new_empty(query.shape[:3]), torch.empty(2, dtype=torch.float64)


@torch.library.custom_op("regard::wave_attention_backward", mutates_args=())
def _attend_backward(
    grad: Tensor,
    output: Tensor,
    log_sum: Tensor,
    known: Tensor,
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
    n_waves, half_period = known.tolist()
    if not n_waves:
        delta = (grad.float() * output.float()).sum(-1)
        rows = query, key, additive.exponentials(query), additive.exponentials(key)
        spans, tiles = (first_query, end_query), additive.backward_tiles(is_long=True)
        d_query, d_key, d_v, d_value = additive.attend_backward(
            grad, rows, v, value, log_sum, delta, spans, mask, seed, dropout, tiles
        )
        d_query, d_v = (d[..., : v.shape[-1]] for d in (d_query, d_v))
        return d_query.to(query.dtype), d_key, d_value, d_v.sum(0)
    series = Series(int(n_waves), half_period)
    d_query, d_key, d_value = map(_like, (query, key, value))
    d_v, scale = torch.zeros_like(v), _scale(grad, value)
    sums: tuple[Tensor, ...] = ()  # for the waves of keys, and for values, over parts of queries
    for part in _parts(query, key, PAIRS_BACK):
        at, own = (part.batch, part.heads), v[part.heads]
        q, do = query[at][:, part.rows], grad[at][:, part.rows]
        of_queries, of_keys = _waves(q, key[at], own, series)
        scores, d_weights = torch.bmm(of_queries, of_keys.mT), torch.bmm(do, value[at].mT)
        used, ds = _weights_back(scores, d_weights, part, rules, log_sum[at], scale)
        d_of_queries = torch.bmm(ds, of_keys)
        del of_keys  # what comes next may lie in its place
        now = _product(ds.mT, of_queries), _product(used.mT, do)
        del scores, d_weights, used, ds, of_queries
        sums = now if part.is_first else tuple(a.add_(b) for a, b in zip(now, sums, strict=True))
        d_at = d_query[at][:, part.rows], d_key[at] if part.is_last else None
        _back_to(*d_at, q, key[at], own, d_of_queries, sums[0], scale, d_v[part.heads], series)
        del d_of_queries, now
        if part.is_last:
            d_value[at] = sums[1]
            sums = ()
    return d_query, d_key, d_value, d_v


@_attend_backward.register_fake
def _(grad, output, log_sum, known, query, key, value, v, *_):
    return *map(_like, (query, key, value)), torch.empty_like(v)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    *tensors, ctx.dropout = inputs
    ctx.save_for_backward(*output, *tensors)


def _differentiate(ctx: Any, grad: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
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


def _waves(query: Tensor, key: Tensor, v: Tensor, series: Series) -> tuple[Tensor, Tensor]:
    """Of each (heads, rows, frequencies * 2 * hidden), of half precision if they are."""
    n_heads, n_queries, width = query.shape
    n_keys, size = key.shape[1], series.n_waves * 2 * width
    dtype = torch.float16 if query.dtype.itemsize == 2 else query.dtype
    of_queries = query.new_empty(n_heads, n_queries, size, dtype=dtype)
    of_keys = query.new_empty(n_heads, n_keys, size, dtype=dtype)
    waves_programs.make_waves[(_n_tiles(n_queries) + _n_tiles(n_keys), n_heads)](
        *(query, key, v, of_queries, of_keys, query.stride(), key.stride(), n_queries, n_keys),
        *series,
        **_constants(width),
    )
    return of_queries, of_keys


def _back_to(
    d_query: Tensor,
    d_key: Tensor | None,
    query: Tensor,
    key: Tensor,
    v: Tensor,
    d_of_queries: Tensor,
    d_of_keys: Tensor,
    scale: Tensor,
    d_v: Tensor,
    series: Series,
) -> None:
    """Write the gradients of what the waves were made of, of keys if it is time; add to v's."""
    n_heads, n_queries, width = query.shape
    n_tiles = _n_tiles(n_queries) + (0 if d_key is None else _n_tiles(key.shape[1]))
    d_key = key if d_key is None else d_key  # nobody writes to it then
    waves_programs.gradients_of_waves[(n_tiles, n_heads)](
        *(query, key, v, d_of_queries, d_of_keys, scale, d_query, d_key, d_v),
        *(query.stride(), key.stride(), d_query.stride(), d_key.stride()),
        *(n_queries, key.shape[1], *series),
        **_constants(width),
    )


def _n_tiles(n_rows: int) -> int:
    return triton.cdiv(n_rows, ROWS)


def _constants(width: int) -> dict[str, int]:
    return {"WIDTH": width, "ROOM": triton.next_power_of_2(width), "ROWS": ROWS, "num_warps": 4}


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
