"""Curves for TensorBoard, which go back when the run goes back, and whose faults the log tells."""

import threading
from pathlib import Path
from typing import Any

from regard.errors import ConfigError


class TensorBoard:
    """Takes numbers of updates; its file begins with the first of them.

    What an earlier start drew of updates after `step`, which the run goes on from, is done again.
    """

    def __init__(self, folder: Path) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise ConfigError(
                "the option --tensorboard needs a package: pip install 'regard[tensorboard]'"
            ) from None
        self.folder, self._kind = folder, SummaryWriter
        self._writer: Any = None
        self.step = 0

    def add_scalar(self, tag: str, scalar_value: float, global_step: int) -> None:
        """One number of one update."""
        if self._writer is None:
            _leave_to_the_log()
            self._writer = self._kind(str(self.folder), purge_step=self.step + 1)
        self._writer.add_scalar(tag, scalar_value, global_step)

    def close(self) -> None:
        """Wait until its thread has written all."""
        if self._writer is not None:
            self._writer.close()


def _leave_to_the_log() -> None:
    """TensorBoard's thread gives its error to the next call, and need not print it too."""
    before = threading.excepthook

    def tell(told: threading.ExceptHookArgs) -> None:
        is_its_own = type(told.thread).__module__.startswith("tensorboard.")
        if not (is_its_own and isinstance(told.exc_value, OSError)):
            before(told)

    threading.excepthook = tell
