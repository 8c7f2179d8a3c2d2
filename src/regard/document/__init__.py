"""Documents: the files of translators in and out, their tags, placeholders and terms kept."""

from regard.document.alignment import Gold, aer, aligned, read_gold, read_links, word_links
from regard.document.document import (
    Document,
    Format,
    Left,
    Translated,
    format_of,
    open_document,
    translate_document,
)
from regard.document.glossary import read_glossary
from regard.document.markup import Marked, Translate, aligned_by, translate_all, translate_marked
from regard.document.memory import Memory, read_memory
from regard.document.parts import HTML, TEXT, Rules

__all__ = [
    "HTML",
    "TEXT",
    "Document",
    "Format",
    "Gold",
    "Left",
    "Marked",
    "Memory",
    "Rules",
    "Translate",
    "Translated",
    "aer",
    "aligned",
    "aligned_by",
    "format_of",
    "open_document",
    "read_glossary",
    "read_gold",
    "read_links",
    "read_memory",
    "translate_all",
    "translate_document",
    "translate_marked",
    "word_links",
]
