"""Residual, dropout and layer norm in one pass over the rows, on a GPU.

    s = x + dropout(y)        n = (s - mean s) / sqrt(var s + epsilon)        out = w n + b

Sums are in float32, whatever the rows are in. Nothing but x and y is kept for the way back, not
even which numbers were dropped: they are drawn again from the seed.

    g = w dout        ds = (g - mean g - n mean(g n)) / sqrt(var s + epsilon)
    dx = ds           dy = dropout'(ds)           dw = sum n dout           db = sum dout

The last two are over all rows: every program adds up its own, and torch adds the programs'.
"""

from typing import Any

import torch
import triton
from torch import Tensor

from regard.attention.kernels import residual_programs

ELEMENTS = 1024  # of a program at once: with two warps, sixteen to a thread
N_WARPS = 2
PROGRAMS = 8  # on the way back, for each of the GPU's processors


def residual_norm(
    x: Tensor, y: Tensor | None, weight: Tensor, bias: Tensor, dropout: float, epsilon: float
) -> Tensor:
    """The norm of x + dropout(y), or of x alone."""
    if y is None:
        dropout = 0.0
    seed = torch.randint(2**62, (), device=x.device) if dropout else weight  # any: it is not read
    # an operator of torch takes longer to be called than the GPU is at work
    is_operator = torch.is_grad_enabled() or torch.compiler.is_compiling()
    norm = _norm if is_operator else _normed
    output, *_ = norm(x, y, weight, bias, seed, dropout, epsilon)
    return output


def sum_and_norm(
    x: Tensor, y: Tensor, weight: Tensor, bias: Tensor, epsilon: float
) -> tuple[Tensor, Tensor]:
    """x + y, and the norm of it as it is rounded; nobody may ask for gradients."""
    x, y = x.contiguous(), y.contiguous()
    n_rows = x.numel() // x.shape[-1]
    total, output = torch.empty_like(x), torch.empty_like(x)
    sizes = _sizes(x)
    residual_programs.forward_with_sum[(triton.cdiv(n_rows, sizes["ROWS"]),)](
        x, y, weight, bias, total, output, n_rows, epsilon, **sizes
    )
    return total, output


def _normed(
    x: Tensor,
    y: Tensor | None,
    weight: Tensor,
    bias: Tensor,
    seed: Tensor,
    dropout: float,
    epsilon: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """The rows normed, and of each the mean and what it was multiplied with."""
    x = x.contiguous()
    y = None if y is None else y.contiguous()
    n_rows = x.numel() // x.shape[-1]
    output = torch.empty_like(x)
    mean, scale = (x.new_empty(n_rows, dtype=torch.float32) for _ in range(2))
    constants = _constants(x, y, dropout)
    residual_programs.forward[(triton.cdiv(n_rows, constants["ROWS"]),)](
        x,
        x if y is None else y,
        weight,
        bias,
        seed,
        output,
        mean,
        scale,
        n_rows,
        epsilon,
        dropout,
        **constants,
    )
    return output, mean, scale


_norm = torch.library.custom_op("regard::residual_norm", _normed, mutates_args=())


@_norm.register_fake
def _(x, y, weight, bias, seed, dropout, epsilon):
    n_rows = x.numel() // x.shape[-1]
    sums = x.new_empty(n_rows, dtype=torch.float32)
    return torch.empty_like(x, memory_format=torch.contiguous_format), sums, torch.empty_like(sums)


@torch.library.custom_op("regard::residual_norm_backward", mutates_args=())
def _norm_backward(
    grad: Tensor,
    x: Tensor,
    y: Tensor | None,
    weight: Tensor,
    seed: Tensor,
    mean: Tensor,
    scale: Tensor,
    dropout: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The gradients of x, y, weight and bias; that of y is empty where it is that of x."""
    grad, x = grad.contiguous(), x.contiguous()
    y = None if y is None else y.contiguous()
    width = x.shape[-1]
    n_rows = x.numel() // width
    constants = _constants(x, y, dropout)
    n_programs = min(triton.cdiv(n_rows, constants["ROWS"]), PROGRAMS * _n_processors(x.device))
    d_x = torch.empty_like(x)
    d_y = torch.empty_like(x) if dropout else x.new_empty(0)
    d_weight, d_bias = x.new_empty(2, n_programs, width, dtype=torch.float32).unbind()
    residual_programs.backward[(n_programs,)](
        grad,
        x,
        x if y is None else y,
        weight,
        seed,
        mean,
        scale,
        d_x,
        d_y,
        d_weight,
        d_bias,
        n_rows,
        dropout,
        **constants,
    )
    return d_x, d_y, d_weight.sum(0).to(weight.dtype), d_bias.sum(0).to(weight.dtype)


@_norm_backward.register_fake
def _(grad, x, y, weight, seed, mean, scale, dropout):
    d_x = torch.empty_like(x, memory_format=torch.contiguous_format)
    d_y = torch.empty_like(d_x) if dropout else x.new_empty(0)
    return d_x, d_y, torch.empty_like(weight), torch.empty_like(weight)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    x, y, weight, _, seed, ctx.dropout, _ = inputs
    ctx.save_for_backward(x, y, weight, seed, *output[1:])


def _differentiate(ctx: Any, grad: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
    x, y, *rest = ctx.saved_tensors
    d_x, d_y, d_weight, d_bias = _norm_backward(grad, x, y, *rest, ctx.dropout)
    if y is None:
        return d_x, None, d_weight, d_bias, None, None, None
    return d_x, d_y if ctx.dropout else d_x, d_weight, d_bias, None, None, None


_norm.register_autograd(_differentiate, setup_context=_keep)


def _constants(x: Tensor, y: Tensor | None, dropout: float) -> dict[str, int]:
    """What is compiled into a program."""
    return {**_sizes(x), "ADDS": y is not None, "DROPS": dropout > 0}


def _sizes(x: Tensor) -> dict[str, int]:
    """How wide rows are, and how many a program takes at once."""
    padded = triton.next_power_of_2(x.shape[-1])
    return {
        "WIDTH": x.shape[-1],
        "PADDED": padded,
        "ROWS": max(ELEMENTS // padded, 1),
        "num_warps": N_WARPS,
    }


def _n_processors(device: torch.device) -> int:
    if device.type != "cuda":
        return 1
    return torch.cuda.get_device_properties(device).multi_processor_count
