"""Attention of one new token a row to those before it, where rows share what they have said.

The hypotheses of a beam search go on from one another, step by step. Nothing is copied for it: each
row knows which row wrote each of its tokens, and the keys and values are read where they were
written. And only as many as there are, however much room there is.
"""

import triton
import triton.language as tl
from jaxtyping import Float, Int
from torch import Tensor

STEP = 16  # tokens at once


def slot_attention(
    query: Float[Tensor, "N H 1 E"],
    keys: Float[Tensor, "N H K E"],
    values: Float[Tensor, "N H K E"],
    owners: Int[Tensor, "N K"],
    lengths: Int[Tensor, "N"],
    scale: float,
) -> Float[Tensor, "N H 1 E"]:
    """softmax(scale q . k) v over the tokens of each row, token j by the row that owns it."""
    n_rows, n_heads, _, width = query.shape
    output = query.new_empty(n_rows, 1, n_heads, width).transpose(1, 2)
    _attend[(n_rows, n_heads)](
        *(query, keys, values, owners, lengths, output, scale, keys.shape[2]),
        *(query.stride()[:2], keys.stride()[:3], output.stride()[:2]),
        WIDTH=width,
        PADDED=triton.next_power_of_2(width),
        STEP=STEP,
        num_warps=1,
    )
    return output


@triton.jit
def _attend(
    query, keys, values, owners, lengths, output, scale, n_places,
    query_strides, strides, output_strides,
    WIDTH: tl.constexpr, PADDED: tl.constexpr, STEP: tl.constexpr,
):  # fmt: skip
    """One head of one row: softmax as it goes over the tokens, and the average."""
    row, head = tl.program_id(0), tl.program_id(1)
    columns = tl.arange(0, PADDED)
    in_width = columns < WIDTH
    q = tl.load(query + row * query_strides[0] + head * query_strides[1] + columns, mask=in_width)
    q = tl.where(in_width, q.to(tl.float32) * (scale * 1.4426950408889634), 0.0)
    length = tl.minimum(tl.load(lengths + row), n_places)

    largest = tl.full((), float("-inf"), tl.float32)
    total = tl.zeros((), tl.float32)
    average = tl.zeros((PADDED,), tl.float32)
    for at in range(0, length, STEP):
        places = at + tl.arange(0, STEP)
        there = places < length
        owner = tl.load(owners + row * n_places + places, mask=there, other=0)
        line = owner * strides[0] + head * strides[1] + places * strides[2]
        line = line[:, None] + columns[None, :]
        in_both = there[:, None] & in_width[None, :]
        k = tl.load(keys + line, mask=in_both, other=0.0).to(tl.float32)
        s = tl.where(there, tl.sum(k * q[None, :], 1), float("-inf"))
        larger = tl.maximum(largest, tl.max(s, 0))
        p = tl.exp2(s - larger)
        shrink = tl.exp2(largest - larger)
        v = tl.load(values + line, mask=in_both, other=0.0).to(tl.float32)
        average = average * shrink + tl.sum(p[:, None] * v, 0)
        total = total * shrink + tl.sum(p, 0)
        largest = larger

    output += row * output_strides[0] + head * output_strides[1] + columns
    tl.store(output, (average / total).to(output.dtype.element_ty), mask=in_width)
