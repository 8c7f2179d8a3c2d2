"""Adam as in the paper, and schedules: functions from the number of updates to the rate."""

import math
from collections.abc import Callable, Iterable
from typing import Literal

import torch
from torch import nn

from regard.errors import ConfigError

ScheduleName = Literal["inverse_sqrt", "cosine", "constant"]
Schedule = Callable[[int], float]
MOMENTS = ("exp_avg", "exp_avg_sq", "step")  # what Adam remembers of each weight


def make_optimizer(parameters: Iterable[nn.Parameter], lr: float) -> torch.optim.Adam:
    """Adam with the paper's betas and epsilon, each weight read and written once (fused)."""
    return torch.optim.Adam(parameters, lr=lr, betas=(0.9, 0.98), eps=1e-9, fused=True)


def make_schedule(name: ScheduleName, lr: float, warmup: int, steps: int) -> Schedule:
    """The rate of update number 1, 2, ...: up to `lr` in a straight line, then down as named."""

    def rising(step: int) -> float:
        return min(step / warmup, 1.0) if warmup else 1.0

    def inverse_sqrt(step: int) -> float:
        return lr * rising(step) * math.sqrt(max(warmup, 1) / max(step, warmup, 1))

    def cosine(step: int) -> float:
        done = min(max(step - warmup, 0) / max(steps - warmup, 1), 1.0)
        return lr * rising(step) * 0.5 * (1.0 + math.cos(math.pi * done))

    match name:
        case "inverse_sqrt":
            return inverse_sqrt
        case "cosine":
            return cosine
        case "constant":
            return lambda step: lr * rising(step)
        case _:
            raise ConfigError(
                'train.schedule = "{name}" is not one of inverse_sqrt, cosine, constant', name=name
            )
