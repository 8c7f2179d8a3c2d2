"""What the pictures of docs/*/learn share: words, the plainest training loop, and matrices."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from regard.view.panels import Heat, Plot, Words

QUERY, KEY = Words("query", "查询"), Words("key", "键")


def fit(model: nn.Module, loss: Callable[[], Tensor], *, steps: int, lr: float) -> list[float]:
    """The plainest loop, and its losses."""
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    losses = []
    for _ in range(steps):
        one = loss()
        optimizer.zero_grad()
        one.backward()
        optimizer.step()
        losses.append(float(one.detach()))
    return losses


def points(x: Tensor, y: Tensor) -> tuple[tuple[float, float], ...]:
    """The points of a trace."""
    return tuple(zip(x.flatten().tolist(), y.flatten().tolist(), strict=True))


def values(matrix: Tensor) -> tuple[tuple[float, ...], ...]:
    """The cells of a matrix, row by row."""
    return tuple(map(tuple, matrix.detach().float().tolist()))


def heat(
    title: Words, matrix: Tensor, down: Words, across: Words, has_numbers: bool = False
) -> Plot:
    """A matrix by shades; weights go from 0 to 1."""
    most = None if matrix.max() > 1 else 1.0
    return Heat(title, values(matrix), down, across, most=most, has_numbers=has_numbers)
