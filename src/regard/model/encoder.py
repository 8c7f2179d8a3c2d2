"""The encoder: N equal layers of self-attention and feed-forward."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attention.masks import Mask
from regard.attention.multihead import SelfAttention
from regard.attention.positions import RotaryPositions
from regard.attention.scores import ScoreName
from regard.model.layers import ActivationName, FeedForward, NormName, make_residual, pass_on


@dataclass(frozen=True, slots=True)
class Encoded:
    """What encoder layers give back; weights, a tensor for each layer, where asked for."""

    output: Float[Tensor, "*B S D"]
    weights: tuple[Float[Tensor, "*B H S S"], ...] = ()


class EncoderLayer(nn.Module):
    """Self-attention, then feed-forward, each in its residual."""

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
        self.feed_forward = FeedForward(
            d_model, d_ff, dropout=activation_dropout, activation=activation
        )
        self.feed_forward_residual = make_residual(norm, d_model, dropout)

    def forward(
        self,
        x: Float[Tensor, "*B S D"],
        mask: Mask | None = None,
        positions: Int[Tensor, "S"] | None = None,
        *,
        wants_weights: bool = False,
    ) -> tuple[Float[Tensor, "*B S D"], Float[Tensor, "*B H S S"] | None]:
        """The next layer's x, and this layer's weights."""
        attended = self.attention(
            self.attention_residual.enter(x), mask, positions, wants_weights=wants_weights
        )
        x, given = pass_on(x, attended.output, self.attention_residual, self.feed_forward_residual)
        return self.feed_forward_residual.leave(x, self.feed_forward(given)), attended.weights


class Encoder(nn.Module):
    """A stack of layers; `norm` closes a stack of pre-norm layers."""

    def __init__(self, layers: Iterable[EncoderLayer], norm: nn.Module) -> None:
        super().__init__()
        self.layers: Sequence[EncoderLayer] = nn.ModuleList(layers)  # type: ignore[assignment]
        self.norm = norm

    def forward(
        self,
        x: Float[Tensor, "*B S D"],
        mask: Mask | None = None,
        positions: Int[Tensor, "S"] | None = None,
        *,
        wants_weights: bool = False,
    ) -> Encoded:
        """Every source token in the light of its sentence."""
        weights = []
        for layer in self.layers:
            x, layer_weights = layer(x, mask, positions, wants_weights=wants_weights)
            weights.append(layer_weights)
        return Encoded(self.norm(x), tuple(weights) if wants_weights else ())
