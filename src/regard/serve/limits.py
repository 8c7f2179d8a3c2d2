"""How much the server takes: sizes, times, and how often one client may ask."""

import math
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from regard.errors import ResourceError
from regard.serve.refusals import Refused

KIB, MIB = 1024, 1024 * 1024
CLIENTS = 10_000  # of whom it is remembered how often they asked


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Every bound of the server, in one place; 0 is none where it says so."""

    # what a request may be
    url_bytes: int = 64 * KIB  # some clients send the text there, nine bytes a character
    header_bytes: int = 16 * KIB
    header_fields: int = 64
    body_bytes: int = 128 * KIB
    document_bytes: int = 10 * MIB
    texts: int = 64
    chars: int = 5000  # of one text
    beam: int = 8  # and as many alternatives
    terms: int = 1000
    # how long it may take, in seconds
    receive: float = 10.0  # from a request's first byte to its last
    send: float = 10.0  # that a client may leave an answer unread
    deadline: float = 8.0  # below the 10 s after which clients give up
    document_deadline: float = 600.0
    drain: float = 9.0  # to finish what is in flight when asked to leave
    # what waits
    queue_requests: int = 64
    queue_tokens: int = 32 * KIB
    gather: float = 0.1  # seconds to wait for company at most, when there has just been some
    batch: float = 1.0  # seconds of work in one batch
    # who asks
    connections: int = 512
    connections_each: int = 32  # of one address, unless it is this machine
    requests_per_minute: int = 0  # of one key, or without keys of one address; 0: any
    chars_per_minute: int = 0  # the same for characters; 0: any
    # what is kept
    documents_bytes: int = 64 * MIB  # of all documents together
    document_seconds: float = 3600.0
    glossaries: int = 100  # of one key
    glossary_bytes: int = 10 * MIB


class Rates:
    """How much each client has asked for of late: a bucket that fills up again in a minute."""

    def __init__(self, per_minute: int, now: Callable[[], float] = time.monotonic) -> None:
        self.per_minute, self.now = per_minute, now
        self.left: OrderedDict[str, tuple[float, float]] = OrderedDict()  # how much, and when

    def take(self, client: str, amount: int) -> None:
        """Count it, or refuse if that is too much; what is refused is not counted."""
        if not self.per_minute:
            return
        now = self.now()
        left, since = self.left.pop(client, (float(self.per_minute), now))
        left = min(self.per_minute, left + (now - since) * self.per_minute / 60)
        is_enough = left >= min(amount, self.per_minute)
        self.left[client] = (left - amount if is_enough else left, now)
        while len(self.left) > CLIENTS:
            self.left.popitem(last=False)
        if not is_enough:
            missing = min(amount, self.per_minute) - left
            seconds = math.ceil(missing * 60 / self.per_minute)
            raise Refused(
                429,
                "too_often",
                ResourceError(
                    "more than {most} a minute are not taken from one client; wait {seconds} s",
                    most=self.per_minute,
                    seconds=seconds,
                ),
                retry_after=seconds,
            )
