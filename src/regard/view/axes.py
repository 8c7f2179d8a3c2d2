"""Axes: where a value goes on the paper, which values are marked, and how they are written."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

LARGEST, SMALLEST = 1e100, 1e-100  # beyond these, floats could not hold an axis and its margins
PLAIN = (1e-3, 1e7)  # numbers between these are written out, others with an exponent


@dataclass(frozen=True, slots=True)
class Axis:
    """From `low` at the pixel `start` to `high` at the pixel `end`."""

    low: float
    high: float
    start: float
    end: float
    ticks: tuple[float, ...]
    is_log: bool = False

    def place(self, value: float) -> float:
        """The pixel of a value."""
        low, high = self.low, self.high
        if self.is_log:
            low, high, value = math.log(low), math.log(high), math.log(value)
        return self.start + (self.end - self.start) * (value - low) / (high - low)

    def labels(self) -> tuple[str, ...]:
        """The ticks, written."""
        if self.is_log:
            return tuple(_short(tick) for tick in self.ticks)
        return _written(self.ticks)


def is_drawable(value: float) -> bool:
    """Whether an axis can hold the value."""
    return abs(value) < LARGEST  # which NaN is not


def exact_axis(low: float, high: float, start: float, end: float, n_ticks: int = 5) -> Axis:
    """An axis that ends where the values end."""
    low, high = _apart(low, high)
    return Axis(low, high, start, end, _ticks(low, high, n_ticks))


def rounded_axis(low: float, high: float, start: float, end: float, n_ticks: int = 5) -> Axis:
    """An axis that begins and ends with a tick."""
    low, high = _apart(low, high)
    step = _step(high - low, n_ticks)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    ticks = tuple(_multiple(n, step) for n in range(first, last + 1))
    return Axis(ticks[0], ticks[-1], start, end, ticks)


def log_axis(low: float, high: float, start: float, end: float, n_ticks: int = 7) -> Axis:
    """An axis on which equal lengths are equal factors; `low` must be above 0."""
    room = max((high / low) ** 0.04, 1.01)
    low, high = low / room, high * room
    powers = [10.0**n for n in range(math.floor(math.log10(low)), math.ceil(math.log10(high)))]
    marked: list[float] = []
    for digits in ((1, 2, 3, 5, 7), (1, 2, 5), (1,)):
        marked = [m * power for power in powers for m in digits if low <= m * power <= high]
        if len(marked) <= n_ticks:
            break
    marked = marked[:: math.ceil(len(marked) / n_ticks) or 1]
    if len(marked) < 3:  # not half a decade, where even steps are fine
        marked = [tick for tick in _ticks(low, high, 5) if tick > 0]
    return Axis(low, high, start, end, tuple(marked), is_log=True)


def _apart(low: float, high: float) -> tuple[float, float]:
    """Both ends, moved apart when there is nothing between them."""
    size = max(abs(low), abs(high))
    if size < SMALLEST:
        return 0.0, 1.0
    room = 0.0 if high - low > 1e-9 * size else size / 2
    return low - room, high + room


def _ticks(low: float, high: float, n_ticks: int) -> tuple[float, ...]:
    step = _step(high - low, n_ticks)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return tuple(_multiple(n, step) for n in range(first, last + 1))


def _step(span: float, n_ticks: int) -> float:
    """The smallest 1, 2 or 5 times a power of ten that cuts the span into at most n pieces."""
    power = 10.0 ** math.floor(math.log10(span / n_ticks))
    return next(
        (m * power for m in (1, 2, 5) if m * power * n_ticks >= span * (1 - 1e-9)), 10 * power
    )


def _multiple(n: int, step: float) -> float:
    return float(f"{n * step:.12g}")  # 3 × 0.1 is 0.3


def _written(ticks: Sequence[float]) -> tuple[str, ...]:
    largest = max(map(abs, ticks), default=0.0)
    if largest and not PLAIN[0] <= largest < PLAIN[1]:
        return tuple(_with_exponent(tick) for tick in ticks)
    gap = min((b - a for a, b in pairwise(ticks)), default=1.0)
    digits = max(0, -math.floor(math.log10(gap) + 1e-9))
    return tuple(f"{tick:,.{digits}f}" for tick in ticks)


def _short(tick: float) -> str:
    return f"{tick:,.10g}" if PLAIN[0] <= tick < PLAIN[1] else _with_exponent(tick)


def _with_exponent(tick: float) -> str:
    if not tick:
        return "0"
    digits, exponent = f"{tick:.10e}".split("e")
    return f"{float(digits):.11g}e{int(exponent)}"
