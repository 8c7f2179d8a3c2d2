"""What every format has in common: units to translate, and edits that put translations in.

A file is never written anew from a tree: translations take the places of spans of its own text, so
all that is not translated stays as it was, to the character.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from regard.document.markup import Reason
from regard.document.parts import Rules

Origin = Literal["machine", "memory"]
Obstacle = Reason | Literal["subflow", "charset"]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a document is translated from and to, and when, for formats that tell it."""

    src_lang: str = ""
    tgt_lang: str = ""
    date: str = ""  # as TMX writes it: 20240131T235959Z


@dataclass(frozen=True, slots=True)
class Edit:
    """A stretch of a file's text, and what takes its place."""

    start: int
    end: int
    text: str


Written = Callable[[tuple[str, ...], Origin], str]


def _nothing(_: Origin) -> tuple[Edit, ...]:
    return ()


@dataclass(frozen=True, slots=True)
class Unit:
    """One or several texts that are translated, or left, together; and where it all goes.

    `written` makes of the translations what takes the place of the file's text from start to end.
    """

    line: int
    name: str  # its id, if it has one
    sources: tuple[str, ...]
    rules: tuple[Rules, ...]  # of each source
    start: int
    end: int
    written: Written
    besides: Callable[[Origin], tuple[Edit, ...]] = _nothing  # what else changes with it
    obstacle: Obstacle | None = None  # why it cannot be translated


@dataclass(frozen=True, slots=True)
class Said:
    """The translations of a unit's texts, and whose they are."""

    texts: tuple[str, ...]
    origin: Origin = "machine"


def filled(text: str, units: Sequence[Unit], said: Sequence[Said | None]) -> str:
    """The file's text with what was said for each unit in its place; None leaves it as it is."""
    edits: set[Edit] = set()
    for unit, one in zip(units, said, strict=True):
        if one is not None:
            edits.add(Edit(unit.start, unit.end, unit.written(one.texts, one.origin)))
            edits.update(unit.besides(one.origin))
    return edited(text, edits)


def edited(text: str, edits: Iterable[Edit]) -> str:
    """The text with these stretches replaced."""
    parts, at = [], 0
    for edit in sorted(edits, key=lambda one: (one.start, one.end)):
        assert at <= edit.start, "two edits of one place"
        parts += [text[at : edit.start], edit.text]
        at = edit.end
    return "".join((*parts, text[at:]))


class Lines:
    """Which line of a text a place is in, counted from 1."""

    def __init__(self, text: str) -> None:
        self.ends = [place for place, char in enumerate(text) if char == "\n"]

    def __call__(self, place: int) -> int:
        """The number of the line."""
        return bisect_right(self.ends, place - 1) + 1 if place else 1
