"""Leaving when asked: after the update at hand, or, asked twice, at once."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

SAID = (
    "finishing this update, then saving; Ctrl-C again leaves at once without saving",
    "做完这次更新就保存并退出；再按一次Ctrl-C则不保存，立即退出",
)


@dataclass
class Leaving:
    """Which signal asked the run to leave, if any did."""

    signal: int | None = None

    @property
    def is_wanted(self) -> bool:
        """Whether somebody asked."""
        return self.signal is not None


@contextmanager
def listening(tell: Callable[[], None] = lambda: None) -> Iterator[Leaving]:
    """Take note of SIGTERM and Ctrl-C instead of falling; a second one falls as it always did.

    `tell` is called by the handler, so in the middle of whatever the process is doing.
    """
    leaving = Leaving()
    if threading.current_thread() is not threading.main_thread():
        yield leaving  # signals are the main thread's alone
        return

    def note(number: int, frame: FrameType | None) -> None:
        leaving.signal = number
        for each in before:
            # No handler of ours: Python would run it only once a long operation has come back.
            signal.signal(each, signal.SIG_DFL)
        tell()

    before = {each: signal.signal(each, note) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield leaving
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
