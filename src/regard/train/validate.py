"""How well a network predicts text it was not trained on, word by word."""

from collections.abc import Iterable

import torch
from torch import nn

from regard.data.batch import Batch
from regard.train.loss import label_smoothed_loss
from regard.train.precision import Precision


@torch.no_grad()
def dev_loss(
    network: nn.Module, batches: Iterable[Batch], *, pad: int, precision: Precision
) -> tuple[float, float]:
    """Cross-entropy per token, unsmoothed, and the share of words that were thought likeliest."""
    network.eval()
    loss = right = n_tokens = 0.0
    for batch in batches:
        batch = batch.to(precision.device)
        with precision.autocast():
            logits = network(batch.src_ids, batch.tgt_ids, batch.src, batch.tgt)
        loss += float(label_smoothed_loss(logits, batch.labels, pad, 0.0))
        is_right = (logits.argmax(-1) == batch.labels) & (batch.labels != pad)
        right += int(is_right.sum())
        n_tokens += batch.n_tokens
    return loss / n_tokens, right / n_tokens
