"""Words cut by byte-pair codes, as subword-nmt and fastBPE learn them, under ids of others.

    codes       one merge a line, the best first: "t h", "th e</w>", fastBPE's with a count behind
    pieces      a piece that its word goes on after ends in @@: "lo@@ w@@ er"

A text is words between spaces: who trained on text that Moses had tokenised gives such text. What
is in no dictionary is `unk`: unlike the tokenizers of our own, these lose it.
"""

from collections.abc import Sequence
from functools import cached_property, lru_cache
from itertools import pairwise
from pathlib import Path

from regard.errors import ModelError
from regard.text.normalize import Normalizer
from regard.text.saved import Saved, write_saved
from regard.text.vocab import UNKNOWN, Vocabulary

GOES_ON = "@@"
END = "</w>"
MOST_WORDS = 100_000  # whose pieces are remembered

Pair = tuple[str, str]


class CodeTokenizer:
    """Byte-pair codes, and a vocabulary with ids of its own; without codes words stay whole."""

    def __init__(self, codes: bytes, vocab: Vocabulary, normalizer: Normalizer) -> None:
        self.codes = codes
        self.vocab = vocab
        self.normalizer = normalizer
        self.ranks, self._ends_apart = read_codes(codes)
        self._cut = lru_cache(MOST_WORDS)(self._cut_word)

    def __reduce__(self) -> tuple[object, ...]:
        return CodeTokenizer, (self.codes, self.vocab, self.normalizer)

    def encode(self, text: str) -> list[int]:
        """The ids of a text, without special ids."""
        return [self._ids.get(piece, self.vocab.unk) for piece in self.pieces(text)]

    def encode_all(self, texts: Sequence[str], threads: int = 1) -> list[list[int]]:
        """The ids of each text, by one thread."""
        return [self.encode(text) for text in texts]

    def decode(self, ids: Sequence[int]) -> str:
        """The words of ids with spaces between; special ids are passed over, and `unk` is ⁇."""
        pieces = [
            UNKNOWN if id == self.vocab.unk else self.vocab.piece(id)
            for id in ids
            if id not in self.vocab.silent
        ]
        return " ".join(pieces).replace(f"{GOES_ON} ", "").removesuffix(GOES_ON)

    def pieces(self, text: str) -> list[str]:
        """The pieces of a text; some may be strange to the vocabulary."""
        return [piece for word in self.normalizer(text).split() for piece in self._cut(word)]

    def sample(self, text: str, key: tuple[int, ...]) -> list[int]:
        """The ids of the text: where these codes come from it is cut in one way only."""
        return self.encode(text)

    def uncovered(self, text: str) -> int:
        """How many characters of the text stand in pieces that are lost."""
        lost = (piece for piece in self.pieces(text) if piece not in self._ids)
        return sum(len(piece.removesuffix(GOES_ON)) for piece in lost)

    def save(self, directory: Path) -> None:
        """Write `tokenizer.model`, the codes, `pieces.json` and `tokenizer.json`."""
        write_saved(directory, "codes", self.normalizer, self.vocab, self.codes, is_foreign=True)

    def _cut_word(self, word: str) -> tuple[str, ...]:
        if not self.ranks:
            return (word,)
        parts = [*word, END] if self._ends_apart else [*word[:-1], word[-1] + END]
        while len(parts) > 1:
            pairs = list(pairwise(parts))
            best = min(pairs, key=lambda pair: self.ranks.get(pair, len(self.ranks)))
            if best not in self.ranks:
                break
            parts = _merged(parts, best)
        if parts[-1] == END:
            parts.pop()
        else:
            parts[-1] = parts[-1].removesuffix(END)
        return (*(part + GOES_ON for part in parts[:-1]), parts[-1])

    @cached_property
    def _ids(self) -> dict[str, int]:
        never = self.vocab.silent | {self.vocab.unk}
        return {piece: id for id, piece in enumerate(self.vocab.pieces) if id not in never}


def read_codes(codes: bytes) -> tuple[dict[Pair, int], bool]:
    """Each merge and its rank, and whether the end of a word is a symbol by itself.

    It is in the first version of subword-nmt's codes, which have no head; ValueError if there is a
    line that is no merge.
    """
    lines = codes.decode().splitlines()
    has_head = bool(lines) and lines[0].startswith("#version:")
    ranks: dict[Pair, int] = {}
    has_counts = False
    for line in lines[has_head:]:
        first, second, *count = line.split(" ")
        if len(count) > 1 or not (first and second):
            raise ValueError("a line that is no merge")
        has_counts = has_counts or bool(count)
        ranks.setdefault((first, second), len(ranks))
    return ranks, not has_head and not has_counts


def code_tokenizer(
    path: Path, codes: bytes, vocab: Vocabulary, normalizer: Normalizer
) -> CodeTokenizer:
    """The tokenizer of codes that were read from there; what is no code is refused."""
    try:
        return CodeTokenizer(codes, vocab, normalizer)
    except ValueError:
        raise ModelError(
            "{path} holds no byte-pair codes: a line is two symbols with a space between",
            path=path,
        ) from None


def load_codes(saved: Saved) -> CodeTokenizer:
    """The tokenizer of files that were read."""
    vocab = saved.vocabulary(saved.pieces())
    return code_tokenizer(saved.path, saved.model, vocab, saved.normalizer)


def _merged(parts: list[str], pair: Pair) -> list[str]:
    """The parts with every such pair made one."""
    merged: list[str] = []
    at = 0
    while at < len(parts):
        is_pair = tuple(parts[at : at + 2]) == pair
        merged.append("".join(pair) if is_pair else parts[at])
        at += 2 if is_pair else 1
    return merged
