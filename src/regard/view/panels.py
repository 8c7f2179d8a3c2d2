"""What a figure is made of: plots of lines, bars or weights, and words in both languages.

A figure is data and nothing else: it is kept beside the numbers it shows, and `figures.py` draws it
in one language or the other.
"""

from dataclasses import dataclass
from typing import Literal

Language = Literal["en", "zh"]
Points = tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Words:
    """The same text in both languages."""

    english: str
    chinese: str

    def said(self, language: Language) -> str:
        """The text in one of them."""
        return self.chinese if language == "zh" else self.english


def same(text: str) -> Words:
    """A text that is the same in both: a formula, a number, a name."""
    return Words(text, text)


@dataclass(frozen=True, slots=True)
class Trace:
    """Points with a name: joined, dotted, joined by dashes, or both joined and dotted."""

    name: Words
    points: Points
    style: Literal["line", "dots", "dashed", "both"] = "line"


@dataclass(frozen=True, slots=True)
class Lines:
    """Traces over two axes; `mark` is a height worth a line of its own, such as a threshold."""

    title: Words
    across: Words
    up: Words
    traces: tuple[Trace, ...]
    is_log_across: bool = False
    is_log_up: bool = False
    low: float | None = None
    high: float | None = None
    mark: float | None = None


@dataclass(frozen=True, slots=True)
class Bar:
    """A length and, where known, the interval it lies in."""

    length: float
    interval: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Bars:
    """For each row a bar of each series, lying down so that names have room."""

    title: Words
    across: Words
    rows: tuple[Words, ...]
    series: tuple[Words, ...]
    bars: tuple[tuple[Bar, ...], ...]  # by row, then by series
    mark: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Heat:
    """A matrix by shades, from 0 to `most`, or from -`most` where some values are below 0.

    Signed, values above and below 0 have a colour each, and 0 has none.
    """

    title: Words
    values: tuple[tuple[float, ...], ...]
    down: Words
    across: Words
    rows: tuple[str | Words, ...] = ()
    columns: tuple[str | Words, ...] = ()
    most: float | None = None
    has_numbers: bool = False
    is_signed: bool = False


Plot = Lines | Bars | Heat


@dataclass(frozen=True, slots=True)
class Figure:
    """Plots under one title, in rows of `columns`."""

    title: Words
    plots: tuple[Plot, ...]
    columns: int = 2
