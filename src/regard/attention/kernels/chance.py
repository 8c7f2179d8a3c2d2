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
