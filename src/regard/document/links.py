"""Where the pieces of a tokenizer stand in the text they were made of, and the links between them.

Pieces say ▁ for a space and <0xE4> for a byte, and a text is normalised and cut into parts before
it becomes pieces. So spaces are passed over on both sides, and what still differs is matched as
far as it goes.
"""

import codecs
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from regard.decode.results import Alignment

Span = tuple[int, int]

SPACE = "▁"
MATCHED = 4000  # characters that are matched one by one; what is longer is matched by proportion
_BYTE = re.compile(r"<0x([0-9A-F]{2})>")


@dataclass(frozen=True, slots=True)
class Link:
    """A piece of the target, a piece of the source it looked at, and its share of the attention."""

    src: Span
    tgt: Span
    share: float = 1.0

    def moved(self, src: int, tgt: int) -> "Link":
        """The same link in texts that begin so much earlier."""
        return Link(
            (self.src[0] + src, self.src[1] + src),
            (self.tgt[0] + tgt, self.tgt[1] + tgt),
            self.share,
        )


def links_between(alignment: Alignment, source: str, target: str) -> list[Link]:
    """The links of an alignment, between the characters of both texts.

    A piece that is a space and no more says nothing, and so is left out.
    """
    src = piece_spans(alignment.src_pieces, source)
    tgt = piece_spans(alignment.tgt_pieces, target)
    shares = alignment.shares or [(a, b, 1.0) for a, b in alignment.links]
    return [
        Link(src[a], tgt[b], share)
        for a, b, share in shares
        if src[a][0] < src[a][1] and tgt[b][0] < tgt[b][1]
    ]


def piece_spans(pieces: Sequence[str], text: str) -> list[Span]:
    """Where each piece stands; one that shows nothing stands between its neighbours."""
    shown = list(_characters(pieces))
    places = [place for place, char in enumerate(text) if not char.isspace()]
    said = "".join(char for char, _ in shown)
    there = "".join(text[place] for place in places)
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for number, at in _matched(said, there):
        for piece in shown[number][1]:
            first.setdefault(piece, places[at])
            last[piece] = places[at] + 1
    spans, end = [], 0
    for piece in range(len(pieces)):
        start = first.get(piece, end)
        end = max(start, last.get(piece, start))
        spans.append((start, end))
    return spans


def _matched(said: str, there: str) -> Iterator[Span]:
    """Characters of one text that are characters of the other, in order."""
    if said == there:
        yield from ((place, place) for place in range(len(said)))
    elif len(said) > MATCHED or len(there) > MATCHED:
        for place in range(len(said)):
            yield place, place * len(there) // len(said)
    else:
        for a, b, size in SequenceMatcher(None, said, there, autojunk=False).get_matching_blocks():
            yield from ((a + step, b + step) for step in range(size))


def _characters(pieces: Sequence[str]) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The characters that pieces show, and which show each: several, where they are bytes."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    begun: list[int] = []
    for place, piece in enumerate(pieces):
        if found := _BYTE.fullmatch(piece):
            begun.append(place)
            for char in decoder.decode(bytes([int(found[1], 16)])):
                if not char.isspace():
                    yield char, tuple(begun)
                begun = []
            continue
        decoder.reset()
        begun = []
        yield from ((char, (place,)) for char in piece if char != SPACE and not char.isspace())
