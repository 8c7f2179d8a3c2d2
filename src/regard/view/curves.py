"""The curves of training runs: one panel a quantity, one colour and one dash a run."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from regard.view.axes import SMALLEST, Axis, exact_axis, is_drawable, log_axis, rounded_axis
from regard.view.drawing import (
    Circle,
    Drawing,
    Line,
    Point,
    Polyline,
    Rect,
    Shape,
    Text,
    text_width,
)
from regard.view.runs import Run, Series, names_apart

ENGLISH = {
    "title": "training curves",
    "step": "updates",
    "train": "training",
    "dev": "dev set",
    "loss": "loss (nats per token)",
    "dev_bleu": "BLEU",
    "dev_chrf": "chrF",
    "dev_accuracy": "tokens predicted right (%)",
    "dev_exact": "sentences exactly right (%)",
    "lr": "learning rate",
    "tokens_per_s": "speed (tokens per second)",
}
"""The words of a drawing; a quantity goes by its name in the file."""

LOSSES = ("loss", "dev_loss")
SCORES = ("dev_bleu", "dev_chrf", "dev_accuracy", "dev_exact")
PERCENT = ("dev_accuracy", "dev_exact")
FROM_ZERO = ("lr", "tokens_per_s")

# Okabe and Ito's without the yellow, which white paper swallows; their black is the ink. There are
# 7 colours and 4 dashes, so that the pair repeats only after 28 runs.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "ink")
DASHES: tuple[tuple[float, ...], ...] = ((), (7, 3), (2, 2), (9, 3, 2, 3))

MARGIN, PANEL_WIDTH, PANEL_HEIGHT = 16, 440, 250
LEFT, RIGHT, TOP, BOTTOM = 62, 22, 34, 48  # what a panel leaves free around its curves
SMALL, NORMAL = 11.0, 12.0
ROW, SAMPLE = 22, 32  # the legend: height of a row, length of the line that is shown
DOT, DOTS_APART = 2.6, 9.0


@dataclass(frozen=True, slots=True)
class Curve:
    """One quantity of one run, in pieces without a gap."""

    run: int
    has_dots: bool
    pieces: tuple[Series, ...]


@dataclass(frozen=True, slots=True)
class Panel:
    """The curves that share two axes."""

    title: str
    curves: tuple[Curve, ...]
    is_from_zero: bool = False
    is_log: bool = False


def draw_curves(
    runs: Sequence[Run], words: Mapping[str, str] = ENGLISH, *, is_log: bool = False
) -> Drawing:
    """Loss, scores, learning rate and speed of one or more runs; `is_log` is for the loss."""
    panels = list(_panels(runs, words, is_log=is_log))
    columns = 1 if len(panels) < 2 else 2
    width = 2 * MARGIN + columns * PANEL_WIDTH
    legend, top = _legend(names_apart(runs), width)
    last = max((step for panel in panels for step in _steps(panel)), default=1)
    shapes: list[Shape] = []
    for place, panel in enumerate(panels):
        row, column = divmod(place, columns)
        left = MARGIN + column * PANEL_WIDTH
        shapes += _drawn(panel, left, top + row * PANEL_HEIGHT, last, words)
    height = top + math.ceil(len(panels) / columns) * PANEL_HEIGHT
    paper = Rect(0, 0, width, height, "paper")
    return Drawing(width, height, (paper, *legend, *shapes), title=words["title"])


def thinned(points: Sequence[Point]) -> tuple[Point, ...]:
    """The points that can be told apart: in each column of pixels the first, last and extremes."""
    kept: list[Point] = []
    for _, group in groupby(points, key=lambda point: math.floor(point[0])):
        column = list(group)
        heights = [y for _, y in column]
        places = {0, heights.index(min(heights)), heights.index(max(heights)), len(column) - 1}
        kept += [column[place] for place in sorted(places)]
    return tuple(kept)


def _panels(runs: Sequence[Run], words: Mapping[str, str], *, is_log: bool) -> Iterator[Panel]:
    named = {"dev_loss", *SCORES}
    others = sorted({key for run in runs for key in run.series if key.startswith("dev_")} - named)
    for keys in (LOSSES, *((key,) for key in (*SCORES, *others, *FROM_ZERO))):
        is_log_here = is_log and keys == LOSSES
        curves = tuple(
            Curve(number, key.startswith("dev_"), pieces)
            for key in keys
            for number, run in enumerate(runs)
            if (pieces := _pieces(run.series.get(key, ()), key, above_zero=is_log_here))
        )
        if curves:
            title = words.get(keys[0], keys[0])
            yield Panel(title, curves, keys[0] in FROM_ZERO, is_log_here)


def _pieces(series: Series, key: str, *, above_zero: bool) -> tuple[Series, ...]:
    factor = 100 if key in PERCENT else 1
    low = SMALLEST if above_zero else -math.inf
    groups = groupby(series, key=lambda point: is_drawable(point[1]) and point[1] > low)
    return tuple(
        tuple((step, factor * value) for step, value in group) for holds, group in groups if holds
    )


def _steps(panel: Panel) -> Iterable[float]:
    return (step for curve in panel.curves for piece in curve.pieces for step, _ in piece)


def _axes(panel: Panel, left: float, top: float, last: float) -> tuple[Axis, Axis]:
    right, bottom = left + PANEL_WIDTH - RIGHT, top + PANEL_HEIGHT - BOTTOM
    last = max(last, 1)
    across = exact_axis(0, last, left + LEFT, right, n_ticks=min(5, int(last)))
    values = [value for curve in panel.curves for piece in curve.pieces for _, value in piece]
    low, high = min(values), max(values)
    if panel.is_from_zero:
        low, high = min(low, 0), max(high, 0)
    scale = log_axis if panel.is_log else rounded_axis
    return across, scale(low, high, bottom, top + TOP)


def _drawn(
    panel: Panel, left: float, top: float, last: float, words: Mapping[str, str]
) -> Iterator[Shape]:
    across, up = _axes(panel, left, top, last)
    has_both = len({curve.has_dots for curve in panel.curves}) == 2
    yield Text(left + LEFT, top + TOP - 13, panel.title, NORMAL, is_bold=True)
    if has_both:
        yield from _key(across.end, top + TOP - 13, words)
    for tick, label in zip(up.ticks, up.labels(), strict=True):
        y = up.place(tick)
        yield Line((across.start, y), (across.end, y), "grid")
        yield Text(across.start - 8, y + 0.35 * SMALL, label, SMALL, "muted", "end")
    yield Line((across.start, up.start), (across.end, up.start), "muted")
    for tick, label in zip(across.ticks, across.labels(), strict=True):
        x = across.place(tick)
        yield Line((x, up.start), (x, up.start + 4), "muted")
        yield Text(x, up.start + 17, label, SMALL, "muted", "middle")
    middle = (across.start + across.end) / 2
    yield Text(middle, up.start + 34, words["step"], SMALL, "muted", "middle")
    for curve in panel.curves:
        yield from _curve(curve, across, up, is_behind=has_both and not curve.has_dots)


def _curve(curve: Curve, across: Axis, up: Axis, *, is_behind: bool) -> Iterator[Shape]:
    """A line for each piece, and dots that show where development was looked at."""
    colour, dash = _style(curve.run)
    width, opacity = (1.2, 0.7) if is_behind else (1.7, 1.0)
    for piece in curve.pieces:
        points = [(across.place(step), up.place(value)) for step, value in piece]
        if len(points) > 1:
            yield Polyline(thinned(points), colour, width, dash, opacity)
        for x, y in _spaced(points) if curve.has_dots or len(points) == 1 else ():
            yield Circle(x, y, DOT, colour)


def _spaced(points: Iterable[Point]) -> Iterator[Point]:
    newest = -math.inf
    for x, y in points:
        if x - newest >= DOTS_APART:
            newest = x
            yield x, y


def _key(right: float, baseline: float, words: Mapping[str, str]) -> Iterator[Shape]:
    """Which lines of the loss are of training and which of the development set."""
    entries = ((words["train"], False, 1.2), (words["dev"], True, 1.7))
    y = baseline - 0.35 * SMALL
    x = right - sum(24 + 6 + text_width(word, SMALL) for word, _, _ in entries) - 12
    for word, has_dots, width in entries:
        yield Line((x, y), (x + 24, y), "muted", width)
        if has_dots:
            yield Circle(x + 12, y, DOT, "muted")
        yield Text(x + 24 + 6, baseline, word, SMALL, "muted")
        x += 24 + 6 + text_width(word, SMALL) + 12


def _legend(names: Sequence[str], width: float) -> tuple[list[Shape], int]:
    """A line and a name for each run, in rows, and where the rows end."""
    shapes: list[Shape] = []
    left, right = MARGIN + LEFT, width - MARGIN
    x, row = left, 0
    for number, name in enumerate(names):
        shown = _shortened(name, right - left - SAMPLE - 8)
        needed = SAMPLE + 8 + math.ceil(text_width(shown, NORMAL))
        if x > left and x + needed > right:
            x, row = left, row + 1
        colour, dash = _style(number)
        y = MARGIN + (row + 0.5) * ROW
        shapes.append(Line((x, y), (x + SAMPLE, y), colour, 2.0, dash))
        shapes.append(Text(x + SAMPLE + 8, y + 0.35 * NORMAL, shown, NORMAL))
        x += needed + 20
    return shapes, MARGIN + (row + 1) * ROW


def _shortened(name: str, room: float) -> str:
    """The name without its middle, if it is too long: both its ends tell more."""
    short = name
    for left_out in range(1, len(name)):
        if text_width(short, NORMAL) <= room:
            break
        kept = len(name) - left_out
        short = f"{name[: kept // 2]}…{name[len(name) - (kept - kept // 2) :]}"
    return short


def _style(run: int) -> tuple[str, tuple[float, ...]]:
    return COLOURS[run % len(COLOURS)], DASHES[run % len(DASHES)]
