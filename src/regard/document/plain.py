"""Plain text and TSV: a line becomes its translation, and a row has one more column."""

import re

from regard.document.parts import TEXT
from regard.document.units import Origin, Unit, Wanted

_LINE = re.compile(r"([^\n]*?)\r?(?:\n|\Z)")


def units(text: str, wanted: Wanted) -> list[Unit]:
    """Every line that has words."""
    return [
        Unit(number, "", (line,), (TEXT,), start, start + len(line), _alone)
        for number, start, line in _lines(text)
        if any(map(str.isalpha, line))
    ]


def rows(text: str, wanted: Wanted) -> list[Unit]:
    """The first column of every row; its translation is a new last column."""
    return [
        Unit(number, "", (line.split("\t")[0],), (TEXT,), end, end, _column)
        for number, start, line in _lines(text)
        if line
        for end in (start + len(line),)
    ]


def _lines(text: str) -> list[tuple[int, int, str]]:
    found = [one for one in _LINE.finditer(text) if one[0]]
    return [(number, one.start(), one[1]) for number, one in enumerate(found, start=1)]


def _alone(texts: tuple[str, ...], _: Origin) -> str:
    return texts[0]


def _column(texts: tuple[str, ...], _: Origin) -> str:
    return "\t" + " ".join(texts[0].split())
