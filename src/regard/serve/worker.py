"""The process that holds the models, asked one question at a time, and started again if it dies.

It is a process and not a thread, because what hurts it must not hurt the server: native code that
crashes, memory that runs out, a search that never returns. The system can end a process, and what
waits is then asked again of the next one. Nor does its work hold the lock of the interpreter that
answers everybody else.

Questions and answers go through a pipe that nobody else has. When the server is gone the pipe
closes, and the process with it: it cannot outlive the server, however that ended.
"""

import asyncio
import contextlib
import importlib
import logging
import multiprocessing
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Literal, Protocol

from regard.errors import RegardError, ResourceError

Lane = Literal["quick", "thorough"]
MODULES: dict[Lane, str] = {
    "quick": "regard.serve.quick",
    "thorough": "regard.serve.thorough",  # imports torch, so only its own process imports it
}
PAUSES = (0.0, 0.5, 1.0, 2.0, 5.0)  # seconds before it is started again, by how often it has died
TRIES = 3  # to start it at all

log = logging.getLogger("regard.serve")


@dataclass(frozen=True, slots=True)
class Loading:
    """What a worker loads, and how."""

    paths: tuple[Path, ...]
    device: str = "cpu"
    dtype: Literal["auto", "float32", "int8"] = "auto"


class Answering(Protocol):
    """What a worker's process makes of its models: `open_models(Loading)` of its module."""

    def answer(self, question: str, arguments: tuple[Any, ...], say: Callable[[Any], None]) -> Any:
        """The answer to one question; parts of it may be said before."""


class WorkerDied(Exception):  # noqa: N818 (it is an event, and handled)
    """The process is gone, and with it the answer."""


class Worker:
    """A worker's process, seen from the server."""

    def __init__(self, lane: Lane, loading: Loading, on_restart: Callable[[], None]) -> None:
        self.lane, self.loading, self.on_restart = lane, loading, on_restart
        self.ready = asyncio.Event()  # the models are loaded, and it can be asked
        self.failure: RegardError | None = None  # why it cannot be started
        self.pid: int | None = None
        self._connection: Connection | None = None
        self._process: multiprocessing.process.BaseProcess | None = None
        self._waiting: asyncio.Future[Any] | None = None
        self._on_part: Callable[[Any], None] | None = None
        self._is_stopping = False

    async def ask(
        self, question: str, *arguments: Any, on_part: Callable[[Any], None] | None = None
    ) -> Any:
        """The answer; there is one question at a time. `WorkerDied` if there will be none."""
        await self.ready.wait()
        assert self._connection is not None
        self._on_part = on_part
        self._waiting = asyncio.get_running_loop().create_future()
        try:
            self._connection.send((question, arguments))
        except OSError:
            raise WorkerDied from None
        return await self._waiting

    async def run(self) -> None:
        """Keep a process alive until `stop`; a coroutine for a task of its own."""
        loop = asyncio.get_running_loop()
        n_died, has_served = 0, False
        while not self._is_stopping:
            gone = asyncio.Event()
            process = await asyncio.to_thread(self._start, loop, gone)
            await gone.wait()
            was_ready = self.ready.is_set()
            has_served = has_served or was_ready
            self.ready.clear()
            self._fail(WorkerDied())
            await asyncio.to_thread(process.join, 5.0)
            if self._is_stopping or (self.failure is not None and not has_served):
                return
            n_died = 1 if was_ready else n_died + 1
            log.error("worker died", extra={"facts": {"lane": self.lane, "exit": process.exitcode}})
            if not has_served and n_died == TRIES:
                self.failure = ResourceError(
                    "the process that is to translate ended {times} times before it was ready",
                    times=TRIES,
                )
                return
            pause = PAUSES[min(n_died, len(PAUSES)) - 1]
            self.on_restart()
            await asyncio.sleep(pause)

    def kill(self) -> None:
        """End the process now; `run` starts another."""
        if self._process is not None:
            self._process.kill()

    async def stop(self) -> None:
        """Let the process go, for good."""
        self._is_stopping = True
        if self._connection is not None:
            with contextlib.suppress(OSError):
                self._connection.send(None)
        if self._process is not None:
            await asyncio.to_thread(self._process.join, 2.0)
            if self._process.is_alive():
                self._process.kill()

    def _start(
        self, loop: asyncio.AbstractEventLoop, gone: asyncio.Event
    ) -> multiprocessing.process.BaseProcess:
        context = multiprocessing.get_context("spawn")  # a fork would copy threads' locks
        ours, theirs = context.Pipe()
        process = context.Process(
            target=work, args=(theirs, MODULES[self.lane], self.loading), daemon=True
        )
        process.start()
        theirs.close()  # so that its end of the pipe is gone when it is
        self._connection, self._process, self.pid = ours, process, process.pid
        threading.Thread(target=self._listen, args=(ours, loop, gone), daemon=True).start()
        return process

    def _listen(
        self, connection: Connection, loop: asyncio.AbstractEventLoop, gone: asyncio.Event
    ) -> None:
        """Hand on what the process says, until it says no more."""
        with contextlib.suppress(RuntimeError):  # the server's loop is closed
            try:
                while True:
                    loop.call_soon_threadsafe(self._heard, *connection.recv())
            except (EOFError, OSError):
                loop.call_soon_threadsafe(gone.set)
        connection.close()

    def _heard(self, what: str, value: Any) -> None:
        if what == "ready":
            self.failure = None
            self.ready.set()
        elif what == "not ready":
            self.failure = value
        elif what == "part":
            if self._on_part is not None:
                self._on_part(value)
        elif self._waiting is not None and not self._waiting.done():
            if what == "answer":
                self._waiting.set_result(value)
            else:
                self._waiting.set_exception(value)

    def _fail(self, error: Exception) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_exception(error)


def work(connection: Connection, module: str, loading: Loading) -> None:
    """The process itself: load, then answer until the pipe closes."""
    # A terminal and a service manager signal all processes at once, and this one is still needed
    # for what is in flight: it leaves when the server tells it, or is no more.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with contextlib.suppress(EOFError, OSError):
        try:
            models: Answering = importlib.import_module(module).open_models(loading)
        except RegardError as error:
            connection.send(("not ready", error))
            return
        connection.send(("ready", None))
        while (asked := connection.recv()) is not None:
            try:
                question, arguments = asked
                answer = models.answer(question, arguments, _part_sayer(connection))
                connection.send(("answer", answer))
            except RegardError as error:
                connection.send(("error", error))
            except (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError) as error:
                connection.send(("error", RuntimeError(f"{type(error).__name__}: {error}")))


def _part_sayer(connection: Connection) -> Callable[[Any], None]:
    return lambda part: connection.send(("part", part))
