"""Note 004's example of three tokens, worked: small integers of our own, every number shown."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention import attend, dot_scores, scaled_dot_scores

X = ((1, 0, 2), (0, 1, 1), (2, 1, 0))
W_QUERY = ((1, 0, 1), (0, 1, 0), (1, 0, 0))
W_KEY = ((0, 1, 0), (1, 0, 1), (0, 1, 1))
W_VALUE = ((1, 2, 0), (0, 1, 1), (2, 0, 1))


@dataclass(frozen=True, slots=True)
class WorkedExample:
    """Self-attention of three tokens, step by step, in the order of the note."""

    x: Float[Tensor, "T D"]
    w_query: Float[Tensor, "D E"]
    w_key: Float[Tensor, "D E"]
    w_value: Float[Tensor, "D E"]
    query: Float[Tensor, "T E"]
    key: Float[Tensor, "T E"]
    value: Float[Tensor, "T E"]
    dots: Float[Tensor, "T T"]
    scores: Float[Tensor, "T T"]
    weights: Float[Tensor, "T T"]
    output: Float[Tensor, "T E"]


def worked_example() -> WorkedExample:
    """Q = X W^Q, K = X W^K, V = X W^V, then softmax(Q K^T / sqrt(3)) V."""
    x, w_query, w_key, w_value = (
        torch.tensor(rows, dtype=torch.float64) for rows in (X, W_QUERY, W_KEY, W_VALUE)
    )
    query, key, value = x @ w_query, x @ w_key, x @ w_value
    attended = attend(query, key, value, scaled_dot_scores)
    assert attended.weights is not None
    return WorkedExample(
        x=x,
        w_query=w_query,
        w_key=w_key,
        w_value=w_value,
        query=query,
        key=key,
        value=value,
        dots=dot_scores(query, key),
        scores=scaled_dot_scores(query, key),
        weights=attended.weights,
        output=attended.output,
    )
