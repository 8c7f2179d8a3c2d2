"""Attention as three small steps: score every key, weigh the scores, average the values.

    scores  = how well each key matches each query      (one function per mechanism)
    weights = masked_softmax(scores, mask)              (rows sum to 1, or to 0 if all is masked)
    output  = weights @ value

This file is slow and obvious: it is the definition, and `fused.py` must equal it.
Masks are boolean everywhere in this package, and True means "may attend".
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional as F

from regard.attention.checks import check_mask, check_same_width, check_values

Scores = Callable[[Tensor, Tensor], Tensor]
"""A score function: queries and keys in, one number for each pair out."""


@dataclass(frozen=True, slots=True)
class Attended:
    """What attention gives back: the averaged values and, where asked for, the weights."""

    output: Float[Tensor, "... Q U"]
    weights: Float[Tensor, "... Q K"] | None


def attend(
    query: Float[Tensor, "... Q _"],
    key: Float[Tensor, "... K _"],
    value: Float[Tensor, "... K U"],
    scores: Scores,
    mask: Bool[Tensor, "... #Q K"] | None = None,
    *,
    dropout: float = 0.0,
) -> Attended:
    """f(q) = sum_i a(q, k_i) v_i: soft addressing, every value by the weight of its key."""
    check_values(key, value)
    weights = masked_softmax(scores(query, key), mask)
    return Attended(F.dropout(weights, dropout) @ value, weights)


def attend_hard(
    query: Float[Tensor, "... Q _"],
    key: Float[Tensor, "... K _"],
    value: Float[Tensor, "... K U"],
    scores: Scores,
    mask: Bool[Tensor, "... #Q K"] | None = None,
) -> Attended:
    """Hard addressing: the one value at the best key, which is soft addressing at temperature 0."""
    check_values(key, value)
    scores_QK = scores(query, key)
    if mask is None:
        mask = torch.ones_like(scores_QK, dtype=torch.bool)
    check_mask(mask, n_queries=scores_QK.shape[-2], n_keys=scores_QK.shape[-1])
    best = scores_QK.masked_fill(~mask, -math.inf).argmax(dim=-1, keepdim=True)
    weights = torch.zeros_like(scores_QK).scatter(-1, best, 1.0).masked_fill(~mask, 0.0)
    return Attended(weights @ value, weights)


def dot_scores(
    query: Float[Tensor, "... Q E"], key: Float[Tensor, "... K E"]
) -> Float[Tensor, "... Q K"]:
    """q . k, which needs query and key of one width."""
    check_same_width(query, key)
    return query @ key.transpose(-2, -1)


def scaled_dot_scores(
    query: Float[Tensor, "... Q E"], key: Float[Tensor, "... K E"]
) -> Float[Tensor, "... Q K"]:
    """`dot_scores` over sqrt(E), which keeps their variance at 1 for unit-variance inputs."""
    return dot_scores(query, key) * dot_scale(query.shape[-1])


def additive_scores(
    query: Float[Tensor, "... Q A"], key: Float[Tensor, "... K A"], v: Float[Tensor, "*#H A"]
) -> Float[Tensor, "... Q K"]:
    """Bahdanau: v . tanh(q + k), a one-hidden-layer network on the projected query and key."""
    check_same_width(query, key)
    hidden_QKA = torch.tanh(query.unsqueeze(-2) + key.unsqueeze(-3))
    return (hidden_QKA @ v[..., None, :, None]).squeeze(-1)


def gaussian_scores(
    query: Float[Tensor, "... Q E"],
    key: Float[Tensor, "... K E"],
    w: Float[Tensor, "*#H"] | float = 1.0,
) -> Float[Tensor, "... Q K"]:
    """Nadaraya-Watson: minus half the squared distance, times w squared (w = 1 / width)."""
    check_same_width(query, key)
    distance_QKE = query.unsqueeze(-2) - key.unsqueeze(-3)  # not cdist: its matrix form is 6e-5 off
    w_QKE = w[..., None, None, None].to(query.dtype) if isinstance(w, Tensor) else w
    return -0.5 * (w_QKE * distance_QKE).square().sum(-1)


def masked_softmax(
    scores: Float[Tensor, "... Q K"], mask: Bool[Tensor, "... #Q K"] | None = None
) -> Float[Tensor, "... Q K"]:
    """Softmax over the keys a query may attend to. A query that may attend to none gets zeros."""
    if mask is None:
        return scores.softmax(dim=-1)
    check_mask(mask, n_queries=scores.shape[-2], n_keys=scores.shape[-1])
    weights = scores.masked_fill(~mask, -math.inf).softmax(dim=-1)
    return weights.masked_fill(~mask, 0.0)  # also clears the NaN row of a query with no keys


def dot_scale(d_head: int) -> float:
    """1 / sqrt(d): the sum of d products of unit-variance numbers has variance d."""
    return 1.0 / math.sqrt(d_head)
