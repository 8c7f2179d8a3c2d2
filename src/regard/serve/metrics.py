"""Numbers about the server in Prometheus' text form; no key, no address and no text is a label."""

import resource
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
SENTENCES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
PAGE = resource.getpagesize()


class Histogram:
    """How many measurements are at most each of some bounds, and their sum."""

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def add(self, value: float) -> None:
        """One measurement."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def lines(self, name: str) -> Iterator[str]:
        """In Prometheus' form."""
        yield f"# TYPE {name} histogram"
        n = 0
        for bound, count in zip((*self.bounds, "+Inf"), self.counts, strict=True):
            n += count
            yield f'{name}_bucket{{le="{bound}"}} {n}'
        yield f"{name}_sum {self.total:.6f}"
        yield f"{name}_count {n}"


class Metrics:
    """What has been counted since the start; what is true at the moment is asked for."""

    def __init__(self) -> None:
        self.started = time.time()
        self.requests: Counter[tuple[str, int]] = Counter()  # by protocol and status
        self.refused: Counter[str] = Counter()  # by code
        self.restarts: Counter[str] = Counter()  # of workers, by lane
        self.cut: Counter[str] = Counter()  # connections, by what was too slow or too many
        self.chars = 0
        self.tokens = 0
        self.request_seconds = Histogram(SECONDS)
        self.batch_seconds = Histogram(SECONDS)
        self.batch_sentences = Histogram(SENTENCES)
        self.now: dict[str, Callable[[], float]] = {}  # by name, asked whenever somebody looks

    def text(self) -> str:
        """All of it."""
        return "\n".join(self._lines()) + "\n"

    def _lines(self) -> Iterator[str]:
        yield "# TYPE regard_requests_total counter"
        for (protocol, status), n in sorted(self.requests.items()):
            yield f'regard_requests_total{{protocol="{protocol}",status="{status}"}} {n}'
        tables = {
            "regard_refused_total": ("code", self.refused),
            "regard_worker_restarts_total": ("lane", self.restarts),
            "regard_connections_cut_total": ("why", self.cut),
        }
        for name, (label, counter) in tables.items():
            yield f"# TYPE {name} counter"
            yield from (f'{name}{{{label}="{key}"}} {n}' for key, n in sorted(counter.items()))
        counters = {
            "regard_characters_total": self.chars,
            "regard_source_tokens_total": self.tokens,
        }
        for name, value in counters.items():
            yield f"# TYPE {name} counter"
            yield f"{name} {value}"
        yield from self.request_seconds.lines("regard_request_seconds")
        yield from self.batch_seconds.lines("regard_batch_seconds")
        yield from self.batch_sentences.lines("regard_batch_sentences")
        for name, ask in self.now.items():
            yield f"# TYPE {name} gauge"
            yield f"{name} {ask():g}"
        yield "# TYPE process_start_time_seconds gauge"
        yield f"process_start_time_seconds {self.started:.0f}"
        yield "# TYPE process_resident_memory_bytes gauge"
        yield f"process_resident_memory_bytes {resident_bytes()}"


def resident_bytes(pid: int | None = None) -> int:
    """The memory a process has now, this one or another; 0 where the system does not say."""
    try:
        words = Path(f"/proc/{pid or 'self'}/statm").read_text().split()
    except OSError:
        return 0
    return int(words[1]) * PAGE
