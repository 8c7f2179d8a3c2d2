"""Text to ids and back, exactly: decode(encode(x)) == normalizer(x) for any text x.

Four kinds: unigram and BPE subwords (subword.py), characters and words. All spell in bytes what
their pieces do not cover, so nothing is lost and `unk` is never written by `encode`.

Two more come with the models of others (mapped.py, codes.py) and do as they did there, no more.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal, Protocol, get_args, runtime_checkable

from regard.errors import ConfigError, DataError, ModelError
from regard.text.codes import load_codes
from regard.text.mapped import load_mapped
from regard.text.normalize import Normalizer
from regard.text.saved import pieces_model, read_saved, write_saved
from regard.text.subword import load_subword, too_small, train_subword
from regard.text.vocab import Vocabulary, joined, own_vocabulary, special_pieces, spellings

Kind = Literal["unigram", "bpe", "char", "word"]


@runtime_checkable
class Tokenizer(Protocol):
    """What every tokenizer can do."""

    @property
    def vocab(self) -> Vocabulary:
        """The pieces and the special ids."""

    @property
    def normalizer(self) -> Normalizer:
        """What `encode` does to a text first."""

    def encode(self, text: str) -> list[int]:
        """The ids of a text, without special ids."""

    def encode_all(self, texts: Sequence[str], threads: int = 1) -> list[list[int]]:
        """The ids of each text."""

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids; special ids are passed over, and `unk` is ⁇."""

    def pieces(self, text: str) -> list[str]:
        """The pieces of a text, to be shown."""

    def sample(self, text: str, key: tuple[int, ...]) -> list[int]:
        """The ids of one of the text's segmentations, drawn by nothing but the text and the key."""

    def uncovered(self, text: str) -> int:
        """How many characters of the text no piece covers, and so are spelled in bytes."""

    def save(self, directory: Path) -> None:
        """Write the files that `load_tokenizer` reads."""


def train_tokenizer(
    texts: Iterable[str],
    *,
    kind: Kind,
    size: int,
    normalizer: Normalizer = Normalizer(),  # noqa: B008 (frozen, so one serves all)
    languages: Sequence[str] = (),
    seed_sentences: int = 1_000_000,
    threads: int = 2,
) -> Tokenizer:
    """A tokenizer of at most `size` ids for texts like these, with a token for each language.

    Args:
        seed_sentences: unigram and BPE learn from that many lines at most, drawn from all.
        threads: with another number unigram scores differ in their last digits.
    """
    match kind:
        case "unigram" | "bpe":
            return train_subword(
                texts,
                kind=kind,
                size=size,
                normalizer=normalizer,
                languages=languages,
                seed_sentences=seed_sentences,
                threads=threads,
            )
        case "char":
            counts = Counter(char for text in texts for char in normalizer(text))
            return CharTokenizer(_commonest(counts, size, languages), normalizer)
        case "word":
            counts = Counter(word for text in texts for word in normalizer(text).split(" "))
            return WordTokenizer(_commonest(counts, size, languages), normalizer)
        case _:
            raise ConfigError(
                "{name} = {value} is not one of {choices}",
                name="kind",
                value=f'"{kind}"',
                choices=", ".join(get_args(Kind)),
            )


def load_tokenizer(directory: Path) -> Tokenizer:
    """The tokenizer that was saved in a directory."""
    saved = read_saved(directory)
    match saved.kind:
        case "unigram" | "bpe":
            return load_subword(saved, saved.kind)
        case "char":
            return CharTokenizer(saved.vocabulary(saved.pieces()), saved.normalizer)
        case "word":
            return WordTokenizer(saved.vocabulary(saved.pieces()), saved.normalizer)
        case "mapped":
            return load_mapped(saved)
        case "codes":
            return load_codes(saved)
        case _:
            raise ModelError(
                '{path} has no valid "{name}"',
                path=saved.path.parent / "tokenizer.json",
                name="kind",
            )


@dataclass(frozen=True)
class CharTokenizer:
    """One piece for each character."""

    vocab: Vocabulary
    normalizer: Normalizer

    def encode(self, text: str) -> list[int]:
        """The ids of a text, without special ids."""
        ids: list[int] = []
        for char in self.normalizer(text):
            ids += self._covered.get(char) or self.vocab.spell(char)
        return ids

    def encode_all(self, texts: Sequence[str], threads: int = 1) -> list[list[int]]:
        """The ids of each text, by one thread."""
        return [self.encode(text) for text in texts]

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids; special ids are passed over, and `unk` is ⁇."""
        return joined(self._bytes_of, ids)

    def pieces(self, text: str) -> list[str]:
        """The pieces of a text: characters and bytes."""
        return [self.vocab.piece(id) for id in self.encode(text)]

    def sample(self, text: str, key: tuple[int, ...]) -> list[int]:
        """The ids of the text, for characters are segmented in one way only."""
        return self.encode(text)

    def uncovered(self, text: str) -> int:
        """How many characters of the text are not in the vocabulary."""
        return sum(char not in self._covered for char in self.normalizer(text))

    def save(self, directory: Path) -> None:
        """Write `tokenizer.model`, the list of pieces, and `tokenizer.json`."""
        write_saved(directory, "char", self.normalizer, self.vocab, pieces_model(self.vocab))

    @cached_property
    def _covered(self) -> dict[str, list[int]]:
        return _ordinary(self.vocab)

    @cached_property
    def _bytes_of(self) -> dict[int, bytes]:
        return spellings(self.vocab, lambda piece: piece)


@dataclass(frozen=True)
class WordTokenizer:
    """One piece for each word between single spaces; a piece stands for a space and its word.

    An unknown word, which the empty one between two spaces is too, is spelled with its space.
    """

    vocab: Vocabulary
    normalizer: Normalizer

    def encode(self, text: str) -> list[int]:
        """The ids of a text, without special ids."""
        ids: list[int] = []
        for word in self._words(text):
            ids += self._covered.get(word) or self.vocab.spell(f" {word}")
        return ids

    def encode_all(self, texts: Sequence[str], threads: int = 1) -> list[list[int]]:
        """The ids of each text, by one thread."""
        return [self.encode(text) for text in texts]

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids; special ids are passed over, and `unk` is ⁇."""
        return joined(self._bytes_of, ids).removeprefix(" ")

    def pieces(self, text: str) -> list[str]:
        """The pieces of a text: words and bytes."""
        return [self.vocab.piece(id) for id in self.encode(text)]

    def sample(self, text: str, key: tuple[int, ...]) -> list[int]:
        """The ids of the text, for words are segmented in one way only."""
        return self.encode(text)

    def uncovered(self, text: str) -> int:
        """How many characters of the text stand in words that are not in the vocabulary."""
        return sum(len(word) for word in self._words(text) if word not in self._covered)

    def save(self, directory: Path) -> None:
        """Write `tokenizer.model`, the list of pieces, and `tokenizer.json`."""
        write_saved(directory, "word", self.normalizer, self.vocab, pieces_model(self.vocab))

    def _words(self, text: str) -> list[str]:
        return self.normalizer(text).split(" ") if text else []

    @cached_property
    def _covered(self) -> dict[str, list[int]]:
        return _ordinary(self.vocab)

    @cached_property
    def _bytes_of(self) -> dict[int, bytes]:
        return spellings(self.vocab, lambda piece: f" {piece}")


def _ordinary(vocab: Vocabulary) -> dict[str, list[int]]:
    """The pieces that text may become, each with its id alone in a list."""
    return {piece: [id] for id, piece in enumerate(vocab.pieces) if id not in vocab.special}


def _commonest(counts: Counter[str], size: int, languages: Sequence[str]) -> Vocabulary:
    """The vocabulary of the commonest pieces that fit behind the special ones."""
    first = special_pieces(languages)
    if size <= len(first):
        raise too_small(size, len(first) + 1)
    for piece in (*first, ""):  # text that looks like a special piece is spelled in bytes
        counts.pop(piece, None)
    if not counts:
        raise DataError("there is no text to train a tokenizer on")
    by_count = sorted(counts, key=lambda piece: (-counts[piece], piece))
    return own_vocabulary([*first, *by_count[: size - len(first)]], languages)
