"""What both stacks are made of: feed-forward network, residual with its norm, embedding."""

import math
from typing import Literal, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from regard.attention import kernels
from regard.attention.linear import Linear
from regard.attention.positions import LearnedPositions, NoPositions, SinusoidalPositions
from regard.errors import ConfigError, DataError, Word

if kernels.ARE_HERE:
    from regard.attention.kernels.rectified import linear_relu
    from regard.attention.kernels.residual import residual_norm, sum_and_norm

NormName = Literal["pre", "post"]
ActivationName = Literal["relu", "swish"]
Positions = SinusoidalPositions | LearnedPositions | NoPositions

SELDOM = 0.3  # up to this share dropped, drawing the gaps beats a coin for every number


class Dropout(nn.Module):
    """A share p of the numbers becomes 0 while training; the others grow, and the mean stays."""

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p

    def forward(self, x: Float[Tensor, "*T D"]) -> Float[Tensor, "*T D"]:
        """x itself, unless training."""
        if not self.training or self.p == 0.0:
            return x
        if x.is_cuda or self.p > SELDOM or torch.compiler.is_compiling():
            return F.dropout(x, self.p)
        return x * _dropout_mask(x.numel(), self.p).to(x.dtype).view(x.shape)


def _dropout_mask(n: int, p: float) -> Float[Tensor, "_"]:
    """n numbers that are 0 with probability p, each for itself, and else 1 / (1 - p).

    A CPU draws one coin after the other. So not n coins are drawn but the gaps between those that
    fall on the rare side, which are geometric: the same distribution for a tenth of the draws.
    """
    n_gaps = int(n * p + 2.0 * math.sqrt(n * p)) + 1
    places = _next_places(n_gaps, p)
    while places[-1] <= n:  # once is enough 49 times of 50
        places = torch.cat([places, places[-1] + _next_places(n_gaps, p)])
    mask = torch.full((n + 1,), 1.0 / (1.0 - p))  # places count from 1
    return mask.index_fill_(0, places[: int(torch.searchsorted(places, n + 1))], 0.0)[1:]


def _next_places(n_gaps: int, p: float) -> Int[Tensor, "_"]:
    """Where the next gaps end. P(gap > k) = (1 - p)^k = P(e > -k log(1 - p)), e exponential."""
    # numpy draws them in a third of the time that torch takes, and begins where torch says
    generator = np.random.Generator(np.random.SFC64(int(torch.randint(2**63 - 1, ()))))
    waits = torch.from_numpy(generator.standard_exponential(n_gaps, dtype=np.float32))
    return waits.mul_(-1.0 / math.log1p(-p)).ceil_().clamp_(min=1.0).long().cumsum_(0)


class FeedForward(nn.Module):
    """W_2 f(W_1 x): two linear maps with a nonlinearity between, the same for every token."""

    def __init__(
        self, d_model: int, d_ff: int, *, dropout: float = 0.0, activation: ActivationName = "relu"
    ) -> None:
        super().__init__()
        if activation not in ("relu", "swish"):
            raise ConfigError('activation = "{name}" is not one of relu, swish', name=activation)
        self.inner = Linear(d_model, d_ff)
        self.outer = Linear(d_ff, d_model)
        self.activation = F.relu if activation == "relu" else F.silu
        self.dropout = Dropout(dropout)

    def forward(self, x: Float[Tensor, "*T D"]) -> Float[Tensor, "*T D"]:
        """Every token by itself."""
        return self.outer(self.dropout(self._hidden(x)))

    def _hidden(self, x: Tensor) -> Tensor:
        # a GPU's product can end in a ReLU, if the numbers already have the type it multiplies in
        if self.activation is F.relu and x.dtype is torch.bfloat16 and kernels.can_take(x):
            return linear_relu(x, self.inner.weight, self.inner.bias)
        return self.activation(self.inner(x))


@runtime_checkable
class ResidualNorm(Protocol):
    """A residual connection and the norm that goes with it, around a sub-layer f."""

    def enter(self, x: Float[Tensor, "*T D"]) -> Float[Tensor, "*T D"]:
        """What f is given."""

    def leave(self, x: Float[Tensor, "*T D"], y: Float[Tensor, "*T D"]) -> Float[Tensor, "*T D"]:
        """What comes out, from x and f's answer y."""


class Norm(nn.LayerNorm):
    """Mean 0 and variance 1, then scale and shift; the result is no wider than what came in.

    Where products are in bf16, torch answers in float32, in which a norm's sums belong. But twice
    the bytes from layer to layer would be twice the time that all but products take.
    """

    def forward(self, input: Float[Tensor, "*T D"]) -> Float[Tensor, "*T D"]:
        """Every token by itself."""
        if kernels.can_take(input):
            return residual_norm(input, None, self.weight, self.bias, 0.0, self.eps)
        return super().forward(input).to(input.dtype)


class PostNorm(nn.Module):
    """norm(x + f(x)): the paper's."""

    def __init__(self, d_model: int, dropout: float) -> None:
        super().__init__()
        self.norm = Norm(d_model)
        self.dropout = Dropout(dropout)

    def enter(self, x: Tensor) -> Tensor:
        """x itself."""
        return x

    def leave(self, x: Tensor, y: Tensor) -> Tensor:
        """The norm of the sum; on a GPU in one pass."""
        if kernels.can_take(x, y) and isinstance(self.norm, Norm):
            share = self.dropout.p if self.training else 0.0
            return residual_norm(x, y, self.norm.weight, self.norm.bias, share, self.norm.eps)
        return self.norm(x + self.dropout(y))


class PreNorm(nn.Module):
    """x + f(norm(x)): no norm lies between the first layer and the last, so deep stacks learn."""

    def __init__(self, d_model: int, dropout: float) -> None:
        super().__init__()
        self.norm = Norm(d_model)
        self.dropout = Dropout(dropout)

    def enter(self, x: Tensor) -> Tensor:
        """x normed."""
        return self.norm(x)

    def leave(self, x: Tensor, y: Tensor) -> Tensor:
        """The sum."""
        return x + self.dropout(y)


def make_residual(name: NormName, d_model: int, dropout: float) -> ResidualNorm:
    """The residual of that name."""
    match name:
        case "post":
            return PostNorm(d_model, dropout)
        case "pre":
            return PreNorm(d_model, dropout)
        case _:
            raise ConfigError('norm = "{name}" is not one of pre, post', name=name)


def pass_on(
    x: Float[Tensor, "*T D"],
    y: Float[Tensor, "*T D"],
    leaving: ResidualNorm,
    entering: ResidualNorm,
) -> tuple[Float[Tensor, "*T D"], Float[Tensor, "*T D"]]:
    """From a sub-layer that answered y to the next: the new x, and what the next is given."""
    if isinstance(leaving, PreNorm) and isinstance(entering, PreNorm):
        norm, is_learning = entering.norm, leaving.training or torch.is_grad_enabled()
        is_plain = is_learning or torch.compiler.is_compiling() or not isinstance(norm, Norm)
        if kernels.can_take(x, y) and not is_plain:  # on a GPU in one pass
            return sum_and_norm(x, y, norm.weight, norm.bias, norm.eps)
    x = leaving.leave(x, y)
    return x, entering.enter(x)


def final_norm(name: NormName, d_model: int) -> nn.Module:
    """Pre-norm layers leave a sum that nobody has normed; post-norm layers do not."""
    return Norm(d_model) if name == "pre" else nn.Identity()


class Embedding(nn.Module):
    """Ids to vectors: the word's row times sqrt(d), and where it stands.

    The rows start with variance 1/d, so that a matrix shared with the output makes logits of
    variance 1; times sqrt(d) they weigh as much as the positions added to them.

    `stream` is the type of the vectors while training, where it is not the weights': all layers
    hand on what they were handed, so it is what lies between them.
    """

    stream: torch.dtype | None = None

    def __init__(
        self,
        n_words: int,
        d_model: int,
        positions: Positions,
        *,
        dropout: float = 0.0,
        scaled: bool = True,
    ) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(n_words, d_model))
        nn.init.normal_(self.weight, std=d_model**-0.5)
        self.positions = positions
        self.scale = math.sqrt(d_model) if scaled else 1.0
        self.dropout = Dropout(dropout)

    def forward(
        self, ids: Int[Tensor, "*B T"], positions: Int[Tensor, "*#B T"]
    ) -> Float[Tensor, "*B T D"]:
        """The vectors that enter the first layer."""
        words = self.scale * F.embedding(ids, self.weight)
        x = self.dropout(words + self.positions(positions))
        return x.to(self.stream) if self.training and self.stream is not None else x

    def check(self, ids: Int[Tensor, "*B T"], side: str) -> None:
        """Refuse ids that are no words, which a GPU would answer by stopping altogether."""
        if torch.compiler.is_compiling() or not ids.numel():
            return
        lowest, highest = (int(bound) for bound in torch.aminmax(ids))
        n_words = self.weight.shape[0]
        if lowest < 0 or highest >= n_words:
            raise DataError(
                "{side} id {id} is outside the vocabulary, whose {n_words} ids are 0 to {last}",
                side=Word(side),
                id=lowest if lowest < 0 else highest,
                n_words=n_words,
                last=n_words - 1,
            )
