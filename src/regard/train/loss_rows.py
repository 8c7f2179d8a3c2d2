"""Loss and gradient of rows of logits on a GPU, in one launch, in the logits' own memory."""

import torch
import triton
import triton.language as tl
from torch import Tensor

WORDS = 4096  # of a row at once
N_WARPS = 8


def losses_and_gradients_on_gpu(
    logits: Tensor, labels: Tensor, pad: int, smoothing: float
) -> Tensor:
    """As `losses_and_gradients`: a program for each row, which reads it twice and writes it once.

    The second time it comes from cache.
    """
    n_rows, n_words = logits.shape
    losses = torch.empty(n_rows, dtype=torch.float32, device=logits.device)
    _row[(n_rows,)](
        logits,
        labels,
        losses,
        logits.stride(0),
        n_words,
        pad,
        smoothing,
        WORDS=min(WORDS, triton.next_power_of_2(n_words)),
        num_warps=N_WARPS,
    )
    return losses


@triton.jit
def _row(logits, labels, losses, stride, n_words, pad, smoothing, WORDS: tl.constexpr):
    row = tl.program_id(0)
    label = tl.load(labels + row)
    logits += tl.cast(row, tl.int64) * stride
    words = tl.arange(0, WORDS)
    if label == pad:
        for start in range(0, n_words, WORDS):
            zeros = tl.zeros((WORDS,), logits.dtype.element_ty)
            tl.store(logits + start + words, zeros, mask=start + words < n_words)
        tl.store(losses + row, 0.0)
    else:
        largest = tl.full((WORDS,), -1.0e30, tl.float32)  # of every WORDS-th word, and so for sums
        total = tl.zeros((WORDS,), tl.float32)
        plain = tl.zeros((WORDS,), tl.float32)
        for start in range(0, n_words, WORDS):
            there = start + words < n_words
            z = tl.load(logits + start + words, mask=there, other=float("-inf")).to(tl.float32)
            larger = tl.maximum(largest, z)
            total = total * tl.exp(largest - larger) + tl.exp(z - larger)
            plain += tl.where(there, z, 0.0)
            largest = larger
        top = tl.max(largest, 0)
        log_total = top + tl.log(tl.sum(total * tl.exp(largest - top), 0))
        right = tl.load(logits + label).to(tl.float32)
        share = smoothing / n_words
        loss = log_total - (1.0 - smoothing) * right - share * tl.sum(plain, 0)
        tl.store(losses + row, loss)
        tl.debug_barrier()  # the label's own logit is overwritten below
        for start in range(0, n_words, WORDS):
            there = start + words < n_words
            z = tl.load(logits + start + words, mask=there, other=0.0).to(tl.float32)
            gradient = tl.exp(z - log_total) - share
            gradient -= tl.where(start + words == label, 1.0 - smoothing, 0.0)
            tl.store(logits + start + words, gradient.to(logits.dtype.element_ty), mask=there)
