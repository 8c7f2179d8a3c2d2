"""XML as a text with places: checked by expat, then walked token by token where it stands."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from xml.parsers import expat
from xml.sax.saxutils import escape

from regard.document.parts import TEXT
from regard.document.scan import Token, scan
from regard.document.units import Origin, Unit
from regard.errors import DataError

MAX_DEPTH = 200
_SECTION = re.compile(r"(\s*)<!\[CDATA\[((?:(?!\]\]>).)*)\]\]>(\s*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Node:
    """An element: its name without a prefix, its tags, and where it and its content stand."""

    name: str
    opening: Token
    start: int
    end: int
    content: tuple[int, int]

    @property
    def is_empty_tag(self) -> bool:
        """Whether one tag is all of it."""
        return self.opening.role == "alone"

    def attribute(self, name: str) -> str:
        """The value of an attribute, or nothing."""
        return self.opening.attributes.get(name, "")


def check(text: str, file: str) -> None:
    """Refuse what is not well-formed, and what makes XML dangerous: declared entities, depth."""
    parser = expat.ParserCreate("utf-8")
    depth = 0

    def start(_name: str, _attributes: object) -> None:
        nonlocal depth
        depth += 1
        if depth > MAX_DEPTH:
            raise DataError(
                "{file}, line {line}: elements nest more than {limit} deep",
                file=file,
                line=parser.CurrentLineNumber,
                limit=MAX_DEPTH,
            )

    def end(_name: str) -> None:
        nonlocal depth
        depth -= 1

    def doctype(_name: str, _system: str | None, _public: str | None, has_own: bool) -> None:
        if has_own:
            raise DataError(
                "{file}, line {line}: declarations within <!DOCTYPE> are refused, since an entity "
                "can grow without end; remove all between [ and ]",
                file=file,
                line=parser.CurrentLineNumber,
            )

    def skipped(name: str, _is_parameter: bool) -> None:
        raise DataError(
            "{file}, line {line}: the entity &{name}; is not defined; write the character itself",
            file=file,
            line=parser.CurrentLineNumber,
            name=name,
        )

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.StartDoctypeDeclHandler, parser.SkippedEntityHandler = doctype, skipped
    try:
        parser.Parse(text.encode(errors="replace"), True)
    except expat.ExpatError as error:
        raise DataError(
            "{file}, line {line}: the XML cannot be read: {reason}",
            file=file,
            line=parser.CurrentLineNumber,
            reason=expat.ErrorString(error.code),
        ) from error


def walk(text: str) -> Iterator[tuple[bool, list[Node]]]:
    """For each element its start and its end: whether it has ended, and all elements around it.

    The last of these is the element itself; until it has ended, its ends are where it begins.
    Elements of a namespace with another prefix than the root's keep their prefix in their names.
    """
    around: list[Node] = []
    prefix = None
    for token in scan(text, is_html=False):
        if token.role in ("open", "alone"):
            if prefix is None:
                prefix = token.name.rpartition(":")[0]
            name = token.name.removeprefix(f"{prefix}:") if prefix else token.name
            around.append(Node(name, token, token.start, token.end, (token.end, token.end)))
            yield False, around
        if token.role in ("close", "alone"):
            node = around[-1]
            end = token.start if token.role == "close" else token.end
            around[-1] = Node(
                node.name, node.opening, node.start, token.end, (node.content[0], end)
            )
            yield True, around
            around.pop()


def with_attributes(tag: str, attributes: Mapping[str, str]) -> str:
    """A tag that opens an element, with these attributes; what it has already is changed."""
    for name, value in attributes.items():
        value = escape(value, {'"': "&quot;"})
        has = re.search(rf"""(\s{re.escape(name)}\s*=\s*)("[^"]*"|'[^']*')""", tag)
        if has:
            tag = f'{tag[: has.start()]}{has[1]}"{value}"{tag[has.end() :]}'
        else:
            end = re.search(r"\s*/?>\Z", tag)
            assert end is not None
            tag = f'{tag[: end.start()]} {name}="{value}"{tag[end.start() :]}'
    return tag


def opened(tag: str) -> str:
    """A tag that opens its element, made of one that may be all of it."""
    return re.sub(r"\s*/>\Z", ">", tag)


def is_blank(content: str) -> bool:
    """Whether an element has no text, whatever tags are in it."""
    return not any(
        (token.raw[9:-3] if token.role == "section" else token.raw).strip()
        for token in scan(content, is_html=False)
        if token.role in ("text", "section")
    )


def blanks_before(text: str, place: int) -> str:
    """The blanks that stand before a place: how an element is set in."""
    start = place
    while start > 0 and text[start - 1] in " \t\r\n":
        start -= 1
    return text[start:place]


def uncovered(unit: Unit) -> Unit:
    """A unit whose texts are sections, <![CDATA[...]]>, as one of the texts within.

    What stands in a section is no XML; if it is HTML, its tags are found there.
    """
    found = [_SECTION.fullmatch(source) for source in unit.sources]
    sections = [one for one in found if one is not None]
    if len(sections) < len(found):
        return unit

    def written(texts: tuple[str, ...], origin: Origin) -> str:
        covered = (
            f"{one[1]}<![CDATA[{text.replace(']]>', ']]]]><![CDATA[>')}]]>{one[3]}"
            for one, text in zip(sections, texts, strict=True)
        )
        return unit.written(tuple(covered), origin)

    sources = tuple(one[2] for one in sections)
    return replace(unit, sources=sources, rules=(TEXT,) * len(sources), written=written)
