"""Several processes as one: the only file that knows of `torch.distributed`.

    torchrun --nproc-per-node 2 -m regard train ...

Each process (rank) takes its own batches of the same plan. A loss is divided by the number of
tokens of all ranks and gradients are summed over them, so the update is that of one big batch. With
`ddp` each rank holds the whole model; with `fsdp` each holds its share of every matrix, and of the
optimizer's moments. Alone, all of it does nothing.
"""

import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import timedelta
from typing import Literal

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor
from torch.nn.parallel import DistributedDataParallel

from regard.data.batch import Batch
from regard.errors import ResourceError
from regard.model.decoder import DecoderLayer
from regard.model.device import device_named
from regard.model.encoder import EncoderLayer

PATIENCE = timedelta(hours=2)  # for a rank that validates, or builds the dataset, while others wait


class Parallel:
    """This process among its like."""

    def __init__(self, kind: Literal["ddp", "fsdp"] = "ddp", device: str = "auto") -> None:
        self.kind = kind
        self.ranks = int(os.environ.get("WORLD_SIZE", "1"))
        self.rank = int(os.environ.get("RANK", "0"))
        self.is_restart = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") != "0"
        self.device = _device(device, int(os.environ.get("LOCAL_RANK", "0")))
        if self.ranks > 1:
            backend = "nccl" if self.device.type == "cuda" else "gloo"
            dist.init_process_group(backend, timeout=PATIENCE)

    @property
    def is_first(self) -> bool:
        """Whether this is the rank that speaks and writes."""
        return self.rank == 0

    def wrap(self, objective: nn.Module) -> nn.Module:
        """The module to call, so that its gradients come out summed over all ranks."""
        if self.ranks == 1:
            return objective
        if self.kind == "ddp":
            if self.device.type == "cuda":
                return DistributedDataParallel(objective, device_ids=[self.device])
            return Summed(objective, self.ranks)
        # It warns of what could happen to somebody who writes into a layer's output; nobody does.
        warnings.filterwarnings("ignore", message="FSDP2-wrapped module")
        # Unasked it would share among GPUs wherever there is one, though the run be on the CPU.
        ranks = init_device_mesh(self.device.type, (self.ranks,))
        for layer in objective.modules():
            if isinstance(layer, EncoderLayer | DecoderLayer):
                fully_shard(layer, mesh=ranks)
        fully_shard(objective, mesh=ranks)
        return objective

    def share(self, loss: Tensor) -> Tensor:
        """A loss whose gradient, averaged over the ranks as both wrappers do, is the sum."""
        return loss * self.ranks

    @contextmanager
    def accumulating(self, wrapped: nn.Module, *, is_last: bool) -> Iterator[None]:
        """Gradients travel once an update, with its last batch."""
        if isinstance(wrapped, FSDPModule):
            wrapped.set_requires_gradient_sync(is_last)
        if isinstance(wrapped, DistributedDataParallel) and not is_last:
            pause: AbstractContextManager[None] = wrapped.no_sync()
        else:
            pause = nullcontext()
        with pause:
            yield
        if isinstance(wrapped, Summed) and is_last:
            wrapped.sum_gradients()

    def total(self, numbers: Tensor) -> Tensor:
        """The sum over all ranks."""
        if self.ranks > 1:
            dist.all_reduce(numbers)
        return numbers

    def agree(self, numbers: Tensor) -> Tensor:
        """What the first rank says, for all."""
        if self.ranks > 1:
            dist.broadcast(numbers, src=0)
        return numbers

    def first_alone(self, act: Callable[[], object]) -> None:
        """Let the first rank act while the others wait; if it refuses, they leave without a word.

        Otherwise each of them would tell of a process that died, beside the one reason.
        """
        refusal = None
        try:
            if self.is_first:
                act()
        except Exception as error:
            refusal = error
        code = getattr(refusal, "exit_code", 1) if refusal else 0
        code = int(self.agree(torch.tensor(code, device=self.device)))
        if refusal:
            raise refusal
        if code:
            raise SystemExit(code)

    def wait(self) -> None:
        """Until all ranks are here."""
        if self.ranks > 1:
            dist.barrier()

    def leave(self) -> None:
        """The group is no longer needed."""
        if self.ranks > 1:
            dist.destroy_process_group()

    def end(self, code: int) -> int:
        """The exit code of who is alone; a rank that is done ends here, without a shutdown.

        Sharded layers outlive the group in torch's caches, and so do its threads: one that asks for
        Python's lock while Python shuts down aborts the process, all work being done.
        """
        if self.ranks > 1:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
        return code


class Summed(nn.Module):
    """What DDP is on a GPU, for CPUs: gradients are averaged over the ranks, all at once.

    DDP sums while it still computes, and lays the gradients out anew after its first update. The
    order in which three ranks or more are added up depends on that, so a run that was stopped would
    not go on to the bit.
    """

    def __init__(self, objective: nn.Module, ranks: int) -> None:
        super().__init__()
        self.objective, self.ranks = objective, ranks
        for parameter in objective.parameters():
            dist.broadcast(parameter.detach(), src=0)

    def forward(self, batch: Batch) -> Tensor:
        """What the objective says."""
        loss: Tensor = self.objective(batch)
        return loss

    def sum_gradients(self) -> None:
        """The mean over all ranks in place of this rank's own."""
        gradients = [p.grad for p in self.objective.parameters() if p.grad is not None]
        flat = torch.cat([gradient.flatten() for gradient in gradients])
        dist.all_reduce(flat)
        flat /= self.ranks
        for gradient, mean in zip(
            gradients, flat.split([gradient.numel() for gradient in gradients]), strict=True
        ):
            gradient.copy_(mean.view_as(gradient))


@contextmanager
def others_told() -> Iterator[None]:
    """Where ranks work together, and the death of another is to be a sentence."""
    try:
        yield
    except RuntimeError as error:
        if isinstance(error, dist.DistError) or "gloo/transport" in str(error):
            raise ResourceError(
                "another process of this run has died; its own words say why, and --resume goes on "
                "from the last checkpoint"
            ) from error
        raise


def whole(tensor: Tensor) -> Tensor:
    """A tensor gathered from all ranks, if it was shared among them: all must ask together."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def shared_like(tensor: Tensor, parameter: Tensor) -> Tensor:
    """A whole tensor shared among the ranks as a parameter is."""
    tensor = tensor.to(parameter.device)
    if isinstance(parameter, DTensor):
        return distribute_tensor(tensor, parameter.device_mesh, parameter.placements)
    return tensor


def own_part(tensor: Tensor) -> Tensor:
    """What this rank holds of a tensor, in the same memory."""
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


def _device(name: str, local_rank: int) -> torch.device:
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    device = device_named(f"cuda:{local_rank}" if name == "cuda" else name)
    if device.type == "cuda":
        torch.cuda.set_device(device)  # where kernels are launched that are not torch's
    return device
