"""The loop: batches in, better weights out; what must survive a restart is in `TrainState`."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

import torch
from torch import Tensor, nn

from regard.data.batch import Batch
from regard.data.feed import Place
from regard.errors import ModelError
from regard.train.optim import Schedule

MOST_SKIPPED = 5  # updates in a row whose gradient is not finite, before the run stops


@dataclass
class TrainState:
    """Where a run stands."""

    step: int = 0
    place: Place = field(default_factory=Place)
    n_tokens: int = 0
    skipped: int = 0
    skipped_in_a_row: int = 0


Loss = Callable[[Batch], Tensor]
Action = Callable[["Trainer"], None]


class Trainer:
    """Fits a network to batches; what is done now and then is given as functions."""

    def __init__(
        self,
        model: nn.Module,
        loss: Loss,
        batches: Iterator[tuple[Place, Batch]],
        optimizer: torch.optim.Optimizer,
        schedule: Schedule,
        *,
        accumulate: int = 1,
        clip: float = 1.0,
        hooks: Mapping[int, Sequence[Action]] | None = None,
        state: TrainState | None = None,
    ) -> None:
        self.model = model
        self.loss = loss
        self.batches = batches
        self.optimizer = optimizer
        self.schedule = schedule
        self.accumulate = accumulate
        self.clip = clip
        self.hooks = hooks or {}
        self.state = state or TrainState()
        self.last_loss = float("nan")

    def fit(self, steps: int) -> None:
        """Update until that many updates are done, with every hook at its own pace."""
        while self.state.step < steps:
            self.last_loss = float(self.train_step())
            for every, actions in self.hooks.items():
                if self.state.step % every == 0 or self.state.step == steps:
                    for action in actions:
                        action(self)

    def train_step(self) -> Tensor:
        """One update of the weights, from `accumulate` batches. Returns the loss per token."""
        self.model.train()
        places, batches = zip(*islice(self.batches, self.accumulate), strict=True)
        n_tokens = sum(batch.n_tokens for batch in batches)
        loss_per_token = torch.zeros(())
        for batch in batches:
            loss = self.loss(batch) / n_tokens  # a sum over tokens, so uneven batches weigh right
            loss.backward()
            loss_per_token += loss.detach().cpu()

        self.state.step += 1
        self.state.place = places[-1]
        for group in self.optimizer.param_groups:
            group["lr"] = self.schedule(self.state.step)
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), self.clip)
        self._update(bool(norm.isfinite()) and bool(loss_per_token.isfinite()), n_tokens)
        self.optimizer.zero_grad(set_to_none=True)
        return loss_per_token

    def _update(self, is_finite: bool, n_tokens: int) -> None:
        """Take the step, unless it would carry numbers into the weights that are none."""
        if is_finite:
            self.optimizer.step()
            self.state.n_tokens += n_tokens
            self.state.skipped_in_a_row = 0
            return
        self.state.skipped += 1
        self.state.skipped_in_a_row += 1
        if self.state.skipped_in_a_row >= MOST_SKIPPED:
            bad = [
                name
                for name, parameter in self.model.named_parameters()
                if parameter.grad is not None and not parameter.grad.isfinite().all()
            ]
            raise ModelError(
                "{n} updates in a row had a loss or gradient that is not finite, the last at "
                "update {step} in {names}; a smaller train.lr may help",
                n=MOST_SKIPPED,
                step=self.state.step,
                names=", ".join(bad[:3]) or "the loss",
            )
