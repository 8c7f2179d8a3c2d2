"""The pieces a model knows and their ids, and the ids that have a meaning of their own.

Special ids are read from the vocabulary: no other code names a number.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from regard.errors import ConfigError, DataError

PAD, BOS, EOS, UNK = SPECIAL_PIECES = ("<pad>", "<s>", "</s>", "<unk>")
BYTE_PIECES = tuple(f"<0x{byte:02X}>" for byte in range(256))
UNKNOWN = "⁇"  # what `unk` looks like in decoded text


@dataclass(frozen=True)
class Vocabulary:
    """Pieces in the order of their ids, and the special ids among them.

    `bos` starts a target and may be the same id as `pad` or `eos`, as in Marian or fairseq.
    `languages` holds the token that asks for a target language: {"en": the id of <2en>}.
    """

    pieces: tuple[str, ...]
    pad: int
    bos: int
    eos: int
    unk: int
    languages: Mapping[str, int] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "pieces", tuple(self.pieces))
        object.__setattr__(self, "languages", dict(self.languages))
        faults = [*self._duplicate_faults(), *self._range_faults(), *self._clash_faults()]
        if faults:
            raise ConfigError("{faults}", faults=tuple(faults))

    def __len__(self) -> int:
        return len(self.pieces)

    def piece(self, id: int) -> str:
        """The piece of an id."""
        if not 0 <= id < len(self.pieces):
            raise _outside(id, len(self.pieces))
        return self.pieces[id]

    def id_of(self, piece: str) -> int:
        """The id of a piece; `unk` if it is unknown."""
        return self._ids.get(piece, self.unk)

    def language(self, code: str) -> int:
        """The id of the token that asks for a target language."""
        if code in self.languages:
            return self.languages[code]
        if not self.languages:
            raise ConfigError(
                'there is no language "{code}"; this vocabulary has no language tokens', code=code
            )
        raise ConfigError(
            'language "{code}" is not one of {known}', code=code, known=", ".join(self.languages)
        )

    @cached_property
    def silent(self) -> frozenset[int]:
        """The ids that stand for no text: padding, start, end and the language tokens."""
        return frozenset({self.pad, self.bos, self.eos, *self.languages.values()})

    @cached_property
    def byte_ids(self) -> tuple[int, ...]:
        """The ids of the 256 bytes, by which any text can be written; empty if there are none."""
        ids = [self._ids[piece] for piece in BYTE_PIECES if piece in self._ids]
        return tuple(ids) if len(ids) == len(BYTE_PIECES) else ()

    @cached_property
    def special(self) -> frozenset[int]:
        """The ids that no text becomes by its pieces: the silent ones, `unk` and the bytes."""
        return self.silent.union(self.byte_ids, {self.unk})

    def spell(self, text: str) -> list[int]:
        """The byte ids of a text, or `unk` if there are none."""
        return [self.byte_ids[byte] for byte in text.encode()] if self.byte_ids else [self.unk]

    def as_table(self) -> dict[str, Any]:
        """All of it, for saving."""
        return {"pieces": list(self.pieces), **self.special_table()}

    def special_table(self) -> dict[str, Any]:
        """The special ids, for saving where the pieces are saved by themselves."""
        named = {name: getattr(self, name) for name in ("pad", "bos", "eos", "unk")}
        return {**named, "languages": dict(self.languages)}

    @classmethod
    def from_table(cls, table: Mapping[str, Any]) -> "Vocabulary":
        """A vocabulary from its saved table."""
        return cls(**{**table, "pieces": tuple(table["pieces"])})

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {piece: id for id, piece in enumerate(self.pieces)}

    def _duplicate_faults(self) -> Iterable[ConfigError]:
        first: dict[str, int] = {}
        for id, piece in enumerate(self.pieces):
            if first.setdefault(piece, id) != id:
                yield ConfigError(
                    'piece "{piece}" has two ids, {first} and {second}',
                    piece=piece,
                    first=first[piece],
                    second=id,
                )

    def _range_faults(self) -> Iterable[ConfigError]:
        for name, id in self._named_ids().items():
            if not 0 <= id < len(self.pieces):
                yield ConfigError(
                    "{name} = {id} is outside the vocabulary of {n_words} pieces",
                    name=name,
                    id=id,
                    n_words=len(self.pieces),
                )

    def _clash_faults(self) -> Iterable[ConfigError]:
        names: dict[int, str] = {}
        for name, id in self._named_ids().items():
            # A start may look like padding or an end, for it is never a target.
            if names.setdefault(id, name) != name and name != "bos":
                yield ConfigError(
                    "{name} and {other} are both id {id}; they need one each",
                    name=names[id],
                    other=name,
                    id=id,
                )

    def _named_ids(self) -> dict[str, int]:
        languages = {f"languages.{code}": id for code, id in self.languages.items()}
        named = {"pad": self.pad, "eos": self.eos, "bos": self.bos, "unk": self.unk}
        return {**named, **languages}


def special_pieces(languages: Sequence[str]) -> tuple[str, ...]:
    """The pieces that stand first in a vocabulary of our own: special, languages, bytes."""
    for at, code in enumerate(languages):
        if not re.fullmatch("[A-Za-z0-9_-]+", code):
            raise ConfigError(
                'language "{code}" is no code of letters, digits, - and _, such as en or zh-TW',
                code=code,
            )
        if code in languages[:at]:
            raise ConfigError('language "{code}" is given twice', code=code)
    return (*SPECIAL_PIECES, *map(language_piece, languages), *BYTE_PIECES)


def language_piece(code: str) -> str:
    """The token that asks for a target language."""
    return f"<2{code}>"


def own_vocabulary(pieces: Sequence[str], languages: Sequence[str]) -> Vocabulary:
    """The vocabulary of pieces among which are those of `special_pieces`."""
    ids = {piece: id for id, piece in enumerate(pieces)}
    return Vocabulary(
        pieces=tuple(pieces),
        pad=ids[PAD],
        bos=ids[BOS],
        eos=ids[EOS],
        unk=ids[UNK],
        languages={code: ids[language_piece(code)] for code in languages},
    )


def spellings(vocab: Vocabulary, surface: Callable[[str], str]) -> dict[int, bytes]:
    """What each id adds to a text; `surface` says it of an ordinary piece."""
    bytes_of = {id: surface(piece).encode() for id, piece in enumerate(vocab.pieces)}
    bytes_of |= {id: bytes([byte]) for byte, id in enumerate(vocab.byte_ids)}
    bytes_of |= dict.fromkeys(vocab.silent, b"")
    return bytes_of | {vocab.unk: surface(UNKNOWN).encode()}


def joined(bytes_of: Mapping[int, bytes], ids: Sequence[int]) -> str:
    """The text of ids; bytes that are no UTF-8, which a model may write, become U+FFFD."""
    try:
        return b"".join(map(bytes_of.__getitem__, ids)).decode("utf-8", "replace")
    except KeyError as error:
        raise _outside(error.args[0], len(bytes_of)) from None


def _outside(id: int, n_words: int) -> DataError:
    return DataError(
        "id {id} is outside the vocabulary, whose {n_words} ids are 0 to {last}",
        id=id,
        n_words=n_words,
        last=n_words - 1,
    )
