"""The cells of a translation as text again, with tags and with what was kept whole."""

import re

from regard.document.cells import Cells, Whole
from regard.document.placing import Placed, placed
from regard.document.tags import Atom, Parsed


def with_tags(source: Parsed, target: Whole) -> str:
    """The translation with all tags and all that was kept whole, as it stands in the markup."""
    cells = Cells(source.text, target)
    return source.lead + _Rendering(source, cells).run(placed(source, cells)) + source.tail


class _Rendering:
    """Knows the cells, and what stands for what."""

    def __init__(self, source: Parsed, cells: Cells) -> None:
        self.source, self.cells = source, cells
        self.atoms = {atom.stand_in: atom for atom in source.atoms}
        longest_first = sorted(self.atoms, key=len, reverse=True)
        self.stand_ins = re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")

    def run(self, around: Placed) -> str:
        """The cells of a run, and the tags within."""
        said, at = "", around.low
        wide = {one.low: one for one in around.children if one.low < one.high}
        narrow: dict[int, list[Placed]] = {}
        for one in around.children:
            if one.low == one.high:
                narrow.setdefault(one.low, []).append(one)
        while True:
            here = narrow.get(at, [])
            said += "".join(_tags(one) for one in here if one.belongs_behind)
            ahead = "".join(_tags(one) for one in here if not one.belongs_behind)
            gap = self._gap(at) if around.low < at < around.high else ""
            said += gap + ahead
            if at >= around.high:
                return said
            if child := wide.get(at):
                said += child.element.before + self.run(child) + child.element.after
                at = child.high
            else:
                said += self._said(self.cells.said(at))
                at += 1

    def _gap(self, at: int) -> str:
        """What stands between two cells: spaces, but none where a letter touched a placeholder."""
        before, after = self.cells.spans[at - 1], self.cells.spans[at]
        left, right = self._atom(at - 1), self._atom(at)
        is_glued = (left and left.glued_after == self.cells.said(at)) or (
            right and right.glued_before == self.cells.said(at - 1)
        )
        return "" if is_glued else self.source.escaped(self.cells.text[before[1] : after[0]])

    def _atom(self, place: int) -> Atom | None:
        return self.atoms.get(self.cells.said(place))

    def _said(self, text: str) -> str:
        """Text with what was kept whole in the place of its stand-ins."""
        said, at = "", 0
        for found in self.stand_ins.finditer(text):
            said += self.source.escaped(text[at : found.start()]) + self.atoms[found[0]].raw
            at = found.end()
        return said + self.source.escaped(text[at:])


def _tags(one: Placed) -> str:
    """All tags of an element that is around nothing."""
    return one.element.before + "".join(map(_tags, one.children)) + one.element.after
