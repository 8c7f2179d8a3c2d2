"""Attention in a terminal: a block of two characters for each weight, so that Chinese lines up.

With colour a block is a coloured background, which every terminal draws two columns wide; without,
it is a shade. Labels of columns stand upright above them, one character below the other.
"""

import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from regard.view import captions
from regard.view.captions import Words
from regard.view.colours import DARK_RAMP, LIGHT_RAMP, Colour, colour_at
from regard.view.matrix import Attended, Choice, Matrix, Weights, matrices_of, matrix_of
from regard.view.pieces import readable, text_of

Depth = Literal["none", "256", "truecolor"]

BLOCK = 2  # the columns of a cell, as wide as a Chinese character
SHADES = (" ", "░", "▒", "▓", "█")
STEPS = (0.05, 0.2, 0.4, 0.7)  # from which weight on a shade is darker
UNSEEN = "//"
LABEL_WIDTH, LABEL_HEIGHT = 16, 8
NARROWEST = 20  # columns that are worth saying something beside a row
SUMMARY = 60  # the most that is said there
BAR = 32  # columns of the legend
THUMBNAIL = 16  # the most columns of a thumbnail, if more do not fit
RESET = "\x1b[0m"
CUBE = (0, 95, 135, 175, 215, 255)  # the 6 x 6 x 6 colours that every 256-colour terminal has


@dataclass(frozen=True, slots=True)
class Screen:
    """What a terminal can show."""

    width: int = 80
    depth: Depth = "none"
    is_light: bool = False

    def dim(self, text: str) -> str:
        """Text that is less important."""
        return text if self.depth == "none" else f"\x1b[2m{text}{RESET}"

    def bold(self, text: str) -> str:
        """Text that is more important."""
        return text if self.depth == "none" else f"\x1b[1m{text}{RESET}"

    def block(self, weight: float, width: int = BLOCK) -> str:
        """A weight as a block of colour, or a shade."""
        if self.depth == "none":
            return SHADES[int(np.searchsorted(STEPS, weight, side="right"))] * width
        return f"\x1b[48;{self._code(weight)}m{' ' * width}{RESET}"

    def two(self, upper: float, lower: float) -> str:
        """Two weights in one character, one above the other."""
        return f"\x1b[38;{self._code(upper)};48;{self._code(lower)}m▀{RESET}"

    def _code(self, weight: float) -> str:
        red, green, blue = colour_at(weight, LIGHT_RAMP if self.is_light else DARK_RAMP)
        if self.depth == "truecolor":
            return f"2;{red};{green};{blue}"
        return f"5;{_in_cube((red, green, blue))}"


def show_attention(attended: Attended, choice: Choice, words: Words, screen: Screen) -> str:
    """The matrix that was chosen; one that is too wide is cut into parts below each other."""
    matrix = matrix_of(attended, choice)
    queries = [_fitted(label, LABEL_WIDTH) for label in matrix.queries]
    side = max(map(columns_of, queries))
    most = max(1, (screen.width - side - 1) // BLOCK)
    lines = [*_head(attended, captions.title(matrix, words), screen)]
    for start in range(0, len(matrix.keys), most):
        end = min(start + most, len(matrix.keys))
        room = screen.width - side - 1 - BLOCK * (end - start) - 2
        has_room = room >= NARROWEST and end == len(matrix.keys)
        lines += (" " * (side + 1) + line for line in _upright(matrix.keys[start:end]))
        for row, label in enumerate(queries):
            said = captions.looked_at(matrix, row)
            beside = f"  {screen.dim(_fitted(said, min(room, SUMMARY)))}" if has_room else ""
            cells = "".join(_cells(matrix, row, range(start, end), screen))
            lines.append(f"{_right(label, side)} {cells}{beside}")
        lines.append("")
    notes = (captions.hidden(matrix, words), captions.axes(matrix, words))
    return "\n".join((*lines, *_foot(notes, words, screen)))


def show_heads(attended: Attended, choice: Choice, words: Words, screen: Screen) -> str:
    """Every head of every layer, or of the one that was chosen, as thumbnails."""
    rows = matrices_of(attended, choice)
    first = rows[0][0]
    side = columns_of(words["layer_name"].format(layer=88)) + 1
    fitting = (screen.width - side) // len(rows[0]) - 2
    width = min(len(first.keys), max(fitting, THUMBNAIL))
    at_once = max(1, (screen.width - side) // (width + 2))
    height = max(1, round(len(first.queries) * width / len(first.keys)))
    lines = [*_head(attended, captions.title_of_all(choice, first.n_layers, words), screen)]
    for line in rows:
        for start in range(0, len(line), at_once):
            some = line[start : start + at_once]
            names = [words["head_name"].format(head=matrix.head) for matrix in some]
            lines.append(" " * side + "".join(_left(name, width + 2) for name in names).rstrip())
            drawn = [_thumbnail(pooled(one.weights, height, width), screen) for one in some]
            for number, parts in enumerate(zip(*drawn, strict=True)):
                label = "" if number else words["layer_name"].format(layer=line[0].layer)
                lines.append(_left(label, side) + "  ".join(parts).rstrip())
            lines.append("")
    return "\n".join((*lines, *_foot((captions.axes(first, words),), words, screen)))


def columns_of(text: str) -> int:
    """How many columns of a terminal a text takes: Chinese two a character, marks none."""
    return sum(map(_columns, text))


def pooled(weights: Weights, n_rows: int, n_columns: int) -> Weights:
    """A smaller matrix, in which each weight is the largest of those it stands for."""
    rows = np.arange(n_rows) * weights.shape[0] // n_rows
    columns = np.arange(n_columns) * weights.shape[1] // n_columns
    smaller: Weights = np.maximum.reduceat(weights, rows, axis=0)
    return np.maximum.reduceat(smaller, columns, axis=1)


def _columns(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _cells(matrix: Matrix, row: int, columns: Sequence[int], screen: Screen) -> Iterator[str]:
    for column in columns:
        if matrix.can_see[row, column]:
            yield screen.block(float(matrix.weights[row, column]))
        else:
            yield screen.dim(UNSEEN)


def _upright(labels: Sequence[str]) -> Iterator[str]:
    """Labels from top to bottom, all ending in the last line."""
    stacks = [[_left(one, BLOCK) for one in _characters(label)] for label in labels]
    stacks = [
        stack if len(stack) <= LABEL_HEIGHT else [*stack[: LABEL_HEIGHT - 1], "⋯ "]
        for stack in stacks
    ]
    height = max(map(len, stacks))
    for line in range(height):
        parts = (
            stack[place] if (place := line - height + len(stack)) >= 0 else " " * BLOCK
            for stack in stacks
        )
        yield "".join(parts).rstrip()


def _characters(label: str) -> list[str]:
    """A label's characters, each with the marks that belong to it."""
    characters: list[str] = []
    for character in label:
        if characters and not _columns(character):
            characters[-1] += character
        else:
            characters.append(character)
    return characters


def _thumbnail(weights: Weights, screen: Screen) -> list[str]:
    if screen.depth == "none":
        return ["".join(screen.block(float(w), 1) for w in row) for row in weights]
    if len(weights) % 2:
        weights = np.vstack((weights, np.zeros_like(weights[:1])))
    return [
        "".join(screen.two(float(a), float(b)) for a, b in zip(upper, lower, strict=True))
        for upper, lower in zip(weights[::2], weights[1::2], strict=True)
    ]


def _head(attended: Attended, title: str, screen: Screen) -> Iterator[str]:
    for text in (text_of(attended.src_pieces), f"→ {readable(attended.text)}"):
        yield from _lines(text, screen.width, screen.bold)
    yield from _lines(title, screen.width, screen.dim)
    yield ""


def _foot(notes: Sequence[str], words: Words, screen: Screen) -> Iterator[str]:
    if screen.depth == "none":
        bounds = zip(SHADES[1:], STEPS, strict=True)
        scale = "  ".join(f"{shade * BLOCK} ≥ {least}" for shade, least in bounds)
        yield from _lines(f"{words['weight']} {scale}", screen.width, str)
    else:
        n_steps = max(2, min(BAR, screen.width - columns_of(words["weight"]) - 5))
        bar = "".join(screen.block(n / (n_steps - 1), 1) for n in range(n_steps))
        yield f"{screen.dim(words['weight'])} 0 {bar} 1"
    for note in filter(None, notes):
        yield from _lines(note, screen.width, screen.dim)


def _lines(text: str, width: int, style: Callable[[str], str]) -> Iterator[str]:
    """The text in lines that fit, cut at spaces where there are some."""
    line = ""
    for character in text:
        if columns_of(line + character) > width:
            space = line.rfind(" ") + 1
            kept = line[:space] if space > len(line) // 2 else line  # Chinese has none
            yield style(kept.rstrip())
            line = line[len(kept) :]
        line += character
    yield style(line)


def _fitted(text: str, width: int) -> str:
    """The text, cut to so many columns with a sign that it was."""
    if columns_of(text) <= width:
        return text
    while columns_of(text) > width - 1:
        text = text[:-1]
    return f"{text}⋯"


def _left(text: str, width: int) -> str:
    return text + " " * (width - columns_of(text))


def _right(text: str, width: int) -> str:
    return " " * (width - columns_of(text)) + text


def _in_cube(colour: Colour) -> int:
    """The nearest of a 256-colour terminal's colours."""
    red, green, blue = (min(range(6), key=lambda n: abs(CUBE[n] - one)) for one in colour)
    return 16 + 36 * red + 6 * green + blue
