"""SentencePiece as other programs use it: a model cuts the text, and a list of theirs has the ids.

`tokenizer.model` is their file, byte for byte, normalising tables and all; `pieces.json` has their
pieces in the order of their ids. What no piece covers is `unk`: unlike the tokenizers of our own,
these lose it, as they do where they come from.
"""

import re
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from sentencepiece import SentencePieceProcessor

from regard.errors import ModelError
from regard.text.normalize import Normalizer
from regard.text.punctuation import moses_punctuation
from regard.text.saved import Saved, write_saved
from regard.text.spm import read_foreign_spm
from regard.text.vocab import Vocabulary, joined, spellings

SPACE = "▁"
LANGUAGE = re.compile(">>([^<>]+)<<")  # as Marian's models write the token that asks for one
MOSES = "moses "


class MappedTokenizer:
    """A SentencePiece model, and a vocabulary with ids of its own."""

    def __init__(
        self, model: bytes, vocab: Vocabulary, normalizer: Normalizer, punctuation: str = ""
    ) -> None:
        """`punctuation` is the language by whose rules Moses normalises it; empty: never."""
        self.vocab = vocab
        self.normalizer = normalizer
        self.punctuation = punctuation
        self.model = model
        self._processor = SentencePieceProcessor(model_proto=model)

    def __reduce__(self) -> tuple[object, ...]:
        return MappedTokenizer, (self.model, self.vocab, self.normalizer, self.punctuation)

    def encode(self, text: str) -> list[int]:
        """The ids of a text; a language that stands before it, as >>en<<, is its first."""
        return [self._ids.get(piece, self.vocab.unk) for piece in self.pieces(text)]

    def encode_all(self, texts: Sequence[str], threads: int = 1) -> list[list[int]]:
        """The ids of each text, by one thread."""
        return [self.encode(text) for text in texts]

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids; special ids are passed over, and `unk` is ⁇."""
        return joined(self._bytes_of, ids).strip(" ")

    def pieces(self, text: str) -> list[str]:
        """The pieces of a text, ▁ for a space; some may be strange to the vocabulary."""
        text = self.normalizer(text)
        if self.punctuation:
            text = moses_punctuation(text, self.punctuation)
        asks = LANGUAGE.match(text) if self.vocab.languages else None
        if asks and asks[1] in self.vocab.languages:
            return [asks[0], *self._processor.encode(text[asks.end() :], out_type=str)]
        pieces: list[str] = self._processor.encode(text, out_type=str)
        return pieces

    def sample(self, text: str, key: tuple[int, ...]) -> list[int]:
        """The ids of the text: where these models come from they are cut in one way only."""
        return self.encode(text)

    def uncovered(self, text: str) -> int:
        """How many characters of the text are no part of any piece, and so are lost."""
        return sum(len(piece) for piece in self.pieces(text) if piece not in self._ids)

    def save(self, directory: Path) -> None:
        """Write `tokenizer.model`, `pieces.json` and `tokenizer.json`."""
        write_saved(
            directory,
            "mapped",
            self.normalizer,
            self.vocab,
            self.model,
            is_foreign=True,
            before=f"{MOSES}{self.punctuation}" if self.punctuation else "",
        )

    @cached_property
    def _ids(self) -> dict[str, int]:
        """What pieces become; a text cannot spell padding or an end, but it can ask a language."""
        never = self.vocab.silent - set(self.vocab.languages.values())
        pieces = enumerate(self.vocab.pieces)
        return {piece: id for id, piece in pieces if id not in never | {self.vocab.unk}}

    @cached_property
    def _bytes_of(self) -> dict[int, bytes]:
        return spellings(self.vocab, lambda piece: piece.replace(SPACE, " "))


def load_mapped(saved: Saved) -> MappedTokenizer:
    """The tokenizer of files that were read."""
    vocab = saved.vocabulary(saved.pieces())
    punctuation = saved.before.removeprefix(MOSES)
    return mapped_tokenizer(saved.path, saved.model, vocab, saved.normalizer, punctuation)


def mapped_tokenizer(
    path: Path, model: bytes, vocab: Vocabulary, normalizer: Normalizer, punctuation: str = ""
) -> MappedTokenizer:
    """The tokenizer of a model file that was read from there, which is checked first."""
    try:
        read_foreign_spm(model)
        return MappedTokenizer(model, vocab, normalizer, punctuation)
    except (ValueError, RuntimeError):
        raise ModelError("{path} is no SentencePiece model", path=path) from None
