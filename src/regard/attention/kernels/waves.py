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

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
import triton
from jaxtyping import Bool, Float
from torch import Tensor

from regard.attention.kernels import additive, waves_programs
from regard.attention.kernels.short import Tiles
from regard.attention.kernels.sines import Series, series_for
from regard.attention.kernels.spans import Spans

FARTHEST = 24.0  # of |q| + |k|: here as many instructions are saved as are spent
LONG = 512  # keys, from which on whole matrices pay
MOST = 16_384  # keys that a program holds a row of
PAIRS, PAIRS_BACK = 2**25, 5 * 2**22  # scores at once; on the way back more is beside them
ROWS = 8  # of waves to a program
TILES = Tiles(32, 64, 4, 3)  # queries and keys at once, on the way back of weights


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
        output, log_sum, _ = additive.attend_forward(x, y, v, value, *rules, tiles)
        return output, log_sum, torch.zeros(2, dtype=torch.float64)
    output = value.new_empty(*query.shape[:3], value.shape[-1])
    log_sum = v.new_empty(query.shape[:3])
    n_heads = query.shape[1]
    for part in _parts(query, key, PAIRS, n_heads):
        of_queries, of_keys = _waves(query, key, v, part, series)
        scores = torch.bmm(of_queries, of_keys.mT)
        del of_queries, of_keys
        weights = _weights(scores, part, rules, log_sum, value.dtype)
        batch, head = divmod(part.group, n_heads)
        heads, rows = slice(head, head + part.n_groups), slice(part.row, part.row + part.n_rows)
        torch.bmm(weights, value[batch, heads], out=output[batch, heads, rows])
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
    delta = (grad.float() * output.float()).sum(-1)
    if not n_waves:
        spans = first_key, first_query, end_query
        return _back_by_tiles(grad, query, key, value, v, log_sum, delta, spans, rules)
    series = Series(int(n_waves), half_period)
    gradients = _like(query), _like(key), _like(value), torch.zeros_like(v)
    scale = _scale(grad, value)
    n_all = query.shape[0] * query.shape[1]
    sums: tuple[Tensor, ...] = ()  # for the waves of keys, and for values, over parts of queries
    for part in _parts(query, key, PAIRS_BACK, n_all):
        of_queries, of_keys = _waves(query, key, v, part, series)
        scores = torch.bmm(of_queries, of_keys.mT)
        so_far = sums[1] if sums else _room_for_sums(value, part)
        known_rows = grad, value, log_sum, delta
        ds = _weights_back(scores, known_rows, part, rules, scale, gradients[2], so_far)
        d_of_queries = torch.bmm(ds, of_keys)
        del of_keys  # what comes next may lie in its place
        d_of_keys = _product(ds.mT, of_queries)
        del scores, ds, of_queries
        if sums:
            d_of_keys.add_(sums[0])
        _back_to(gradients, query, key, v, d_of_queries, d_of_keys, scale, part, series)
        sums = () if part.is_last else (d_of_keys, so_far)
        del d_of_queries, d_of_keys, so_far
    return gradients


def _back_by_tiles(
    grad: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    v: Tensor,
    log_sum: Tensor,
    delta: Tensor,
    spans: tuple[Tensor, Tensor, Tensor],
    rules: Rules,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The way back of `additive.py`, for rows that are too far."""
    rows = query, key, additive.exponentials(query), additive.exponentials(key)
    known, tiles = (log_sum, delta, delta.new_empty(0)), additive.backward_tiles(is_long=True)
    d_query, d_key, d_v, d_value = additive.attend_backward(
        grad, rows, v, value, known, spans, rules.mask, rules.seed, rules.dropout, tiles
    )
    d_query, d_v = (d[..., : v.shape[-1]] for d in (d_query, d_v))
    return d_query.to(query.dtype), d_key, d_value, d_v.sum(0)


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
    """Some heads, of one sentence or several, and some of their queries."""

    group: int  # the first head, among those of all sentences
    n_groups: int
    row: int
    n_rows: int
    is_first: bool  # whether none of their queries come before
    is_last: bool


def _parts(query: Tensor, key: Tensor, most_pairs: int, n_together: int) -> Iterator[Part]:
    """All of them, so large that no more scores are there at once, so many heads in a row."""
    n_batch, n_heads, n_queries, _ = query.shape
    most_rows = min(n_queries, max(most_pairs // key.shape[2], 1))
    most = max(most_pairs // (most_rows * key.shape[2]), 1)
    for first in range(0, n_batch * n_heads, n_together):
        for group in range(first, first + n_together, most):
            n_groups = min(most, first + n_together - group)
            for row in range(0, n_queries, most_rows):
                n_rows = min(most_rows, n_queries - row)
                yield Part(group, n_groups, row, n_rows, row == 0, row + n_rows == n_queries)


def _waves(
    query: Tensor, key: Tensor, v: Tensor, part: Part, series: Series
) -> tuple[Tensor, Tensor]:
    """Of each (heads, rows, frequencies * 2 * hidden), of half precision if they are."""
    n_keys, width = key.shape[2:]
    size = series.n_waves * 2 * width
    dtype = torch.float16 if query.dtype.itemsize == 2 else query.dtype
    of_queries = query.new_empty(part.n_groups, part.n_rows, size, dtype=dtype)
    of_keys = query.new_empty(part.n_groups, n_keys, size, dtype=dtype)
    waves_programs.make_waves[(_n_tiles(part.n_rows) + _n_tiles(n_keys), part.n_groups)](
        *(query, key, v, of_queries, of_keys, query.stride(), key.stride()),
        *(part.group, part.row, query.shape[1], part.n_rows, n_keys, *series),
        **_constants(width),
    )
    return of_queries, of_keys


def _back_to(
    gradients: tuple[Tensor, ...],
    query: Tensor,
    key: Tensor,
    v: Tensor,
    d_of_queries: Tensor,
    d_of_keys: Tensor,
    scale: Tensor,
    part: Part,
    series: Series,
) -> None:
    """Write the gradients of what the waves were made of, of keys if it is time; add to v's."""
    d_query, d_key, _, d_v = gradients
    n_keys, width = key.shape[2:]
    n_tiles = _n_tiles(part.n_rows) + (_n_tiles(n_keys) if part.is_last else 0)
    waves_programs.gradients_of_waves[(n_tiles, part.n_groups)](
        *(query, key, v, d_of_queries, d_of_keys, scale, d_query, d_key, d_v),
        *(query.stride(), key.stride(), d_query.stride(), d_key.stride()),
        *(part.group, part.row, query.shape[1], part.n_rows, n_keys, *series),
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
    n_heads, n_queries = log_sum.shape[1:]
    mask, strides = _mask(rules.mask, scores)
    waves_programs.weights[(part.n_rows, part.n_groups)](
        *(scores, rules.first_key, rules.end_key, mask, rules.seed, weights, log_sum, strides),
        *(part.group, part.row, n_heads, n_queries, scores.shape[-1], rules.dropout),
        **_row_constants(scores, rules),
    )
    return weights


def _weights_back(
    scores: Tensor,
    known: tuple[Tensor, Tensor, Tensor, Tensor],
    part: Part,
    rules: Rules,
    scale: Tensor,
    d_value: Tensor,
    so_far: Tensor,
) -> Tensor:
    """The gradient of the scores, scaled, where they were; that of the values if it is time."""
    grad, value, log_sum, delta = known
    n_heads, n_queries = log_sum.shape[1:]
    n_keys, width = value.shape[2:]
    mask, strides = _mask(rules.mask, scores)
    n_at_once = TILES.step if width <= 256 else TILES.step // 2  # or it does not fit on the chip
    waves_programs.weights_back[(triton.cdiv(n_keys, n_at_once), part.n_groups)](
        *(scores, grad, value, log_sum, delta, d_value, so_far),
        *(rules.first_key, rules.end_key, mask, rules.seed, scale),
        *(grad.stride(), value.stride(), d_value.stride(), strides),
        *(part.group, part.row, int(part.is_first), int(part.is_last), n_heads, n_queries),
        *(part.n_rows, n_keys, rules.dropout),
        WIDTH=width,
        ROOM=max(triton.next_power_of_2(width), 16),
        ROWS=TILES.rows,
        KEYS=n_at_once,
        MASKED=rules.mask is not None,
        DROPS=rules.dropout > 0,
        PRECISION="ieee" if value.dtype.itemsize > 2 else None,
        num_warps=TILES.n_warps,
        num_stages=TILES.n_stages,
    )
    return scores


def _room_for_sums(value: Tensor, part: Part) -> Tensor:
    """Where gradients of values add up over parts of queries; nowhere if this one has them all."""
    size = () if part.is_last else (part.n_groups, *value.shape[2:])
    return value.new_empty(size, dtype=torch.float32)


def _mask(mask: Tensor | None, other: Tensor) -> tuple[Tensor, tuple[int, ...]]:
    """The mask as bytes, and its strides; anything if there is none."""
    if mask is None:
        return other, (0, 0, 0, 0)
    return mask.view(torch.uint8), mask.stride()


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
