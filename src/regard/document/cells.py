"""A translation in cells, which no tag may part, and what each has from where in the source.

Cells are words where words are spaced, else pieces of the text, and marks one by one.

What a cell has from a piece of the source is its share of attention, times that share over the
greatest share that any cell has from this piece: "to school" looks at 学校 with "to" as well, but
"school" much more so. A piece of which only a part is asked for is dealt out evenly, in order, to
the cells that look at it most: of 这本书, "this book", the last character is "book".
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from regard.document.links import Link, Span

DUST = 0.2  # what a cell must have from a stretch before it counts
MARK = 0.1  # what a mark counts that comes from a mark
NOTHING = -0.02  # what a cell counts that comes from nowhere

_HAN = "\u2e80-\u303f\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_LETTER = rf"(?:(?![{_HAN}])\w)"
_CELL = re.compile(rf"(?P<word>{_LETTER}+(?:['’.\-]{_LETTER}+)*)|(?P<run>[{_HAN}]+)|\S")


@dataclass(frozen=True, slots=True)
class Whole:
    """The translation of a text: its links, and where parts that were translated alone meet.

    `joints` has, for each such place in the source, the place in the target.
    """

    text: str
    links: tuple[Link, ...]
    joints: dict[int, int]


class Cells:
    """The cells of a translation, and the stretches of the source that each comes from."""

    def __init__(self, source: str, target: Whole) -> None:
        self.source, self.text, self.joints = source, target.text, target.joints
        self.spans = _cut(target)
        self.words = [has_word(self.said(place)) for place in range(len(self.spans))]
        self.agreed = self._agreed(self._shares(target.links))
        self.totals = [sum(agreed.values()) for agreed in self.agreed]
        self.fed, self.mainly = self._by_piece()
        self.pieces = sorted(self.fed)

    def __len__(self) -> int:
        return len(self.spans)

    def said(self, place: int) -> str:
        """The text of a cell."""
        return self.text[slice(*self.spans[place])]

    def inside(self, stretch: Span) -> dict[int, float]:
        """What each cell has from a stretch, of the cells that have something."""
        found: dict[int, float] = {}
        first = bisect_right(self.pieces, stretch[0], key=lambda piece: piece[1])
        last = bisect_left(self.pieces, stretch[1], key=lambda piece: piece[0])
        for piece in self.pieces[first:last]:
            part = overlap(piece, stretch) / (piece[1] - piece[0])
            dealt = self._dealt(piece, stretch) if part < 1.0 else {}
            for place in self.fed[piece]:
                share = self.agreed[place][piece] * dealt.get(place, part)
                found[place] = found.get(place, 0.0) + share
        return found

    def gains(self, stretch: Span) -> tuple[int, list[float]]:
        """What cells have from a stretch, less what they have from elsewhere, less a little.

        From the first cell that has something to the last; the number of the first comes with it.
        """
        inside = self.inside(stretch)
        low = min(inside, default=0)
        places = range(low, max(inside) + 1) if inside else range(0)
        return low, [self._gain(place, inside.get(place, 0.0)) for place in places]

    def _gain(self, place: int, inside: float) -> float:
        net = 2.0 * inside - self.totals[place]
        if not self.agreed[place]:
            return NOTHING
        if self.words[place]:
            return net - DUST
        return MARK if net > 0.0 else -MARK

    def nearest(self, stretch: Span, low: int, high: int) -> int:
        """The cell that comes from what stands nearest to a stretch; else one by proportion."""
        found = [
            (max(src[0] - stretch[1], stretch[0] - src[1], 0), -share, place)
            for place in range(low, high)
            for src, share in self.agreed[place].items()
        ]
        if found:
            return min(found)[2]
        part = stretch[0] / max(len(self.source), 1)
        return min(max(low, round(part * len(self.spans))), high)

    def beside(self, at: int, low: int, high: int, *, is_after: bool) -> int | None:
        """The cell that comes from what stands next to a place of the source, on one side of it."""
        found = [
            (src[0] - at if is_after else at - src[1], -share, place)
            for place in range(low, high)
            for src, share in self.agreed[place].items()
            if (src[0] >= at if is_after else src[1] <= at)
        ]
        return min(found)[2] if found else None

    def at_joint(self, at: int) -> int | None:
        """The first cell behind a joint; None if there is no joint at this place of the source."""
        if at not in self.joints:
            return None
        return bisect_left(self.spans, self.joints[at], key=lambda span: span[0])

    def between_joints(self, start: int, end: int) -> Span | None:
        """The cells of parts that were translated alone, if a stretch is such parts and no more."""
        if start not in self.joints or end not in self.joints:
            return None
        low = bisect_left(self.spans, self.joints[start], key=lambda span: span[0])
        high = bisect_right(self.spans, self.joints[end], key=lambda span: span[1])
        return (low, high) if low < high else None

    def _shares(self, links: Sequence[Link]) -> list[dict[Span, float]]:
        """For each cell the pieces of the source it looks at: the mean of its own pieces'."""
        shares: list[dict[Span, float]] = [{} for _ in self.spans]
        own: list[set[Span]] = [set() for _ in self.spans]
        at = 0
        for link in sorted(links, key=lambda one: one.tgt):
            while at + 1 < len(self.spans) and self.spans[at][1] <= link.tgt[0]:
                at += 1
            place = at
            while place < len(self.spans) and self.spans[place][0] < link.tgt[1]:
                if overlap(self.spans[place], link.tgt):
                    own[place].add(link.tgt)
                    shares[place][link.src] = shares[place].get(link.src, 0.0) + link.share
                place += 1
        return [
            {src: share / len(own[place]) for src, share in shares[place].items()}
            for place in range(len(shares))
        ]

    def _agreed(self, shares: Sequence[Mapping[Span, float]]) -> list[dict[Span, float]]:
        """For each cell what it has from each piece; words have nothing from marks."""
        best: dict[Span, float] = {}
        for place, own in enumerate(shares):
            for src, share in own.items():
                if self._is_alike(place, src):
                    best[src] = max(best.get(src, 0.0), share)
        return [
            {
                src: share * share / best[src]
                for src, share in own.items()
                if self._is_alike(place, src)
            }
            for place, own in enumerate(shares)
        ]

    def _is_alike(self, place: int, src: Span) -> bool:
        return self.words[place] == has_word(self.source[slice(*src)])

    def _by_piece(self) -> tuple[dict[Span, list[int]], dict[Span, list[int]]]:
        """The cells that have something from each piece, and those that have most from it."""
        fed: dict[Span, list[int]] = {}
        mainly: dict[Span, list[int]] = {}
        for place, agreed in enumerate(self.agreed):
            for piece in agreed:
                fed.setdefault(piece, []).append(place)
            if agreed:
                most = max(agreed, key=lambda piece: agreed[piece])
                mainly.setdefault(most, []).append(place)
        return fed, mainly

    def _dealt(self, piece: Span, stretch: Span) -> dict[int, float]:
        """Of a piece that a stretch cuts, the part that is within it for each cell it is in."""
        places = self.mainly.get(piece, [])
        dealt = {}
        for number, place in enumerate(places):
            step = (piece[1] - piece[0]) / len(places)
            low = piece[0] + number * step
            within = min(low + step, stretch[1]) - max(low, stretch[0])
            dealt[place] = max(0.0, within / step)
        return dealt


def overlap(one: Span, other: Span) -> int:
    """How many characters two spans have in common."""
    return max(0, min(one[1], other[1]) - max(one[0], other[0]))


def has_word(text: str) -> bool:
    """Whether a text is more than marks and blanks."""
    return any(char.isalnum() for char in text)


def _cut(target: Whole) -> list[Span]:
    joints = sorted(set(target.joints.values()))
    edges = sorted({*joints, *(edge for link in target.links for edge in link.tgt)})
    spans: list[Span] = []
    for found in _CELL.finditer(target.text):
        start, end = found.span()
        cuts = edges if found["run"] else joints
        inner = cuts[bisect_right(cuts, start) : bisect_left(cuts, end)]
        spans += pairwise([start, *inner, end])
    return spans
