"""Weights that are the mean of many: a running one, or of several checkpoints."""

from collections.abc import Iterable, Mapping

import torch
from torch import Tensor, nn

from regard.train.parallel import own_part


class RunningAverage:
    """Keeps `decay` of what it was and takes the rest from the weights, update after update.

        average <- decay * average + (1 - decay) * weights

    At first it keeps less, so that the weights nobody trained are soon forgotten.
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay = decay
        self.tensors = {name: p.detach().clone() for name, p in model.named_parameters()}
        self._parts = [own_part(tensor) for tensor in self.tensors.values()]
        self._weights = [own_part(p.detach()) for p in model.parameters()]

    @torch.no_grad()
    def update(self, step: int) -> None:
        """Take in the weights after an update."""
        decay = min(self.decay, (1 + step) / (10 + step))
        torch._foreach_lerp_(self._parts, self._weights, 1.0 - decay)


def average(several: Iterable[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """The mean of each weight over several sets of them, summed in float64 one set at a time."""
    sums: dict[str, Tensor] = {}
    count = 0
    for weights in several:
        count += 1
        for name, weight in weights.items():
            added = weight.double()
            sums[name] = sums[name] + added if name in sums else added
        kinds = {name: weight.dtype for name, weight in weights.items()}
    return {name: (total / count).to(kinds[name]) for name, total in sums.items()}
