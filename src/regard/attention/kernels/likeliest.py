"""The likeliest words of each row with their logarithms, in one pass over the logits, on a GPU.

    log p_w = x_w - log sum_u e^(x_u)

A row of logits fits into a program, which takes the best word out of it again and again. All the
other logarithms, of which a search has no use, are neither made nor sorted.
"""

import torch
import triton
import triton.language as tl
from jaxtyping import Float, Int
from torch import Tensor

MOST_WORDS = 2**15  # that a program can hold
MOST = 32  # that are taken out one by one


def can_hold(logits: Tensor, n: int) -> bool:
    """Whether rows are in one piece and not too long, nor too many words asked for."""
    return logits.stride(-1) == 1 and logits.shape[-1] <= MOST_WORDS and n <= MOST


def likeliest(
    logits: Float[Tensor, "N V"], n: int
) -> tuple[Float[Tensor, "N _"], Int[Tensor, "N _"]]:
    """`logits.float().log_softmax(-1).topk(n)`; of equals the first."""
    n_rows, n_words = logits.shape
    room = triton.next_power_of_2(n_words)
    log_p = torch.empty(n_rows, n, dtype=torch.float32, device=logits.device)
    words = torch.empty(n_rows, n, dtype=torch.int64, device=logits.device)
    _take[(n_rows,)](
        *(logits, log_p, words, logits.stride(0), n_words, n),
        ROOM=room,
        num_warps=min(max(room // 1024, 1), 16),
    )
    return log_p, words


@triton.jit
def _take(logits, log_p, words, stride, n_words, n, ROOM: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, ROOM)
    x = tl.load(
        logits + tl.cast(row, tl.int64) * stride + columns,
        mask=columns < n_words,
        other=float("-inf"),
    ).to(tl.float32)
    largest = tl.max(x, 0)
    log_sum = tl.log(tl.sum(tl.exp(x - largest), 0))
    for place in range(n):
        best, word = tl.max(x, 0, return_indices=True)
        tl.store(log_p + row * n + place, best - largest - log_sum)
        # a row of NaN has no best, but what it says has to be a word
        tl.store(words + row * n + place, tl.minimum(word, n_words - 1))
        x = tl.where(columns == word, float("-inf"), x)
