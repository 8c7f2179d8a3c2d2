"""Tags put back where they belong: on the words that come from the words they were on.

A tag about a stretch of the source goes around a run of cells of the target (cells.py): the run
with the greatest sum of what its cells have from within the stretch, less what they have from
without, less a little for each cell. It lies inside the run of the tag around it, and beside those
of its siblings. So tags nest as they did, and none is lost or doubled, whatever the alignment says.
A tag that stands alone goes before the cell that comes from what follows it.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from regard.document.cells import Cells, has_word
from regard.document.links import Span
from regard.document.tags import Element, Parsed

Gains = tuple[int, list[float]]


@dataclass
class Placed:
    """An element and the run of cells it goes around; one that stands alone goes before a cell."""

    element: Element
    low: int
    high: int
    children: list["Placed"] = field(default_factory=list)
    belongs_behind: bool = False  # alone, and nearer to the cell before it


def placed(source: Parsed, cells: Cells) -> Placed:
    """All elements of a marked text, in their places among the cells of its translation."""
    root = Placed(source.root, 0, len(cells))
    _Placing(source, cells).fill(root)
    _part_crossed(root)
    return root


class _Placing:
    """Knows the source and the cells; finds for each element the run it goes around."""

    def __init__(self, source: Parsed, cells: Cells) -> None:
        self.text, self.cells = source.text, cells

    def fill(self, parent: Placed) -> None:
        """Find a place for each child; those with the surest links choose first."""
        found: dict[int, Placed] = {}
        wide = [(n, one) for n, one in enumerate(parent.element.children) if not one.is_alone]
        free = [(parent.low, parent.high)]
        gains = {n: self.cells.gains((one.start, one.end)) for n, one in wide}
        for number, child in sorted(wide, key=lambda one: -_best_run(gains[one[0]], free)[0]):
            low, high = self._run(child, parent, free, gains[number])
            free = _without(free, (low, high))
            found[number] = Placed(child, low, high)
            self.fill(found[number])
        runs = sorted((found[n] for n, _ in wide), key=lambda one: one.low)
        for number, child in enumerate(parent.element.children):
            if child.is_alone:
                found[number] = self._alone(child, parent, runs)
        parent.children = [found[number] for number in sorted(found)]

    def _run(self, child: Element, parent: Placed, free: Sequence[Span], gains: Gains) -> Span:
        exact = self.cells.between_joints(child.start, child.end)
        if exact and any(low <= exact[0] and exact[1] <= high for low, high in free):
            return exact
        if list(free) == [(parent.low, parent.high)] and self._is_all_of(child, parent.element):
            return free[0]
        best, low, high = _best_run(gains, free)
        return (low, high) if best > 0.0 else self._least_bad(child, free)

    def _is_all_of(self, child: Element, parent: Element) -> bool:
        rest = self.text[parent.start : child.start] + self.text[child.end : parent.end]
        return not rest.strip()

    def _least_bad(self, child: Element, free: Sequence[Span]) -> Span:
        """One word, for a stretch that no run has more from than from elsewhere."""
        stretch = (child.start, child.end)
        places = [place for low, high in free for place in range(low, high)]
        words = [place for place in places if self.cells.words[place]]
        near = self.cells.nearest(stretch, free[0][0], free[-1][1])
        if not words:
            low, high = min(free, key=lambda run: min(abs(run[0] - near), abs(run[1] - near)))
            edge = min(max(near, low), high)
            return edge, edge
        inside = self.cells.inside(stretch)
        place = min(words, key=lambda word: (-inside.get(word, 0.0), abs(word - near)))
        return place, place + 1

    def _alone(self, child: Element, parent: Placed, runs: Sequence[Placed]) -> Placed:
        place, belongs_behind = self._before(child.start, parent)
        before = bisect_left(runs, place, key=lambda run: run.low) - 1
        if before >= 0 and runs[before].low < place < runs[before].high:
            run = runs[before]  # not within a sibling, which it was not in before
            place = run.low if child.start <= run.element.start else run.high
        return Placed(child, place, place, belongs_behind=belongs_behind)

    def _before(self, at: int, parent: Placed) -> tuple[int, bool]:
        """The cell that a lone tag stands before, and whether it is nearer to the one before."""
        low, high, text = parent.low, parent.high, self.text
        touches_behind = at > 0 and not text[at - 1].isspace()
        joint = self.cells.at_joint(at)
        if joint is not None:
            return min(max(joint, low), high), touches_behind
        if at <= parent.element.start:
            return low, False
        if at >= parent.element.end:
            return high, True
        behind = self.cells.beside(at, low, high, is_after=False)
        ahead = self.cells.beside(at, low, high, is_after=True)
        if ahead is None or (touches_behind and not has_word(text[at]) and behind is not None):
            return (high if behind is None else behind + 1), True
        return ahead, False


def _best_run(gains: Gains, free: Sequence[Span]) -> tuple[float, int, int]:
    """The run with the greatest sum, within one of these; outside of its gains there is none."""
    first, values = gains
    best = (0.0, 0, 0)
    for low, high in free:
        total, start = 0.0, low
        for place in range(max(low, first), min(high, first + len(values))):
            if total <= 0.0:
                total, start = 0.0, place
            total += values[place - first]
            if total > best[0] + 1e-9:
                best = (total, start, place + 1)
    return best


def _without(free: Sequence[Span], taken: Span) -> list[Span]:
    """What is still free; a run of no cells takes nothing."""
    left: list[Span] = []
    for low, high in free:
        if taken[0] < taken[1] and low <= taken[0] and taken[1] <= high:
            left += [(low, taken[0]), (taken[1], high)]
        else:
            left.append((low, high))
    return left


def _part_crossed(root: Placed) -> None:
    """Of two tags that crossed others, the one that opens comes first, wherever they went."""
    opened: dict[int, tuple[Placed, Placed]] = {}
    for parent, one in list(_all(root)):
        number = one.element.pair
        if number and number not in opened:
            opened[number] = (parent, one)
        elif number and one.low <= opened[number][1].low:
            other, first = opened[number]
            parent.children = [child for child in parent.children if child is not one]
            one.low = one.high = first.low
            one.belongs_behind = first.belongs_behind
            place = next(n for n, child in enumerate(other.children) if child is first)
            other.children.insert(place + 1, one)


def _all(parent: Placed) -> Iterator[tuple[Placed, Placed]]:
    """Every element and the one around it, in the order of the source."""
    for child in parent.children:
        yield parent, child
        yield from _all(child)
