"""What a run says: a live line for the person, and `metrics.jsonl`, which is the truth."""

import json
import sys
import time
from pathlib import Path
from typing import Any

from regard.train.trainer import Trainer


class Log:
    """Writes metrics as they come; a full disk costs the log, never the run."""

    def __init__(self, path: Path, steps: int) -> None:
        self.path = path
        self.steps = steps
        self.started, self.first_step = time.monotonic(), 0
        self.tokens_before = 0
        self.is_warned = False
        path.parent.mkdir(parents=True, exist_ok=True)

    def start(self, step: int, n_tokens: int) -> None:
        """Speed and time left are counted from here."""
        self.started, self.first_step = time.monotonic(), step
        self.tokens_before = n_tokens

    def progress(self, trainer: Trainer) -> None:
        """The line of an update."""
        state = trainer.state
        seconds = max(time.monotonic() - self.started, 1e-9)
        left = seconds / max(state.step - self.first_step, 1) * (self.steps - state.step)
        speed = (state.n_tokens - self.tokens_before) / seconds
        rate = trainer.optimizer.param_groups[0]["lr"]
        self.write(step=state.step, loss=trainer.last_loss, lr=rate, tokens_per_s=round(speed))
        self.say(
            f"step {state.step:>6}/{self.steps}  loss {trainer.last_loss:.4f}  lr {rate:.2e}  "
            f"{speed:,.0f} tokens/s  {left / 60:.1f} min left"
        )

    def write(self, **metrics: Any) -> None:
        """One line of JSON."""
        try:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(metrics) + "\n")
        except OSError as error:
            if not self.is_warned:
                self.say(f"warning: {self.path} cannot be written: {error}")
            self.is_warned = True

    def say(self, line: str) -> None:
        """To the person, not into the results."""
        print(line, file=sys.stderr, flush=True)
