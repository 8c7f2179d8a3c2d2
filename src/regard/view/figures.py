"""Figures drawn: a title, then plots side by side, all texts in one language."""

import math
from collections.abc import Sequence

from regard.view.drawing import Drawing, Rect, Shape, Text, text_width
from regard.view.panels import Bars, Figure, Heat, Language, Lines, Plot
from regard.view.plots import Box, draw_bars, draw_heat, draw_lines, heat_height

MARGIN, GAP = 18, 22
TITLE, TITLE_ROW = 17.0, 24
WIDTHS = {1: 720, 2: 430, 3: 330, 4: 260}
HEIGHT = 300
BAR_ROW = 17  # what one bar of one row needs; a plot of many bars is as high as it has to be


def draw_figure(figure: Figure, language: Language = "en") -> Drawing:
    """The figure on paper."""
    columns = min(figure.columns, len(figure.plots))
    plot_width = WIDTHS[columns]
    width = 2 * MARGIN + columns * plot_width + (columns - 1) * GAP
    title = wrapped(figure.title.said(language), TITLE, width - 2 * MARGIN)
    shapes: list[Shape] = [
        Text(MARGIN, MARGIN + 14 + row * TITLE_ROW, line, TITLE, is_bold=True)
        for row, line in enumerate(title)
    ]
    top: float = MARGIN + len(title) * TITLE_ROW + 8
    for start in range(0, len(figure.plots), columns):
        row = figure.plots[start : start + columns]
        row_height = max(_height(plot, plot_width) for plot in row)
        for column, plot in enumerate(row):
            left = MARGIN + column * (plot_width + GAP)
            shapes += _drawn(plot, Box(left, top, plot_width, row_height), language)
        top += row_height + GAP
    height = math.ceil(top - GAP + MARGIN)
    paper = Rect(0, 0, width, height, "paper")
    return Drawing(width, height, (paper, *shapes), title=figure.title.said(language))


def wrapped(text: str, size: float, room: float) -> list[str]:
    """The text in lines that fit; Chinese may be broken anywhere, other text between words."""
    lines, line = [], ""
    for part in _parts(text):
        if line and text_width((line + part).rstrip(), size) > room:
            lines.append(line.rstrip())
            line = part.lstrip()
        else:
            line += part
    return [*lines, line.rstrip()]


def _parts(text: str) -> Sequence[str]:
    """Where a line may break: after a space, and between wide characters."""
    parts = [""]
    for character in text:
        is_wide = text_width(character, 1.0) > 0.9
        if parts[-1].endswith(" ") or (is_wide and character not in "，。；：、！？）》」"):
            parts.append("")
        parts[-1] += character
    return parts


def _height(plot: Plot, width: float) -> float:
    match plot:
        case Bars():
            return max(HEIGHT, 90 + len(plot.rows) * (len(plot.series) * BAR_ROW + 7))
        case Heat():
            return heat_height(plot, width, HEIGHT)
        case Lines():
            return HEIGHT


def _drawn(plot: Plot, box: Box, language: Language) -> list[Shape]:
    match plot:
        case Lines():
            return list(draw_lines(plot, box, language))
        case Bars():
            return list(draw_bars(plot, box, language))
        case Heat():
            return list(draw_heat(plot, box, language))
