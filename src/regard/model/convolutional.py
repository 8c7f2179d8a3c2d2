"""An encoder of convolutions, with the interface of the one that attends: what it is compared with.

A token sees k // 2 neighbours on either side, in a stack of N layers N times as far; so that a
sentence of n tokens is seen whole takes about 2 n / k layers, where self-attention takes one.
"""

from collections.abc import Iterable, Sequence

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from regard.attention.masks import Blocks
from regard.errors import ConfigError
from regard.model.encoder import Encoded
from regard.model.layers import NormName, make_residual
from regard.model.rows import by_rows


class ConvolutionLayer(nn.Module):
    """A convolution of odd width over the tokens, in its residual."""

    def __init__(
        self, d_model: int, kernel: int = 3, *, dropout: float = 0.1, norm: NormName = "post"
    ) -> None:
        super().__init__()
        if kernel < 1 or kernel % 2 == 0:
            raise ConfigError(
                "kernel = {kernel} must be odd, so that a token has as many neighbours on either "
                "side",
                kernel=kernel,
            )
        self.convolution = nn.Conv1d(d_model, d_model, kernel, padding=kernel // 2)
        self.residual = make_residual(norm, d_model, dropout)

    def forward(
        self, x: Float[Tensor, "B S D"], mask: Bool[Tensor, "B 1 S"] | None = None
    ) -> Float[Tensor, "B S D"]:
        """Every token with its neighbours; filler is nobody's neighbour."""
        y = self.residual.enter(x).transpose(-2, -1)
        if mask is not None:
            y = y.masked_fill(~mask, 0.0)
        return self.residual.leave(x, F.relu(self.convolution(y)).transpose(-2, -1))


class ConvolutionalEncoder(nn.Module):
    """A stack of convolutions; `norm` closes a stack of pre-norm layers."""

    def __init__(self, layers: Iterable[ConvolutionLayer], norm: nn.Module) -> None:
        super().__init__()
        self.layers: Sequence[ConvolutionLayer] = nn.ModuleList(layers)  # type: ignore[assignment]
        self.norm = norm

    def forward(
        self,
        x: Float[Tensor, "*B S D"],
        mask: Bool[Tensor, "B 1 S"] | Blocks | None = None,
        positions: Int[Tensor, "S"] | None = None,
        *,
        wants_weights: bool = False,
    ) -> Encoded:
        """Every source token in the light of its neighbours; there are no weights to ask for."""
        return Encoded(self.norm(by_rows(self._read, x, mask)))

    def _read(self, x: Tensor, mask: Tensor | None) -> Tensor:
        for layer in self.layers:
            x = layer(x, mask)
        return x
