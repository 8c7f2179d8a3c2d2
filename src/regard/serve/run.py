"""A server from its first socket to its last answer."""

import asyncio
import contextlib
import errno
import functools
import resource
import signal
import socket
from collections.abc import Callable, Iterator
from dataclasses import replace

import uvicorn

from regard.errors import ResourceError
from regard.serve.app import build_app
from regard.serve.connection import Crowd, PatientConnection
from regard.serve.gate import Doors
from regard.serve.limits import Limits
from regard.serve.service import Service

SPARE = 32  # files beside connections: pipes, models, sockets


def listening(host: str, port: int) -> socket.socket:
    """A socket at an address, or a sentence about why there is none."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except socket.gaierror:
        raise ResourceError(
            "there is no host {host}; name one of this machine", host=host
        ) from None
    # With its protocol named, asyncio sees that it is TCP and sends without delay; else an answer
    # would wait 40 ms for the client to acknowledge its head.
    made = socket.socket(family, kind, protocol)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
    except OSError as error:
        made.close()
        if error.errno == errno.EADDRINUSE:
            raise ResourceError(
                "port {port} of {host} is in use; choose another with --port", port=port, host=host
            ) from None
        raise ResourceError(
            "cannot listen at {host}, port {port}: {reason}",
            host=host,
            port=port,
            reason=error.strerror or error,
        ) from None
    return made


def serve(service: Service, doors: Doors, door: socket.socket, on_ready: Callable[[], None]) -> int:
    """Answer at a socket until a signal; the signal that ended it, 0 if none."""
    return asyncio.run(_serve(service, doors, door, on_ready))


async def _serve(
    service: Service, doors: Doors, door: socket.socket, on_ready: Callable[[], None]
) -> int:
    limits = within_files(service.limits)
    connection = functools.partial(
        PatientConnection, limits=limits, crowd=Crowd(limits, service.metrics)
    )
    config = uvicorn.Config(
        build_app(service, doors),
        http=connection,  # type: ignore[arg-type]
        ws="none",
        lifespan="off",
        loop="asyncio",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        h11_max_incomplete_event_size=limits.url_bytes + limits.header_bytes,
        timeout_graceful_shutdown=int(limits.drain),
    )
    server = _Server(config)
    ended: list[int] = []
    loop = asyncio.get_running_loop()

    def leave(number: int) -> None:
        service.is_leaving = True
        server.force_exit = bool(ended) and number == signal.SIGINT  # asked twice: at once
        server.should_exit = True
        ended.append(number)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, leave, number)
    service.start()
    watching = loop.create_task(_until_ready(service, server, on_ready))
    try:
        await server.serve(sockets=[door])
        if watching.done():
            watching.result()
    finally:
        watching.cancel()
        await service.stop()
    return ended[0] if ended else 0


async def _until_ready(
    service: Service, server: uvicorn.Server, on_ready: Callable[[], None]
) -> None:
    """Say so when the models are loaded; if they cannot be, end the server with the reason."""
    worker = service.lane(service.main_lane).worker
    while not worker.ready.is_set() or not server.started:
        if worker.failure is not None:
            server.should_exit = True
            raise worker.failure
        await asyncio.sleep(0.02)
    on_ready()
    service.start_rest()


class _Server(uvicorn.Server):
    """uvicorn's, but for signals, which the loop handles: this server's end is not a death."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none."""
        yield


def within_files(limits: Limits) -> Limits:
    """As many connections as there can be files for."""
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return replace(limits, connections=max(8, min(limits.connections, most - SPARE)))
