"""Programs for a GPU, in Triton; without one, or without it, all works the same, only slower.

They equal the definition, and trainings with them end where trainings without them do
(benchmarks/results). REGARD_KERNELS=off goes without.
"""

import os
from importlib.util import find_spec

import torch
from torch import Tensor

# CUDA builds of torch bring Triton with them
ARE_HERE = (
    torch.version.cuda is not None
    and find_spec("triton") is not None
    and os.environ.get("REGARD_KERNELS", "on") != "off"
)


def can_take(*tensors: Tensor) -> bool:
    """Whether the kernels may be asked: all on the GPU, of one type that they know."""
    first = tensors[0].dtype
    return (
        ARE_HERE
        and first in (torch.bfloat16, torch.float16, torch.float32)
        and all(x.is_cuda and x.dtype is first for x in tensors)
    )
