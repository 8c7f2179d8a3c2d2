"""The pieces of a sentence as a person reads them: one by one, or joined to words.

A piece that goes on with a word is shown with a dot, ⋅ing. Pieces become words where the script
has spaces; Chinese stays as the tokenizer cut it, for it says nowhere where a word ends.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from regard.text.scripts import is_han

SPACE = "▁"  # SentencePiece's sign for a space
START = "<s>"  # what a decoder is given before its first word
GOES_ON = "⋅"  # a dot that is one column wide in every terminal, Chinese ones too
BLANK = "␣"  # a space by itself
UNREADABLE = "\ufffd"

_BYTE = re.compile("<0x([0-9A-Fa-f]{2})>")
_SPECIAL = re.compile("<[^<>]+>|>>[^<>]+<<")
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff]"
)
# Controls move a terminal's cursor, and marks of direction turn the text around them.
_UNSHOWN = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Units:
    """What rows or columns stand for: pieces, or words with as many pieces as `sizes` says.

    A sink is a unit that says nothing, an end or a comma, on which attention comes to rest.
    """

    labels: tuple[str, ...]
    sizes: tuple[int, ...]
    is_sink: tuple[bool, ...]

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def starts(self) -> tuple[int, ...]:
        """The place of the first piece of each unit."""
        return tuple(accumulate((0, *self.sizes)))[:-1]


def as_pieces(pieces: Sequence[str]) -> Units:
    """Every piece by itself."""
    said, joins = _said(pieces), _joins(pieces)
    labels, is_sink = [], []
    for place, (piece, text) in enumerate(zip(pieces, said, strict=True)):
        if _SPECIAL.fullmatch(piece):
            labels.append(readable(piece))
            is_sink.append(is_special(piece))
            continue
        shown = readable(text.decode().strip(" ")) or BLANK
        is_part = place in joins and bool(said[place - 1].strip(b" ")) and shown[0].isalnum()
        labels.append(GOES_ON + shown if is_part else shown)
        is_sink.append(_says_nothing(text.decode()))
    return Units(tuple(labels), (1,) * len(pieces), tuple(is_sink))


def as_words(pieces: Sequence[str]) -> Units:
    """Words, where the script has them; else pieces, with the bytes of a character joined."""
    alone, said, joins = as_pieces(pieces), _said(pieces), _joins(pieces)
    starts = [place for place in range(len(pieces)) if place not in joins]
    labels, sizes, is_sink = [], [], []
    for start, end in pairwise((*starts, len(pieces))):
        text = b"".join(said[start:end]).decode(errors="replace")
        sizes.append(end - start)
        labels.append(readable(text.strip(" ")) or alone.labels[start])
        is_sink.append(alone.is_sink[start] if end - start == 1 else _says_nothing(text))
    return Units(tuple(labels), tuple(sizes), tuple(is_sink))


def text_of(pieces: Sequence[str]) -> str:
    """The text that pieces stand for."""
    return readable(b"".join(_said(pieces)).decode(errors="replace").strip(" "))


def is_special(piece: str) -> bool:
    """Whether a piece stands for no text: an end, or the language that is asked for."""
    return bool(_SPECIAL.fullmatch(piece)) and not _BYTE.fullmatch(piece)


def readable(text: str) -> str:
    """The text with a sign for everything that would disturb what stands around it."""
    return _UNSHOWN.sub(UNREADABLE, text)


def _said(pieces: Sequence[str]) -> list[bytes]:
    """The text of each piece, which for a byte is no character yet."""
    # Words of a vocabulary of words have no sign for the spaces between them.
    is_words = not any(SPACE in piece or " " in piece for piece in pieces) and any(
        len(piece) > 1 for piece in pieces if not _SPECIAL.fullmatch(piece)
    )
    said = []
    for piece in pieces:
        if byte := _BYTE.fullmatch(piece):
            said.append(bytes.fromhex(byte[1]))
        elif is_special(piece):
            said.append(b"")
        else:
            text = f" {piece}" if is_words else piece.replace(SPACE, " ")
            said.append(text.encode(errors="replace"))
    return said


def _joins(pieces: Sequence[str]) -> set[int]:
    """The places whose piece belongs to the one before: inside a word or inside a character."""
    said = _said(pieces)
    inside = set(_insides(b"".join(said).decode(errors="surrogateescape")))
    ends = accumulate(len(one) for one in said)
    joins = set()
    for place, (end, (before, piece)) in enumerate(zip(ends, pairwise(pieces), strict=False), 1):
        if is_special(before) or is_special(piece):
            continue
        is_blank = not said[place - 1].strip(b" ")  # a space belongs to the word behind it
        if is_blank or end in inside:
            joins.add(place)
    return joins


def _insides(text: str) -> Iterator[int]:
    """The bytes before which a text cannot be cut without cutting a character or a word."""
    at = 0
    for place, character in enumerate(text):
        if place and _is_inside_word(text, place):
            yield at
        n_bytes = len(character.encode(errors="surrogateescape"))
        yield from range(at + 1, at + n_bytes)
        at += n_bytes


def _is_inside_word(text: str, place: int) -> bool:
    """Between letters, and around the signs that letters or digits have between them: it's, 3.5."""
    left, right = text[place - 1], text[place]
    if _is_letter(left) and _is_letter(right):
        return True
    middle = place if _is_letter(left) else place - 1
    around = text[middle - 1 : middle] + text[middle + 1 : middle + 2]
    if len(around) < 2 or not all(map(_is_letter, around)):
        return False
    return text[middle] in "'’-" or (text[middle] in ".," and around.isdecimal())


def _is_letter(character: str) -> bool:
    """A letter, mark or digit of a script with spaces between its words."""
    is_unspaced = is_han(character) or _UNSPACED.match(character)
    return unicodedata.category(character)[0] in "LMN" and not is_unspaced


def _says_nothing(text: str) -> bool:
    return all(unicodedata.category(character)[0] in "PZ" for character in text)
