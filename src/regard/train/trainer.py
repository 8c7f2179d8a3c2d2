"""The loop: batches in, better weights out; what must survive a restart is in `TrainState`."""

import math
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice

import torch
from torch import Tensor, nn

from regard.data.batch import Batch, halves
from regard.data.feed import Place
from regard.errors import ModelError, ResourceError
from regard.train.average import RunningAverage
from regard.train.checkpoint import Checkpoint
from regard.train.fetched import Fetched
from regard.train.memory import is_out_of_memory
from regard.train.objective import Objective
from regard.train.optim import MOMENTS, Schedule
from regard.train.parallel import Parallel, shared_like, whole
from regard.train.precision import Precision
from regard.train.state import TrainState

MOST_SKIPPED = 5  # updates in a row whose gradient is not finite, before the run stops
HORIZON = 0.99  # how much of the mean loss an update leaves
DIVERGED = 2.0  # nats that the mean loss may rise above its lowest

Action = Callable[["Trainer"], None]


class Trainer:
    """Fits a network to batches; what is done now and then is given as functions."""

    def __init__(
        self,
        objective: Objective,
        batches: Iterator[tuple[Place, Batch]],
        optimizer: torch.optim.Optimizer,
        schedule: Schedule,
        *,
        call: nn.Module | None = None,
        accumulate: int = 1,
        clip: float = 1.0,
        seed: int = 1,
        parallel: Parallel | None = None,
        precision: Precision | None = None,
        average: RunningAverage | None = None,
        hooks: Sequence[tuple[int, Action]] = (),
        state: TrainState | None = None,
        is_asked_to_stop: Callable[[], bool] = lambda: False,
        tell_split: Callable[[int], None] = lambda n_tokens: None,
    ) -> None:
        self.model = objective.network
        self.pad = objective.pad
        self.objective = call or objective  # as it is called: compiled, or shared among ranks
        self.batches = batches
        self.optimizer = optimizer
        self.schedule = schedule
        self.accumulate = accumulate
        self.clip = clip
        self.seed = seed
        self.parallel = parallel or Parallel(device="cpu")
        self.precision = precision or Precision("float32", self.parallel.device)
        self.precision.narrow(self.model)
        self.average = average
        self.hooks = hooks
        self.state = state or TrainState()
        self.is_asked_to_stop = is_asked_to_stop
        self.tell_split = tell_split
        self.last_loss = float("nan")
        self.wants_to_stop = False  # by patience, or because somebody asked
        # number, loss and tokens of updates that the GPU may still be at
        self._unsettled: deque[tuple[int, Fetched, int]] = deque()

    def fit(self, steps: int) -> None:
        """Update until that many updates are done, with every hook at its own pace, in order."""
        while self.state.step < steps and not self.wants_to_stop:
            self.train_step()
            step = self.state.step
            due = [action for every, action in self.hooks if step % every == 0 or step == steps]
            self.settle(behind=0 if due else 1)
            self.wants_to_stop = self.is_asked_to_stop()
            for action in due:
                action(self)
        self.settle()

    def train_step(self) -> None:
        """One update of the weights, from `accumulate` batches."""
        places, batches = zip(*islice(self.batches, self.accumulate), strict=True)
        n_tokens = self._n_tokens(batches)
        self.state.step += 1
        self.state.place = places[-1]
        for group in self.optimizer.param_groups:
            group["lr"] = self.schedule(self.state.step)

        loss = self.parallel.total(self._gradient(batches, n_tokens))
        norm = whole(nn.utils.clip_grad_norm_(self.model.parameters(), self.clip))
        # A fused Adam told of an infinity takes no step; nobody has to wait here to know of it.
        is_bad = ~(loss.isfinite() & norm.isfinite())
        self.optimizer.found_inf = is_bad.float()  # type: ignore[attr-defined]
        self.optimizer.step()
        loss = torch.where(is_bad, torch.nan, loss)
        self._unsettled.append((self.state.step, Fetched(loss), n_tokens))
        if self.average is not None:
            self.average.update(self.state.step)

    def settle(self, behind: int = 0) -> None:
        """Learn how updates went, all but the last `behind`: a GPU may still be at those."""
        while len(self._unsettled) > behind:
            step, loss, n_tokens = self._unsettled.popleft()
            self.last_loss = float(loss)
            if math.isfinite(self.last_loss):
                self._count(step, self.last_loss, n_tokens)
            else:
                self._skip(step)

    def _gradient(self, batches: Sequence[Batch], n_tokens: int) -> Tensor:
        """The gradient of the loss per token, and that loss; a batch that does not fit is split."""
        batches = self._split(batches)
        while (loss := self._backward(batches, n_tokens)) is None:
            self.optimizer.zero_grad(set_to_none=True)  # their memory is wanted
            torch.cuda.empty_cache()
            most = max(batch.n_tokens for batch in batches)
            self.state.split_above = most // 2
            self.tell_split(most)
            batches = self._split(batches)
        return loss

    def _backward(self, batches: Sequence[Batch], n_tokens: int) -> Tensor | None:
        """All batches forward and backward; None if memory is used up."""
        self.model.train()
        self.optimizer.zero_grad(set_to_none=True)
        # Dropout depends on the update's number, so a run that was stopped goes on the same.
        torch.manual_seed(_mixed(self.seed, self.state.step, self.parallel.rank))
        total = torch.zeros((), device=self.parallel.device)
        try:
            for number, batch in enumerate(batches, start=1):
                batch = batch.to(self.parallel.device)
                is_last = number == len(batches)
                with self.parallel.accumulating(self.objective, is_last=is_last):
                    with self.precision.autocast():
                        loss = self.objective(batch) / n_tokens
                    self.parallel.share(loss).backward()
                total += loss.detach()
        except (MemoryError, RuntimeError) as error:
            if not is_out_of_memory(error):
                raise
            self._give_up_if_alone(batches)
            return None
        return total

    def _split(self, batches: Sequence[Batch]) -> list[Batch]:
        most = self.state.split_above
        if most is None:
            return list(batches)
        return [part for batch in batches for part in _parts(batch, most, self.pad)]

    def _give_up_if_alone(self, batches: Sequence[Batch]) -> None:
        """One sentence that does not fit cannot be split, nor can ranks split one by one."""
        largest = max(batches, key=lambda batch: batch.n_tokens)
        if len(largest.pairs) > 1 and self.parallel.ranks == 1:
            return
        raise ResourceError(
            "a batch of {pairs} sentence pairs with {tokens} target tokens does not fit in memory; "
            "choose a smaller train.tokens, or data.max_len",
            pairs=len(largest.pairs),
            tokens=largest.n_tokens,
        ) from None

    def _n_tokens(self, batches: Sequence[Batch]) -> int:
        """Target tokens of this update, on all ranks."""
        own = sum(batch.n_tokens for batch in batches)
        if self.parallel.ranks == 1:
            return own
        return int(self.parallel.total(torch.tensor(own, device=self.parallel.device)))

    def _count(self, step: int, loss: float, n_tokens: int) -> None:
        """What an update that was taken changes beside the weights."""
        state = self.state
        state.n_tokens += n_tokens
        state.skipped_in_a_row = 0
        before = loss if state.mean_loss is None else state.mean_loss
        state.mean_loss = HORIZON * before + (1 - HORIZON) * loss
        lowest = state.mean_loss if state.lowest_mean is None else state.lowest_mean
        state.lowest_mean = min(state.mean_loss, lowest)
        if state.mean_loss > state.lowest_mean + DIVERGED:
            raise ModelError(
                "the loss rose from {lowest} to {loss} by update {step}: the run has diverged; "
                "choose a smaller train.lr, or a longer train.warmup",
                lowest=f"{state.lowest_mean:.2f}",
                loss=f"{state.mean_loss:.2f}",
                step=step,
            )

    def _skip(self, step: int) -> None:
        """No update: it would carry numbers into the weights that are none."""
        self.state.skipped += 1
        self.state.skipped_in_a_row += 1
        if self.state.skipped_in_a_row >= MOST_SKIPPED:
            raise ModelError(
                "{n} updates in a row had a loss or gradient that is not finite, the last at "
                "update {step} in {names}; a smaller train.lr may help",
                n=MOST_SKIPPED,
                step=step,
                names=", ".join(self._not_finite()[:3]) or "the loss",
            )

    def _not_finite(self) -> list[str]:
        """The weights that are not finite, or else those whose gradients are not."""
        named = dict(self.model.named_parameters())
        bad = [name for name, p in named.items() if not p.isfinite().all()]
        return bad or [
            f"the gradient of {name}"
            for name, p in named.items()
            if p.grad is not None and not p.grad.isfinite().all()
        ]

    def weights(self) -> dict[str, Tensor]:
        """The weights to judge and to keep: the running average where there is one, gathered."""
        if self.average is not None:
            return gathered(self.average.tensors)
        return gathered(dict(self.model.named_parameters()))

    def checkpoint(self) -> Checkpoint:
        """All that the run needs to go on from here; every rank must ask."""
        moments = {
            f"{moment}.{name}": self.optimizer.state[parameter][moment]
            for name, parameter in self.model.named_parameters()
            if parameter in self.optimizer.state
            for moment in MOMENTS
        }
        return Checkpoint(
            replace(self.state),
            gathered(dict(self.model.named_parameters())),
            gathered(moments),
            gathered(self.average.tensors) if self.average is not None else {},
        )

    def restore(self, checkpoint: Checkpoint) -> None:
        """Go on from a checkpoint, whose weights the model holds already."""
        self.state = checkpoint.state
        for name, parameter in self.model.named_parameters():
            if f"step.{name}" in checkpoint.moments:
                self.optimizer.state[parameter] = {
                    moment: self._placed(moment, checkpoint.moments[f"{moment}.{name}"], parameter)
                    for moment in MOMENTS
                }
            if self.average is not None and name in checkpoint.running_average:
                part = shared_like(checkpoint.running_average[name], parameter)
                self.average.tensors[name].copy_(part)

    def _placed(self, moment: str, tensor: Tensor, parameter: Tensor) -> Tensor:
        if moment != "step":
            return shared_like(tensor, parameter)
        # Adam counts its updates on the CPU, unless it is fused: then where the weight is.
        return tensor.to(parameter.device) if self.optimizer.defaults["fused"] else tensor


def gathered(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Tensors whole, on the CPU, and copied: the run may go on."""
    return {
        name: whole(t.detach()).to("cpu", copy=True).contiguous() for name, t in tensors.items()
    }


def _parts(batch: Batch, most: int, pad: int) -> list[Batch]:
    """A batch in halves of halves until none is above the limit, or is one pair."""
    if batch.n_tokens <= most or len(batch.pairs) < 2:
        return [batch]
    return [part for half in halves(batch, pad) for part in _parts(half, most, pad)]


def _mixed(seed: int, step: int, rank: int) -> int:
    """One number from three, so that no two updates or ranks draw the same, of torch's 64 bits."""
    return ((seed * 1_000_003 + step) * 8191 + rank) % 2**64
