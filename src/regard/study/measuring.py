"""How time, memory and order are measured: in rounds, by operation, and along the gradient."""

import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

Call = Callable[[], object]
Key = TypeVar("Key")


def seconds(calls: Mapping[Key, Call], rounds: int) -> dict[Key, float]:
    """The median processor time of each call, taken in turns: what slows one slows all alike."""
    taken: dict[Key, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            call()  # once for nothing, so that what others left in the caches is gone
            start = time.process_time()
            call()
            taken[name].append(time.process_time() - start)
    return {name: statistics.median(times) for name, times in taken.items()}


def exponent(xs: Sequence[float], ys: Sequence[float]) -> float:
    """The slope of log y over log x: 1 if y grows as x does, 2 if as its square."""
    across, up = [math.log(x) for x in xs], [math.log(y) for y in ys]
    return statistics.linear_regression(across, up).slope


def largest_tensor(call: Call) -> int:
    """Bytes of the largest tensor that is made on the way."""
    with _Largest() as seen, torch.no_grad():
        call()
    return seen.n_bytes


class _Largest(TorchDispatchMode):
    """Looks at what every operation gives back."""

    def __init__(self) -> None:
        super().__init__()
        self.n_bytes = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        made = func(*args, **(kwargs or {}))
        given = {_memory(x) for x in tree_leaves((args, kwargs)) if isinstance(x, Tensor)}
        for x in tree_leaves(made):
            if isinstance(x, Tensor) and _memory(x) not in given:  # else it is a view
                self.n_bytes = max(self.n_bytes, x.numel() * x.element_size())
        return made


def _memory(x: Tensor) -> int:
    return x.untyped_storage().data_ptr()


def longest_chain(output: Tensor) -> int:
    """The most operations that had to wait for one another: the depth of the output's graph."""
    depths: dict[Any, int] = {None: 0}
    waiting = [output.grad_fn]
    while waiting:
        node = waiting[-1]
        before = [one for one, _ in node.next_functions] if node is not None else []
        unknown = [one for one in before if one not in depths]
        if unknown:
            waiting += unknown
            continue
        waiting.pop()
        if node not in depths:
            depths[node] = 1 + max((depths[one] for one in before), default=0)
    return depths[output.grad_fn]
