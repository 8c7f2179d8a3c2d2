"""Leaving when asked: after the update at hand, or, asked twice, at once."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType


@dataclass
class Leaving:
    """Which signal asked the run to leave, if any did."""

    signal: int | None = None

    @property
    def is_wanted(self) -> bool:
        """Whether somebody asked."""
        return self.signal is not None


@contextmanager
def listening() -> Iterator[Leaving]:
    """Take note of SIGTERM and Ctrl-C instead of falling; a second one falls as it always did."""
    leaving = Leaving()
    if threading.current_thread() is not threading.main_thread():
        yield leaving  # signals are the main thread's alone
        return

    def note(number: int, frame: FrameType | None) -> None:
        leaving.signal = number
        for each in before:
            signal.signal(each, signal.SIG_DFL)

    before = {each: signal.signal(each, note) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield leaving
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
