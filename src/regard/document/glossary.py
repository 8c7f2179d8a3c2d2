"""Glossaries: words of a source, and what a translation must say for them.

TSV   word, a tab, term          CSV   word,term, quoted as spreadsheets do
TBX   <termEntry> or <conceptEntry>, <langSet> or <langSec>, <term>; 2 and 3
"""

import csv
import io
import re
from collections.abc import Iterable, Iterator
from html import unescape
from pathlib import PurePath
from typing import Literal

from regard.data.xml import best_language
from regard.document import xml
from regard.document.coding import decoded
from regard.errors import DataError

GlossaryFormat = Literal["tsv", "csv", "tbx"]

MAX_BYTES = 10 << 20
_TAG = re.compile(r"<[^<>]*>")


def read_glossary(
    content: bytes, name: str, *, src_lang: str = "", tgt_lang: str = ""
) -> dict[str, str]:
    """The terms in a file; its name says what it is, and languages choose among those of TBX."""
    if len(content) > MAX_BYTES:
        raise DataError(
            "{file} is larger than {limit} bytes; that is no glossary", file=name, limit=MAX_BYTES
        )
    kind = glossary_format(name)
    text = decoded(content, "xml" if kind == "tbx" else "nothing", name).text
    match kind:
        case "tsv":
            return _terms(enumerate((line.split("\t") for line in text.splitlines()), 1), name)
        case "csv":
            return _terms(_csv_rows(text, name), name)
        case "tbx":
            xml.check(text, name)
            return dict(_tbx_terms(text, src_lang, tgt_lang))


def glossary_format(name: str) -> GlossaryFormat:
    """What a glossary is, by its name."""
    match PurePath(name).suffix.lower():
        case ".csv":
            return "csv"
        case ".tbx" | ".xml":
            return "tbx"
        case _:
            return "tsv"


def _csv_rows(text: str, name: str) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        for row in reader:
            yield reader.line_num, row
    except csv.Error as error:
        raise DataError(
            "{file}, line {line} is no CSV: {reason}", file=name, line=reader.line_num, reason=error
        ) from error


def _terms(rows: Iterable[tuple[int, list[str]]], name: str) -> dict[str, str]:
    """The first two columns; blank rows are passed over."""
    terms = {}
    for number, row in rows:
        cells = [cell.strip() for cell in row]
        if not any(cells):
            continue
        if len(cells) < 2 or not (cells[0] and cells[1]):
            raise DataError(
                "{file}, line {line} is no term: the source's word, then what it is called, in two "
                "columns",
                file=name,
                line=number,
            )
        terms[cells[0]] = cells[1]
    return terms


def _tbx_terms(text: str, src_lang: str, tgt_lang: str) -> Iterator[tuple[str, str]]:
    """The first term of each entry in either language; every source term has it."""
    entry: list[tuple[str, list[str]]] = []
    for has_ended, around in xml.walk(text):
        node = around[-1]
        match node.name, has_ended:
            case (("termEntry" | "conceptEntry"), False):
                entry = []
            case (("langSet" | "langSec"), False):
                entry.append((node.attribute("xml:lang"), []))
            case "term", True if entry:
                said = unescape(_TAG.sub("", text[slice(*node.content)])).strip()
                entry[-1][1].extend([said] if said else [])
            case (("termEntry" | "conceptEntry"), True):
                have = [language for language, terms in entry]
                src = best_language(have, src_lang)
                tgt = best_language(have, tgt_lang, without=src)
                if src is not None and tgt is not None and entry[tgt][1]:
                    yield from ((word, entry[tgt][1][0]) for word in entry[src][1])
