"""A linear map x W^T + b of every token, by the product that is fastest where it runs.

A convolution that sees one pixel at a time is the same map, its pixels tokens and its channels
coordinates. On a CPU torch gives products to MKL and convolutions to oneDNN. MKL is Intel's, and on
Intel's own chips as fast as the chip. On others it is not, and large products in float32 are done
sooner by oneDNN: on two cores of an AMD EPYC of 2024, whose vectors are 512 bits wide, in less than
half the time (230 and 520 GFLOP/s), on an older one in nine tenths or less; on a Xeon of Intel's it
is oneDNN that takes a tenth more. But oneDNN makes a program for every new shape, in a millisecond,
and keeps the last thousand, some 500 MB where batches have many shapes (the commands keep 32).
"""

import functools

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from regard.processors import is_intels

LARGE = 100_000_000  # multiplications of a product that is worth a program of its own


class Linear(nn.Linear):
    """torch's, but for large products of a training on a CPU that is not Intel's."""

    def forward(self, input: Float[Tensor, "*T D"]) -> Float[Tensor, "*T _"]:
        """Every token by itself."""
        if self.training and _suits_convolution(input, self.weight):
            return convolved(input, self.weight, self.bias)
        return super().forward(input)


def convolved(
    x: Float[Tensor, "*T D"], weight: Float[Tensor, "_ D"], bias: Float[Tensor, "_"] | None
) -> Float[Tensor, "*T _"]:
    """`F.linear` as a convolution of a picture one token high; nothing is copied if x is dense."""
    picture = x.reshape(1, 1, -1, x.shape[-1]).permute(0, 3, 1, 2)  # channels lie innermost
    # A picture one token high has no second row to skip; with one thread torch gives oneDNN only
    # convolutions that skip some.
    y = F.conv2d(picture, weight[:, :, None, None], bias, dilation=(2, 1))
    return y.permute(0, 2, 3, 1).reshape(*x.shape[:-1], len(weight))


def _suits_convolution(x: Tensor, weight: Tensor) -> bool:
    is_plain = x.device.type == "cpu" and x.dtype is weight.dtype is torch.float32
    if not is_plain or torch.compiler.is_compiling() or torch.is_autocast_enabled("cpu"):
        return False
    is_large = x.numel() * len(weight) >= LARGE
    return is_large and _mkl_is_abroad() and torch.backends.mkldnn.is_available()


@functools.cache
def _mkl_is_abroad() -> bool:
    """Whether torch gives its products to MKL on a chip that MKL was not made for."""
    return torch.backends.mkl.is_available() and not is_intels()
