"""SRT and WebVTT: the words of every cue; times, numbers, settings and notes stay.

The lines of a cue are one text, unless each begins with a dash and so with another speaker. A
translation too long for one line is written in two of like lengths.
"""

import re
from collections.abc import Iterator

from regard.document.parts import TEXT
from regard.document.units import Origin, Unit, Wanted
from regard.text.scripts import is_han

LATIN_LINE, HAN_LINE = 42, 18  # characters of a line on a screen

_LINE = re.compile(r"[^\n\r]*(?:\r\n|\n|\r|\Z)")
_TIMES = re.compile(
    r"\s*(?:\d+:)?\d{1,2}:\d{2}[.,]\d{1,3}\s*-->\s*(?:\d+:)?\d{1,2}:\d{2}[.,]\d{1,3}"
)
_DASH = re.compile(r"\s*(?:<[^<>]*>|\{\\[^{}]*\})*\s*[-–—]")
_MARKUP = re.compile(r"<[^<>]*>|\{\\[^{}]*\}")


def units(text: str, wanted: Wanted) -> list[Unit]:
    """Every cue that has words."""
    ending = "\r\n" if "\r\n" in text else "\n"
    return [
        _unit(text, number, lines, ending)
        for number, lines in _cues(text)
        if _has_letters(text, lines)
    ]


def _cues(text: str) -> Iterator[tuple[int, list[tuple[int, int]]]]:
    """The lines of each cue without their ends, and the number of the first."""
    lines: list[tuple[int, int]] = []
    is_open, first = False, 0
    found = [one for one in _LINE.finditer(text) if one[0]]
    for number, one in enumerate(found, start=1):
        bare = one[0].rstrip("\r\n")
        follows = found[number][0] if number < len(found) else ""
        is_number = bare.strip().isdigit() and _TIMES.match(follows)
        is_times = _TIMES.match(bare) is not None
        if is_open and (not bare.strip() or is_times or is_number):
            if lines:
                yield first, lines
            lines, is_open = [], False
        if is_times:
            is_open, first = True, number + 1
        elif is_open:
            lines.append((one.start(), one.start() + len(bare)))
    if lines:
        yield first, lines


def _has_letters(text: str, lines: list[tuple[int, int]]) -> bool:
    said = " ".join(text[start:end] for start, end in lines)
    return any(map(str.isalpha, _MARKUP.sub("", said)))


def _unit(text: str, number: int, lines: list[tuple[int, int]], ending: str) -> Unit:
    start, end = lines[0][0], lines[-1][1]
    said = [text[slice(*line)] for line in lines]
    are_speakers = len(lines) > 1 and all(map(_DASH.match, said))
    sources = tuple(said) if are_speakers else (_one_line(said),)

    def written(texts: tuple[str, ...], _: Origin) -> str:
        return ending.join(texts if are_speakers else wrapped(texts[0]))

    return Unit(number, "", sources, (TEXT,) * len(sources), start, end, written)


def _one_line(lines: list[str]) -> str:
    text = lines[0]
    for line in lines[1:]:
        is_chinese = is_han(text[-1:] or " ") and is_han(line[:1] or " ")
        text += line if is_chinese else f" {line}"
    return text


def wrapped(text: str) -> list[str]:
    """A cue on one line, or on two of like lengths if it is too long for one."""
    widths, breaks, width = [0.0], list[int](), 0.0
    inside = {place for one in _MARKUP.finditer(text) for place in range(one.start(), one.end())}
    for place, char in enumerate(text):
        if place not in inside:
            width += LATIN_LINE / HAN_LINE if is_han(char) else 1.0
        widths.append(width)
        if 0 < place < len(text) and place not in inside and _may_break(text, place):
            breaks.append(place)
    if width <= LATIN_LINE or not breaks:
        return [text]
    best = min(breaks, key=lambda place: abs(widths[place] - width / 2))
    return [text[:best].rstrip(), text[best:].lstrip()]


def _may_break(text: str, place: int) -> bool:
    """Whether a line may end before a character: at a space, or between Chinese characters."""
    before, here = text[place - 1], text[place]
    return here == " " or (is_han(here) and (is_han(before) or before in "，。！？；：、…"))
