"""A model on its way from one format to another: what is left when its files are put aside."""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.bundle import Bundle, write_bundle
from regard.config import ModelConfig
from regard.interchange.probe import check_written
from regard.storage import written_whole
from regard.tensors import StoredDtype, Tensors, as_dtype, read_tensors, write_tensors
from regard.text.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True, eq=False)
class Carried:
    """Settings, tokenizers, weights by regard's names, and what is known and told of the model."""

    model: ModelConfig
    src_tokenizer: Tokenizer
    tgt_tokenizer: Tokenizer
    weights: Tensors
    facts: Mapping[str, Any]
    card: str


def from_bundle(bundle: Bundle) -> Carried:
    """The model of a directory of our own."""
    return Carried(
        bundle.model,
        bundle.src_tokenizer,
        bundle.tgt_tokenizer,
        read_tensors(bundle.weights),
        {name: value for name, value in bundle.facts.items() if name != "model"},
        (bundle.path / "README.md").read_text(encoding="utf-8"),
    )


def copy_bundle(bundle: Bundle, path: Path) -> None:
    """The same directory once more, byte for byte."""
    with written_whole(path) as building:
        shutil.copytree(bundle.path, building, dirs_exist_ok=True)


def write_regard(carried: Carried, path: Path, dtype: StoredDtype) -> None:
    """The model as a directory of our own; what cannot be stored is said before one is begun."""
    stored = as_dtype(carried.weights, dtype)
    tokenizers = carried.src_tokenizer, carried.tgt_tokenizer

    def write_weights(file: Path) -> None:
        check_written(file.parent, tokenizers)  # they stand there already
        write_tensors(stored, file)

    write_bundle(
        path,
        carried.model,
        tokenizers,
        write_weights,
        facts=carried.facts,
        card=carried.card,
    )
