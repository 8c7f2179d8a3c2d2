"""Attention as a drawing: one matrix with its words, or every head as a thumbnail."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from regard.view import captions
from regard.view.captions import Words, shortened
from regard.view.colours import LEVELS, level_of
from regard.view.drawing import (
    Cells,
    Drawing,
    Line,
    Point,
    Rect,
    Shape,
    Text,
    is_wide,
    text_width,
)
from regard.view.figures import wrapped
from regard.view.matrix import Attended, Choice, Matrix, Weights, matrices_of, matrix_of
from regard.view.pieces import readable, text_of

MARGIN, GAP = 20, 6
TITLE, NORMAL, SMALL = 15.0, 13.0, 11.0
LINE = 1.5  # the height of a line of text, in sizes
NARROWEST = 500  # so that what is said beside a small matrix has room
LABEL = 18  # the most characters of a label
SIZES = ((16, 34.0), (24, 26.0), (36, 20.0), (60, 15.0))  # up to so many columns, cells so wide
SMALLEST = 11.0
PRINTED = 30.0  # cells from this size on have their number in them, ...
WORTH_PRINTING = 0.05  # ... if it is one to speak of
BAR, BAR_STEPS = 160, 32  # the legend: its width, and its colours
THUMBNAIL, THUMBNAILS_APART = 150.0, 16


def draw_attention(attended: Attended, choice: Choice, words: Words) -> Drawing:
    """The matrix that was chosen, with its words, its numbers and its legend."""
    matrix = matrix_of(attended, choice)
    cell = next((size for most, size in SIZES if len(matrix.keys) <= most), SMALLEST)
    size = min(NORMAL, 0.62 * cell)
    keys = [shortened(label, LABEL) for label in matrix.keys]
    queries = [shortened(label, LABEL) for label in matrix.queries]
    left = MARGIN + math.ceil(max(text_width(label, size) for label in queries)) + GAP
    across = len(keys) * cell
    width = max(NARROWEST, math.ceil(left + across) + MARGIN)
    head, top = _head(attended, captions.title(matrix, words), width)
    top += math.ceil(max(_height(label, size) for label in keys)) + GAP
    foot, height = _foot(top + len(queries) * cell, width, _notes(matrix, words), words)
    shapes: list[Shape] = [
        Rect(0, 0, width, height, "paper"),
        *head,
        *_matrix(matrix, left, top, cell),
        *_columns(keys, left, top - GAP, cell, size),
    ]
    for row, label in enumerate(queries):
        y = top + (row + 0.5) * cell + 0.35 * size
        shapes.append(Text(left - GAP, y, label, size, anchor="end"))
    return Drawing(width, height, (*shapes, *foot), title=_spoken(matrix, words))


def draw_heads(attended: Attended, choice: Choice, words: Words) -> Drawing:
    """Every head of every layer, or of the one that was chosen, small and side by side."""
    rows = matrices_of(attended, choice)
    first = rows[0][0]
    largest = max(first.weights.shape)
    cell = max(1.0, math.floor(2 * THUMBNAIL / largest) / 2)  # whole pixels in a PNG
    across, down = len(first.keys) * cell, len(first.queries) * cell
    side = math.ceil(text_width(words["layer_name"].format(layer=88), SMALL)) + GAP
    left, step = MARGIN + side, across + THUMBNAILS_APART
    width = max(NARROWEST, math.ceil(left + len(rows[0]) * step - THUMBNAILS_APART + MARGIN))
    title = captions.title_of_all(choice, first.n_layers, words)
    head, top = _head(attended, title, width)
    top += math.ceil(LINE * SMALL)
    bottom = top + len(rows) * (down + THUMBNAILS_APART) - THUMBNAILS_APART
    notes = [captions.axes(first, words)]
    foot, height = _foot(bottom, width, notes, words)
    shapes: list[Shape] = [Rect(0, 0, width, height, "paper"), *head]
    for column, matrix in enumerate(rows[0]):
        label = words["head_name"].format(head=matrix.head)
        x = left + column * step + across / 2
        shapes.append(Text(x, top - GAP, label, SMALL, "muted", "middle"))
    for row, line in enumerate(rows):
        y = top + row * (down + THUMBNAILS_APART)
        label = words["layer_name"].format(layer=line[0].layer)
        shapes.append(Text(MARGIN, y + down / 2 + 0.35 * SMALL, label, SMALL, "muted"))
        for column, matrix in enumerate(line):
            shapes += _framed(matrix.weights, left + column * step, y, cell)
    return Drawing(width, height, (*shapes, *foot), title=title)


@dataclass(frozen=True, slots=True)
class _Frame:
    """Where a matrix lies."""

    left: float
    top: float
    cell: float

    def corner(self, row: int, column: int) -> Point:
        return self.left + column * self.cell, self.top + row * self.cell


def hatching(can_see: NDArray[np.bool_]) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """Rising lines over all that cannot be seen, from corner (row, column) to corner."""
    n_rows, n_columns = can_see.shape
    for total in range(n_rows + n_columns - 1):
        rows = range(min(total, n_rows - 1), max(-1, total - n_columns), -1)
        masked = [row for row in rows if not can_see[row, total - row]]
        for first, last in _runs(masked):
            yield (first + 1, total - first), (last, total - last + 1)


def _runs(falling: Sequence[int]) -> Iterator[tuple[int, int]]:
    """First and last of the neighbours in a row of falling numbers."""
    start = 0
    for place, (a, b) in enumerate(pairwise((*falling, -2)), 1):
        if b != a - 1 or place == len(falling):
            yield falling[start], falling[place - 1]
            start = place


def _matrix(matrix: Matrix, left: float, top: float, cell: float) -> Iterator[Shape]:
    frame = _Frame(left, top, cell)
    levels = _levels(matrix.weights, matrix.can_see)
    yield from _framed(matrix.weights, left, top, cell, matrix.can_see)
    n_rows, n_columns = matrix.weights.shape
    if cell > SMALLEST:
        (right, bottom) = frame.corner(n_rows, n_columns)
        for column in range(1, n_columns):
            x, _ = frame.corner(0, column)
            yield Line((x, top), (x, bottom), "paper")
        for row in range(1, n_rows):
            _, y = frame.corner(row, 0)
            yield Line((left, y), (right, y), "paper")
    for (row, column), (end_row, end_column) in hatching(matrix.can_see):
        yield Line(
            frame.corner(row, column), frame.corner(end_row, end_column), "muted", 0.8, opacity=0.6
        )
    if cell < PRINTED:
        return
    for row, column in np.argwhere(matrix.weights >= WORTH_PRINTING):
        x, y = frame.corner(row, column)
        number, colour = f"{matrix.weights[row, column]:.2f}", f"t{levels[row][column]}"
        size = 0.32 * cell
        yield Text(x + cell / 2, y + cell / 2 + 0.35 * size, number, size, colour, "middle")


def _framed(
    weights: Weights, left: float, top: float, cell: float, can_see: NDArray[np.bool_] | None = None
) -> Iterator[Shape]:
    """The cells and a thin line around them, so that one sees where zeros end."""
    n_rows, n_columns = weights.shape
    right, bottom = left + n_columns * cell, top + n_rows * cell
    can_see = np.ones_like(weights, np.bool_) if can_see is None else can_see
    yield Cells(left, top, cell, cell, _levels(weights, can_see))
    for start, end in pairwise(
        ((left, top), (right, top), (right, bottom), (left, bottom), (left, top))
    ):
        yield Line(start, end, "grid")


def _levels(weights: Weights, can_see: NDArray[np.bool_]) -> tuple[tuple[int | None, ...], ...]:
    return tuple(
        tuple(level_of(float(w)) if is_seen else None for w, is_seen in zip(row, seen, strict=True))
        for row, seen in zip(weights, can_see, strict=True)
    )


def _columns(
    labels: Sequence[str], left: float, bottom: float, cell: float, size: float
) -> Iterator[Shape]:
    """Labels above the columns: Chinese from top to bottom, the rest from bottom to top."""
    for column, label in enumerate(labels):
        x = left + (column + 0.5) * cell
        if _is_stacked(label):
            yield Text(x, bottom, label, size, anchor="end", is_stacked=True)
        else:
            yield Text(x + 0.35 * size, bottom, label, size, turned=-90)


def _is_stacked(label: str) -> bool:
    return any(map(is_wide, label))


def _height(label: str, size: float) -> float:
    return 1.25 * size * len(label) if _is_stacked(label) else text_width(label, size)


def _head(attended: Attended, title: str, width: int) -> tuple[list[Shape], int]:
    """The title, the source and the translation, and where they end."""
    y: float = MARGIN
    shapes: list[Shape] = []
    for line in wrapped(title, TITLE, width - 2 * MARGIN):
        y += LINE * TITLE
        shapes.append(Text(MARGIN, y, line, TITLE, is_bold=True))
    y += GAP
    for text in (text_of(attended.src_pieces), f"→ {readable(attended.text)}"):
        for line in wrapped(text, NORMAL, width - 2 * MARGIN):
            y += LINE * NORMAL
            shapes.append(Text(MARGIN, y, line, NORMAL, "muted"))
    return shapes, math.ceil(y + MARGIN)


def _notes(matrix: Matrix, words: Words) -> list[str]:
    return [note for note in (captions.hidden(matrix, words), captions.axes(matrix, words)) if note]


def _foot(top: float, width: int, notes: Sequence[str], words: Words) -> tuple[list[Shape], int]:
    """The legend and what is to be said, and where they end."""
    y = top + MARGIN
    levels = tuple(round(step * LEVELS / (BAR_STEPS - 1)) for step in range(BAR_STEPS))
    x = MARGIN + math.ceil(text_width(words["weight"] + " 0", SMALL)) + GAP
    baseline = y + 10
    shapes: list[Shape] = [
        Text(MARGIN, baseline, f"{words['weight']} 0", SMALL, "muted"),
        Cells(x, y, BAR / BAR_STEPS, 11, (levels,)),
        Text(x + BAR + GAP, baseline, "1", SMALL, "muted"),
    ]
    y = baseline + 4
    for note in notes:
        for line in wrapped(note, SMALL, width - 2 * MARGIN):
            y += LINE * SMALL
            shapes.append(Text(MARGIN, y, line, SMALL, "muted"))
    return shapes, math.ceil(y + MARGIN)


def _spoken(matrix: Matrix, words: Words) -> str:
    """For those who cannot see it: what it is, and where each row looks most."""
    rows = (f"{label}: {captions.looked_at(matrix, n)}" for n, label in enumerate(matrix.queries))
    return f"{captions.title(matrix, words)}. {'; '.join(rows)}"
