"""Times of the norm of a sum, and of a product that ends in a ReLU: a part of `kernels_gpu.py`."""

from collections.abc import Callable, Iterator

import torch
from kernels_timed import DEVICE, GPU, HALF, Row, alone, timed
from torch import Tensor
from torch.nn import functional as F

from regard.attention.kernels import rectified, residual


def norm_times() -> Iterator[Row]:
    n_rows, width = (131_072, 512) if GPU else (9, 16)
    x, y = (torch.randn(n_rows, width, device=DEVICE).to(HALF).requires_grad_() for _ in range(2))
    weight, bias = (torch.randn(width, device=DEVICE).requires_grad_() for _ in range(2))

    def plain() -> Tensor:
        total = x + F.dropout(y, 0.1)
        return F.layer_norm(total.float(), (width,), weight, bias, 1e-5).to(HALF)

    runs: dict[str, Callable[[], Tensor]] = {}
    if GPU:
        runs["norm of a sum, torch compiled"] = torch.compile(plain, dynamic=False)
    runs["norm of a sum, ours"] = lambda: residual.residual_norm(x, y, weight, bias, 0.1, 1e-5)
    for name, run in runs.items():
        forward, both, peak = timed(run, (x, y, weight, bias))
        yield name, forward, both, f"{peak:.2f} GB"
    chosen = residual.ELEMENTS, residual.N_WARPS, residual.PROGRAMS
    seed = torch.zeros((), dtype=torch.int64, device=DEVICE)
    rows, scale = (x.detach(), y.detach(), weight.detach()), bias.detach()
    for some in NORM_TILES if GPU else NORM_TILES[:1]:
        residual.ELEMENTS, residual.N_WARPS, residual.PROGRAMS = some
        forward = alone(lambda: residual._norm(*rows, scale, seed, 0.1, 1e-5))
        sums = residual._norm(*rows, scale, seed, 0.1, 1e-5)[1:]
        back = alone(lambda s=sums: residual._norm_backward(rows[0], *rows, seed, *s, 0.1))
        yield f"{some} elements, warps, programs a processor", forward, back, "backward alone"
    residual.ELEMENTS, residual.N_WARPS, residual.PROGRAMS = chosen
    yield from relu_times(n_rows, width)


NORM_TILES = [
    (512, 1, 4), (512, 1, 16), (1024, 2, 8), (1024, 4, 4), (2048, 4, 2), (2048, 4, 4),
    (2048, 4, 8), (2048, 8, 4), (4096, 8, 2), (4096, 8, 4),
]  # fmt: skip


def relu_times(n_rows: int, width: int) -> Iterator[Row]:
    x = torch.randn(n_rows, width, device=DEVICE).to(HALF).requires_grad_()
    weight = (torch.randn(4 * width, width, device=DEVICE) / width**0.5).requires_grad_()
    bias = torch.randn(4 * width, device=DEVICE).requires_grad_()

    def plain() -> Tensor:
        return F.relu(F.linear(x, weight.to(HALF), bias.to(HALF)))

    runs = {"relu(linear), ours": lambda: rectified.linear_relu(x, weight, bias)}
    if GPU:
        runs["relu(linear), torch compiled"] = torch.compile(plain, dynamic=False)
    for name, run in runs.items():
        forward, both, peak = timed(run, (x, weight, bias))
        yield name, forward, both, f"{peak:.2f} GB"
    y = runs["relu(linear), ours"]().detach()
    grad = torch.randn_like(y)
    chosen = rectified.COLUMNS, rectified.ROWS, rectified.N_ROWS
    for some in RELU_TILES if GPU else RELU_TILES[:1]:
        rectified.COLUMNS, rectified.ROWS, rectified.N_ROWS = some
        ms = alone(lambda: rectified.relu_backward(grad, y))
        speed = 3 * y.numel() * y.element_size() / max(ms, 1e-9) / 1e9
        yield f"relu backward {some} columns, rows, all rows", 0.0, ms, f"{speed:.2f} TB/s"
    rectified.COLUMNS, rectified.ROWS, rectified.N_ROWS = chosen


RELU_TILES = [(128, 64, 2048), (128, 32, 1024), (128, 16, 512), (256, 16, 1024), (256, 8, 512)]
