"""The decoder: N equal layers of masked self-attention, attention to the source, feed-forward."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.attention.cache import Cache
from regard.attention.functional import Attended
from regard.attention.masks import Mask
from regard.attention.multihead import CrossAttention, KeyValue, SelfAttention
from regard.attention.positions import RotaryPositions
from regard.attention.scores import ScoreName
from regard.model.layers import ActivationName, FeedForward, NormName, make_residual, pass_on


@dataclass(frozen=True, slots=True)
class Decoded:
    """What decoder layers give back; weights, a tensor for each layer, where asked for."""

    output: Float[Tensor, "*B T D"]
    weights: tuple[Float[Tensor, "*B H T T"], ...] = ()
    cross_weights: tuple[Float[Tensor, "*B H T S"], ...] = ()


class DecoderLayer(nn.Module):
    """Attention to what is written, attention to the source, feed-forward, each in its residual."""

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        d_ff: int,
        *,
        dropout: float = 0.1,
        attention_dropout: float = 0.0,
        activation_dropout: float = 0.0,
        norm: NormName = "post",
        activation: ActivationName = "relu",
        score: ScoreName = "scaled_dot",
        rotary: RotaryPositions | None = None,
    ) -> None:
        super().__init__()
        self.attention = SelfAttention(
            d_model, n_heads, dropout=attention_dropout, score=score, rotary=rotary
        )
        self.attention_residual = make_residual(norm, d_model, dropout)
        self.cross_attention = CrossAttention(
            d_model, n_heads, dropout=attention_dropout, score=score
        )
        self.cross_residual = make_residual(norm, d_model, dropout)
        self.feed_forward = FeedForward(
            d_model, d_ff, dropout=activation_dropout, activation=activation
        )
        self.feed_forward_residual = make_residual(norm, d_model, dropout)

    def forward(
        self,
        x: Float[Tensor, "*B T D"],
        memory: Float[Tensor, "*B S D"],
        mask: Mask | None = None,
        memory_mask: Mask | None = None,
        positions: Int[Tensor, "T"] | None = None,
        *,
        wants_weights: bool = False,
    ) -> tuple[Float[Tensor, "*B T D"], Attended, Attended]:
        """The next layer's x, for all places at once; and what both attentions did."""
        attended = self.attention(
            self.attention_residual.enter(x), mask, positions, wants_weights=wants_weights
        )
        remembered = self.cross_attention.remember(memory)
        x, crossed = self._after_self(x, attended, remembered, memory_mask, wants_weights)
        return x, attended, crossed

    def step(
        self,
        x: Float[Tensor, "N T D"],
        cache: Cache,
        memory: KeyValue,
        memory_mask: Bool[Tensor, "B 1 S"] | None,
    ) -> tuple[Float[Tensor, "N T D"], Cache]:
        """The same for the next place alone, with the places before it in the cache."""
        attended, cache = self.attention.step(self.attention_residual.enter(x), cache)
        # The hypotheses of a sentence ask its memory together, as if they were its places.
        apart, together = x.shape, (len(memory[0]), -1, x.shape[-1])
        x, attended = x.reshape(together), Attended(attended.output.reshape(together), None)
        x, _ = self._after_self(x, attended, memory, memory_mask, wants_weights=False)
        return x.reshape(apart), cache

    def _after_self(
        self,
        x: Tensor,
        attended: Attended,
        memory: KeyValue,
        memory_mask: Mask | None,
        wants_weights: bool,
    ) -> tuple[Tensor, Attended]:
        x, given = pass_on(x, attended.output, self.attention_residual, self.cross_residual)
        crossed = self.cross_attention.recall(
            given, memory, memory_mask, wants_weights=wants_weights
        )
        x, given = pass_on(x, crossed.output, self.cross_residual, self.feed_forward_residual)
        return self.feed_forward_residual.leave(x, self.feed_forward(given)), crossed


class Decoder(nn.Module):
    """A stack of layers; `norm` closes a stack of pre-norm layers."""

    def __init__(self, layers: Iterable[DecoderLayer], norm: nn.Module) -> None:
        super().__init__()
        self.layers: Sequence[DecoderLayer] = nn.ModuleList(layers)  # type: ignore[assignment]
        self.norm = norm

    def forward(
        self,
        x: Float[Tensor, "*B T D"],
        memory: Float[Tensor, "*B S D"],
        mask: Mask | None = None,
        memory_mask: Mask | None = None,
        positions: Int[Tensor, "T"] | None = None,
        *,
        wants_weights: bool = False,
    ) -> Decoded:
        """All places of the target at once, each seeing only those before it."""
        weights, cross_weights = [], []
        for layer in self.layers:
            x, attended, crossed = layer(
                x, memory, mask, memory_mask, positions, wants_weights=wants_weights
            )
            weights.append(attended.weights)
            cross_weights.append(crossed.weights)
        if not wants_weights:
            return Decoded(self.norm(x))
        return Decoded(self.norm(x), tuple(weights), tuple(cross_weights))

    def remember(self, memory: Float[Tensor, "B S D"]) -> tuple[KeyValue, ...]:
        """Every layer's keys and values of the source, which no step changes."""
        return tuple(layer.cross_attention.remember(memory) for layer in self.layers)

    def step(
        self,
        x: Float[Tensor, "N T D"],
        caches: Sequence[Cache],
        memory: Sequence[KeyValue],
        memory_mask: Bool[Tensor, "B 1 S"] | None,
    ) -> tuple[Float[Tensor, "N T D"], tuple[Cache, ...]]:
        """The next place, and every layer's longer cache."""
        longer = []
        for layer, cache, remembered in zip(self.layers, caches, memory, strict=True):
            x, cache = layer.step(x, cache, remembered, memory_mask)
            longer.append(cache)
        return self.norm(x), tuple(longer)
