"""Every format of parallel text as one stream of units: a number, a source, a target.

A side that cannot be read is a `BadText` in its place, so no unit is ever out of step.
"""

import json
import math
import re
import struct
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from itertools import islice, zip_longest
from pathlib import Path
from typing import Literal, NamedTuple, assert_never

from regard.data.streams import (
    MAX_LINE_BYTES,
    BadText,
    guess_encoding,
    read_blocks,
    read_lines,
    refuse_encoding,
    sound_text,
    whole_lines,
)
from regard.data.xml import best_language, language_rank, read_xml, xml_languages
from regard.errors import DataError

Format = Literal["tsv", "jsonl", "xml", "po", "mo"]

COMPRESSIONS = (".gz", ".xz", ".zst", ".bz2")
FORMATS: dict[str, Format] = {
    ".tsv": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".tmx": "xml",
    ".xlf": "xml",
    ".xliff": "xml",
    ".sdlxliff": "xml",
    ".mqxliff": "xml",
    ".po": "po",
    ".pot": "po",
    ".mo": "mo",
}
CATALOGUE_BYTES = 64 << 20  # PO and MO are read whole
MAX_SHIFT, PART_LINES = 100_000, 5  # how far line counts may differ, how wide a place is told


class Unit(NamedTuple):
    """One pair as it stands in the file, numbered by its line or by its place among the units."""

    number: int
    src: str | BadText
    tgt: str | BadText


def read_plain(
    src: Path, tgt: Path, max_line_bytes: int, carriage_returns: Counter[str]
) -> Iterator[Unit]:
    """Line n of one file with line n of the other; both must have as many."""
    src_lines, tgt_lines = (
        read_lines(path, max_line_bytes=max_line_bytes, carriage_returns=carriage_returns)
        for path in (src, tgt)
    )
    for number, (one, other) in enumerate(zip_longest(src_lines, tgt_lines), start=1):
        if one is None or other is None:
            n_longer = number + sum(1 for _ in (src_lines if other is None else tgt_lines))
            counts = (n_longer, number - 1) if other is None else (number - 1, n_longer)
            raise _uneven(src, tgt, *counts)
        yield Unit(number, one, other)


def read_both(
    path: Path,
    src_lang: str,
    tgt_lang: str,
    max_line_bytes: int,
    carriage_returns: Counter[str],
) -> Iterator[Unit]:
    """The units of a file that holds both sides; stdin, `-`, is TSV."""
    kind = format_of(path)
    match kind:
        case "tsv" | "jsonl":
            lines = read_lines(
                path, max_line_bytes=max_line_bytes, carriage_returns=carriage_returns
            )
            for number, line in enumerate(lines, start=1):
                if isinstance(line, BadText):
                    yield Unit(number, line, "")
                elif kind == "tsv":
                    yield Unit(number, *_columns(line))
                else:
                    yield Unit(number, *_json_sides(line, src_lang, tgt_lang, max_line_bytes))
        case "xml":
            sides = read_xml(path, src_lang, tgt_lang, max_line_bytes)
            yield from (Unit(number, *pair) for number, pair in enumerate(sides, start=1))
        case "po" | "mo":
            entries = _po_entries(path) if kind == "po" else _mo_entries(path)
            yield from _sound(_directed(entries, src_lang, tgt_lang), max_line_bytes)
        case _:
            assert_never(kind)


def format_of(path: Path) -> Format:
    """What a file with both sides is, by its name, or by its beginning where the name is silent."""
    if str(path) == "-":
        return "tsv"
    if known := FORMATS.get(bare_path(path).suffix.lower()):
        return known
    head = next(read_blocks(path), b"") if path.is_file() else b""
    if head.startswith((b"\xde\x12\x04\x95", b"\x95\x04\x12\xde")):
        return "mo"
    text = head[:1000].replace(b"\0", b"").lstrip(b"\xef\xbb\xbf\xff\xfe \t\r\n")
    if text.startswith((b"<?xml", b"<!DOCTYPE", b"<tmx", b"<xliff")):
        return "xml"
    if re.search(rb'^msgid "', text, re.MULTILINE):
        return "po"
    return "jsonl" if text.startswith(b"{") else "tsv"


def bare_path(path: Path) -> Path:
    """The path without the suffix that compression put on it."""
    return path.with_suffix("") if path.suffix.lower() in COMPRESSIONS else path


def languages_in(path: Path) -> list[str]:
    """The languages that a file with both sides names itself, if its format does."""
    match format_of(path):
        case "xml":
            return xml_languages(path)
        case "jsonl":
            for line in read_lines(path):
                if isinstance(line, str) and (texts := _json_texts(line)):
                    return [] if {"src", "tgt"} <= set(texts) else list(texts)
    return []


def _columns(line: str) -> tuple[str | BadText, str]:
    src, tab, rest = line.partition("\t")
    if not tab:
        return BadText("missing-column", _shortened(line)), ""
    return src, rest.partition("\t")[0]


def _json_sides(
    line: str, src_lang: str, tgt_lang: str, max_bytes: int
) -> tuple[str | BadText, str | BadText]:
    if not line.strip():
        return "", ""
    texts = _json_texts(line)
    if texts is None:
        return BadText("invalid-json", _shortened(line)), ""
    if "src" in texts and "tgt" in texts:
        return sound_text(texts["src"], max_bytes), sound_text(texts["tgt"], max_bytes)
    names = list(texts)
    src = best_language(names, src_lang)
    tgt = best_language(names, tgt_lang, without=src)
    if src is None or tgt is None:
        return BadText("missing-language", ", ".join(names)), ""
    return sound_text(texts[names[src]], max_bytes), sound_text(texts[names[tgt]], max_bytes)


def _json_texts(line: str) -> dict[str, str] | None:
    """The texts of an object by their names; None if the line is no JSON object."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if isinstance(found, dict) and isinstance(found.get("translation"), dict):
        found = found["translation"]
    if not isinstance(found, dict):
        return None
    return {name: text for name, text in found.items() if isinstance(text, str)}


def _shortened(line: str) -> str:
    return line if len(line) <= 40 else line[:39] + "…"


class _Catalogue(NamedTuple):
    """The entries of a PO or MO file, and the language its header says it translates to."""

    language: str
    units: Iterable[Unit]


def _directed(catalogue: _Catalogue, src_lang: str, tgt_lang: str) -> Iterator[Unit]:
    """The entries from source to target, which may be from translation to original."""
    has = catalogue.language
    is_reverse = has and language_rank(has, src_lang) > 0 and not language_rank(has, tgt_lang)
    for number, original, translation in catalogue.units:
        if isinstance(original, str) and src_lang and is_reverse:
            yield Unit(number, translation, original)
        else:
            yield Unit(number, original, translation)


def _sound(units: Iterable[Unit], max_bytes: int) -> Iterator[Unit]:
    for number, *sides in units:
        yield Unit(
            number,
            *(sound_text(side, max_bytes) if isinstance(side, str) else side for side in sides),
        )


class _Content(str):
    """A text whose lines end at the line feed only, also for polib, which asks it."""

    def splitlines(self, keepends: bool = False) -> list[str]:
        return self.split("\n")


def _po_entries(path: Path) -> _Catalogue:
    import polib  # type: ignore[import-untyped]

    text = _Content(_po_text(_whole(path), path))
    try:
        entries = polib.pofile(text)
    except Exception as error:  # polib has no class of its own for what it cannot read
        raise DataError("{file} cannot be read as PO: {reason}", file=path, reason=error) from error

    def units() -> Iterator[Unit]:
        for entry in entries:
            fault = "obsolete" if entry.obsolete else "fuzzy" if entry.fuzzy else ""
            forms = [form for _, form in sorted(entry.msgstr_plural.items())] or [entry.msgstr]
            if fault:
                yield Unit(entry.linenum, BadText(fault, ""), "")
            else:
                yield from _forms(entry.linenum, entry.msgid, entry.msgid_plural, forms)

    return _Catalogue(entries.metadata.get("Language", ""), units())


def _po_text(content: bytes, path: Path) -> str:
    charset = _charset(content[:100_000])
    try:
        return content.decode(charset).removeprefix("\ufeff")
    except UnicodeError as error:
        if charset == "utf-8" and (encoding := guess_encoding(content)):
            raise refuse_encoding(str(path), encoding) from error
        raise DataError(
            "{file} is not in {charset}, the charset of its header: {reason}",
            file=path,
            charset=charset,
            reason=error,
        ) from error


def _mo_entries(path: Path) -> _Catalogue:
    content = _whole(path)
    order = "<" if content.startswith(b"\xde\x12\x04\x95") else ">"
    try:
        _, _, n_entries, ids, texts = struct.unpack_from(f"{order}5I", content)
        places = [
            struct.unpack_from(f"{order}{2 * n_entries}I", content, at) for at in (ids, texts)
        ]
    except struct.error as error:
        raise _no_catalogue(path) from error
    sizes = [size for place in places for size in place[::2]]
    ends = [size + at for place in places for size, at in zip(place[::2], place[1::2], strict=True)]
    if sum(sizes) > len(content) or max(ends, default=0) > len(content):
        raise _no_catalogue(path)

    def strings(place: tuple[int, ...]) -> Iterator[bytes]:
        for size, at in zip(place[::2], place[1::2], strict=True):
            yield content[at : at + size]

    header = next(strings(places[1]), b"")
    language = re.search(rb"^Language: *([\w-]+)", header, re.MULTILINE)
    units = _mo_units(strings(places[0]), strings(places[1]), _charset(header))
    return _Catalogue(language[1].decode() if language else "", units)


def _mo_units(ids: Iterator[bytes], texts: Iterator[bytes], charset: str) -> Iterator[Unit]:
    for number, (msgid, msgstr) in enumerate(zip(ids, texts, strict=True), start=1):
        if not msgid:
            continue  # the header
        try:
            one, _, many = msgid.decode(charset).rpartition("\x04")[2].partition("\0")
            yield from _forms(number, one, many, msgstr.decode(charset).split("\0"))
        except UnicodeError as error:
            yield Unit(number, BadText("invalid-utf8", str(error)), "")


def _forms(number: int, one: str, many: str, translations: list[str]) -> Iterator[Unit]:
    """An entry as pairs: the first form translates the singular, the others the plural."""
    if not all(translations):
        yield Unit(number, BadText("untranslated", ""), "")
        return
    yield Unit(number, one, translations[0])
    if many:
        # A language with one form, as Chinese, uses it for both.
        yield from (Unit(number, many, text) for text in translations[1:] or translations)


def _charset(header: bytes) -> str:
    """The encoding a header names, if Python knows it; templates have the word CHARSET there."""
    found = re.search(rb"charset=([\w.:-]+)", header)
    name = found[1].decode().lower() if found else "utf-8"
    try:
        "".encode(name)
    except (LookupError, UnicodeError):
        return "utf-8"
    return name


def _whole(path: Path) -> bytes:
    blocks, n_bytes = list[bytes](), 0
    for block in read_blocks(path):
        blocks.append(block)
        n_bytes += len(block)
        if n_bytes > CATALOGUE_BYTES:
            raise DataError(
                "{file} is larger than {limit} bytes; PO and MO files are read whole, so split it",
                file=path,
                limit=CATALOGUE_BYTES,
            )
    return b"".join(blocks)


def _no_catalogue(path: Path) -> DataError:
    return DataError("{file} is no MO file, or is cut off; fetch it again", file=path)


def _uneven(src: Path, tgt: Path, n_src: int, n_tgt: int) -> DataError:
    region = _where_they_part(src, tgt, n_src, n_tgt)
    if region is None:
        return DataError(
            "{src} has {n_src} lines but {tgt} has {n_tgt}; lines are pairs, so they must match",
            src=src,
            n_src=n_src,
            tgt=tgt,
            n_tgt=n_tgt,
        )
    if region[1] == max(n_src, n_tgt):  # up to its end, nothing speaks for a gap before it
        return DataError(
            "{src} has {n_src} lines but {tgt} has {n_tgt}; lines are pairs, so they must match: "
            "{shorter} ends after line {last}",
            src=src,
            n_src=n_src,
            tgt=tgt,
            n_tgt=n_tgt,
            shorter=src if n_src < n_tgt else tgt,
            last=min(n_src, n_tgt),
        )
    return DataError(
        "{src} has {n_src} lines but {tgt} has {n_tgt}; lines are pairs, so they must match: "
        "by their lengths they part between lines {first} and {last}",
        src=src,
        n_src=n_src,
        tgt=tgt,
        n_tgt=n_tgt,
        first=region[0],
        last=region[1],
    )


def _where_they_part(src: Path, tgt: Path, n_src: int, n_tgt: int) -> tuple[int, int] | None:
    """The lines about the place from which moving the longer file up makes lengths agree better.

    Both files are read once more, and only their lengths are kept.
    """
    extra = abs(n_src - n_tgt)
    longer, shorter = (src, tgt) if n_src > n_tgt else (tgt, src)
    if extra > MAX_SHIFT or not (src.is_file() and tgt.is_file()):
        return None
    ahead = _log_lengths(longer)
    held = deque(islice(ahead, extra))
    mean, gain, best, place = 0.0, 0.0, 0.0, 1
    for number, (here, moved) in enumerate(zip(_log_lengths(shorter), ahead, strict=True), start=1):
        held.append(moved)
        still = held.popleft()
        mean += (still - here - mean) / number
        gain += abs(moved - here - mean) - abs(still - here - mean)
        if gain > best:
            best, place = gain, number + 1
    return max(1, place - PART_LINES), min(max(n_src, n_tgt), place + extra - 1 + PART_LINES)


def _log_lengths(path: Path) -> Iterator[float]:
    for chunk in whole_lines(read_blocks(path), MAX_LINE_BYTES):
        if isinstance(chunk, int):
            yield math.log1p(chunk)
        else:
            yield from (math.log1p(len(line)) for line in chunk.split(b"\n"))
