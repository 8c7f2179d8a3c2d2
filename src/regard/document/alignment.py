"""Alignments as Pharaoh writes them, and how far one is from a gold one.

A link is `source-target`, words counted from 0. In a gold file `3-4` is sure and `3p4` possible:

    AER = 1 - (|A ∩ S| + |A ∩ P|) / (|A| + |S|)         A ours, S sure, P sure or possible

Och and Ney 2003. 0 is best; ours may have what is possible and must have what is sure.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from regard.decode.results import Alignment, links_of, shares_of
from regard.document.cells import Cells, Whole
from regard.document.links import Span, links_between
from regard.errors import DataError

if TYPE_CHECKING:
    from regard.decode.translator import Translator

Links = frozenset[tuple[int, int]]

FAINT, CLOSE = 0.05, 0.7  # a share of attention that is a link, of all and of the greatest

_HAN = "\u3000-\u303f\u3400-\u9fff\uff00-\uffef"
_HAN_GAP = re.compile(rf"(?<=[{_HAN}])\s+(?=[{_HAN}])")
_MARK_GAP = re.compile(r"\s+(?=[.,!?;:](?:\s|$))")
_LINK = re.compile(r"(\d+)([-p?])(\d+)")


@dataclass(frozen=True, slots=True)
class Gold:
    """The links of a pair that must be there, and those that may."""

    sure: Links
    possible: Links  # the sure ones among them


def aer(ours: Iterable[Links], gold: Iterable[Gold]) -> float:
    """The alignment error rate of all pairs together."""
    hits = size = 0
    for own, true in zip(ours, gold, strict=True):
        hits += len(own & true.sure) + len(own & true.possible)
        size += len(own) + len(true.sure)
    return 1.0 - hits / size if size else 0.0


def read_links(lines: Sequence[str], file: str) -> list[Links]:
    """The links of each line."""
    return [one.possible for one in read_gold(lines, file)]


def read_gold(lines: Sequence[str], file: str) -> list[Gold]:
    """The links of each line; those with p or ? are possible, the others sure."""
    gold = []
    for number, line in enumerate(lines, start=1):
        sure, possible = set(), set()
        for word in line.split():
            found = _LINK.fullmatch(word)
            if found is None:
                raise DataError(
                    "{file}, line {line}: {word} is no link; write source-target, as in 3-4, or "
                    "3p4 for one that is possible",
                    file=file,
                    line=number,
                    word=word,
                )
            link = (int(found[1]), int(found[3]))
            possible.add(link)
            if found[2] == "-":
                sure.add(link)
        gold.append(Gold(frozenset(sure), frozenset(possible)))
    return gold


def aligned(translator: "Translator", source: str, target: str) -> Alignment:
    """The alignment of a given pair of spaced words, by the attention of the decoder's last layer.

    The model reads the words as they are written, Chinese without spaces.
    """
    seen = translator.attend(_as_written(source), _as_written(target))
    vocab = translator.wording.src.vocab
    asking = {vocab.pieces[id] for id in vocab.languages.values()}
    first = int(seen.src_pieces[0] in asking)  # the language that is asked for is no part of it
    src, tgt = seen.src_pieces[first:-1], seen.tgt_pieces[:-1]
    rows = [row[first:-1] for row in seen.cross[-1].mean(axis=0).tolist()]
    sizes = len(src), len(tgt)
    return Alignment(src, tgt, links_of(rows, *sizes), shares_of(rows, *sizes))


def word_links(alignment: Alignment, source: str, target: str) -> Links:
    """The links between words that spaces part: for each target word those that it comes from.

    As for tags, what counts is attention that both sides agree on (cells.py), and what comes close
    to the most.
    """
    cells = Cells(source, Whole(target, tuple(links_between(alignment, source, target)), {}))
    inside = [cells.inside(span) for span in _words(source)]
    tgt = _words(target)
    links: set[tuple[int, int]] = set()
    for place, (start, _) in enumerate(cells.spans):
        word = bisect_right(tgt, start, key=lambda span: span[0]) - 1
        shares = [own.get(place, 0.0) for own in inside]
        least = max(FAINT, CLOSE * max(shares, default=0.0))
        links |= {(number, word) for number, share in enumerate(shares) if share >= least}
    return frozenset(links)


def _as_written(words: str) -> str:
    """Words without the spaces that only part them."""
    text = _HAN_GAP.sub("", words)
    return _MARK_GAP.sub("", text)


def _words(text: str) -> list[Span]:
    return [found.span() for found in re.finditer(r"\S+", text)]
