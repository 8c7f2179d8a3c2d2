"""Processes that make batches ahead: deaf to signals meant for another, and missed when dead."""

import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from torch.utils.data import DataLoader, Dataset

from regard.data.batch import Batch
from regard.errors import ResourceError


def made_ahead(batches: Dataset[Batch], places: Sequence[Any], workers: int) -> Iterator[Batch]:
    """The batches at these places, in order, made by so many processes."""
    loader = DataLoader(
        batches, batch_size=None, sampler=places, num_workers=workers, worker_init_fn=_deaf
    )
    return _told(iter(loader))


def _deaf(worker: int) -> None:
    """Ctrl-C, and SIGTERM to all, are for the process that trains; it ends its workers itself."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "linux":  # elsewhere nobody can tell who sent a signal
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        threading.Thread(target=_end_when_told_by, args=(os.getppid(),), daemon=True).start()


def _end_when_told_by(parent: int) -> None:
    if sys.platform == "linux":
        while signal.sigwaitinfo({signal.SIGTERM}).si_pid != parent:
            pass
        os._exit(0)


def _told(batches: Iterator[Batch]) -> Iterator[Batch]:
    """The same, but the death of a worker is a sentence, even while a batch changes hands."""
    try:
        yield from batches
    except (RuntimeError, ConnectionError, EOFError) as error:
        _tell(error)
        raise


@contextmanager
def helped() -> Iterator[None]:
    """Where workers make batches, and the death of one is to be a sentence.

    Torch's handler of SIGCHLD raises in the middle of whatever the process that trains is doing.
    """
    is_main = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGCHLD)
    try:
        yield
    except RuntimeError as error:
        _tell(error)
        raise
    finally:
        if is_main and before is not None:  # once the run is over, a death concerns nobody
            signal.signal(signal.SIGCHLD, before)


def _tell(error: Exception) -> None:
    """Raise the sentence if that is what an error means."""
    if not isinstance(error, RuntimeError) or "DataLoader worker (pid" in str(error):
        raise ResourceError(
            "a process that makes batches has died, perhaps for want of memory; choose fewer "
            "train.workers, or 0"
        ) from error
