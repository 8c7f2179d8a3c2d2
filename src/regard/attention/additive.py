"""Additive attention by itself, as the notes and Bahdanau's decoder use it."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard.attention.checks import check_width
from regard.attention.functional import Attended, additive_scores, attend


class AdditiveAttention(nn.Module):
    """Bahdanau's score w_v . tanh(W_q q + W_k k): query and key may differ in width."""

    def __init__(self, d_query: int, d_key: int, d_hidden: int, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.query = nn.Linear(d_query, d_hidden, bias=False)
        self.key = nn.Linear(d_key, d_hidden, bias=False)
        self.v = nn.Parameter(torch.empty(d_hidden))
        nn.init.normal_(self.v, std=d_hidden**-0.5)
        self.dropout = dropout

    def forward(
        self,
        query: Float[Tensor, "*B Q _"],
        key: Float[Tensor, "*B K _"],
        value: Float[Tensor, "*B K U"],
        mask: Bool[Tensor, "... #Q K"] | None = None,
    ) -> Attended:
        """Every query, as an average of the values."""
        return self.recall(query, self.remember(key), value, mask)

    def remember(self, key: Float[Tensor, "*B K _"]) -> Float[Tensor, "*B K A"]:
        """W_k k: the same for every query, so computed once."""
        check_width(key, self.key, "key")
        return self.key(key)

    def recall(
        self,
        query: Float[Tensor, "*B Q _"],
        key: Float[Tensor, "*B K A"],
        value: Float[Tensor, "*B K U"],
        mask: Bool[Tensor, "... #Q K"] | None = None,
    ) -> Attended:
        """Attention to keys that were remembered before."""
        check_width(query, self.query, "query")
        dropout = self.dropout if self.training else 0.0
        return attend(self.query(query), key, value, self._scores, mask, dropout=dropout)

    def _scores(self, query: Tensor, key: Tensor) -> Tensor:
        return additive_scores(query, key, self.v)
