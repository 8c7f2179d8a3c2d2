"""Multi-head attention: h small attentions side by side, computed at once by reshaping.

    head_i = attention(x W_i^Q, m W_i^K, m W_i^V)          each d/h wide
    MultiHead(x, m) = [head_1; ...; head_h] W^O

Two classes: `SelfAttention`, where m is x, and `CrossAttention`, where m is another sequence.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attention.cache import Cache
from regard.attention.checks import check_width
from regard.attention.functional import Attended, attend
from regard.attention.fused import scaled_dot_step
from regard.attention.layout import positions_of
from regard.attention.linear import Linear
from regard.attention.masks import Blocks, Mask, dense
from regard.attention.positions import RotaryPositions
from regard.attention.scores import ScaledDotScore, ScoreName, make_score
from regard.errors import ConfigError

KeyValue = tuple[Float[Tensor, "*B H K E"], Float[Tensor, "*B H K E"]]


class SelfAttention(nn.Module):
    """A sequence attends to itself. W^Q, W^K and W^V lie side by side in `qkv`; W^O is `out`."""

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        *,
        dropout: float = 0.0,
        bias: bool = True,
        score: ScoreName = "scaled_dot",
        rotary: RotaryPositions | None = None,
    ) -> None:
        super().__init__()
        self.heads = Heads(d_model, n_heads, dropout, score)
        self.qkv = Linear(d_model, 3 * d_model, bias=bias)
        self.out = Linear(d_model, d_model, bias=bias)
        self.rotary = rotary

    def forward(
        self,
        x: Float[Tensor, "*B T D"],
        mask: Mask | None = None,
        positions: Int[Tensor, "T"] | None = None,
        *,
        wants_weights: bool = False,
    ) -> Attended:
        """Every token, averaged with those it may attend to.

        A mask of two axes is (queries, keys) for every sentence; one row for each sentence is
        (batch, 1, keys). `positions` are needed only by rotary positions, and only for speed:
        without them they are counted here.
        """
        if self.rotary is not None and positions is None:
            layout = mask.query if isinstance(mask, Blocks) else None
            positions = positions_of(layout, x.shape[-2], x.device)
        query, key, value = self._project(x, positions)
        attended = self.heads(query, key, value, mask, wants_weights)
        return Attended(self.out(self.heads.join(attended.output)), attended.weights)

    def step(
        self, x: Float[Tensor, "N T D"], cache: Cache, *, wants_weights: bool = False
    ) -> tuple[Attended, Cache]:
        """The next tokens, averaged with themselves and those in the cache."""
        n_new = x.shape[-2]
        query, key, value = self._project(x, cache.positions(n_new))
        attended, cache = self.heads.step(query, key, value, cache, wants_weights)
        return Attended(self.out(self.heads.join(attended.output)), attended.weights), cache

    def _project(self, x: Tensor, positions: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        check_width(x, self.qkv, "x")
        query, key, value = self.heads.split(self.qkv(x), 3)
        if self.rotary is not None:
            query, key = self.rotary(query, positions), self.rotary(key, positions)
        return query, key, value


class CrossAttention(nn.Module):
    """A sequence attends to another: W^Q is `query`, W^K and W^V are `key_value`, W^O is `out`."""

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        *,
        dropout: float = 0.0,
        bias: bool = True,
        score: ScoreName = "scaled_dot",
    ) -> None:
        super().__init__()
        self.heads = Heads(d_model, n_heads, dropout, score)
        self.query = Linear(d_model, d_model, bias=bias)
        self.key_value = Linear(d_model, 2 * d_model, bias=bias)
        self.out = Linear(d_model, d_model, bias=bias)

    def forward(
        self,
        x: Float[Tensor, "*B Q D"],
        memory: Float[Tensor, "*B K D"],
        mask: Mask | None = None,
        *,
        wants_weights: bool = False,
    ) -> Attended:
        """Every token of x, as an average of the memory it may attend to."""
        return self.recall(x, self.remember(memory), mask, wants_weights=wants_weights)

    def remember(self, memory: Float[Tensor, "*B K D"]) -> KeyValue:
        """Keys and values of the memory: the same for every step, so computed once."""
        check_width(memory, self.key_value, "memory")
        key, value = self.heads.split(self.key_value(memory), 2)
        return key, value

    def recall(
        self,
        x: Float[Tensor, "*B Q D"],
        memory: KeyValue,
        mask: Mask | None = None,
        *,
        wants_weights: bool = False,
    ) -> Attended:
        """Attention to a memory that was remembered before."""
        check_width(x, self.query, "x")
        [query] = self.heads.split(self.query(x), 1)
        attended = self.heads(query, *memory, mask, wants_weights)
        return Attended(self.out(self.heads.join(attended.output)), attended.weights)


class Heads(nn.Module):
    """What both have in common: the split into heads, the attention of each, and the joining."""

    def __init__(self, d_model: int, n_heads: int, dropout: float, score: ScoreName) -> None:
        super().__init__()
        if n_heads < 1 or d_model % n_heads:
            raise ConfigError(
                "d_model = {d_model} is not a multiple of n_heads = {n_heads}",
                d_model=d_model,
                n_heads=n_heads,
            )
        self.n_heads = n_heads
        self.dropout = dropout
        self.score = make_score(score, n_heads, d_model // n_heads)

    def split(self, x: Float[Tensor, "*B T _"], n: int) -> tuple[Float[Tensor, "*B H T E"], ...]:
        """The width cut into heads, for each of n that lie side by side."""
        parts = x.unflatten(-1, (n * self.n_heads, -1)).chunk(n, dim=-2)
        return tuple(part.transpose(-3, -2) for part in parts)

    def join(self, x: Float[Tensor, "*B H T E"]) -> Float[Tensor, "*B T D"]:
        """The inverse of `split` into one."""
        return x.transpose(-3, -2).flatten(-2)

    def step(
        self,
        query: Float[Tensor, "N H Q E"],
        key: Float[Tensor, "N H Q E"],
        value: Float[Tensor, "N H Q E"],
        cache: Cache,
        wants_weights: bool,
    ) -> tuple[Attended, Cache]:
        """New tokens attend to themselves and to all that a cache holds, which now holds them."""
        if isinstance(self.score, ScaledDotScore) and not wants_weights:
            dropout = self.dropout if self.training else 0.0
            output, cache = scaled_dot_step(query, key, value, cache, dropout=dropout)
            return Attended(output, None), cache
        cache = cache.append(key, value)
        mask = cache.visible(query.shape[-2])
        return self(query, cache.key, cache.value, mask, wants_weights), cache

    def forward(
        self,
        query: Float[Tensor, "*B H Q E"],
        key: Float[Tensor, "*B H K E"],
        value: Float[Tensor, "*B H K E"],
        mask: Mask | None,
        wants_weights: bool,
    ) -> Attended:
        """Attention in every head: by the definition if the weights are wanted, else fused."""
        dropout = self.dropout if self.training else 0.0
        if isinstance(mask, Tensor):
            mask = torch.atleast_2d(mask).unsqueeze(-3)  # one mask for all heads
        if not wants_weights:
            return Attended(self.score.attend(query, key, value, mask, dropout), None)
        mask = dense(mask, query.shape[-2], key.shape[-2], query.device)
        return attend(query, key, value, self.score, mask, dropout=dropout)
