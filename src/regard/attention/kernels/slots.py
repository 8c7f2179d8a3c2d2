"""Attention of one new token a row, on a GPU: to those before it, and to a source that rows share.

The hypotheses of a beam search go on from one another, step by step. Nothing is copied for it: each
row knows which row wrote each of its tokens, and the keys and values are read where they were
written. And only as many as there are, however much room there is.
"""

import triton
import triton.language as tl
from jaxtyping import Bool, Float, Int
from torch import Tensor

FEW, MANY = 512, 1024  # heads of rows: these do not, and those do keep a GPU busy


def slot_attention(
    query: Float[Tensor, "N H 1 E"],
    key: Float[Tensor, "N H 1 E"],
    value: Float[Tensor, "N H 1 E"],
    keys: Float[Tensor, "N H K E"],
    values: Float[Tensor, "N H K E"],
    owners: Int[Tensor, "N K"],
    lengths: Int[Tensor, "N"],
    scale: float,
) -> Float[Tensor, "N H 1 E"]:
    """softmax(scale q . k) v over the tokens of each row, token j by the row that owns it.

    Key and value of the new token are written behind them, as `SlotKVCache.append` does.
    """
    n_rows, n_heads, _, width = query.shape
    output = query.new_empty(n_rows, 1, n_heads, width).transpose(1, 2)
    step, n_warps = _tiles(n_rows * n_heads, width)
    _attend[(n_rows, n_heads)](
        *(query, key, value, keys, values, owners, lengths, output, scale, keys.shape[2]),
        *(query.stride()[:2], key.stride()[:2], value.stride()[:2]),
        *(keys.stride()[:3], output.stride()[:2]),
        WIDTH=width,
        PADDED=triton.next_power_of_2(width),
        STEP=step,
        num_warps=n_warps,
    )
    return output


def source_attention(
    query: Float[Tensor, "B H Q E"],
    keys: Float[Tensor, "B H K E"],
    values: Float[Tensor, "B H K E"],
    mask: Bool[Tensor, "B 1 1 K"],
    scale: float,
) -> Float[Tensor, "B H Q E"]:
    """softmax(scale q . k) v over the keys that a sentence has; zeros if it has none."""
    n_sentences, n_heads, n_queries, width = query.shape
    output = query.new_empty(n_sentences, n_queries, n_heads, width).transpose(1, 2)
    step, n_warps = _tiles(n_sentences * n_queries * n_heads, width)
    _recall[(n_sentences * n_queries, n_heads)](
        *(query, keys, values, mask, output, scale, n_queries, keys.shape[2]),
        *(query.stride()[:3], keys.stride()[:3], values.stride()[:3]),
        *(mask.stride(0), mask.stride(3), output.stride()[:3]),
        WIDTH=width,
        PADDED=triton.next_power_of_2(width),
        STEP=step,
        PLACES=triton.next_power_of_2(keys.shape[2]),
        num_warps=n_warps,
    )
    return output


def _tiles(n_heads: int, width: int) -> tuple[int, int]:
    """Tokens at once, and warps: where few heads wait for memory, each asks for much at once."""
    if n_heads > MANY:
        return 16, 1
    step, n_warps = (128, 4) if n_heads <= FEW else (64, 2)
    return max(step * 64 // max(triton.next_power_of_2(width), 64), 16), n_warps


@triton.jit
def _attend(
    query, key, value, keys, values, owners, lengths, output, scale, n_places,
    query_strides, key_strides, value_strides, strides, output_strides,
    WIDTH: tl.constexpr, PADDED: tl.constexpr, STEP: tl.constexpr,
):  # fmt: skip
    """One head of one row: its own token, which is written down, and those before it.

    Who wrote the first of them is asked before it is known how many there are: one wait less.
    """
    row, head = tl.cast(tl.program_id(0), tl.int64), tl.program_id(1)  # far into much memory
    columns, places = tl.arange(0, PADDED), tl.arange(0, STEP)
    in_width = columns < WIDTH
    owners += row * n_places
    lines = _lines(owners, places, n_places, strides, head)
    length = tl.load(lengths + row)
    inside = (places < length)[:, None] & in_width[None, :]
    first_keys = tl.load(keys + lines[:, None] + columns[None, :], mask=inside, other=0.0)
    first_values = tl.load(values + lines[:, None] + columns[None, :], mask=inside, other=0.0)
    q = _row(query, row * query_strides[0] + head * query_strides[1], columns, in_width)
    k = _row(key, row * key_strides[0] + head * key_strides[1], columns, in_width)
    v = _row(value, row * value_strides[0] + head * value_strides[1], columns, in_width)
    own = row * strides[0] + head * strides[1] + length * strides[2] + columns
    tl.store(keys + own, k.to(keys.dtype.element_ty), mask=in_width)
    tl.store(values + own, v.to(values.dtype.element_ty), mask=in_width)

    q *= scale * 1.4426950408889634
    largest = tl.sum(q * k, 0)
    total = largest * 0.0 + 1.0
    average = v
    largest, total, average = _more(
        q, first_keys, first_values, places < length, largest, total, average
    )
    for at in range(STEP, length, STEP):
        there = at + places < length
        lines = _lines(owners, at + places, n_places, strides, head)
        inside = there[:, None] & in_width[None, :]
        some_keys = tl.load(keys + lines[:, None] + columns[None, :], mask=inside, other=0.0)
        some_values = tl.load(values + lines[:, None] + columns[None, :], mask=inside, other=0.0)
        largest, total, average = _more(q, some_keys, some_values, there, largest, total, average)
    output += row * output_strides[0] + head * output_strides[1] + columns
    tl.store(output, (average / total).to(output.dtype.element_ty), mask=in_width)


@triton.jit
def _recall(
    query, keys, values, mask, output, scale, n_queries, n_keys,
    query_strides, key_strides, value_strides, mask_stride, key_mask_stride, output_strides,
    WIDTH: tl.constexpr, PADDED: tl.constexpr, STEP: tl.constexpr, PLACES: tl.constexpr,
):  # fmt: skip
    """One head of one query of a sentence; not beyond the last key that it has.

    The first are fetched before that is known.
    """
    program, head = tl.cast(tl.program_id(0), tl.int64), tl.program_id(1)
    sentence, place = program // n_queries, program % n_queries
    columns, places = tl.arange(0, PADDED), tl.arange(0, STEP)
    in_width = columns < WIDTH
    keys += sentence * key_strides[0] + head * key_strides[1] + columns[None, :]
    values += sentence * value_strides[0] + head * value_strides[1] + columns[None, :]
    mask += sentence * mask_stride
    are_seen = tl.load(mask + places * key_mask_stride, mask=places < n_keys, other=0) != 0
    every = tl.arange(0, PLACES)
    is_key = tl.load(mask + every * key_mask_stride, mask=every < n_keys, other=0) != 0
    inside = are_seen[:, None] & in_width[None, :]
    first_keys = tl.load(keys + places[:, None] * key_strides[2], mask=inside, other=0.0)
    first_values = tl.load(values + places[:, None] * value_strides[2], mask=inside, other=0.0)
    at_query = sentence * query_strides[0] + head * query_strides[1] + place * query_strides[2]
    q = _row(query, at_query, columns, in_width) * (scale * 1.4426950408889634)
    end = tl.max(tl.where(is_key, every + 1, 0), 0)

    largest = tl.full((), -1e30, tl.float32)  # no infinity: one from another is no number
    total = tl.zeros((), tl.float32)
    average = tl.zeros((PADDED,), tl.float32)
    largest, total, average = _more(q, first_keys, first_values, are_seen, largest, total, average)
    for at in range(STEP, end, STEP):
        some = at + places
        there = tl.load(mask + some * key_mask_stride, mask=some < end, other=0) != 0
        inside = there[:, None] & in_width[None, :]
        some_keys = tl.load(keys + some[:, None] * key_strides[2], mask=inside, other=0.0)
        some_values = tl.load(values + some[:, None] * value_strides[2], mask=inside, other=0.0)
        largest, total, average = _more(q, some_keys, some_values, there, largest, total, average)
    output += sentence * output_strides[0] + head * output_strides[1] + place * output_strides[2]
    norm = tl.where(total > 0.0, total, 1.0)
    tl.store(output + columns, (average / norm).to(output.dtype.element_ty), mask=in_width)


@triton.jit
def _row(x, at, columns, in_width):
    """A head's vector, in float32."""
    return tl.load(x + at + columns, mask=in_width, other=0.0).to(tl.float32)


@triton.jit
def _lines(owners, places, n_places, strides, head):
    """Where the tokens at these places were written."""
    owner = tl.load(owners + places, mask=places < n_places, other=0)
    return tl.cast(owner, tl.int64) * strides[0] + head * strides[1] + places * strides[2]


@triton.jit
def _more(q, keys, values, there, largest, total, average):
    """Softmax as it goes: the average so far, and some tokens more; zeros are not there."""
    s = tl.where(there, tl.sum(keys.to(tl.float32) * q[None, :], 1), float("-inf"))
    larger = tl.maximum(largest, tl.max(s, 0))
    p = tl.exp2(s - larger)
    shrink = tl.exp2(largest - larger)
    average = average * shrink + tl.sum(p[:, None] * values.to(tl.float32), 0)
    return larger, total * shrink + tl.sum(p, 0), average
