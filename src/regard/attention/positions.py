"""Where a token stands: attention alone does not know, so it has to be told.

    sinusoidal   p(i, 2j) = sin(i w_j), p(i, 2j+1) = cos(i w_j), w_j = 10000^(-2j/d), added to x
    learned      a row of parameters for each place, added to x
    rotary       queries and keys turned by i w_j, so that q . k sees only how far apart they are

The first and the last are one idea: a step of delta turns each pair of p by delta w_j
(`rotation`), and rotary positions turn the pairs of x by that same matrix.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attention.checks import check_max_len
from regard.errors import ConfigError


def frequencies(d: int) -> Float[Tensor, "_"]:
    """w_j = 10000^(-2j/d) for each pair of coordinates, in float64."""
    if d % 2:
        raise ConfigError("d = {d} is odd; sines and cosines come in pairs, so make it even", d=d)
    return 10000.0 ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)


def sinusoidal_positions(n: int, d: int) -> Float[Tensor, "_ D"]:
    """The first n rows of the paper's table, sine and cosine in turn, in float64."""
    angles = torch.arange(n, dtype=torch.float64)[:, None] * frequencies(d)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)


def rotation(delta: int | float, d: int) -> Float[Tensor, "D D"]:
    """The matrix R with p(i + delta) = R p(i) for every i: a turn of each pair by delta w_j."""
    angles = delta * frequencies(d)
    cos, sin = angles.cos(), angles.sin()
    pairs = torch.stack([torch.stack([cos, sin], -1), torch.stack([-sin, cos], -1)], dim=-2)
    return torch.block_diag(*pairs)


class SinusoidalPositions(nn.Module):
    """The fixed table, looked up."""

    def __init__(self, d_model: int, max_len: int) -> None:
        super().__init__()
        self.max_len = max_len
        self.table: Tensor
        self.register_buffer("table", sinusoidal_positions(max_len, d_model).float(), False)

    def forward(self, positions: Int[Tensor, "*T"]) -> Float[Tensor, "*T D"]:
        """The row of each position."""
        check_max_len(positions, self.max_len)
        return self.table[positions]


class LearnedPositions(nn.Module):
    """A table of parameters, looked up."""

    def __init__(self, d_model: int, max_len: int) -> None:
        super().__init__()
        self.max_len = max_len
        self.table = nn.Parameter(torch.empty(max_len, d_model))
        nn.init.normal_(self.table, std=d_model**-0.5)

    def forward(self, positions: Int[Tensor, "*T"]) -> Float[Tensor, "*T D"]:
        """The row of each position."""
        check_max_len(positions, self.max_len)
        return self.table[positions]


class NoPositions(nn.Module):
    """Nothing added: rotary positions act inside attention, and recurrent networks need none."""

    def forward(self, positions: Int[Tensor, "*T"]) -> float:
        """Zero."""
        return 0.0


class RotaryPositions(nn.Module):
    """Turns each pair of a query or key by an angle that grows with its place."""

    def __init__(self, d_head: int, max_len: int) -> None:
        super().__init__()
        self.max_len = max_len
        self.cos: Tensor
        self.sin: Tensor
        angles = torch.arange(max_len, dtype=torch.float64)[:, None] * frequencies(d_head)
        self.register_buffer("cos", angles.cos().float(), False)
        self.register_buffer("sin", angles.sin().float(), False)

    def forward(
        self, x: Float[Tensor, "... T E"], positions: Int[Tensor, "*N T"]
    ) -> Float[Tensor, "... T E"]:
        """x R(i) for the token at place i, as a row times `rotation`; rows may differ in place."""
        check_max_len(positions, self.max_len)
        if positions.ndim > 1:
            positions = positions.unsqueeze(-2)  # the same for all heads
        cos, sin = self.cos[positions].to(x.dtype), self.sin[positions].to(x.dtype)
        even, odd = x[..., 0::2], x[..., 1::2]
        return torch.stack([even * cos - odd * sin, even * sin + odd * cos], dim=-1).flatten(-2)
