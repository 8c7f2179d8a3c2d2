"""How many sines are a tanh, as far as anybody looks (`waves.py`)."""

import math
from typing import NamedTuple


class Series(NamedTuple):
    """How many sines, and half of the period."""

    n_waves: int
    half_period: float


def series_for(reach: float, error: float) -> Series:
    """The shortest series that is tanh for |x| <= reach, but for the error.

    Half of the error for the turning back, 1 - tanh(P - x), half for the sines left out.
    """
    half_period = reach + math.atanh(1.0 - error / 2)
    n_waves = 1
    while _rest(n_waves, half_period) > error / 2:
        n_waves += 1
    return Series(n_waves, half_period)


def _rest(n_waves: int, half_period: float) -> float:
    """The amplitudes beyond n: less than a geometric series from the first of them."""
    x = (2 * n_waves + 1) * math.pi**2 / (2 * half_period)
    first = 2 * math.pi / (half_period * math.sinh(x))
    return first / (1 - math.exp(-(math.pi**2) / half_period))
