"""The four scores as parts of a network: each knows its definition and its fast path.

Their parameters are one set for each head. The mechanisms differ in nothing else, so a Transformer
chooses one by name.
"""

from typing import Literal, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.attention import fused
from regard.attention.functional import (
    additive_scores,
    dot_scores,
    gaussian_scores,
    scaled_dot_scores,
)
from regard.attention.masks import Mask
from regard.errors import ConfigError

ScoreName = Literal["scaled_dot", "dot", "additive", "gaussian"]


@runtime_checkable
class Score(Protocol):
    """A score with its parameters."""

    def __call__(
        self, query: Float[Tensor, "*B H Q E"], key: Float[Tensor, "*B H K E"]
    ) -> Float[Tensor, "*B H Q K"]:
        """How well each key matches each query: the definition."""

    def attend(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Mask | None, dropout: float
    ) -> Tensor:
        """The averaged values, by the fast path."""


class ScaledDotScore(nn.Module):
    """q . k / sqrt(E)."""

    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        """The definition."""
        return scaled_dot_scores(query, key)

    def attend(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Mask | None, dropout: float
    ) -> Tensor:
        """The fast path."""
        return fused.scaled_dot_attention(query, key, value, mask, dropout=dropout)


class DotScore(nn.Module):
    """q . k."""

    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        """The definition."""
        return dot_scores(query, key)

    def attend(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Mask | None, dropout: float
    ) -> Tensor:
        """The fast path."""
        return fused.dot_attention(query, key, value, mask, dropout=dropout)


class AdditiveScore(nn.Module):
    """v . tanh(q + k): the heads' projections of q and k are the hidden layer."""

    def __init__(self, n_heads: int, d_head: int) -> None:
        super().__init__()
        self.v = nn.Parameter(torch.empty(n_heads, d_head))
        nn.init.normal_(self.v, std=d_head**-0.5)

    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        """The definition."""
        return additive_scores(query, key, self.v)

    def attend(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Mask | None, dropout: float
    ) -> Tensor:
        """The fast path."""
        return fused.additive_attention(query, key, value, self.v, mask, dropout=dropout)


class GaussianScore(nn.Module):
    """-(w |q - k|)^2 / 2 with a learned w = 1 / width for each head."""

    def __init__(self, n_heads: int, d_head: int) -> None:
        super().__init__()
        # For unit-variance q and k the half squared distance has variance 2 d: this makes it 1.
        self.w = nn.Parameter(torch.full((n_heads,), (2.0 * d_head) ** -0.25))

    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        """The definition."""
        return gaussian_scores(query, key, self.w)

    def attend(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Mask | None, dropout: float
    ) -> Tensor:
        """The fast path."""
        return fused.gaussian_attention(query, key, value, self.w, mask, dropout=dropout)


def make_score(name: ScoreName, n_heads: int, d_head: int) -> Score:
    """The score of that name."""
    match name:
        case "scaled_dot":
            return ScaledDotScore()
        case "dot":
            return DotScore()
        case "additive":
            return AdditiveScore(n_heads, d_head)
        case "gaussian":
            return GaussianScore(n_heads, d_head)
        case _:
            raise ConfigError(
                'score = "{name}" is not one of scaled_dot, dot, additive, gaussian', name=name
            )
