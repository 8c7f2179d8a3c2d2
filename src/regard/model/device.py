"""Where a network computes: on the processor, or on a GPU that is there."""

import torch

from regard.errors import ConfigError, ResourceError


def device_named(name: str) -> torch.device:
    """The device: cpu, cuda, or one of many, cuda:1."""
    kind, _, number = name.partition(":")
    is_one_of_many = kind == "cuda" and number.isascii() and number.isdigit()
    if name not in ("cpu", "cuda") and not is_one_of_many:
        raise ConfigError('device = "{name}" is not one of cpu, cuda, cuda:0, cuda:1', name=name)
    n_gpus = torch.cuda.device_count()
    if kind == "cuda" and int(number or 0) >= n_gpus:
        raise ResourceError(
            'device = "{name}", but of the GPUs that torch can use there are {n_gpus} here; '
            "choose cpu, or install torch for CUDA if there are more",
            name=name,
            n_gpus=n_gpus,
        )
    return torch.device(name)
