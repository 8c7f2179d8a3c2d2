"""The pieces in a SentencePiece model file, read without trusting it.

    ModelProto:     1 pieces (repeated), 2 trainer_spec, 3 normalizer_spec, 5 denormalizer_spec
    SentencePiece:  1 piece, 2 score, 3 type
    TrainerSpec:    3 model_type, 24 treat_whitespace_as_suffix
    NormalizerSpec: 2 precompiled_charsmap, 3 add_dummy_prefix, 4 remove_extra_whitespaces,
                    5 escape_whitespaces

Sizes are checked before anything is made of them, and only then does the C++ parser see the bytes.
Models whose normaliser holds tables are refused where regard normalises by itself; those of other
programs keep theirs.
"""

import math
import struct
from collections.abc import Iterator
from typing import NamedTuple

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)
KINDS = {1: "unigram", 2: "bpe"}
MOST_PIECES = 1_000_000
MOST_PIECE_BYTES = 1024


class Piece(NamedTuple):
    """A piece with its score and type."""

    text: str
    score: float
    type: int


class SpmModel(NamedTuple):
    """What a model file says."""

    kind: str
    pieces: list[Piece]  # in the order of their ids


def read_spm(model: bytes) -> SpmModel:
    """What a model file says; ValueError if it is not as regard writes it."""
    pieces: list[Piece] = []
    kinds: list[str] = []
    normalizers: list[bool] = []
    for number, value in _fields(model):
        match number, value:
            case 1, bytes():
                pieces.append(_piece(value))
            case 2, bytes():
                kinds.append(_kind(value))
            case 3, bytes():
                normalizers.append(_is_plain_normalizer(value))
            case 5, bytes() if any(n == 2 and v for n, v in _fields(value)):
                raise ValueError("the denormaliser has a table")
        if len(pieces) > MOST_PIECES:
            raise ValueError("too many pieces")
    if normalizers != [True] or len(kinds) != 1:  # given twice, they would be merged
        raise ValueError("not one trainer, or not one normaliser that changes nothing")
    if [piece.type for piece in pieces].count(UNKNOWN) != 1:
        raise ValueError("not one unknown piece")
    return SpmModel(kinds[0], pieces)


def read_foreign_spm(model: bytes) -> list[Piece]:
    """The pieces of a model that another program wrote, with tables or without; else ValueError."""
    pieces = [_any_piece(value) for number, value in _fields(model) if number == 1]
    if len(pieces) > MOST_PIECES or [piece.type for piece in pieces].count(UNKNOWN) != 1:
        raise ValueError("too many pieces, or not one unknown piece")
    return pieces


def _piece(message: bytes) -> Piece:
    piece = _any_piece(message)
    if piece.type not in (NORMAL, UNKNOWN, CONTROL, BYTE):
        raise ValueError("a piece of a type that is not used here")
    return piece


def _any_piece(message: int | float | bytes) -> Piece:
    if not isinstance(message, bytes):
        raise ValueError("a piece that is no message")
    piece, score, type = b"", 0.0, NORMAL
    for number, value in _fields(message):
        match number, value:
            case 1, bytes():
                piece = value
            case 2, float():
                score = value
            case 3, int():
                type = value
    if not 0 < len(piece) <= MOST_PIECE_BYTES or not math.isfinite(score):
        raise ValueError("a piece without length or with an endless score")
    return Piece(piece.decode(), score, type)


def _kind(message: bytes) -> str:
    spec: dict[int, int | float | bytes] = {3: 1, 24: 0}
    spec |= dict(_fields(message))
    kind = KINDS.get(spec[3]) if isinstance(spec[3], int) else None
    if kind is None or spec[24] != 0:
        raise ValueError("neither unigram nor BPE, or spaces that end a piece")
    return kind


def _is_plain_normalizer(message: bytes) -> bool:
    spec: dict[int, int | float | bytes] = {2: b"", 3: 1, 4: 1, 5: 1}
    spec |= dict(_fields(message))
    return not spec[2] and (spec[3], spec[4], spec[5]) == (1, 0, 1)


def _fields(message: bytes) -> Iterator[tuple[int, int | float | bytes]]:
    """The fields of a protobuf message: number and value, bytes where it has a length."""
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        match tag & 7:
            case 0:
                number, at = _varint(message, at)
                yield tag >> 3, number
                continue
            case 1:
                size = 8
            case 2:
                size, at = _varint(message, at)
            case 5:
                size = 4
            case _:
                raise ValueError("a wire type that is not used")
        if at + size > len(message):
            raise ValueError("a field that ends behind its message")
        value = message[at : at + size]
        at += size
        yield tag >> 3, struct.unpack("<f", value)[0] if tag & 7 == 5 else value


def _varint(message: bytes, at: int) -> tuple[int, int]:
    if at < len(message) and message[at] < 0x80:  # nearly all are this short
        return message[at], at + 1
    number = 0
    for shift in range(0, 70, 7):
        if at >= len(message):
            break
        byte = message[at]
        number |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return number, at
    raise ValueError("a number without an end")
