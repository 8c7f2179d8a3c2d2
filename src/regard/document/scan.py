"""Markup as tokens, each as it stands: tags, comments, sections, and the text between.

Nothing is dropped: the tokens joined are the text. One pass, whatever the text: a tag that never
ends is text, and so is all that follows it.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import unescape
from typing import Literal

from regard.document.elements import RAW, VOID

Role = Literal["text", "open", "close", "alone", "section", "other"]

_NAME = re.compile(r"</?([^\W\d][^\s/<>=\"']*|:[^\s/<>=\"']+)")
_HTML_NAME = re.compile(r"</?([A-Za-z][^\s/<>]*)")
_ATTRIBUTE = re.compile(r"""([^\s=/>"'<]+)\s*=\s*("[^"]*"|'[^']*'|[^\s>"']+)""")
_END = re.compile(r"""(?:=\s*)?["']|>""")
_STAMP = re.compile(r"<\d\d+:[\d:.]+>")  # a time within a subtitle
_LOOSE = re.compile(rf"</?([A-Za-z][\w:.-]*)(?:\s[^<>]*|/)?>|{_STAMP.pattern}")


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of markup: what it is, as it stands, and where it begins."""

    role: Role
    raw: str
    start: int
    name: str = ""

    @property
    def end(self) -> int:
        """Where it ends."""
        return self.start + len(self.raw)

    @property
    def attributes(self) -> dict[str, str]:
        """The attributes of a tag, with their entities resolved."""
        return {
            found[1]: unescape(found[2][1:-1] if found[2][0] in "\"'" else found[2])
            for found in _ATTRIBUTE.finditer(self.raw, len(self.name) + 1)
        }


def scan(text: str, *, is_html: bool) -> Iterator[Token]:
    """The tokens of XML that is well-formed, or of HTML as it comes."""
    at, plain = 0, 0
    while (start := text.find("<", at)) >= 0:
        token = _section(text, start, is_html)
        if token is None:
            named = (_HTML_NAME if is_html else _NAME).match(text, start)
            if named is None:
                at = start + 1
                continue
            end = _tag_end(text, named.end())
            if end is None:
                break
            name = named[1].lower() if is_html else named[1]
            token = _tag(text[start:end], start, name, is_html)
        if plain < start:
            yield Token("text", text[plain:start], plain)
        yield token
        at = plain = token.end
        if is_html and token.role == "open" and token.name in RAW:
            at = plain = _raw_end(text, at, token.name)
            if token.end < at:
                yield Token("other", text[token.end : at], token.end)
    if plain < len(text):
        yield Token("text", text[plain:], plain)


def scan_loosely(text: str) -> Iterator[Token]:
    """Tags that stand in a text that is no markup as such: a < b is no tag."""
    at = 0
    for found in _LOOSE.finditer(text):
        if at < found.start():
            yield Token("text", text[at : found.start()], at)
        if found[1] is None:
            yield Token("alone", found[0], found.start())
        else:
            yield _tag(found[0], found.start(), found[1].lower(), is_html=True)
        at = found.end()
    if at < len(text):
        yield Token("text", text[at:], at)


def attribute_span(token: Token, name: str) -> tuple[int, int] | None:
    """Where the value of an attribute stands in the text of its tag, without its quotes."""
    for found in _ATTRIBUTE.finditer(token.raw, len(token.name) + 1):
        if found[1].lower() == name:
            quoted = found[2][0] in "\"'"
            return found.start(2) + quoted, found.end(2) - quoted
    return None


def _section(text: str, start: int, is_html: bool) -> Token | None:
    """What begins with this < and is no tag: a comment, a section, a declaration."""
    if text.startswith("<!--", start):
        return _until(text, start, "-->", "other", 4)
    if text.startswith("<![CDATA[", start):
        return _until(text, start, "]]>", "other" if is_html else "section", 9)
    if text.startswith("<?", start):
        return _until(text, start, ">" if is_html else "?>", "other", 2)
    if text.startswith("<!", start):
        return _until(text, start, ">", "other", 2)
    stamp = _STAMP.match(text, start)
    return Token("other", stamp[0], start) if stamp else None


def _tag(raw: str, start: int, name: str, is_html: bool) -> Token:
    if raw.startswith("</"):
        return Token("close", raw, start, name)
    is_alone = raw.endswith("/>") or (is_html and name in VOID)
    return Token("alone" if is_alone else "open", raw, start, name)


def _until(text: str, start: int, mark: str, role: Role, skip: int) -> Token:
    end = text.find(mark, start + skip)
    return Token(role, text[start : end + len(mark) if end >= 0 else len(text)], start)


def _tag_end(text: str, at: int) -> int | None:
    """Behind the > of a tag; one between quotes is no end, if the quotes are closed."""
    while found := _END.search(text, at):
        if found[0] == ">":
            return found.end()
        at = found.end()
        if found[0].startswith("=") and (close := text.find(found[0][-1], at)) >= 0:
            at = close + 1
    return None


def _raw_end(text: str, at: int, name: str) -> int:
    """Where the end tag of an element begins that holds no markup."""
    found = re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE).search(text, at)
    return found.start() if found else len(text)


def element_ends(tokens: Sequence[Token]) -> dict[int, int]:
    """For each tag that opens, the place of the one that closes it."""
    opened: dict[str, list[int]] = {}
    ends: dict[int, int] = {}
    for place, token in enumerate(tokens):
        if token.role == "open":
            opened.setdefault(token.name, []).append(place)
        elif token.role == "close" and opened.get(token.name):
            ends[opened[token.name].pop()] = place
    return ends
