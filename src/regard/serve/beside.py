"""Code that waits, beside the loop that must not; the two can still talk."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class Beside:
    """A thread of its own for code that waits, which can still ask the loop, until it is left."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.asked: asyncio.Future[Any] | None = None
        self.is_left = False

    async def run(self, function: Callable[..., T], *arguments: Any) -> T:
        """What the function returns; if nobody waits for it any more, what it asks is cancelled."""
        try:
            return await asyncio.to_thread(function, *arguments)
        finally:
            self.is_left = True
            if self.asked is not None:
                self.asked.cancel()

    def wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """For the thread: what the loop answers."""
        if self.is_left:
            coroutine.close()
            raise asyncio.CancelledError
        future = asyncio.run_coroutine_threadsafe(coroutine, self.loop)
        self.loop.call_soon_threadsafe(self._remember, future)
        return future.result()

    def _remember(self, future: Any) -> None:
        self.asked = future
        if self.is_left:
            future.cancel()
