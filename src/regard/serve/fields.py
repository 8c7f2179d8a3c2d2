"""What a request says, wherever it says it: query, form, JSON and files as one table.

Clients send the same fields in different places, even in the body of a GET, so all are read. What
is no proper JSON, UTF-8 or number is refused with a sentence; nothing is guessed and nothing here
can fail otherwise.
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, unquote

from starlette.requests import Request

from regard.errors import DataError, Word
from regard.serve.refusals import Refused, missing, wrong

FIELDS = 1000  # of a form, at most
_BOUNDARY = re.compile(r'boundary="?([^";,\s]{1,100})"?', re.IGNORECASE)
_QUOTED = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_ENCODED_NAME = re.compile(r"filename\*=(?i:utf-8)''([^;\s]+)")
_TRUE, _FALSE = ("1", "true", "yes", "on"), ("0", "false", "no", "off", "")


@dataclass(frozen=True, slots=True)
class File:
    """A file that came with a form; its name is what the client calls it, and no path."""

    name: str
    content: bytes


class Fields:
    """The fields of a request by name, and what each has to be."""

    def __init__(self, table: Mapping[str, Any], names: Mapping[str, str] | None = None) -> None:
        self.table = table

    def has(self, name: str) -> bool:
        """Whether it is there and not null."""
        return self.table.get(name) is not None

    def text(self, name: str, otherwise: str | None = None) -> str:
        """One text; of several, as a form may repeat a field, the last."""
        value = self.table.get(name)
        if isinstance(value, _Repeated):
            value = value[-1]
        if value is None:
            if otherwise is None:
                raise missing(name)
            return otherwise
        if not isinstance(value, str):
            raise wrong(name, shown(value), Word("a text"))
        return value

    def texts(self, name: str) -> list[str]:
        """A list of texts; one alone is a list of one."""
        value = self.table.get(name)
        if value is None:
            raise missing(name)
        if isinstance(value, str):
            return [value]
        if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
            raise wrong(name, shown(value), Word("a text or a list of texts"))
        return list(value)

    def words(self, name: str) -> list[str]:
        """A list of names; in one text commas stand between them."""
        if not self.has(name):
            return []
        return [word.strip() for one in self.texts(name) for word in one.split(",") if word.strip()]

    def number(self, name: str, otherwise: int, most: int, least: int = 0) -> int:
        """A whole number within bounds, also as text."""
        value = self.table.get(name)
        if isinstance(value, _Repeated):
            value = value[-1]
        if value is None or value == "":
            return otherwise
        if isinstance(value, str) and re.fullmatch(r"-?[0-9]{1,9}", value):
            value = int(value)
        if type(value) is not int or not least <= value <= most:
            raise wrong(name, shown(value), f"{least} to {most}")
        return value

    def flag(self, name: str, otherwise: bool = False) -> bool:
        """True or false, also as 1, "1", "true"."""
        value = self.table.get(name)
        if isinstance(value, _Repeated):
            value = value[-1]
        if value is None:
            return otherwise
        said = str(value).lower() if isinstance(value, str | bool | int) else ""
        if isinstance(value, str | bool | int) and said in _TRUE + _FALSE:
            return said in _TRUE
        raise wrong(name, shown(value), "true, false")

    def file(self, name: str) -> File:
        """A file of a form."""
        value = self.table.get(name)
        if value is None:
            raise missing(name)
        if not isinstance(value, File):
            raise wrong(name, shown(value), Word("a file in multipart/form-data"))
        return value


class _Repeated(list[Any]):
    """The values of a form's field that stands there more than once: one field, or a list."""


async def fields_of(request: Request) -> Fields:
    """Query and body as one table; what stands in both is the body's."""
    query = _form(request.scope["query_string"], Word("query"))
    body = await request.body()
    kind = request.headers.get("content-type", "").split(";")[0].strip().lower()
    return Fields({**query, **_body(body, kind, request.headers.get("content-type", ""))})


def table_of(body: bytes) -> dict[str, Any]:
    """A JSON object; two of one name, NaN and infinity, half characters and the like are none."""
    try:
        table = json.loads(
            body.decode("utf-8-sig"),
            parse_constant=_no_number,
            parse_float=_finite,
            object_pairs_hook=_once_each,
        )
        if b"\\ud" in body or b"\\uD" in body:  # half a surrogate pair is no text
            json.dumps(table, ensure_ascii=False).encode()
    except RecursionError:
        raise _no_json("it is nested too deeply") from None
    except ValueError as error:  # what is no JSON, no UTF-8, or a number of 5,000 digits
        raise _no_json(_reason(error)) from None
    if not isinstance(table, dict):
        raise _no_json(f"it is {shown(table)}, not an object")
    return table


def shown(value: object) -> str:
    """A value as an error shows it: short, and never a whole text."""
    match value:
        case bool() | None:
            return json.dumps(value)
        case int() | float():
            return str(value)[:20]
        case str():
            return f'"{value}"' if len(value) <= 20 else f'"{value[:20]}…"'
        case list():
            return f"a list of {len(value)}"
        case File():
            return "a file"
        case _:
            return "an object"


def _body(body: bytes, kind: str, whole_kind: str) -> Mapping[str, Any]:
    if not body.strip():
        return {}
    if kind == "multipart/form-data":
        return _multipart(body, whole_kind)
    if kind == "application/x-www-form-urlencoded" and body.lstrip()[:1] != b"{":
        return _form(body, Word("form"))
    return table_of(body)  # also what some clients send as text/plain


def _form(raw: bytes, what: str) -> dict[str, Any]:
    """The fields of a query or a form; one that is repeated has all its values."""
    try:
        pairs = parse_qsl(
            raw.decode("utf-8"), keep_blank_values=True, errors="strict", max_num_fields=FIELDS
        )
    except ValueError:
        raise Refused(
            400,
            "bad_form",
            DataError("the {what} is no text in UTF-8, or has too many fields", what=what),
        ) from None
    return _gathered(pairs)


def _gathered(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    table: dict[str, Any] = {}
    for name, value in pairs:
        if name.endswith("[]"):  # as some libraries name a field that repeats
            name = name[:-2]
        if name in table:
            before = table[name]
            table[name] = _Repeated(
                [*(before if isinstance(before, _Repeated) else [before]), value]
            )
        else:
            table[name] = value
    return table


def _multipart(body: bytes, kind: str) -> dict[str, Any]:
    found = _BOUNDARY.search(kind)
    if found is None:
        raise _no_multipart()
    mark = b"--" + found[1].encode("latin-1")
    parts = (b"\r\n" + body).split(b"\r\n" + mark)
    if len(parts) < 2 or not parts[-1].startswith(b"--") or len(parts) > FIELDS:
        raise _no_multipart()
    return _gathered([_part(part) for part in parts[1:-1]])


def _part(part: bytes) -> tuple[str, str | File]:
    head, gap, content = part.partition(b"\r\n\r\n")
    try:
        lines = head.decode("utf-8").splitlines()
        said = next(one for one in lines if one.lower().startswith("content-disposition:"))
        values = dict(_QUOTED.findall(said))
        encoded = _ENCODED_NAME.search(said)
        if encoded:
            values["filename"] = unquote(encoded[1], errors="strict")
        if not gap:
            raise ValueError
        if "filename" in values:
            return values["name"], File(_bare(values["filename"]), content)
        return values["name"], content.decode("utf-8")
    except (ValueError, KeyError, StopIteration):
        raise _no_multipart() from None


def _bare(name: str) -> str:
    """The last part of a file's name, whatever the client's system calls a path."""
    return re.split(r"[/\\]", name)[-1][:200]


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) != len(pairs):
        raise ValueError("a name stands in it twice")
    return table


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is no number")


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError("a number is too large")
    return value


def _reason(error: ValueError) -> str:
    match error:
        case json.JSONDecodeError():
            return f"{error.msg.lower()} at character {error.pos}"
        case UnicodeDecodeError():
            return f"it is no UTF-8 at byte {error.start}"
        case UnicodeEncodeError():
            return "it has half of a surrogate pair"
        case _:
            return str(error) if len(str(error)) < 40 else "a number has too many digits"


def _no_json(detail: str) -> Refused:
    reason = DataError("the body is no valid JSON: {detail}", detail=detail)
    return Refused(400, "bad_json", reason)


def _no_multipart() -> Refused:
    reason = DataError("the body is no valid multipart/form-data")
    return Refused(400, "bad_form", reason)
