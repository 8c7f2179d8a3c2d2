"""The gate that every request goes through before any protocol sees it.

in:   leaving? host, origin, sizes of address and headers, the whole body within its limit
while it is answered:  a deadline, and an eye on whether the client is still there
out:  trace id, security headers, one line of log, metrics
"""

import asyncio
import logging
import secrets
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from regard.errors import DataError, ResourceError, Word
from regard.serve.refusals import Refused, fault_inside
from regard.serve.service import Service, out_of_time

log = logging.getLogger("regard.serve")

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
EXTENSIONS = ("chrome-extension", "moz-extension", "safari-web-extension")
SAFE = ("GET", "HEAD", "OPTIONS")
ALWAYS = ("/healthz", "/readyz", "/metrics")  # answered while the server is leaving, too
DOCUMENTS = ("/translate_file", "/v2/document")
SECURITY = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"same-origin"),  # with none, the form would come from "null"
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"cache-control", b"no-store"),
)
"""What every answer says, unless it says otherwise itself."""
PREFLIGHT = {
    "access-control-allow-methods": "GET, POST",
    "access-control-allow-headers": "authorization, content-type, x-api-key",
    "access-control-max-age": "600",
}
"""What a browser is told before a page of another site, where that may, asks."""
GONE = 499  # what is logged of a client that did not wait

Shape = Callable[[Scope, Refused], Response]
"""A refusal in the words of the protocol that was spoken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Doors:
    """Who is let in, by the headers a browser cannot forge."""

    hosts: Collection[str] = ()  # names the server answers to; none: any
    origins: Collection[str] = ()  # pages of other sites that may ask
    proxies: Collection[str] = ()  # addresses whose word on the client's address is taken


@dataclass(slots=True)
class Heard:
    """What is known of a request for its line in the log; `facts` are filled in by protocols."""

    trace: str
    started: float = field(default_factory=time.monotonic)
    status: int = 0
    n_in: int = 0
    n_out: int = 0
    facts: dict[str, Any] = field(default_factory=dict)


class Gate:
    """The outermost application."""

    def __init__(
        self, app: ASGIApp, service: Service, doors: Doors, shape: Shape, protocol: Any
    ) -> None:
        self.app, self.service, self.doors = app, service, doors
        self.shape, self.protocol_of = shape, protocol

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, whatever happens."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        heard = Heard(secrets.token_hex(8))
        scope["heard"] = heard
        scope["address"] = _address(scope, self.doors.proxies)
        outwards = _Outwards(send, heard, self._allowed_origin(scope))
        try:
            body = await self._received(scope, receive)
            heard.n_in = len(body)
            if _is_preflight(scope) and outwards.allowed_origin:
                await Response(status_code=204, headers=PREFLIGHT)(scope, receive, outwards)
            else:
                await self._answered(scope, receive, outwards, body)
        except Refused as refused:
            heard.facts["refused"] = refused.code
            if not heard.status:  # else it has begun to be answered, and is cut
                await self.shape(scope, refused)(scope, receive, outwards)
        except _Gone:
            heard.status = GONE
        except Exception:
            log.exception("fault", extra={"facts": {"trace": heard.trace}})
            if not heard.status:
                await self.shape(scope, fault_inside())(scope, receive, outwards)
        finally:
            self._note(scope, heard)

    async def _received(self, scope: Scope, receive: Receive) -> bytes:
        """The body, after all that can be checked without it."""
        headers = Headers(scope=scope)
        self._check_head(scope, headers)
        self._check_origin(scope, headers)
        if self.service.is_leaving and scope["path"] not in ALWAYS:
            reason = ResourceError("the server is about to stop; ask again in a moment")
            raise Refused(503, "leaving", reason, retry_after=5)
        limits = self.service.limits
        is_document = scope["path"].startswith(DOCUMENTS)
        most = limits.document_bytes if is_document else limits.body_bytes
        return await _body(receive, headers, most)

    async def _answered(
        self, scope: Scope, receive: Receive, send: "_Outwards", body: bytes
    ) -> None:
        """Let the application answer, until the deadline or until nobody waits for it."""
        limits = self.service.limits
        is_document = scope["path"].startswith(DOCUMENTS)
        deadline = limits.document_deadline if is_document else limits.deadline
        given: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]
        is_gone = asyncio.Event()
        own = asyncio.current_task()
        assert own is not None

        async def receive_body() -> Message:
            if given:
                return given.pop()
            await is_gone.wait()
            return {"type": "http.disconnect"}

        async def watch() -> None:
            await receive()  # nothing comes but the news that the client is gone
            if not send.is_done:
                is_gone.set()
                own.cancel()

        watching = asyncio.ensure_future(watch())
        try:
            async with asyncio.timeout(deadline) as until:
                await self.app(scope, receive_body, send)
        except asyncio.CancelledError:
            if not is_gone.is_set():
                raise
            own.uncancel()
            raise _Gone from None
        except TimeoutError:
            if not until.expired():
                raise
            raise out_of_time(deadline) from None
        finally:
            watching.cancel()

    def _check_head(self, scope: Scope, headers: Headers) -> None:
        limits = self.service.limits
        if len(scope["raw_path"]) + len(scope["query_string"]) > limits.url_bytes:
            raise _too_large(414, Word("address"), limits.url_bytes)
        n_bytes = sum(len(name) + len(value) for name, value in scope["headers"])
        if n_bytes > limits.header_bytes or len(scope["headers"]) > limits.header_fields:
            raise _too_large(431, Word("header"), limits.header_bytes)
        if "content-length" in headers and "transfer-encoding" in headers:
            raise Refused(
                400,
                "bad_length",
                DataError("a request has a content-length or a transfer-encoding, not both"),
            )
        if headers.get("content-encoding", "identity") != "identity":
            reason = DataError("a body that is compressed is not taken; send it as it is")
            raise Refused(415, "compressed", reason)

    def _check_origin(self, scope: Scope, headers: Headers) -> None:
        """A page of another site gets nothing done here, whatever name it has for this machine."""
        host = headers.get("host", "")
        if self.doors.hosts and _name_of(host) not in self.doors.hosts:
            reason = DataError("this server does not answer to the host {host}", host=host[:100])
            raise Refused(421, "host", reason)
        origin = headers.get("origin")
        if origin is None or scope["method"] in SAFE or origin in self.doors.origins:
            return
        parts = _split(origin)
        if parts.scheme in EXTENSIONS or parts.netloc == host:
            return
        raise Refused(
            403,
            "origin",
            DataError("pages of {origin} may not ask this server", origin=origin[:100]),
        )

    def _allowed_origin(self, scope: Scope) -> str:
        if not self.doors.origins:
            return ""
        origin = Headers(scope=scope).get("origin", "")
        return origin if origin in self.doors.origins else ""

    def _note(self, scope: Scope, heard: Heard) -> None:
        seconds = time.monotonic() - heard.started
        protocol = self.protocol_of(scope)
        metrics = self.service.metrics
        metrics.requests[protocol, heard.status] += 1
        metrics.request_seconds.add(seconds)
        if "refused" in heard.facts:
            metrics.refused[heard.facts["refused"]] += 1
        if not log.isEnabledFor(logging.INFO):
            return
        # The address without its query, which may hold texts and keys.
        facts = {
            "trace": heard.trace,
            "method": scope["method"],
            "path": scope["path"][:200],
            "status": heard.status,
            "ms": round(1000 * seconds, 1),
            "bytes_in": heard.n_in,
            "bytes_out": heard.n_out,
            **heard.facts,
        }
        log.info("request", extra={"facts": facts})


class _Gone(Exception):  # noqa: N818 (it is an event, and handled)
    """The client has closed its connection."""


class _Outwards:
    """What is sent, with the headers that every answer has."""

    def __init__(self, send: Send, heard: Heard, allowed_origin: str) -> None:
        self.send, self.heard, self.allowed_origin = send, heard, allowed_origin
        self.is_done = False  # all of the answer is sent

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.heard.status = message["status"]
            own = list(message.get("headers", ()))
            names = {name for name, _ in own}
            own += [pair for pair in SECURITY if pair[0] not in names]
            own.append((b"x-trace-id", self.heard.trace.encode()))
            if self.allowed_origin:
                own = [pair for pair in own if pair[0] != b"cross-origin-resource-policy"]
                own += [
                    (b"access-control-allow-origin", self.allowed_origin.encode("latin-1")),
                    (b"cross-origin-resource-policy", b"cross-origin"),
                    (b"vary", b"origin"),
                ]
            message["headers"] = own
        else:
            self.heard.n_out += len(message.get("body", b""))
            self.is_done = not message.get("more_body", False)
        await self.send(message)


async def _body(receive: Receive, headers: Headers, most: int) -> bytes:
    """The whole body; one that says it is too long is not even read."""
    said = headers.get("content-length", "0")
    if not said.isascii() or not said.isdigit() or int(said[:20]) > most:
        raise _too_large(413, Word("body"), most)
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _Gone
        body += message.get("body", b"")
        if len(body) > most:
            raise _too_large(413, Word("body"), most)
        if not message.get("more_body", False):
            return bytes(body)


def _is_preflight(scope: Scope) -> bool:
    return scope["method"] == "OPTIONS" and "access-control-request-method" in Headers(scope=scope)


def _too_large(status: int, what: str, most: int) -> Refused:
    reason = DataError("the {what} of the request has more than {most} bytes", what=what, most=most)
    return Refused(status, "too_large", reason)


def _address(scope: Scope, proxies: Collection[str]) -> str:
    """Where a request comes from; what it says of that itself counts only from a known proxy."""
    address: str = scope["client"][0] if scope.get("client") else ""
    if address not in proxies:
        return address
    said = ",".join(Headers(scope=scope).getlist("x-forwarded-for")).split(",")
    hops = [hop.strip() for hop in said if hop.strip()]
    return next((hop for hop in reversed(hops) if hop not in proxies), address)[:100]


def _name_of(host: str) -> str:
    """A host without its port."""
    name, _, port = host.rpartition(":")
    return (name if name and port.isdigit() else host).lower()


def _split(origin: str) -> Any:
    try:
        return urlsplit(origin)
    except ValueError:
        return urlsplit("")
