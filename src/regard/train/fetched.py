"""A number on its way from the device that computes it."""

import torch
from torch import Tensor


class Fetched:
    """What a GPU has not computed yet, asked for now.

    The copy stands in the GPU's queue right behind the number itself. Asked for only when it is
    wanted, it would stand behind all that was queued since, and wait for that too.
    """

    def __init__(self, number: Tensor) -> None:
        self._copy = number.detach().to("cpu", non_blocking=True)
        self._arrived = torch.cuda.Event() if number.is_cuda else None
        if self._arrived is not None:
            self._arrived.record()

    def __float__(self) -> float:
        """The number, waited for if need be."""
        if self._arrived is not None:
            self._arrived.synchronize()
        return float(self._copy)
