"""A marked text taken apart: plain text for a model, and what stands in it and must come back.

    text       what the model reads: markup is gone, and stand-ins stand for what is kept whole
    root       the tags, each with the stretch of the text that it is about, nested as they were
    atoms      what is kept to the letter: placeholders, code, translate="no"

Tags that open and close cross one another in HTML now and then. Such a pair becomes two tags that
stand alone, of which the one that opens still comes first.
"""

import re
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field, replace
from xml.sax.saxutils import escape

from regard.document.parts import Part, Rules, pairs_of, parts_of
from regard.document.stand_ins import StandIns

_BLANKS = re.compile(r"[ \t\r\n\f]+")
_SPACES = re.compile(r" +")
_WORD = re.compile(r"[A-Za-z0-9_]+")
_LAST_WORD = re.compile(r"(?<![A-Za-z0-9_])[A-Za-z0-9_]+\Z")


@dataclass(frozen=True, slots=True)
class Element:
    """A tag and the stretch of the text that it is about; nothing, for one that stands alone."""

    before: str
    after: str
    start: int
    end: int
    children: tuple["Element", ...] = ()
    pair: int = 0  # of the two tags of a pair that crossed another: its number

    @property
    def is_alone(self) -> bool:
        """Whether it is about nothing."""
        return self.start == self.end


@dataclass(frozen=True, slots=True)
class Atom:
    """Something kept to the letter, and the word that stands for it in the text."""

    raw: str
    stand_in: str
    start: int
    glued_before: str = ""  # the word that touches it, though a space parts it from the stand-in
    glued_after: str = ""

    @property
    def end(self) -> int:
        """Where its stand-in ends."""
        return self.start + len(self.stand_in)


@dataclass(frozen=True, slots=True)
class Parsed:
    """A marked text, taken apart."""

    text: str
    root: Element
    atoms: tuple[Atom, ...]
    breaks: tuple[int, ...]  # places at which sentences end, whatever the text says
    lead: str  # blanks before and behind all of it
    tail: str
    is_escaped: bool

    def atoms_in(self, start: int, end: int) -> list[Atom]:
        """What is kept whole in a stretch of the text."""
        first = bisect_left(self.atoms, start, key=lambda atom: atom.start)
        last = bisect_right(self.atoms, end, key=lambda atom: atom.end)
        return list(self.atoms[first:last])

    def escaped(self, text: str) -> str:
        """Plain text as it must stand in this markup."""
        return escape(text) if self.is_escaped else text


def parsed(marked: str, rules: Rules, stand_ins: StandIns) -> Parsed:
    """A marked text, taken apart; the stand-ins are words that do not occur in it."""
    body = marked.strip(" \t\r\n\f")
    start = marked.find(body)
    lead, tail = marked[:start], marked[start + len(body) :]
    parts = parts_of(body, rules)
    pairs = pairs_of(parts)
    builder = _Builder(rules, stand_ins)
    for number, part in enumerate(parts):
        following = parts[number + 1].text[:1] if number + 1 < len(parts) else ""
        builder.add(part, number, pairs, following)
    text, root = builder.finished()
    return Parsed(
        text, root, tuple(builder.atoms), tuple(builder.breaks), lead, tail, rules.kind != "text"
    )


@dataclass
class _Open:
    """An element whose end has not come yet."""

    before: str
    start: int
    children: list[Element] = field(default_factory=list)


class _Builder:
    """The text so far, and the elements around its end."""

    def __init__(self, rules: Rules, stand_ins: StandIns) -> None:
        self.rules, self.stand_ins = rules, stand_ins
        self.text = ""
        self.atoms: list[Atom] = []
        self.breaks: list[int] = []
        self.open = [_Open("", 0)]
        self.is_behind_atom = False

    def add(self, part: Part, number: int, pairs: dict[int, int], following: str) -> None:
        """The next part; `pairs` has the partner of each tag that has one, crossed ones below 0."""
        if part.is_break:
            self.breaks.append(len(self.text))
        was_atom, self.is_behind_atom = self.is_behind_atom, part.role == "atom"
        match part.role:
            case "text":
                self._say(part.text)
            case "atom" if was_atom:  # what stands together stays together
                self.atoms[-1] = replace(self.atoms[-1], raw=self.atoms[-1].raw + part.raw)
            case "atom":
                self._keep(part.raw, following)
            case "open" if pairs.get(number, -1) >= 0:
                self.open.append(_Open(part.raw, len(self.text)))
            case "close" if pairs.get(number, -1) >= 0:
                self._close(part.raw)
            case _:
                place = len(self.text)
                crossed = -pairs.get(number, 0)
                self.open[-1].children.append(Element(part.raw, "", place, place, pair=crossed))

    def finished(self) -> tuple[str, Element]:
        """The text, and the root of its elements."""
        self._space_before_tag()
        text = self.text.rstrip(" \n")
        root = Element("", "", 0, len(self.text), tuple(self.open[0].children))
        return text, _within(root, len(text))

    def _say(self, text: str) -> None:
        text = (_SPACES if self.rules.keeps_lines else _BLANKS).sub(" ", text)
        if text.startswith(" ") and (not self.text or self.text[-1].isspace()):
            text = text[1:]
            self._space_behind_tag()
        glued = _WORD.match(text)
        if glued and self.atoms and self.atoms[-1].end == len(self.text):
            self.atoms[-1] = replace(self.atoms[-1], glued_after=glued[0])
            self.text += " "
        self.text += text

    def _space_behind_tag(self) -> None:
        """A lone tag between two spaces keeps the second, for the text has the first."""
        children, place = self.open[-1].children, len(self.text)
        if children and children[-1].is_alone and children[-1].start == place:
            children[-1] = replace(children[-1], before=children[-1].before + " ")

    def _space_before_tag(self) -> None:
        """The first of the tags that stand alone at an end keeps the space before it."""
        children, place = self.open[-1].children, len(self.text)
        first = len(children)
        while first > 0 and children[first - 1].is_alone and children[first - 1].start == place:
            first -= 1
        has_space = self.text[self.open[-1].start :].endswith(" ")
        if has_space and first < len(children):
            children[first] = replace(children[first], before=" " + children[first].before)

    def _keep(self, raw: str, following: str) -> None:
        touched = _LAST_WORD.search(self.text)
        self.text += " " if touched else ""
        stand_in = self.stand_ins.take(raw, following)
        self.atoms.append(Atom(raw, stand_in, len(self.text), touched[0] if touched else ""))
        self.text += self.atoms[-1].stand_in

    def _close(self, raw: str) -> None:
        self._space_before_tag()
        opened = self.open.pop()
        stretch = self.text[opened.start :]
        start = opened.start + len(stretch) - len(stretch.lstrip())
        end = max(start, opened.start + len(stretch.rstrip()))
        children = tuple(opened.children)
        if start == end:  # about nothing, so all of it is one tag
            blank = " " if stretch and not children else ""
            whole = opened.before + "".join(map(_raw, children)) + blank + raw
            element = Element(whole, "", opened.start, opened.start)
        else:
            element = Element(opened.before, raw, start, end, children)
        self.open[-1].children.append(element)


def _raw(element: Element) -> str:
    return element.before + "".join(map(_raw, element.children)) + element.after


def _within(element: Element, end: int) -> Element:
    """The same element in a text that ends there."""
    return replace(
        element,
        start=min(element.start, end),
        end=min(element.end, end),
        children=tuple(_within(child, end) for child in element.children),
    )
