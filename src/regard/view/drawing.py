"""A picture as a list of shapes, which `svg` and `png` each know how to put on paper.

Lengths are in pixels, x goes right and y goes down. A colour is a name of the theme, such as "ink",
or a value that holds in every theme, such as "#0072B2"; `colours` knows the names.
"""

import re
import unicodedata
from dataclasses import dataclass
from typing import Literal

LIGHT = {"paper": "#ffffff", "ink": "#1b1f24", "muted": "#59636e", "grid": "#e1e4e8"}
DARK = {"paper": "#14171b", "ink": "#e8eaed", "muted": "#9aa4af", "grid": "#2f353c"}

FAMILIES = (
    "Noto Sans CJK SC",
    "Source Han Sans SC",
    "Source Han Sans CN",
    "PingFang SC",
    "Hiragino Sans GB",
    "Microsoft YaHei",
    "WenQuanYi Micro Hei",
    "WenQuanYi Zen Hei",
    "SimHei",
    "Droid Sans Fallback",
    "Arial Unicode MS",
    "Noto Sans CJK JP",
)
"""Fonts with Chinese characters, in the order in which they are looked for."""

Point = tuple[float, float]

_UNWRITABLE = re.compile("[^\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, slots=True)
class Rect:
    """A filled rectangle, by its upper left corner."""

    x: float
    y: float
    width: float
    height: float
    fill: str
    opacity: float = 1.0


@dataclass(frozen=True, slots=True)
class Circle:
    """A filled circle."""

    x: float
    y: float
    radius: float
    fill: str


@dataclass(frozen=True, slots=True)
class Line:
    """A straight line between two points; `dash` is drawn, left out, drawn, left out, …"""

    start: Point
    end: Point
    colour: str
    width: float = 1.0
    dash: tuple[float, ...] = ()
    opacity: float = 1.0


@dataclass(frozen=True, slots=True)
class Polyline:
    """Points joined in their order."""

    points: tuple[Point, ...]
    colour: str
    width: float = 1.0
    dash: tuple[float, ...] = ()
    opacity: float = 1.0


@dataclass(frozen=True, slots=True)
class Text:
    """One line of text whose baseline starts, ends or has its middle at (x, y).

    It is turned around that point, clockwise, by `turned` degrees. Stacked, it has one character
    below the other, as Chinese may be written, and the anchor is the top, the middle or the bottom.
    """

    x: float
    y: float
    text: str
    size: float = 12.0
    colour: str = "ink"
    anchor: Literal["start", "middle", "end"] = "start"
    is_bold: bool = False
    turned: float = 0.0
    is_stacked: bool = False


@dataclass(frozen=True, slots=True)
class Cells:
    """Rows of rectangles in the colours of weights, by the upper left corner of the first.

    Width and height are of one; a weight is a step of `colours.LEVELS`, and None is left out.
    """

    x: float
    y: float
    width: float
    height: float
    levels: tuple[tuple[int | None, ...], ...]


Shape = Rect | Circle | Line | Polyline | Text | Cells


@dataclass(frozen=True, slots=True)
class Drawing:
    """Shapes, the first at the bottom; the title is for those who cannot see them."""

    width: int
    height: int
    shapes: tuple[Shape, ...]
    title: str = ""


def text_width(text: str, size: float) -> float:
    """About how wide a text is: fonts differ, so this leans to the wide side."""
    return size * sum(1.0 if is_wide(character) else 0.6 for character in text)


def is_wide(character: str) -> bool:
    """Whether a character is as wide as it is high, as Chinese is."""
    return unicodedata.east_asian_width(character) in "WF"


def writable(text: str) -> str:
    """The text with a sign in the place of every character that no file of ours can hold."""
    return _UNWRITABLE.sub("\ufffd", text)
