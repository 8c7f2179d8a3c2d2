"""How wrong a prediction is, summed over the words that count."""

from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F


def label_smoothed_loss(
    logits: Float[Tensor, "*B V"], labels: Int[Tensor, "*B"], pad: int, smoothing: float
) -> Float[Tensor, ""]:
    """Cross-entropy with a share of the target spread over all words; a sum, padding left out."""
    return F.cross_entropy(
        logits.flatten(0, -2).float(),
        labels.flatten(),
        ignore_index=pad,
        reduction="sum",
        label_smoothing=smoothing,
    )
