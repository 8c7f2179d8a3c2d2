"""SentencePiece's unigram and BPE, made to give back every text exactly.

`tokenizer.model` is an ordinary SentencePiece model. Around it stand the normaliser of regard, the
one character that SentencePiece cannot give back, and a sampler that can be seeded.
"""

import io
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Literal

from sentencepiece import SentencePieceProcessor, SentencePieceTrainer

from regard.errors import ConfigError, DataError, ModelError
from regard.text.normalize import Normalizer
from regard.text.regularize import chance, drawn_bpe, drawn_unigram, endings
from regard.text.saved import Saved, write_saved
from regard.text.spm import BYTE, CONTROL, NORMAL, UNKNOWN, Piece, read_spm
from regard.text.vocab import (
    BOS,
    EOS,
    PAD,
    SPECIAL_PIECES,
    UNK,
    Vocabulary,
    joined,
    language_piece,
    own_vocabulary,
    special_pieces,
    spellings,
)

SubwordKind = Literal["unigram", "bpe"]

SPACE = "▁"  # SentencePiece's sign for a space, and so the one character it cannot give back
ALPHA = 0.2  # how sharply sampling prefers the likelier segmentation
DROPOUT = 0.1  # how often sampling leaves out a merge
COVERED = 0.9995  # the share of a text in Han whose characters are pieces; the rest are bytes
UNKNOWN_PENALTY = 10.0  # how far below the least piece SentencePiece scores an unknown character


class SubwordTokenizer:
    """A SentencePiece model between a normaliser and a vocabulary."""

    def __init__(
        self, kind: SubwordKind, model: bytes, vocab: Vocabulary, normalizer: Normalizer
    ) -> None:
        self.kind: SubwordKind = kind
        self.vocab = vocab
        self.normalizer = normalizer
        self.model = model
        self._processor = SentencePieceProcessor(model_proto=model)
        self._scores = {
            piece: self._processor.get_score(id)
            for id, piece in enumerate(vocab.pieces)
            if id not in vocab.special
        }
        self._unknown = min(self._scores.values(), default=0.0) - UNKNOWN_PENALTY
        self._bytes_of = spellings(vocab, lambda piece: piece.replace(SPACE, " "))
        # Every character has exactly one byte that is no continuation byte.
        self._first_bytes = {id for b, id in enumerate(vocab.byte_ids) if b & 0xC0 != 0x80}
        [self._newline] = vocab.spell("\n")

    def __reduce__(self) -> tuple[object, ...]:
        return SubwordTokenizer, (self.kind, self.model, self.vocab, self.normalizer)

    def encode(self, text: str) -> list[int]:
        """The ids of a text, without special ids."""
        return self.encode_all([text])[0]

    def encode_all(self, texts: Sequence[str], threads: int = 1) -> list[list[int]]:
        """The ids of each text."""
        together = "\n".join(texts)
        if SPACE not in together and self.normalizer.leaves(together):
            # Nothing to normalise in any of them, as is usual: one look at all is much faster.
            return self._ids(texts, threads)
        normalized = [self.normalizer(text) for text in texts]
        # No piece holds a newline, so it comes out as one byte, and marks the place of a ▁.
        safe = [text.replace(SPACE, "\n") for text in normalized]
        rows = self._ids(safe, threads)
        for at, text in enumerate(normalized):
            if SPACE in text:
                rows[at] = self._restored(rows[at], text)
        return rows

    def _ids(self, texts: Sequence[str], threads: int) -> list[list[int]]:
        if len(texts) == 1:  # for a list SentencePiece starts threads, which takes a millisecond
            return [self._processor.encode(texts[0])]
        rows: list[list[int]] = self._processor.encode(list(texts), num_threads=threads)
        return rows

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids; special ids are passed over."""
        return joined(self._bytes_of, ids).removeprefix(" ")

    def pieces(self, text: str) -> list[str]:
        """The pieces of a text as the vocabulary writes them, ▁ for a space."""
        return [self.vocab.piece(id) for id in self.encode(text)]

    def sample(self, text: str, key: tuple[int, ...]) -> list[int]:
        """The ids of one of the text's segmentations, drawn by nothing but the text and the key."""
        text = self.normalizer(text)
        if not text:
            return []
        spaced = SPACE + text.replace(SPACE, "\n").replace(" ", SPACE)
        ids: list[int] = []
        for piece in self._drawn(spaced, chance(text, key)):
            if piece in self._scores:
                ids.append(self.vocab.id_of(piece))
            else:
                ids += self.vocab.spell(piece)
        return self._restored(ids, text) if SPACE in text else ids

    def uncovered(self, text: str) -> int:
        """How many characters of the text are no part of any piece, and so are spelled in bytes."""
        return sum(id in self._first_bytes for id in self.encode(text))

    def save(self, directory: Path) -> None:
        """Write `tokenizer.model` and `tokenizer.json`."""
        write_saved(directory, self.kind, self.normalizer, self.vocab, self.model)

    def _drawn(self, spaced: str, random: Random) -> list[str]:
        match self.kind:
            case "unigram":
                return drawn_unigram(
                    spaced,
                    self._endings,
                    unknown=self._unknown,
                    alpha=ALPHA,
                    random=random,
                )
            case "bpe":
                return drawn_bpe(spaced, self._scores, dropout=DROPOUT, random=random)

    @cached_property
    def _endings(self) -> dict[str, float | None]:
        return endings(self._scores)  # not for those who never sample: it is larger than the rest

    def _restored(self, ids: list[int], text: str) -> list[int]:
        """The ids with each newline that stood for a ▁ spelled as the ▁ it was."""
        originals = iter(re.findall(f"[{SPACE}\n]", text))
        restored: list[int] = []
        for id in ids:
            restored += self.vocab.spell(next(originals)) if id == self._newline else (id,)
        return restored


def train_subword(
    texts: Iterable[str],
    *,
    kind: SubwordKind,
    size: int,
    normalizer: Normalizer,
    languages: Sequence[str],
    seed_sentences: int,
    threads: int,
) -> SubwordTokenizer:
    """A tokenizer of at most `size` ids; the same texts and threads give the same one."""
    first = special_pieces(languages)
    lines = _reservoir(_training_lines(texts, normalizer), seed_sentences)
    if not lines:
        raise DataError("there is no text to train a tokenizer on")
    model = io.BytesIO()
    try:
        SentencePieceTrainer.train(
            sentence_iterator=_emptied(lines),
            model_writer=model,
            model_type=kind,
            vocab_size=size,
            hard_vocab_limit=False,  # a small text has fewer pieces, which is no fault
            character_coverage=_coverage(lines, size),
            byte_fallback=True,
            normalization_rule_name="identity",  # regard normalises, and nothing else may
            remove_extra_whitespaces=False,
            split_digits=True,  # a number never seen is then as easy to copy as one often seen
            max_sentence_length=4 * _LINE,  # in bytes: no line is passed over
            num_threads=threads,
            pad_id=SPECIAL_PIECES.index(PAD),
            bos_id=SPECIAL_PIECES.index(BOS),
            eos_id=SPECIAL_PIECES.index(EOS),
            unk_id=SPECIAL_PIECES.index(UNK),
            pad_piece=PAD,
            bos_piece=BOS,
            eos_piece=EOS,
            unk_piece=UNK,
            control_symbols=[language_piece(code) for code in languages],
            minloglevel=2,
        )
    except RuntimeError as error:
        if found := re.search(r"smaller than required_chars\. \d+ vs (\d+)", str(error)):
            raise too_small(size, int(found[1])) from None
        raise
    pieces = [piece.text for piece in read_spm(model.getvalue()).pieces]
    assert tuple(pieces[: len(first)]) == first
    return SubwordTokenizer(kind, model.getvalue(), own_vocabulary(pieces, languages), normalizer)


def _coverage(lines: Iterable[str], size: int) -> float:
    """The share of characters that become pieces: all of an alphabet, all but the rarest Han."""
    # Not required_chars for the digits and signs of a large text: with it BPE training can crash.
    return 1.0 if len(set().union(*lines)) <= size // 8 else COVERED


def load_subword(saved: Saved, kind: SubwordKind) -> SubwordTokenizer:
    """The tokenizer of files that were read; what they hold is checked first."""
    try:
        model = read_spm(saved.model)
        vocab = saved.vocabulary(tuple(piece.text for piece in model.pieces))
        if model.kind != kind or not _are_ours(model.pieces, vocab):
            raise ValueError("the model is not what the record says")
        return SubwordTokenizer(kind, saved.model, vocab, saved.normalizer)
    except ModelError:
        raise
    except (ValueError, RuntimeError):
        raise ModelError(
            "{path} is no SentencePiece model that regard wrote", path=saved.path
        ) from None


def too_small(size: int, least: int) -> ConfigError:
    """What to say of a size that cannot hold what it must."""
    return ConfigError(
        "data.vocab_size = {size} is too small: special pieces, bytes and characters alone need "
        "{least} ids; twice as many leave room for words",
        size=size,
        least=least,
    )


def _are_ours(pieces: list[Piece], vocab: Vocabulary) -> bool:
    """Whether the special pieces are those of the vocabulary, and no piece holds a newline."""
    ids_of: dict[int, set[int]] = {CONTROL: set(), UNKNOWN: set(), BYTE: set(), NORMAL: set()}
    for id, piece in enumerate(pieces):
        ids_of[piece.type].add(id)
    return (
        ids_of[CONTROL] == vocab.silent
        and ids_of[UNKNOWN] == {vocab.unk}
        and ids_of[BYTE] == set(vocab.byte_ids) != set()
        and not any("\n" in piece.text for piece in pieces)
    )


_LINE = 4096

# SentencePiece's own signs, and what must stay out of every piece: training passes over lines that
# hold them, so lines are cut there.
_CUTS = re.compile("[\0\t\n\r▁▅]+")


def _training_lines(texts: Iterable[str], normalizer: Normalizer) -> Iterator[str]:
    for text in texts:
        for line in _CUTS.split(normalizer(text)):
            for start in range(0, len(line), _LINE):
                part = line[start : start + _LINE]
                if not part.isspace():
                    yield part


def _reservoir(lines: Iterable[str], most: int) -> list[str]:
    """At most `most` of the lines, each as likely as any other, drawn alike every time."""
    # SentencePiece can draw them too, but otherwise in every process.
    random = Random(0)
    kept: list[str] = []
    for seen, line in enumerate(lines):
        if len(kept) < most:
            kept.append(line)
        elif (place := random.randrange(seen + 1)) < most:
            kept[place] = line
    return kept


def _emptied(lines: list[str]) -> Iterator[str]:
    """The lines, each let go as it is given."""
    while lines:
        yield lines.pop()
