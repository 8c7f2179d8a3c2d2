"""In how many bits a network computes, and whether it is compiled; weights stay in float32."""

from contextlib import AbstractContextManager, nullcontext
from typing import Literal

import torch
from torch import nn

from regard.attention import kernels
from regard.errors import ConfigError
from regard.model.transformer import Transformer

if kernels.ARE_HERE:
    from torch._inductor import exc

PrecisionName = Literal["auto", "float32", "bf16"]
CompileName = Literal["auto", "on", "off"]


class Precision:
    """What a network's forward runs under."""

    def __init__(self, name: PrecisionName, device: torch.device) -> None:
        can = device.type != "cuda" or torch.cuda.is_bf16_supported()
        if name == "bf16" and not can:
            raise ConfigError(
                'train.precision = "bf16" but {device} has none; set train.precision = "float32"',
                device=device,
            )
        self.device = device
        # a CPU has bf16 too, but few are faster for it and none as exact
        self.is_bf16 = name == "bf16" or (name == "auto" and device.type == "cuda" and can)

    def autocast(self) -> AbstractContextManager[None]:
        """Matrix products in bf16 where that is wanted, sums and losses in float32 always."""
        if not self.is_bf16:
            return nullcontext()
        return torch.autocast(self.device.type, dtype=torch.bfloat16)

    def narrow(self, network: nn.Module) -> None:
        """Where products are in bf16, let layers hand on bf16 too; norms still add in float32."""
        if kernels.ARE_HERE and self.is_bf16 and isinstance(network, Transformer):
            network.source.stream = network.target.stream = torch.bfloat16

    def __str__(self) -> str:
        return "bf16" if self.is_bf16 else "float32"


def is_compiled(name: CompileName, device: torch.device, batching: str) -> bool:
    """Whether to compile: it pays where shapes never change, that is for packed batches."""
    return name == "on" or (name == "auto" and device.type == "cuda" and batching == "packed")


def compile_whole(module: nn.Module, device: torch.device, *, is_replayed: bool = False) -> None:
    """Call the module as one program from now on; on a CPU with what repeats to the bit.

    `is_replayed`: a GPU replays the whole pass as it was recorded (a CUDA graph), so that nobody
    has to launch a thousand kernels for each update. One backward must be over, and its gradients
    used, before the next begins.
    """
    if device.type == "cpu":
        torch.use_deterministic_algorithms(True)
    if kernels.ARE_HERE:
        _log_names_only()
    module.compile(mode="reduce-overhead" if is_replayed and device.type == "cuda" else None)


def _log_names_only() -> None:
    """Keep the compiler from writing out all that goes into an operator it meets first.

    It is for a log that nobody asked for, and doubles with every layer: torch 2.11 is at it for
    hours, 2.13 has mended it.
    """
    exc.OperatorIssue.operator_str = staticmethod(lambda target, args, kwargs: str(target))  # type: ignore[method-assign]
