"""A linear map and a ReLU as one product, on a GPU, and what goes back through both.

    y = max(x W^T + b, 0)
    dz = dy [y > 0]        db = sum dz        dx = dz W        dW = dz^T x

The ReLU is the end of the product itself, so that the widest rows of the network are written once
and not twice; on the way back they are read once for dz and its sum together.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

COLUMNS, ROWS = 128, 64  # of a program at once
N_ROWS = 2048  # that a program goes through


def linear_relu(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """relu(F.linear(x, weight, bias)), in the type of x."""
    weight, bias = weight.to(x.dtype), bias.to(x.dtype)
    # an operator of torch takes longer to be called than the GPU is at work
    is_operator = torch.is_grad_enabled() or torch.compiler.is_compiling()
    product = _linear_relu if is_operator else _product
    return product(x.flatten(0, -2), weight, bias).unflatten(0, x.shape[:-1])


def _product(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return torch._addmm_activation(bias, x, weight.t())


_linear_relu = torch.library.custom_op("regard::linear_relu", _product, mutates_args=())


@_linear_relu.register_fake
def _(x, weight, bias):
    return x.new_empty(len(x), len(weight))


@torch.library.custom_op("regard::relu_backward", mutates_args=())
def relu_backward(grad: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """The gradient where y is not zero, and its sum over the rows."""
    grad = grad.contiguous()
    n_rows, width = y.shape
    n_parts = triton.cdiv(n_rows, N_ROWS)
    dz = torch.empty_like(y)
    sums = y.new_empty(n_parts, width, dtype=torch.float32)
    _backward[(triton.cdiv(width, COLUMNS), n_parts)](
        grad, y, dz, sums, n_rows, width, COLUMNS=COLUMNS, ROWS=ROWS, N_ROWS=N_ROWS, num_warps=4
    )
    return dz, sums.sum(0).to(y.dtype)


@relu_backward.register_fake
def _(grad, y):
    return torch.empty_like(y), y.new_empty(y.shape[1])


def _keep(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs[:2], output)


def _differentiate(ctx: Any, grad: Tensor) -> tuple[Tensor, ...]:
    x, weight, y = ctx.saved_tensors
    dz, db = relu_backward(grad, y)
    return dz @ weight, dz.t() @ x, db


_linear_relu.register_autograd(_differentiate, setup_context=_keep)


@triton.jit
def _backward(
    grad, y, dz, sums, n_rows, width,
    COLUMNS: tl.constexpr, ROWS: tl.constexpr, N_ROWS: tl.constexpr,
):  # fmt: skip
    """Some columns of many rows, a tile at a time."""
    columns = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    first = tl.program_id(1) * N_ROWS
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    for start in range(first, tl.minimum(first + N_ROWS, n_rows), ROWS):
        rows = start + tl.arange(0, ROWS)
        there = (rows < n_rows)[:, None] & (columns < width)[None, :]
        place = tl.cast(rows, tl.int64)[:, None] * width + columns[None, :]
        passed = tl.load(y + place, mask=there, other=0.0) > 0.0
        g = tl.where(passed, tl.load(grad + place, mask=there, other=0.0), 0.0)
        tl.store(dz + place, g, mask=there)
        total += g.to(tl.float32)
    tl.store(sums + tl.program_id(1) * width + columns, tl.sum(total, 0), mask=columns < width)
