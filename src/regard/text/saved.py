"""A tokenizer in a directory: `tokenizer.model`, its pieces, and `tokenizer.json`, all else.

The record holds the size and sha256 of the model file, so a changed or truncated one is refused
before it is parsed. One that came from another program, where a model and the ids of its pieces
are two things, has the latter in `pieces.json`, vouched for in the same way.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from regard.errors import ConfigError, ModelError
from regard.text.normalize import Normalizer
from regard.text.vocab import Vocabulary

RECORD, MODEL, PIECES = "tokenizer.json", "tokenizer.model", "pieces.json"
FORMAT = 1
# Far above any real tokenizer, and far below what would hurt to read.
MOST_BYTES = {RECORD: 1 << 20, MODEL: 1 << 26, PIECES: 1 << 26}


@dataclass(frozen=True)
class Saved:
    """What the files of a tokenizer say."""

    path: Path  # of the model file, for what is still to be said about it
    kind: str
    normalizer: Normalizer
    special: Mapping[str, Any]
    model: bytes
    listed: bytes | None = None  # the pieces, where the model does not give them their ids
    before: str = ""  # what is done to a text before it is cut, by the name of its doer

    def vocabulary(self, pieces: tuple[str, ...]) -> Vocabulary:
        """The vocabulary of these pieces and the recorded special ids."""
        try:
            return Vocabulary.from_table({**self.special, "pieces": pieces})
        except ConfigError as error:
            raise ModelError("{path}: {faults}", path=self.path, faults=(error,)) from None

    def pieces(self) -> tuple[str, ...]:
        """The pieces of a file that is a list of them, as `pieces_model` writes it."""
        path = self.path if self.listed is None else self.path.with_name(PIECES)
        try:
            pieces = json.loads(self.model if self.listed is None else self.listed)
            if not isinstance(pieces, list):
                raise TypeError
            "".join(pieces).encode()
        except (ValueError, TypeError, RecursionError):
            raise ModelError("{path} is no list of pieces", path=path) from None
        return tuple(pieces)


def pieces_model(vocab: Vocabulary) -> bytes:
    """The model file of a tokenizer that has nothing but pieces."""
    return json.dumps(vocab.pieces, ensure_ascii=False, indent=0).encode()


def write_saved(
    directory: Path,
    kind: str,
    normalizer: Normalizer,
    vocab: Vocabulary,
    model: bytes,
    *,
    is_foreign: bool = False,
    before: str = "",
) -> None:
    """Write the files; the record, which vouches for the others, comes last.

    The pieces of a foreign model have a file of their own.
    """
    directory.mkdir(parents=True, exist_ok=True)
    (directory / MODEL).write_bytes(model)
    record = {
        "format": FORMAT,
        "kind": kind,
        "normalizer": normalizer.as_table(),
        "vocabulary": vocab.special_table(),
        "model": _entry(MODEL, model),
    }
    if is_foreign:
        (directory / PIECES).write_bytes(pieces_model(vocab))
        record |= {"pieces": _entry(PIECES, pieces_model(vocab)), "before": before}
    text = json.dumps(record, ensure_ascii=False, indent=2)
    (directory / RECORD).write_text(text + "\n", encoding="utf-8")


def read_saved(directory: Path) -> Saved:
    """The files of a tokenizer, each checked before it is believed."""
    path = directory / RECORD
    record = _record(path)
    model = _vouched(directory / MODEL, record["model"])
    is_foreign = "pieces" in record
    listed = _vouched(directory / PIECES, record["pieces"]) if is_foreign else None
    try:
        normalizer = Normalizer.from_table(record["normalizer"])
    except ConfigError as error:
        raise ModelError("{path}: {faults}", path=path, faults=(error,)) from None
    return Saved(
        directory / MODEL,
        record["kind"],
        normalizer,
        record["vocabulary"],
        model,
        listed,
        record.get("before", ""),
    )


def _entry(name: str, data: bytes) -> dict[str, Any]:
    return {"file": name, "bytes": len(data), "sha256": sha256(data).hexdigest()}


def _vouched(path: Path, entry: Mapping[str, Any]) -> bytes:
    """A file that is as the record says."""
    data = _bytes(path)
    if len(data) != entry["bytes"]:
        raise ModelError(
            "{path} has {found} bytes but {record} says {expected}; it was cut or changed",
            path=path,
            found=len(data),
            record=RECORD,
            expected=entry["bytes"],
        )
    if sha256(data).hexdigest() != entry["sha256"]:
        raise ModelError(
            "{path} was changed since it was saved: its sha256 is not the one in {record}",
            path=path,
            record=RECORD,
        )
    return data


def _record(path: Path) -> dict[str, Any]:
    try:
        record = json.loads(_bytes(path))
    except ModelError:
        raise
    except (ValueError, RecursionError):
        raise ModelError("{path} is no valid JSON", path=path) from None
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise ModelError("{path} is no tokenizer record of format {known}", path=path, known=FORMAT)
    for name, is_right in _FIELDS.items():
        if not is_right(record.get(name)) and not (name in _OPTIONAL and name not in record):
            raise ModelError('{path} has no valid "{name}"', path=path, name=name)
    return record


def _is_special_table(value: Any) -> bool:
    names = {"pad", "bos", "eos", "unk", "languages"}
    if not isinstance(value, dict) or value.keys() != names:
        return False
    languages = value["languages"]
    if not isinstance(languages, dict):
        return False
    ids = [*(value[name] for name in names - {"languages"}), *languages.values()]
    return all(type(id) is int for id in ids)


def _is_entry(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and type(value.get("bytes")) is int
        and isinstance(value.get("sha256"), str)
    )


_OPTIONAL = ("pieces", "before")
_FIELDS = {
    "kind": lambda value: isinstance(value, str),
    "normalizer": lambda value: (
        isinstance(value, dict) and all(isinstance(choice, str) for choice in value.values())
    ),
    "vocabulary": _is_special_table,
    "model": _is_entry,
    "pieces": _is_entry,
    "before": lambda value: isinstance(value, str),
}


def _bytes(path: Path) -> bytes:
    most = MOST_BYTES[path.name]
    try:
        with path.open("rb") as file:
            data = file.read(most + 1)
    except FileNotFoundError:
        raise ModelError("there is no file {path}", path=path) from None
    if len(data) > most:
        raise ModelError(
            "{path} is larger than the {most} bytes a tokenizer may have", path=path, most=most
        )
    return data
