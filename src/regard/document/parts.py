"""The parts of a marked text: text, tags that open, close or stand alone, and what is kept whole.

What a tag does is said by `Rules`, and by what it says itself: translate="no", class="notranslate",
mtype="protected". Tags that are written out in a text, as in &lt;b&gt;, are found there too.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import unescape
from typing import Literal
from xml.parsers import expat
from xml.sax.saxutils import escape

from regard.document.elements import BLOCKS, CODE, INLINE, UNSEEN, VOID
from regard.document.placeholders import is_placeholder, placeholders
from regard.document.scan import Token, element_ends, scan, scan_loosely
from regard.errors import DataError

Kind = Literal["text", "xml", "html"]
Role = Literal["text", "open", "close", "alone", "atom"]

KNOWN = VOID | BLOCKS | INLINE
MAX_DEPTH = 200
LONGEST = 40  # letters that are looked at before a placeholder
NOTE = 8  # characters of the number of a note
_ENDS = {"bpt": "ept", "bx": "ex", "sc": "ec", "sm": "em"}  # pairs of lone tags in XLIFF and TMX
_STARTS = {end: start for start, end in _ENDS.items()}
_ENTITY = re.compile(r"&(?:[A-Za-z][A-Za-z0-9]{1,30}|#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6});")
_LETTERS = re.compile(r"[A-Za-z0-9_]+")
_LETTERS_BEFORE = re.compile(r"[A-Za-z0-9_]+\Z")
_OVERRIDE = re.compile(r"\{\\[^{}]*\}")  # {\an8}: where a subtitle stands


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """How the markup of a text is read."""

    kind: Kind = "xml"
    verbatim: frozenset[str] = frozenset()  # elements that are kept to the letter, tags and all
    codes: frozenset[str] = frozenset()  # elements that hold another document's tag: one tag each
    breaks: frozenset[str] = frozenset()  # tags that end a sentence
    keeps_lines: bool = False  # whether a line break means more than a space
    outline: bool = False  # whether elements with no text beside them end a sentence


HTML = Rules(kind="html", verbatim=CODE, breaks=BLOCKS)
TEXT = Rules(kind="text", verbatim=CODE, breaks=BLOCKS, keeps_lines=True)


@dataclass(frozen=True, slots=True)
class Part:
    """Text, a tag, or what is kept whole. `key` says which tags belong together."""

    role: Role
    raw: str
    text: str = ""
    name: str = ""
    key: str = ""
    is_loose: bool = False  # a tag that was found written out in a text
    is_break: bool = False


def rules_for(marked: str, rules: Rules) -> Rules:
    """The rules for one text: one with &amp; in it is HTML, even where text is expected."""
    is_html = rules.kind == "text" and _ENTITY.search(marked)
    return replace(rules, kind="html") if is_html else rules


def parts_of(marked: str, rules: Rules) -> list[Part]:
    """All parts of a text, in order; joined, they say all that it says."""
    if rules.kind == "text":
        parts = list(_in_text(marked, rules, str))
    else:
        parts = list(_in_markup(marked, rules))
    paired = pairs_of(parts)
    parts = [
        replace(part, role="atom") if _is_word(part) and number not in paired else part
        for number, part in enumerate(parts)
    ]
    return _outlined(parts, pairs_of(parts)) if rules.outline else parts


def kept_in(marked: str, rules: Rules) -> Counter[str]:
    """Every tag, placeholder and other thing that must come back, and how often it stands there."""
    return Counter(part.raw for part in parts_of(marked, rules) if part.role != "text")


def pairs_of(parts: Sequence[Part]) -> dict[int, int]:
    """The partner of each tag that has one; of a pair that crosses another, its number below 0."""
    opened: dict[str, list[int]] = {}
    partners: dict[int, int] = {}
    for number, part in enumerate(parts):
        if part.role == "open":
            opened.setdefault(part.key, []).append(number)
        elif part.role == "close" and opened.get(part.key):
            start = opened[part.key].pop()
            partners[start], partners[number] = number, start
    around: list[int] = []
    crossed: set[int] = set()
    for number in sorted(partners):
        if partners[number] > number:
            around.append(number)
            continue
        while around and around[-1] in crossed:
            around.pop()
        if around and around[-1] == partners[number] and len(around) <= MAX_DEPTH:
            around.pop()
        else:
            crossed.add(partners[number])
    for start in crossed:
        end = partners[start]
        partners[start] = partners[end] = -1 - start
    return partners


def check_xml(text: str) -> None:
    """Refuse what is no well-formed XML within one element; no entity is defined there."""
    parser = expat.ParserCreate("utf-8")
    try:
        parser.Parse(f"<r>{text}</r>".encode(errors="replace"), True)
    except expat.ExpatError as error:
        raise DataError(
            "the text is no well-formed XML: {reason}; close every tag, and write &lt; and &amp; "
            "for < and &",
            reason=expat.ErrorString(error.code),
        ) from error


# --- markup


def _in_markup(marked: str, rules: Rules) -> Iterator[Part]:
    tokens = list(scan(marked, is_html=rules.kind == "html"))
    ends = element_ends(tokens)
    skip = -1
    for place, token in enumerate(tokens):
        if place <= skip:
            continue
        is_code = token.role in ("open", "alone") and token.name.rpartition(":")[2] in rules.codes
        if token.role == "text":
            yield from _in_text(unescape(token.raw), rules, escape)
        elif token.role == "section":
            yield from _in_text(token.raw[9:-3], rules, escape)
        elif rules.kind == "html" and token.name == "sup" and _is_note(tokens, place, ends):
            skip = ends[place]
            yield Part("alone", marked[token.start : tokens[skip].end], name=token.name)
        elif token.role in ("open", "alone") and (is_code or _is_kept(token, rules)):
            skip = ends.get(place, place)
            raw = marked[token.start : tokens[skip].end]
            yield _code(token, raw, rules) if is_code else _kept(token, raw, rules)
        elif token.role == "alone":
            yield _code(token, token.raw, rules)
        elif token.role == "other":
            yield Part("alone", token.raw)
        else:
            is_break = token.name in rules.breaks
            role: Role = "open" if token.role == "open" else "close"
            yield Part(role, token.raw, "", token.name, token.name, is_break=is_break)


def _is_note(tokens: Sequence[Token], place: int, ends: Mapping[int, int]) -> bool:
    """Whether a raised element is the number of a note, which is no part of the sentence."""
    inner = tokens[place + 1 : ends.get(place, place)]
    text = "".join(token.raw for token in inner if token.role == "text").strip()
    return 0 < len(text) <= NOTE and not any(map(str.isalpha, unescape(text)))


def _is_kept(token: Token, rules: Rules) -> bool:
    """Whether an element stays as it is, with all that is in it."""
    if token.name in rules.verbatim or (rules.kind == "html" and token.name in UNSEEN):
        return True
    if token.raw.find("=") < 0:
        return False
    attributes = token.attributes
    return (
        "no" in (attributes.get("translate"), attributes.get("its:translate"))
        or attributes.get("mtype") == "protected"
        or (rules.kind == "html" and "notranslate" in attributes.get("class", "").split())
    )


def _kept(token: Token, raw: str, rules: Rules) -> Part:
    is_unseen = rules.kind == "html" and token.name in UNSEEN
    return Part("alone" if is_unseen else "atom", raw, name=token.name)


def _code(token: Token, raw: str, rules: Rules) -> Part:
    """A lone tag, or an element that stands for one: it may be one of a pair, or a placeholder."""
    is_break = token.name in rules.breaks
    if rules.kind == "html":
        return Part("alone", raw, name=token.name, is_break=is_break)
    name, attributes = token.name.rpartition(":")[2], token.attributes
    if name in _ENDS:
        own = attributes.get("i") or attributes.get("rid") or attributes.get("id", "")
        return Part("open", raw, "", token.name, f"{name} {own}")
    if name in _STARTS:
        given = ("i", "rid", "startRef", "id")
        own = next((attributes[key] for key in given if key in attributes), "")
        return Part("close", raw, "", token.name, f"{_STARTS[name]} {own}")
    if attributes.get("ctype", attributes.get("type")) == "lb":
        is_break = True
    content = raw[len(token.raw) :].rpartition("</")[0]
    shown = [attributes.get(key, "") for key in ("equiv-text", "equiv", "disp")]
    is_atom = any(is_placeholder(unescape(text)) for text in (content, *shown) if text)
    return Part("atom" if is_atom else "alone", raw, name=token.name, is_break=is_break)


# --- text


def _in_text(text: str, rules: Rules, escaped: Callable[[str], str]) -> Iterator[Part]:
    """Text, with the tags and the placeholders that are written out in it."""
    for token in scan_loosely(text):
        if token.role != "text":
            yield _loose(token, rules, escaped)
            continue
        at = 0
        for start, end, is_shown in _placeholders(token.raw):
            if at < start:
                yield Part("text", escaped(token.raw[at:start]), token.raw[at:start])
            yield Part("atom" if is_shown else "alone", escaped(token.raw[start:end]))
            at = end
        if at < len(token.raw):
            yield Part("text", escaped(token.raw[at:]), token.raw[at:])


def _loose(token: Token, rules: Rules, escaped: Callable[[str], str]) -> Part:
    """A tag that is written out in a text; a page that shows one, as &lt;b&gt;, means to."""
    raw, name = escaped(token.raw), token.name
    roles: dict[str, Role] = {"open": "open", "close": "close"}
    role: Role = "atom" if rules.kind == "html" else roles.get(token.role, "alone")
    return Part(role, raw, "", name, name, is_loose=True, is_break=name in rules.breaks)


def _placeholders(text: str) -> Iterator[tuple[int, int, bool]]:
    """Where placeholders stand, and whether something is shown in their places.

    The letters that touch a placeholder belong to it: %dMB, v{version}.
    """
    found = [(start, end, True) for start, end in placeholders(text)]
    found += [(*one.span(), False) for one in _OVERRIDE.finditer(text)]
    at = 0
    for start, end, is_shown in sorted(found):
        if start < at:
            continue
        if is_shown:
            before = _LETTERS_BEFORE.search(text, max(at, start - LONGEST), start)
            after = _LETTERS.match(text, end)
            start, end = before.start() if before else start, after.end() if after else end
        yield start, end, is_shown
        at = end


def _is_word(part: Part) -> bool:
    """Whether what looks like a tag is rather a word, if it has no partner: usage: copy <file>."""
    is_known = part.name in KNOWN or part.name.partition(".")[0] in ("c", "v")
    return part.is_loose and part.role == "open" and not is_known and " " not in part.raw


def _outlined(parts: Sequence[Part], pairs: dict[int, int]) -> list[Part]:
    """Sentences end at the tags of elements that have no text beside them."""
    parents: list[int] = [-1]
    parent_of: dict[int, int] = {}
    has_text: set[int] = set()
    for number, part in enumerate(parts):
        if part.role in ("text", "atom"):
            if part.role == "atom" or part.text.strip():
                has_text.add(parents[-1])
        elif pairs.get(number, -1) > number:
            parent_of[number] = parents[-1]
            parents.append(number)
        elif pairs.get(number, -1) >= 0:
            parents.pop()
    ends = {
        number
        for start, parent in parent_of.items()
        if parent not in has_text
        for number in (start, pairs[start])
    }
    return [replace(p, is_break=True) if n in ends else p for n, p in enumerate(parts)]
