"""A tokenizer in a directory: `tokenizer.model`, its pieces, and `tokenizer.json`, all else.

The record holds the size and sha256 of the model file, so a changed or truncated one is refused
before it is parsed.
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

RECORD, MODEL = "tokenizer.json", "tokenizer.model"
FORMAT = 1
# Far above any real tokenizer, and far below what would hurt to read.
MOST_BYTES = {RECORD: 1 << 20, MODEL: 1 << 26}


@dataclass(frozen=True)
class Saved:
    """What the files of a tokenizer say."""

    path: Path  # of the model file, for what is still to be said about it
    kind: str
    normalizer: Normalizer
    special: Mapping[str, Any]
    model: bytes

    def vocabulary(self, pieces: tuple[str, ...]) -> Vocabulary:
        """The vocabulary of these pieces and the recorded special ids."""
        try:
            return Vocabulary.from_table({**self.special, "pieces": pieces})
        except ConfigError as error:
            raise ModelError("{path}: {faults}", path=self.path, faults=(error,)) from None

    def pieces(self) -> tuple[str, ...]:
        """The pieces of a model file that is a list of them, as `pieces_model` writes it."""
        try:
            pieces = json.loads(self.model)
            if not isinstance(pieces, list):
                raise TypeError
            "".join(pieces).encode()
        except (ValueError, TypeError, RecursionError):
            raise ModelError("{path} is no list of pieces", path=self.path) from None
        return tuple(pieces)


def pieces_model(vocab: Vocabulary) -> bytes:
    """The model file of a tokenizer that has nothing but pieces."""
    return json.dumps(vocab.pieces, ensure_ascii=False, indent=0).encode()


def write_saved(
    directory: Path, kind: str, normalizer: Normalizer, vocab: Vocabulary, model: bytes
) -> None:
    """Write both files; the record, which vouches for the other, comes last."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / MODEL).write_bytes(model)
    record = {
        "format": FORMAT,
        "kind": kind,
        "normalizer": normalizer.as_table(),
        "vocabulary": vocab.special_table(),
        "model": {"file": MODEL, "bytes": len(model), "sha256": sha256(model).hexdigest()},
    }
    text = json.dumps(record, ensure_ascii=False, indent=2)
    (directory / RECORD).write_text(text + "\n", encoding="utf-8")


def read_saved(directory: Path) -> Saved:
    """The files of a tokenizer, each checked before it is believed."""
    path = directory / RECORD
    record = _record(path)
    model = _bytes(directory / MODEL)
    size, digest = record["model"]["bytes"], record["model"]["sha256"]
    if len(model) != size:
        raise ModelError(
            "{path} has {found} bytes but {record} says {expected}; it was cut or changed",
            path=directory / MODEL,
            found=len(model),
            record=RECORD,
            expected=size,
        )
    if sha256(model).hexdigest() != digest:
        raise ModelError(
            "{path} was changed since it was saved: its sha256 is not the one in {record}",
            path=directory / MODEL,
            record=RECORD,
        )
    try:
        normalizer = Normalizer.from_table(record["normalizer"])
    except ConfigError as error:
        raise ModelError("{path}: {faults}", path=path, faults=(error,)) from None
    return Saved(directory / MODEL, record["kind"], normalizer, record["vocabulary"], model)


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
        if not is_right(record.get(name)):
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


_FIELDS = {
    "kind": lambda value: isinstance(value, str),
    "normalizer": lambda value: (
        isinstance(value, dict) and all(isinstance(choice, str) for choice in value.values())
    ),
    "vocabulary": _is_special_table,
    "model": lambda value: (
        isinstance(value, dict)
        and type(value.get("bytes")) is int
        and isinstance(value.get("sha256"), str)
    ),
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
