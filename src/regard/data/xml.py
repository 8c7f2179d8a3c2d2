"""TMX 1.4 and XLIFF 1.2 and 2.x, one unit at a time, whatever the size of the file.

The parser is the standard library's expat. Nothing is ever fetched; what makes XML dangerous
(entities, endless nesting, endless tags) is refused, and inline markup is reduced to its text.
"""

import codecs
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat

from regard.data.streams import (
    MAX_LINE_BYTES,
    BadText,
    guess_encoding,
    read_blocks,
    refuse_encoding,
    sound_text,
)
from regard.errors import DataError

MAX_DEPTH = 200
ANY_LANGUAGE = "*"

_UNITS = ("tu", "trans-unit", "segment")
_CODES = ("bpt", "ept", "ph", "it", "ut")  # what they hold is markup of the original document
_UNFINISHED = {
    "new": "untranslated",
    "needs-translation": "untranslated",
    "initial": "untranslated",
    "needs-review-translation": "fuzzy",
}
_XML_LANG = "http://www.w3.org/XML/1998/namespace lang"


def read_xml(
    path: Path, src_lang: str, tgt_lang: str, max_bytes: int = MAX_LINE_BYTES
) -> Iterator[tuple[str | BadText, str | BadText]]:
    """The two sides of every unit; a unit that lacks one has a fault in place of its source."""
    for unit in _read_units(path, max_bytes):
        if unit.fault:
            yield BadText(unit.fault, ""), ""
            continue
        src = best_language(unit.languages, src_lang)
        tgt = best_language(unit.languages, tgt_lang, without=src)
        if src is None or tgt is None:
            yield BadText("missing-language", ", ".join(n or "?" for n in unit.languages)), ""
        else:
            yield unit.texts[src], unit.texts[tgt]


def xml_languages(path: Path) -> list[str]:
    """The languages of the first unit that has several, in its order."""
    for unit in _read_units(path, MAX_LINE_BYTES):
        languages = [name for name in unit.languages if name not in ("", ANY_LANGUAGE)]
        if len(languages) > 1:
            return languages
    return []


def best_language(have: list[str], asked: str, without: int | None = None) -> int | None:
    """Which of the languages is the one asked for: zh-CN is zh, but zh itself is better.

    With nothing asked, the first; a language that the file does not name is the last resort.
    """
    ranks = [0 if i == without else language_rank(name, asked) for i, name in enumerate(have)]
    best = max(ranks, default=0)
    return ranks.index(best) if best else None


def language_rank(have: str, asked: str) -> int:
    """3 for the same tag, 2 for a tag with more or fewer subtags, 1 for unknown, 0 for another."""
    if not asked:
        return 3
    if have == ANY_LANGUAGE:
        return 1
    ours, theirs = _subtags(have), _subtags(asked)
    if ours == theirs:
        return 3
    is_part = set(ours) <= set(theirs) or set(theirs) <= set(ours)
    return 2 if ours[0] == theirs[0] and is_part else 0


def _subtags(tag: str) -> list[str]:
    return tag.lower().replace("_", "-").split("-")


@dataclass
class _Unit:
    """One `tu`, `trans-unit` or `segment`: its texts, and the language of each."""

    languages: list[str] = field(default_factory=list)
    texts: list[str | BadText] = field(default_factory=list)
    fault: str = ""


def _read_units(path: Path, max_bytes: int) -> Iterator[_Unit]:
    reader = _Reader(str(path), max_bytes)
    n_bytes = 0
    for block in read_blocks(path):
        n_bytes += len(block)
        reader.feed(block)
        yield from reader.take()
        # What expat holds back is one unfinished tag or comment.
        if n_bytes - reader.parser.CurrentByteIndex > max_bytes + len(block):
            raise DataError(
                "{file}, line {line}: a tag or comment is longer than {limit} bytes",
                file=path,
                line=reader.parser.CurrentLineNumber,
                limit=max_bytes,
            )
    reader.feed(b"", is_last=True)
    yield from reader.take()


class _Reader:
    """expat's handlers: where in the document we are, and the units complete so far."""

    def __init__(self, file: str, max_bytes: int) -> None:
        self.file, self.max_bytes = file, max_bytes
        self.done: list[_Unit] = []
        self.open: list[str] = []  # the elements around us, outermost first
        self.namespace = ""
        self.languages = {"source": ANY_LANGUAGE, "target": ANY_LANGUAGE}  # XLIFF's
        self.untranslatable = 0  # the depth at which translate="no" was said
        self.unit = _Unit()
        self.text = list[str]()
        self.size = 0
        self.heard = list[bool]()  # within a text: whether each element around us counts as text
        self.parser = expat.ParserCreate(namespace_separator=" ")
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self.start
        self.parser.EndElementHandler = self.end
        self.parser.CharacterDataHandler = self.hear
        self.parser.StartDoctypeDeclHandler = self.doctype
        self.parser.SkippedEntityHandler = self.skipped

    def feed(self, block: bytes, is_last: bool = False) -> None:
        try:
            self.parser.Parse(block, is_last)
        except DataError:
            raise
        except expat.ExpatError as error:
            if encoding := _other_encoding(block):
                raise refuse_encoding(self.file, encoding) from error
            raise self._unreadable(expat.ErrorString(error.code)) from error
        except (LookupError, OverflowError, ValueError) as error:
            if self.open:  # a <cp> that is no character
                raise self._unreadable(error) from error
            raise DataError(
                "{file} declares an encoding that cannot be read ({reason}); convert it to UTF-8 "
                "with iconv, and say so in its first line",
                file=self.file,
                reason=error,
            ) from error

    def take(self) -> list[_Unit]:
        done, self.done = self.done, []
        return done

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if len(self.open) == MAX_DEPTH:
            raise DataError(
                "{file}, line {line}: elements nest more than {limit} deep",
                file=self.file,
                line=self.parser.CurrentLineNumber,
                limit=MAX_DEPTH,
            )
        parent = self.open[-1] if self.open else ""
        name = self._own_name(name)
        self.open.append(name)
        if self.heard:
            is_text = name not in _CODES and (self.heard[-1] or name == "sub")
            self.heard.append(is_text)
            if name == "cp":  # XLIFF 2: a character that XML cannot hold
                self.hear(chr(int(attributes["hex"], 16)))
            return
        if attributes.get("translate") == "no" and not self.untranslatable:
            self.untranslatable = len(self.open)
        self._start_outside(name, parent, attributes)

    def _start_outside(self, name: str, parent: str, attributes: dict[str, str]) -> None:
        """An element that is not within a text."""
        match name:
            case "xliff":
                self._set_languages(attributes, "srcLang", "trgLang")
            case "file":
                self._set_languages(attributes, "source-language", "target-language")
            case "tu" | "trans-unit" | "segment":
                self.unit = _Unit(fault=_UNFINISHED.get(attributes.get("state", ""), ""))
            case "tuv":
                self._start_variant(attributes.get(_XML_LANG, attributes.get("lang", "")))
            case "seg" if parent == "tuv":
                self._start_text()
            case "source" | "target" if parent in _UNITS:  # not those of <alt-trans>
                self._start_variant(attributes.get(_XML_LANG, self.languages[name]))
                self._start_text()
                if name == "target" and attributes.get("state") in _UNFINISHED:
                    self.unit.fault = _UNFINISHED[attributes["state"]]

    def end(self, _: str) -> None:
        if self.heard:
            self.heard.pop()
            if not self.heard:
                self._end_text()
        elif self.open[-1] in _UNITS:
            is_xliff = self.open[-1] != "tu"
            if self.untranslatable or (is_xliff and len(self.unit.texts) < 2):
                self.unit.fault = "untranslated"
            self.done.append(self.unit)
        self.open.pop()
        if self.untranslatable > len(self.open):
            self.untranslatable = 0

    def hear(self, data: str) -> None:
        if self.heard and self.heard[-1]:
            self.size += len(data) if data.isascii() else len(data.encode(errors="replace"))
            if self.size <= self.max_bytes:
                self.text.append(data)

    def doctype(self, _name: str, _system: str | None, _public: str | None, has_own: bool) -> None:
        if has_own:
            raise DataError(
                "{file}, line {line}: declarations within <!DOCTYPE> are refused, since an entity "
                "can grow without end; remove all between [ and ]",
                file=self.file,
                line=self.parser.CurrentLineNumber,
            )

    def skipped(self, name: str, _is_parameter: bool) -> None:
        raise DataError(
            "{file}, line {line}: the entity &{name}; is not defined; write the character itself",
            file=self.file,
            line=self.parser.CurrentLineNumber,
            name=name,
        )

    def _unreadable(self, reason: object) -> DataError:
        return DataError(
            "{file}, line {line}: the XML cannot be read: {reason}",
            file=self.file,
            line=self.parser.CurrentLineNumber,
            reason=reason,
        )

    def _own_name(self, name: str) -> str:
        """The bare name within the document's namespace; of others, one that nothing matches."""
        namespace, _, local = name.rpartition(" ")
        if not self.open:
            self.namespace = namespace
            if local not in ("tmx", "xliff"):
                raise DataError(
                    "{file} is XML but neither TMX nor XLIFF: it begins with <{root}>",
                    file=self.file,
                    root=local,
                )
        return local if namespace == self.namespace else name

    def _set_languages(self, attributes: dict[str, str], source: str, target: str) -> None:
        for side, name in (("source", source), ("target", target)):
            self.languages[side] = attributes.get(name, self.languages[side])

    def _start_variant(self, language: str) -> None:
        self.unit.languages.append(language)
        self.unit.texts.append(BadText("missing-segment", language))

    def _start_text(self) -> None:
        self.text, self.size, self.heard = [], 0, [True]

    def _end_text(self) -> None:
        is_whole = self.size <= self.max_bytes
        self.unit.texts[-1] = (
            sound_text("".join(self.text), self.max_bytes)
            if is_whole
            else BadText("too-long", f"{self.size} bytes")
        )


def _other_encoding(block: bytes) -> str | None:
    try:
        codecs.utf_8_decode(block, "strict", False)
    except UnicodeDecodeError:
        return guess_encoding(block)
    return None
