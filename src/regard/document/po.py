"""PO: a translation for every entry that has none, marked fuzzy where a machine made it.

Entries stay where they are, with their comments, contexts and breaks; obsolete ones stay as they
are. Of an entry with plural forms the first form says the singular, all others the plural; a
language with one form says the plural with it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from regard.document.parts import TEXT
from regard.document.units import Edit, Origin, Unit, Wanted
from regard.errors import DataError

_LINE = re.compile(r"[^\n]*\n|[^\n]+\Z")
_FIELD = re.compile(
    r"[ \t]*(?P<name>msgctxt|msgid_plural|msgid|msgstr(?:\[(?P<form>\d{1,3})\])?)?[ \t]*"
    r'(?P<text>"(?:[^"\\]|\\.)*+")[ \t\r]*\n?'
)
_ESCAPE = re.compile(r"\\(?:([0-7]{1,3})|x([0-9A-Fa-f]{2})|(.))", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_WRITTEN = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}
_LANGUAGE = re.compile(r"^Language:[ \t]*([\w@-]+)", re.MULTILINE)


@dataclass
class _Field:
    """A text of an entry, and where its strings stand in the file, from quote to quote."""

    text: str
    start: int
    end: int


@dataclass
class _Entry:
    """An entry: its fields by name, the line of its id, its flags, and where a comment may go."""

    fields: dict[str, _Field] = field(default_factory=dict)
    forms: dict[int, _Field] = field(default_factory=dict)
    line: int = 0
    head: int = -1  # where its first field, or what it was before, begins
    flags: tuple[int, str] | None = None  # where they begin, and what they are


def languages(text: str, file: str = "") -> tuple[str, str]:
    """The languages a file says it goes from and to; gettext does not say from which."""
    for entry in _entries(text, file):
        if entry.fields.get("msgid") and not entry.fields["msgid"].text and 0 in entry.forms:
            found = _LANGUAGE.search(entry.forms[0].text)
            return "", found[1].replace("_", "-") if found else ""
    return "", ""


def units(text: str, wanted: Wanted, file: str = "") -> list[Unit]:
    """Every entry without a translation."""
    end_of_line = "\r\n" if "\r\n" in text else "\n"
    found = []
    for entry in _entries(text, file):
        msgid = entry.fields.get("msgid")
        is_empty = not any(form.text for form in entry.forms.values())
        if msgid and msgid.text.strip() and entry.forms and is_empty:
            found.append(_unit(text, entry, end_of_line))
    return found


def _unit(text: str, entry: _Entry, end_of_line: str) -> Unit:
    msgid, plural = entry.fields["msgid"], entry.fields.get("msgid_plural")
    forms = [form for _, form in sorted(entry.forms.items())]
    has_plural = plural is not None and plural.text.strip()
    sources = (msgid.text, plural.text) if plural and has_plural else (msgid.text,)

    def written(texts: tuple[str, ...], _: Origin) -> str:
        said, at = "", forms[0].start
        for number, form in enumerate(forms):
            is_singular = number == 0 and len(forms) > 1
            said += text[at : form.start]
            said += _quoted(texts[0] if is_singular else texts[-1], end_of_line)
            at = form.end
        return said

    def besides(origin: Origin) -> tuple[Edit, ...]:
        if origin != "machine":
            return ()
        if entry.flags is None:
            return (Edit(entry.head, entry.head, f"#, fuzzy{end_of_line}"),)
        start, said = entry.flags
        if "fuzzy" in re.split(r"[,\s]+", said):
            return ()
        return (Edit(start + 2, start + 2, " fuzzy,"),)

    context = entry.fields.get("msgctxt")
    return Unit(
        entry.line,
        context.text if context else "",
        sources,
        (TEXT,) * len(sources),
        forms[0].start,
        forms[-1].end,
        written,
        besides,
    )


def _entries(text: str, file: str) -> Iterator[_Entry]:
    entry, last = _Entry(), _Field("", 0, 0)
    for number, found in enumerate(_LINE.finditer(text), start=1):
        line, start = found[0], found.start()
        bare = line.strip()
        if entry.forms and (not bare or bare.startswith("#") or re.match("msg(ctxt|id)\\b", bare)):
            yield entry
            entry = _Entry()
        if not bare:
            continue
        if bare.startswith("#~"):  # of an entry that is obsolete, as are the comments before it
            entry = _Entry()
            continue
        if bare.startswith("#"):
            _comment(entry, line, start)
            continue
        one = _FIELD.fullmatch(line)
        if one is None or (one["name"] is None and not entry.fields):
            raise DataError(
                "{file}, line {line} is no line of PO: a comment, a msg... with its text in "
                "quotes, or text in quotes",
                file=file,
                line=number,
            )
        edges = (start + one.start("text"), start + one.end("text"))
        if one["name"] is None:
            last.text += _unescaped(one["text"][1:-1])
            last.end = edges[1]
            continue
        last = _Field(_unescaped(one["text"][1:-1]), *edges)
        if one["name"].startswith("msgstr"):
            entry.forms[int(one["form"] or 0)] = last
        entry.fields[one["name"]] = last
        entry.line = number if one["name"] == "msgid" else entry.line
        entry.head = start if entry.head < 0 else entry.head
    if entry.forms:
        yield entry


def _comment(entry: _Entry, line: str, start: int) -> None:
    if line.startswith("#,"):
        entry.flags = (start, line[2:])
    elif line.startswith("#|") and entry.head < 0:
        entry.head = start


def _unescaped(text: str) -> str:
    def one(found: re.Match[str]) -> str:
        if found[1] or found[2]:
            return chr(int(found[1], 8) if found[1] else int(found[2], 16))
        return _ESCAPES.get(found[3], found[3])

    return _ESCAPE.sub(one, text)


def _quoted(text: str, end_of_line: str) -> str:
    """A text as PO writes it: on one line, or each of its lines on one of its own."""
    lines = re.findall(r"[^\n]*\n|[^\n]+\Z", text)
    quoted = [f'"{"".join(_WRITTEN.get(char, char) for char in line)}"' for line in lines]
    if len(quoted) < 2:
        return quoted[0] if quoted else '""'
    return end_of_line.join(('""', *quoted))
