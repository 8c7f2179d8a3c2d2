"""uvicorn's connection with the patience it lacks: slow requests, slow readers and crowds are cut.

uvicorn alone waits for ever for the rest of a header or a body. Here a request has to be received
whole within a time that begins with its first byte, or with the connection if there is none, and
an answer has to be read within another.
"""

import asyncio
import ipaddress
import json
import sys
from collections import Counter
from http import HTTPStatus
from typing import Any

import h11
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from regard.serve.limits import Limits
from regard.serve.metrics import Metrics


class Crowd:
    """How many connections there are, of all and of each address."""

    def __init__(self, limits: Limits, metrics: Metrics) -> None:
        self.limits, self.metrics = limits, metrics
        self.by_address: Counter[str] = Counter()
        metrics.now["regard_connections"] = lambda: float(self.by_address.total())

    def enter(self, address: str) -> bool:
        """Count one more; whether there is room for it."""
        self.by_address[address] += 1
        is_own = not address or _is_loopback(address)
        return self.by_address.total() <= self.limits.connections and (
            is_own or self.by_address[address] <= self.limits.connections_each
        )

    def leave(self, address: str) -> None:
        """Count one less."""
        self.by_address[address] -= 1
        if not self.by_address[address]:
            del self.by_address[address]


class PatientConnection(H11Protocol):
    """One connection; `functools.partial` gives it its limits."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        limits: Limits,
        crowd: Crowd,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.limits, self.crowd = limits, crowd
        self._receiving: asyncio.TimerHandle | None = None
        self._sending: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Let it in, and wait for its first request."""
        super().connection_made(transport)
        self._address = self.client[0] if self.client else ""
        if not self.crowd.enter(self._address):
            self.crowd.metrics.cut["crowd"] += 1
            self._say_and_close(HTTPStatus.SERVICE_UNAVAILABLE, "too many connections")
            return
        self._receiving = self.loop.call_later(self.limits.receive, self._too_slow)

    def connection_lost(self, exc: Exception | None) -> None:
        """It is gone."""
        self._stop_receiving()
        self.resume_writing()
        self.crowd.leave(self._address)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Some bytes of a request; its time runs from the first to the last."""
        if self.transport.is_closing():
            return
        if self._receiving is None:
            self._receiving = self.loop.call_later(self.limits.receive, self._too_slow)
        super().data_received(data)
        if self._is_received():
            self._stop_receiving()

    def on_response_complete(self) -> None:
        """The next request, if it has begun already, has its own time."""
        super().on_response_complete()
        if self._receiving is None and not self._is_received():
            self._receiving = self.loop.call_later(self.limits.receive, self._too_slow)

    def send_400_response(self, msg: str) -> None:
        """What is no HTTP is said to be none, and by its proper status."""
        error = sys.exception()
        status = error.error_status_hint if isinstance(error, h11.RemoteProtocolError) else 400
        self._say_and_close(HTTPStatus(status), "this is no HTTP request that can be read")

    def pause_writing(self) -> None:
        """The client does not read; it has some time to begin."""
        super().pause_writing()
        if self._sending is None:
            self._sending = self.loop.call_later(self.limits.send, self._does_not_read)

    def resume_writing(self) -> None:
        """It reads again."""
        if self._sending is not None:
            self._sending.cancel()
            self._sending = None
        super().resume_writing()

    def _is_received(self) -> bool:
        """Whether the last request that began is here to its end."""
        return self.cycle is not None and not self.cycle.more_body

    def _stop_receiving(self) -> None:
        if self._receiving is not None:
            self._receiving.cancel()
            self._receiving = None

    def _too_slow(self) -> None:
        self._receiving = None
        if not self.transport.is_closing():
            self.crowd.metrics.cut["receive"] += 1
            self._say_and_close(HTTPStatus.REQUEST_TIMEOUT, "the request did not come in time")

    def _does_not_read(self) -> None:
        self._sending = None
        self.crowd.metrics.cut["send"] += 1
        self.transport.abort()

    def _say_and_close(self, status: HTTPStatus, sentence: str) -> None:
        """A last word, where none has been said yet."""
        if self.cycle is None or self.cycle.response_complete or not self.cycle.response_started:
            body = json.dumps({"error": {"code": status.name.lower(), "message": sentence}})
            self.transport.write(
                f"HTTP/1.1 {status.value} {status.phrase}\r\ncontent-type: application/json\r\n"
                f"content-length: {len(body)}\r\nconnection: close\r\n\r\n{body}".encode()
            )
        self.transport.close()


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False
