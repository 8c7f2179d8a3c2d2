"""The bytes of a file as text and back, exactly: marks, UTF-16, and the encodings files name."""

import codecs
import re
from dataclasses import dataclass
from typing import Literal

from regard.data.streams import guess_encoding, refuse_encoding
from regard.errors import DataError

Names = Literal["xml", "html", "po", "nothing"]  # where a file names its encoding

_MARKS = {  # the longer ones first, for one begins with another
    codecs.BOM_UTF32_LE: "utf-32-le",
    codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
_NAMED = {
    "xml": re.compile(rb"""^\s*<\?xml[^>]*?encoding\s*=\s*["']([\w.:-]+)["']"""),
    "html": re.compile(rb"""<meta[^>]*?charset\s*=\s*["']?\s*([\w.:-]+)""", re.IGNORECASE),
    "po": re.compile(rb"Content-Type:[^\n]*?charset=([\w.:-]+)", re.IGNORECASE),
}
_HEAD = {"xml": 400, "html": 4096, "po": 100_000}
_LARGER = {"gb2312": "gb18030", "gbk": "gb18030"}  # what many a file is in that says the smaller


@dataclass(frozen=True, slots=True)
class Coded:
    """A text, and how it was spelled in bytes."""

    text: str
    encoding: str
    mark: bytes
    takes_references: bool  # what the encoding lacks may be written &#...;

    def can_say(self, text: str) -> bool:
        """Whether the encoding has all characters of a text, or another way to write them."""
        try:
            text.encode(self.encoding)
        except UnicodeEncodeError:
            return self.takes_references
        return True

    def spelled(self, text: str) -> bytes:
        """Another text in the same bytes."""
        errors = "xmlcharrefreplace" if self.takes_references else "strict"
        return self.mark + text.encode(self.encoding, errors)


def decoded(content: bytes, names: Names, file: str) -> Coded:
    """The text of a file, if the same bytes come of it again."""
    mark = next((mark for mark in _MARKS if content.startswith(mark)), b"")
    body = content[len(mark) :]
    encoding = _MARKS[mark] if mark else _encoding(body, names)
    try:
        coded = Coded(body.decode(encoding), encoding, mark, names in ("xml", "html"))
    except UnicodeDecodeError as error:
        if encoding == "utf-8" and (guess := guess_encoding(content)):
            raise refuse_encoding(file, guess) from error
        raise DataError(
            "{file} cannot be read as {encoding}: {reason}; convert it to UTF-8, and say so where "
            "it names its encoding",
            file=file,
            encoding=encoding,
            reason=error.reason,
        ) from error
    if coded.spelled(coded.text) != content:
        raise DataError(
            "{file} is in {encoding}, which spells one text in several ways; convert it to UTF-8",
            file=file,
            encoding=encoding,
        )
    return coded


def _encoding(body: bytes, names: Names) -> str:
    """The encoding of a file without a mark: as it shows, as it says, or UTF-8."""
    for start, encoding in ((b"<\0", "utf-16-le"), (b"\0<", "utf-16-be")):
        if names in ("xml", "html") and body.startswith(start):
            return encoding
    if names == "nothing":
        return "utf-8"
    found = _NAMED[names].search(body[: _HEAD[names]])
    name = found[1].decode().lower() if found else "utf-8"
    try:
        "".encode(name)
    except (LookupError, UnicodeError):  # a template of gettext has the word CHARSET there
        return "utf-8"
    is_wide = name.startswith(("utf-16", "utf-32", "utf16", "utf32"))  # it would show
    return "utf-8" if is_wide else _LARGER.get(name, codecs.lookup(name).name)
