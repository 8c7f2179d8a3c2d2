"""Gaussian attention by itself: Nadaraya-Watson kernel regression."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard.attention.functional import Attended, attend, gaussian_scores


class GaussianAttention(nn.Module):
    """Nadaraya-Watson regression: softmax(-((q - k) w)^2 / 2), and w is learned."""

    def __init__(self, w: int | float = 1.0) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.tensor(float(w)))

    def forward(
        self,
        query: Float[Tensor, "*B Q E"],
        key: Float[Tensor, "*B K E"],
        value: Float[Tensor, "*B K U"],
        mask: Bool[Tensor, "... #Q K"] | None = None,
    ) -> Attended:
        """Every query, as an average of the values whose keys are near."""
        return attend(query, key, value, self._scores, mask)

    def _scores(self, query: Tensor, key: Tensor) -> Tensor:
        return gaussian_scores(query, key, self.w)
