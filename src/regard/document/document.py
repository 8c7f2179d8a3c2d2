"""A file on its way: read, its units translated, and written again with all else as it was.

open_document        bytes -> what is to be translated
Document.outcomes    units -> what was said for each, or why nothing was
Document.filled      -> bytes, in the same encoding, and a list of what was left
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import PurePath
from typing import TYPE_CHECKING, Literal

from regard.data.xml import language_rank
from regard.document import html, plain, po, subtitles, tmx, xliff, xml
from regard.document.coding import Coded, Names, decoded
from regard.document.markup import Translate, aligned_by, translate_all
from regard.document.memory import Memory
from regard.document.units import Obstacle, Said, Unit, Wanted, filled
from regard.errors import ConfigError, DataError
from regard.text.scripts import is_mostly_han

if TYPE_CHECKING:
    from regard.decode.translator import Translator

Format = Literal["txt", "tsv", "tmx", "xliff", "po", "srt", "vtt", "html"]
Direction = tuple[str, str]

MAX_BYTES = 64 << 20  # a document is read whole
SAMPLE = 20_000  # characters that show which script a text is written in
SUFFIXES: dict[str, Format] = {
    ".txt": "txt",
    ".tsv": "tsv",
    ".tmx": "tmx",
    ".xlf": "xliff",
    ".xliff": "xliff",
    ".sdlxliff": "xliff",
    ".mqxliff": "xliff",
    ".mxliff": "xliff",
    ".po": "po",
    ".pot": "po",
    ".srt": "srt",
    ".vtt": "vtt",
    ".html": "html",
    ".htm": "html",
    ".xhtml": "html",
}
_NAMES: dict[Format, Names] = {"tmx": "xml", "xliff": "xml", "html": "html", "po": "po"}
_MARKUP = re.compile(r"<[^<>]*>")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a unit: what was said for it, or why nothing was."""

    said: Said | None
    reason: Obstacle | None = None


@dataclass(frozen=True, slots=True)
class Left:
    """A unit that was not translated: where it stands, what it says, and why."""

    line: int
    name: str
    source: str
    reason: Obstacle


@dataclass(frozen=True, slots=True)
class Translated:
    """A document in the target language, and what in it was left as it is."""

    content: bytes
    n_units: int
    n_memory: int
    left: tuple[Left, ...]


@dataclass(frozen=True, slots=True)
class Document:
    """A file that was read: what in it is to be translated, and from which language to which."""

    format: Format
    coded: Coded
    units: tuple[Unit, ...]
    direction: Direction  # by the model's own names

    def outcomes(
        self, units: Sequence[Unit], translate: Translate, memory: Memory | None = None
    ) -> list[Outcome]:
        """What becomes of some of the units; exact matches of a memory come before the model."""
        known = [_remembered(unit, memory) for unit in units]
        asked = [
            (place, source, rules)
            for place, unit in enumerate(units)
            if known[place] is None and unit.obstacle is None
            for source, rules in zip(unit.sources, unit.rules, strict=True)
        ]
        answers: dict[int, list[str]] = {}
        reasons: dict[int, Obstacle] = {}
        marked = translate_all([(source, rules) for _, source, rules in asked], translate)
        for (place, _, _), one in zip(asked, marked, strict=True):
            answers.setdefault(place, []).append(one.text or "")
            if one.reason is not None:
                reasons[place] = one.reason
        return [
            self._outcome(unit, known[place], answers.get(place, []), reasons.get(place))
            for place, unit in enumerate(units)
        ]

    def filled(self, outcomes: Sequence[Outcome]) -> Translated:
        """The document with all that was said in its place."""
        text = filled(self.coded.text, self.units, [one.said for one in outcomes])
        said = [one.said for one in outcomes if one.said is not None]
        left = [
            Left(unit.line, unit.name, " / ".join(unit.sources), one.reason)
            for unit, one in zip(self.units, outcomes, strict=True)
            if one.reason is not None
        ]
        n_memory = sum(one.origin == "memory" for one in said)
        return Translated(self.coded.spelled(text), len(self.units), n_memory, tuple(left))

    def _outcome(
        self, unit: Unit, known: Said | None, texts: list[str], reason: Obstacle | None
    ) -> Outcome:
        said = known or Said(tuple(texts))
        reason = None if known else unit.obstacle or reason
        if reason is None and not all(map(self.coded.can_say, said.texts)):
            reason = "charset"
        return Outcome(None, reason) if reason else Outcome(said)


def open_document(
    content: bytes,
    format: Format,
    directions: Sequence[Direction],
    *,
    src_lang: str = "",
    tgt_lang: str = "",
    file: str = "the document",
) -> Document:
    """A file, and what in it a model that goes in these directions is to translate."""
    if len(content) > MAX_BYTES:
        raise DataError(
            "{file} is larger than {limit} bytes; documents are read whole, so split it",
            file=file,
            limit=MAX_BYTES,
        )
    coded = decoded(content, _NAMES.get(format, "nothing"), file)
    if _NAMES.get(format) == "xml":
        xml.check(coded.text, file)
    asked = (src_lang, tgt_lang)
    declared = _declared(coded.text, format, file)
    if format in ("html", "tmx") and (src_lang or not _ways(directions, declared)):
        declared = ("", "")  # many a page says en by habit, and a memory may be used any way round
    direction = _direction(coded.text, directions, asked, declared)
    date = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    wanted = Wanted(declared[0] or direction[0], declared[1] or direction[1], date)
    return Document(format, coded, tuple(_units(coded.text, format, wanted, file)), direction)


def translate_document(
    content: bytes,
    format: Format,
    translator: "Translator",
    *,
    src_lang: str = "",
    tgt_lang: str = "",
    beam: int | None = None,
    terms: Mapping[str, str] | None = None,
    memory: Memory | None = None,
    file: str = "the document",
) -> Translated:
    """A file through a translator, whole."""
    document = open_document(
        content, format, translator.directions, src_lang=src_lang, tgt_lang=tgt_lang, file=file
    )
    src, tgt = document.direction
    translate = aligned_by(translator, src_lang=src, tgt_lang=tgt, beam=beam, terms=terms)
    return document.filled(document.outcomes(document.units, translate, memory))


def format_of(name: str, content: bytes = b"") -> Format | None:
    """What a file is by its name, or by its beginning where the name is silent."""
    if known := SUFFIXES.get(PurePath(name).suffix.lower()):
        return known
    head = content[:2000].replace(b"\0", b"")
    if re.search(rb"<(?:\w+:)?xliff\b", head):
        return "xliff"
    if re.search(rb"<tmx\b", head):
        return "tmx"
    if re.search(rb"<!doctype html|<html\b", head, re.IGNORECASE):
        return "html"
    if head.removeprefix(b"\xef\xbb\xbf").startswith(b"WEBVTT"):
        return "vtt"
    return "po" if re.search(rb'^msgid "', head, re.MULTILINE) else None


def _remembered(unit: Unit, memory: Memory | None) -> Said | None:
    if memory is None or unit.obstacle is not None:
        return None
    found = [memory.find(s, rules) for s, rules in zip(unit.sources, unit.rules, strict=True)]
    texts = tuple(text for text in found if text is not None)
    return Said(texts, "memory") if len(texts) == len(found) else None


def _units(text: str, format: Format, wanted: Wanted, file: str) -> list[Unit]:
    match format:
        case "txt":
            return plain.units(text, wanted)
        case "tsv":
            return plain.rows(text, wanted)
        case "tmx":
            return tmx.units(text, wanted)
        case "xliff":
            return xliff.units(text, wanted)
        case "po":
            return po.units(text, wanted, file)
        case "srt" | "vtt":
            return subtitles.units(text, wanted)
        case "html":
            return html.units(text, wanted)


def _declared(text: str, format: Format, file: str) -> Direction:
    """The languages that a document says itself that it goes from and to."""
    match format:
        case "tmx":
            return tmx.languages(text)
        case "xliff":
            return xliff.languages(text)
        case "po":
            return po.languages(text, file)
        case "html":
            return html.languages(text)
        case _:
            return "", ""


def _ways(directions: Sequence[Direction], sought: Sequence[str]) -> list[Direction]:
    """The directions with these languages; what is not said may be any."""
    return [
        way
        for way in directions
        if all(not a or not b or language_rank(a, b) for a, b in zip(way, sought, strict=True))
    ]


def _direction(
    text: str, directions: Sequence[Direction], asked: Direction, declared: Direction
) -> Direction:
    """The model's direction for a document: as asked, as it says, or else by its script."""
    for own, given in zip(declared, asked, strict=True):
        if own and given and not language_rank(own, given):
            raise ConfigError(
                "the document is for {declared}, not {asked}; leave --from and --to to it",
                declared=" → ".join(one or "?" for one in declared),
                asked=" → ".join(one or "?" for one in asked),
            )
    sought = [given or own for own, given in zip(declared, asked, strict=True)]
    ways = _ways(directions, sought)
    if not ways:
        raise ConfigError(
            "this model does not go {asked}; it goes {known}",
            asked=" → ".join(one or "?" for one in sought),
            known=", ".join(" → ".join(one or "?" for one in way) for way in directions),
        )
    is_chinese = is_mostly_han(_MARKUP.sub("", text[:SAMPLE]))
    way = next((way for way in ways if way[0].startswith("zh") == is_chinese), ways[0])
    return way if any(way) else (sought[0], sought[1])
