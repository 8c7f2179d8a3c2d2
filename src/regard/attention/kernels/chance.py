"""Dropout that is drawn anew wherever it is needed, from where a number stands and one seed.

Forward and backward pass ask in other orders and of other tiles, and get the same answers.
"""

import triton
import triton.language as tl

ROUNDS = tl.constexpr(7)  # of Philox, the fewest that pass every test of randomness; 10 is usual


@triton.jit
def is_kept(seed, head, queries, keys, dropout):
    """Whether a weight is kept: queries (n, 1) and keys (1, m), or the other way round."""
    nothing = (queries + keys) * 0
    number, _, _, _ = tl.philox(
        seed, queries + nothing, keys + nothing, head + nothing, nothing, n_rounds=ROUNDS
    )
    return tl.uint_to_uniform_float(number) >= dropout


@triton.jit
def is_kept_in_row(seed, rows, columns, dropout):
    """Whether each of (rows, columns) is kept: one draw a row, stirred with the column.

    A tenth of the work of a draw for each, where drawing would take longer than all else; the
    stirring is the end of MurmurHash3, after which every bit depends on every other.
    """
    nothing = rows * 0
    drawn, _, _, _ = tl.philox(seed, rows, nothing, nothing, nothing, n_rounds=ROUNDS)
    number = drawn[:, None] ^ (columns.to(tl.uint32) * 0x9E3779B1)[None, :]
    number = (number ^ (number >> 16)) * 0x85EBCA6B
    number = (number ^ (number >> 13)) * 0xC2B2AE35
    number = number ^ (number >> 16)
    return tl.uint_to_uniform_float(number) >= dropout
