"""Settings as text and as values: what TOML says, and what is wrong with it."""

import difflib
import json
import math
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

from regard.errors import ConfigError, Word


def unknown(name: str, known: Iterable[str]) -> ConfigError:
    """The error of a name that is no setting, with the nearest that is one."""
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    if near:
        return ConfigError("unknown setting {name}; did you mean {near}?", name=name, near=near[0])
    return ConfigError("unknown setting {name}", name=name)


def check_types(section: str, settings: Any) -> None:
    """Every value is of its setting's type and no slip of the hand, wherever it comes from."""
    faults = [
        fault
        for f in fields(settings)
        for name, value in [(f"{section}.{f.name}", getattr(settings, f.name))]
        if (fault := type_fault(name, f.type, value) or _size_fault(name, value))
    ]
    if faults:
        raise ConfigError("{faults}", faults=tuple(faults))


def _size_fault(name: str, value: object) -> ConfigError | None:
    most = _MOST.get(name, 2**30)
    numbers = value if isinstance(value, tuple | list) else [value]
    if any(type(number) is int and number > most for number in numbers):
        return ConfigError(
            "{name} = {value} must be at most {most}", name=name, value=shown(value), most=most
        )
    return None


_MOST = {"train.seed": 2**63 - 1, "train.workers": 256}
"""The largest of what may be larger than SentencePiece can count, or must be far less."""


def type_fault(name: str, kind: Any, value: Any) -> ConfigError | None:
    """What is wrong with a value that is not of its setting's type, or not among its choices."""
    if get_origin(kind) is Literal:
        if value in get_args(kind):
            return None
        choices = ", ".join(get_args(kind))
        return ConfigError(
            "{name} = {value} is not one of {choices}",
            name=name,
            value=shown(value),
            choices=choices,
        )
    if _fits(value, kind):
        return None
    return ConfigError(
        "{name} = {value} must be {kind}", name=name, value=shown(value), kind=_KINDS[kind]
    )


def _fits(value: Any, kind: Any) -> bool:
    if get_origin(kind) is tuple:
        of, *more = get_args(kind)
        if not isinstance(value, list | tuple) or (more != [...] and len(value) != 1 + len(more)):
            return False
        return all(_fits(v, of) for v in value)
    if get_origin(kind) in (Union, UnionType):
        return any(_fits(value, one) for one in get_args(kind))
    if get_origin(kind) is Literal:
        return value in get_args(kind)
    if get_origin(kind) is dict:
        key_kind, value_kind = get_args(kind)
        return isinstance(value, dict) and all(
            _fits(k, key_kind) and _fits(v, value_kind) for k, v in value.items()
        )
    if kind is float:  # a whole number is fine; nan and infinity are numbers to Python alone
        return type(value) in (int, float) and math.isfinite(value)
    return type(value) is kind  # a bool is an int to Python, not to a person


_KINDS = {
    int: Word("a whole number"),
    float: Word("a number"),
    bool: Word("true or false"),
    str: Word("text"),
    tuple[str, ...]: Word("a list of texts"),
    tuple[float, ...]: Word("a list of numbers"),
    tuple[int, ...]: Word("a list of whole numbers"),
    int | Literal["auto"]: Word('a whole number or "auto"'),
    int | tuple[int, int]: Word("a whole number, or a pair of them, [encoder, decoder]"),
    dict[str, dict[str, str]]: Word("a table of files, each with address, sha256 and licence"),
}


def shown(value: Any) -> str:
    """A value as TOML writes it."""
    match value:
        case bool():
            return str(value).lower()
        case str():
            return f'"{value}"'
        case list() | tuple():
            return f"[{', '.join(map(shown, value))}]"
        case _:
            return str(value)


def read_toml(path: Path) -> dict[str, Any]:
    """A TOML file as nested dictionaries."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError("there is no file {path}", path=path) from None
    except IsADirectoryError:
        raise ConfigError(
            "{path} is a directory, but a recipe is a TOML file; name one", path=path
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(
            "{path} is no valid TOML: {reason}; a recipe is TOML, and text goes by --src and --tgt",
            path=path,
            reason=error,
        ) from None


def as_toml(table: Mapping[str, Mapping[str, Any]], words: Mapping[str, str] | None = None) -> str:
    """Sections of settings as TOML; `words` has a comment for each section.name that wants one."""
    lines: list[str] = []
    for section, values in table.items():
        lines += ["", f"[{section}]"] if lines else [f"[{section}]"]
        for name, value in values.items():
            if isinstance(value, dict):
                continue
            comment = (words or {}).get(f"{section}.{name}")
            lines += [f"# {comment}"] if comment else []
            lines.append(f"{name} = {json.dumps(value, ensure_ascii=False)}")
        for name, value in values.items():
            if isinstance(value, dict):
                lines += _tables(f"{section}.{name}", value)
    return "\n".join(lines) + "\n"


def _tables(name: str, table: Mapping[str, Mapping[str, str]]) -> list[str]:
    lines = []
    for key, values in table.items():
        lines += ["", f"[{name}.{json.dumps(key, ensure_ascii=False)}]"]
        lines += [f"{k} = {json.dumps(v, ensure_ascii=False)}" for k, v in values.items()]
    return lines


def toml_value(text: str) -> Any:
    """A value as TOML reads it; what is none is text, so that norm=pre needs no quotes."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
