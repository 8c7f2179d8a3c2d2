"""Weights by name, taken one by one; all that is wrong with them is said at once, at the end."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.errors import ModelError
from regard.tensors import Tensors

Floats = NDArray[np.float32]


class Weights:
    """The weights of a file, of which each is taken by the one who has a place for it."""

    def __init__(self, left: Tensors) -> None:
        self.left: dict[str, NDArray[Any]] = dict(left)
        self.wrong: list[str] = []

    def take(self, name: str, *shape: int) -> Floats:
        """The weights of that name, which nobody else will ask for, in float32."""
        found = self.left.pop(name, None)
        if found is None:
            self.wrong.append(f"{name} is missing")
        elif found.shape != shape:
            self.wrong.append(f"{name} has shape {found.shape} instead of {shape}")
        else:
            return np.array(found, dtype=np.float32)
        return np.zeros(shape, dtype=np.float32)

    def check(self) -> None:
        """Nothing was missing or of another shape, and nothing is left."""
        wrong = [*self.wrong, *(f"{name} is unexpected" for name in self.left)]
        if wrong:
            raise ModelError(
                "the weights do not fit the model: {wrong}", wrong=", ".join(sorted(wrong))
            )
