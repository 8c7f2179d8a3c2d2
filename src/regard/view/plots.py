"""One plot in its box: lines over two axes, bars lying down, or a matrix by shades."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from regard.view.axes import Axis, exact_axis, log_axis, rounded_axis
from regard.view.colours import level_of
from regard.view.curves import COLOURS
from regard.view.drawing import Cells, Circle, Line, Polyline, Rect, Shape, Text, text_width
from regard.view.panels import Bars, Heat, Language, Lines, Trace, Words

NORMAL, SMALL, TINY = 13.0, 11.0, 9.0
LEFT, RIGHT, BOTTOM = 52, 12, 44  # what axes and their words need
HEAD, ROW, SAMPLE = 26, 17, 22  # height of the title, of a row of names; the line beside a name
POSITIVE, NEGATIVE = "#0072B2", "#D55E00"


@dataclass(frozen=True, slots=True)
class Box:
    """A place on the paper."""

    left: float
    top: float
    width: float
    height: float

    @property
    def right(self) -> float:
        """Its other side."""
        return self.left + self.width

    @property
    def bottom(self) -> float:
        """Its other end."""
        return self.top + self.height


def draw_lines(plot: Lines, box: Box, language: Language) -> Iterator[Shape]:
    """Traces over a grid, their names above it."""
    yield _title(plot.title, box, language)
    names, top = _names([trace.name for trace in plot.traces], plot.traces, box, language)
    yield from names
    across, up = _axes(plot, box, top)
    yield from _grid(across, up, plot.across.said(language), plot.up.said(language), box)
    if plot.mark is not None:
        y = up.place(plot.mark)
        yield Line((across.start, y), (across.end, y), "ink", 1.2, (3, 3))
    for number, trace in enumerate(plot.traces):
        yield from _trace(trace, COLOURS[number % len(COLOURS)], across, up)


def draw_bars(plot: Bars, box: Box, language: Language) -> Iterator[Shape]:
    """A row of bars for each name, with the number at its end."""
    yield _title(plot.title, box, language)
    names, top = _names(plot.series if len(plot.series) > 1 else (), (), box, language)
    yield from names
    labels = [row.said(language) for row in plot.rows]
    left = box.left + max(text_width(label, SMALL) for label in labels) + 10
    across = _bar_axis(plot, left, box.right - 46)
    bottom = box.bottom - BOTTOM
    for tick, label in zip(across.ticks, across.labels(), strict=True):
        x = across.place(tick)
        yield Line((x, top), (x, bottom), "grid")
        yield Text(x, bottom + 15, label, SMALL, "muted", "middle")
    yield Text((left + across.end) / 2, bottom + 33, plot.across.said(language), SMALL, "muted",
               "middle")  # fmt: skip
    step = (bottom - top) / len(plot.rows)
    thick = min(16.0, (step - 5) / len(plot.series))
    for place, (label, bars) in enumerate(zip(labels, plot.bars, strict=True)):
        middle = top + (place + 0.5) * step
        yield Text(left - 8, middle + 0.35 * SMALL, label, SMALL, "ink", "end")
        for number, bar in enumerate(bars):
            y = middle + (number - len(bars) / 2) * thick
            yield from _bar(bar.length, bar.interval, across, y, thick, COLOURS[number])
    yield Line((across.place(0.0), top), (across.place(0.0), bottom), "muted")
    if plot.mark is not None:
        x = across.place(plot.mark)
        yield Line((x, top), (x, bottom), "ink", 1.2, (3, 3))


def draw_heat(plot: Heat, box: Box, language: Language) -> Iterator[Shape]:
    """A cell for each value; names of rows and columns where they are given."""
    yield _title(plot.title, box, language)
    frame = _frame(plot, box, language)
    along, beside = plot.across.said(language), plot.down.said(language)
    n_rows, n_columns = len(plot.values), len(plot.values[0])
    left, top, wide, high = frame.left, frame.top, frame.width / n_columns, frame.height / n_rows
    if frame.top > box.top + HEAD:  # no room beside the matrix, but above it
        yield Text(box.left, box.top + HEAD + 3, beside, SMALL, "muted")
    else:
        middle = (frame.top + frame.bottom) / 2
        yield Text(box.left + 10, middle, beside, SMALL, "muted", "middle", turned=-90)
    yield from _cells(plot, frame)
    for place, name in enumerate(plot.rows):
        y = top + (place + 0.5) * high + 0.35 * SMALL
        yield Text(left - 6, y, _said(name, language), min(SMALL, high + 1), "ink", "end")
    names = [_said(name, language) for name in plot.columns]
    for place, name in enumerate(names):
        x = left + (place + 0.5) * wide
        if _is_long(names):
            yield Text(x + 4, frame.bottom + 13, name, SMALL, "ink", "end", turned=-50)
        else:
            yield Text(x, frame.bottom + 15, name, min(SMALL, wide + 2), "ink", "middle")
    x, y = (left + frame.right) / 2, frame.bottom + _foot(names) + 13
    yield Text(x, y, along, SMALL, "muted", "middle")


def heat_height(plot: Heat, width: float, most: float) -> float:
    """What a matrix needs, which is less than `most` if it has few rows."""
    frame = _frame(plot, Box(0.0, 0.0, width, most), "en")
    return frame.bottom + _foot([_said(name, "en") for name in plot.columns]) + 20


def _frame(plot: Heat, box: Box, language: Language) -> Box:
    """Where the cells lie: what names leave free, and whole pixels for each where there are any."""
    widest = max((text_width(_said(name, language), SMALL) for name in plot.rows), default=-6.0)
    left, top = box.left + 26 + widest, box.top + HEAD
    foot = _foot([_said(name, language) for name in plot.columns])
    n_rows, n_columns = len(plot.values), len(plot.values[0])
    wide, high = (box.right - left) / n_columns, (box.bottom - 20 - foot - top) / n_rows
    wide, high = min(wide, 5 * high), min(high, 1.5 * wide)
    wide, high = (math.floor(x) if x >= 2 else x for x in (wide, high))
    is_above = text_width(plot.down.said(language), SMALL) > n_rows * high
    return Box(left, top + (14 if is_above else 0), n_columns * wide, n_rows * high)


def _foot(names: Sequence[str]) -> float:
    return (54 if _is_long(names) else 20) if names else 4


def _is_long(names: Sequence[str]) -> bool:
    return any(text_width(name, SMALL) > 26 for name in names)


def _said(name: str | Words, language: Language) -> str:
    return name if isinstance(name, str) else name.said(language)


def _cells(plot: Heat, frame: Box) -> Iterator[Shape]:
    wide, high = frame.width / len(plot.values[0]), frame.height / len(plot.values)
    most = plot.most or max(abs(value) for row in plot.values for value in row) or 1.0
    levels = _levels(plot, most)
    if not plot.is_signed:
        yield Cells(frame.left, frame.top, wide, high, levels)
    for place, row in enumerate(plot.values):
        for number, value in enumerate(row):
            x, y = frame.left + number * wide, frame.top + place * high
            shade = round(min(abs(value) / most, 1.0), 2)
            if plot.is_signed and shade >= 0.02:
                yield Rect(x, y, wide, high, POSITIVE if value > 0 else NEGATIVE, shade)
            if plot.has_numbers:
                colour = "ink" if plot.is_signed else f"t{levels[place][number]}"
                x, y = x + wide / 2, y + high / 2 + 0.35 * TINY
                yield Text(x, y, f"{value:z.2f}", TINY, colour, "middle")
    corners = (
        (frame.left, frame.top),
        (frame.right, frame.top),
        (frame.right, frame.bottom),
        (frame.left, frame.bottom),
        (frame.left, frame.top),
    )
    yield Polyline(corners, "grid")


def _levels(plot: Heat, most: float) -> tuple[tuple[int, ...], ...]:
    """The step of the ramp for each value; where some are below 0, that is in its middle."""
    low = -most if any(value < 0 for row in plot.values for value in row) else 0.0
    return tuple(
        tuple(level_of((value - low) / (most - low)) for value in row) for row in plot.values
    )


def _title(title: Words, box: Box, language: Language) -> Text:
    text = title.said(language)
    size = min(NORMAL, NORMAL * box.width / max(text_width(text, NORMAL), 1.0))
    return Text(box.left, box.top + 13, text, size, is_bold=True)


def _names(
    names: Sequence[Words], traces: Sequence[Trace], box: Box, language: Language
) -> tuple[list[Shape], float]:
    """A sample and a name for each series, in rows, and where the rows end."""
    shapes: list[Shape] = []
    x, y = box.left, box.top + HEAD + 4
    for number, name in enumerate(names):
        text = name.said(language)
        # Latin letters are narrower than `text_width` says, Chinese ones are not.
        needed = SAMPLE + 6 + text_width(text, SMALL) * (0.9 if text.isascii() else 1.0)
        if x > box.left and x + needed > box.right:
            x, y = box.left, y + ROW
        colour = COLOURS[number % len(COLOURS)]
        shapes += _sample(traces[number].style if traces else "bar", x, y, colour)
        shapes.append(Text(x + SAMPLE + 6, y + 0.35 * SMALL, text, SMALL))
        x += needed + 12
    return shapes, (y + 16 if shapes else box.top + HEAD)


def _sample(style: str, x: float, y: float, colour: str) -> Iterator[Shape]:
    if style == "bar":
        yield Rect(x + 4, y - 5, SAMPLE - 6, 10, colour)
        return
    if style != "dots":
        dash = (5.0, 3.0) if style == "dashed" else ()
        yield Line((x, y), (x + SAMPLE, y), colour, 2.2, dash)
    if style in ("dots", "both"):
        yield Circle(x + SAMPLE / 2, y, 3.0, colour)


def _axes(plot: Lines, box: Box, top: float) -> tuple[Axis, Axis]:
    points = [point for trace in plot.traces for point in trace.points]
    xs, ys = [x for x, _ in points], [y for _, y in points]
    ys += [] if plot.mark is None else [plot.mark]
    low = min(ys) if plot.low is None else plot.low
    high = max(ys) if plot.high is None else plot.high
    left, right, bottom = box.left + LEFT, box.right - RIGHT, box.bottom - BOTTOM
    make_across = log_axis if plot.is_log_across else exact_axis
    make_up = log_axis if plot.is_log_up else rounded_axis
    return make_across(min(xs), max(xs), left, right), make_up(low, high, bottom, top)


def _grid(across: Axis, up: Axis, along: str, beside: str, box: Box) -> Iterator[Shape]:
    for tick, label in zip(up.ticks, up.labels(), strict=True):
        y = up.place(tick)
        yield Line((across.start, y), (across.end, y), "grid")
        yield Text(across.start - 6, y + 0.35 * SMALL, label, SMALL, "muted", "end")
    yield Line((across.start, up.start), (across.end, up.start), "muted")
    for tick, label in zip(across.ticks, across.labels(), strict=True):
        x = across.place(tick)
        yield Line((x, up.start), (x, up.start + 4), "muted")
        yield Text(x, up.start + 16, label, SMALL, "muted", "middle")
    yield Text((across.start + across.end) / 2, up.start + 33, along, SMALL, "muted", "middle")
    yield Text(box.left + 9, (up.start + up.end) / 2, beside, SMALL, "muted", "middle", turned=-90)


def _trace(trace: Trace, colour: str, across: Axis, up: Axis) -> Iterator[Shape]:
    points = tuple((across.place(x), up.place(y)) for x, y in trace.points)
    if trace.style != "dots":
        dash = (5.0, 3.0) if trace.style == "dashed" else ()
        yield Polyline(points, colour, 2.2, dash)
    if trace.style in ("dots", "both"):
        for x, y in points:
            yield Circle(x, y, 3.0, colour)


def _bar_axis(plot: Bars, start: float, end: float) -> Axis:
    ends = [bar.length for bars in plot.bars for bar in bars]
    ends += [side for bars in plot.bars for bar in bars for side in bar.interval or ()]
    ends += [] if plot.mark is None else [plot.mark]
    high = max(0.0, *ends) if plot.high is None else plot.high
    return rounded_axis(min(0.0, *ends), high, start, end, n_ticks=4)


def _bar(
    length: float,
    interval: tuple[float, float] | None,
    across: Axis,
    y: float,
    thick: float,
    colour: str,
) -> Iterator[Shape]:
    zero, tip = across.place(0.0), across.place(length)
    yield Rect(min(zero, tip), y + 1, abs(tip - zero), thick - 2, colour)
    middle, furthest = y + thick / 2, max(zero, tip)
    if interval is not None:
        low, high = across.place(interval[0]), across.place(interval[1])
        yield Line((low, middle), (high, middle), "ink", 1.4)
        for x in (low, high):
            yield Line((x, middle - 3), (x, middle + 3), "ink", 1.4)
        furthest = max(furthest, high)
    yield Text(furthest + 5, middle + 0.35 * SMALL, f"{length:.3g}", SMALL, "muted")
