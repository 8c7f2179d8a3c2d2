"""A fixed text by whose ids a changed tokenizer shows itself, wherever a model goes."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from regard.errors import ModelError, Word
from regard.text.tokenizer import Tokenizer, load_tokenizer

PROBE = (
    "Hello, world! It's 3:45 p.m. — “déjà vu” (99.5 %) … 你好，世界！「漢字」１２３ "
    "Привет, мир; ça coûte 1 000 €. ｶﾀｶﾅ こんにちは 안녕 नमस्ते مرحبا 🙂 a  b"
)
"""Scripts, accents, widths, quotes, dashes, two spaces: whatever tokenizers disagree about."""

Tokenizers = tuple[Tokenizer, Tokenizer]


def probed(tokenizers: Tokenizers) -> dict[str, list[int]]:
    """The ids of the probe on both sides, to be kept with a model."""
    return dict(zip(("src", "tgt"), (one.encode(PROBE) for one in tokenizers), strict=True))


def check_probe(tokenizers: Tokenizers, facts: Mapping[str, Any]) -> None:
    """The tokenizers still do what they did when the model was converted, if it ever was."""
    if kept := facts.get("probe"):
        _compare(probed(tokenizers), {side: list(ids) for side, ids in kept.items()})


def check_written(directory: Path, tokenizers: Tokenizers) -> None:
    """What was saved in a directory, and is read again, gives the ids that these give."""
    src, tgt = (load_tokenizer(directory / f"{side}_tokenizer") for side in ("src", "tgt"))
    check_same((src, tgt), tokenizers)


def check_same(found: Tokenizers, expected: Tokenizers) -> None:
    """Two pairs of tokenizers give the same ids."""
    _compare(probed(found), probed(expected))


def _compare(found: dict[str, list[int]], expected: dict[str, list[int]]) -> None:
    for side, word in (("src", Word("source")), ("tgt", Word("target"))):
        if found[side] != expected.get(side):
            raise ModelError(
                "the {side} tokenizer is not what it was: a fixed text has other ids now", side=word
            )
