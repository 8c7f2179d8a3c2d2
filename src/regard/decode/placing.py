"""Terms put where they belong: in place of the words that look at what they are to translate.

A search that has to say a term the network does not expect says its own word too, and the term
behind the full stop. But which words stand for the source's is seen in the attention, so the term
takes their place; and the rest of the sentence stays as it was.

    source           今天的会议取消了。                 会议 is to be called summit
    said freely      Today ' s meeting was cancelled .
    share of 会议     .2 .6 .4   .9    .0     .0     .0
    placed           Today ' s summit  was cancelled .
"""

import re
import unicodedata
from collections.abc import Collection, Sequence
from itertools import pairwise, repeat

import numpy as np
from numpy.typing import NDArray

from regard.decode.search import Ids, Place, Sentence
from regard.decode.terms import lacking
from regard.text.subword import SPACE

_BYTE = re.compile("<0x[0-9A-F]{2}>")

SURE = 0.5  # of the attention of a word, at least, that tells what it stands for
BEFORE = 0.85  # of as much, for a word before it: articles look ahead at their noun


def in_place(
    sentence: Sentence,
    ids: Ids,
    weights: NDArray[np.float32],
    pieces: Sequence[str],
    silent: Collection[int] = (),
) -> Ids | None:
    """What was said with the terms that it lacks, each in its place; None if that is not clear.

    `weights` has a row for each word, `pieces` the spelling of each id, with ▁ for a space; what is
    `silent` in a source, its end and its language, is looked at by words that look at nothing.
    """
    heard = [place for place, id in enumerate(sentence.ids) if id not in silent]
    shares = weights[: len(ids)] / np.maximum(weights[: len(ids), heard].sum(1), 1e-9)[:, None]
    words = _words([pieces[id] for id in ids])
    chosen: list[tuple[int, int, Ids]] = []
    for term, places in zip(sentence.terms, sentence.places or repeat(()), strict=False):
        if not lacking(ids, [term]):
            continue
        spans = [_span(shares, one, words) for one in places]
        for span in spans:
            if span is None:
                return None
            has_space = span[0] == 0 or pieces[ids[span[0]]].startswith(SPACE)
            chosen.append((*span, term[0] if has_space else term[-1]))  # which follows another
        if not spans:
            return None
    chosen.sort()
    ends = [len(sentence.prefix), *(end for _, end, _ in chosen)]
    if any(start < end for (start, _, _), end in zip(chosen, ends, strict=False)):
        return None  # one would take the place of another, or of what has to come first
    said = list(ids)
    for start, end, spelling in reversed(chosen):
        said[start:end] = spelling
    return None if lacking(tuple(said), sentence.terms) else tuple(said)


def _span(
    attention: NDArray[np.float32], place: Place, words: Sequence[tuple[int, int]]
) -> tuple[int, int] | None:
    """From which piece to which the words stand that look at this place of the source."""
    by_piece = attention[:, list(place.tokens)].sum(1)
    shares = [float(by_piece[start:end].max()) for start, end in words]
    best = max(range(len(words)), key=shares.__getitem__, default=-1)
    if best < 0 or shares[best] < SURE:
        return None
    is_whole = (place.start, place.end) == (0.0, 1.0)
    before = BEFORE * shares[best] if is_whole else SURE
    first, end = best, best + 1
    while first > 0 and shares[first - 1] >= before:
        first -= 1
    while end < len(words) and shares[end] >= SURE:
        end += 1
    if not is_whole:  # who looks at a token of several words does so in their order
        n = end - first
        start = min(round(n * place.start), n - 1)
        first, end = first + start, first + max(start + 1, round(n * place.end))
    return words[first][0], words[end - 1][1]


def _words(pieces: Sequence[str]) -> list[tuple[int, int]]:
    """Pieces as words, from which to which; a sign, or a letter without spaces, is one itself."""
    starts = [
        place
        for place, piece in enumerate(pieces)
        if not place or not _goes_on(pieces[place - 1], piece)
    ]
    return list(pairwise([*starts, len(pieces)]))


def _goes_on(before: str, piece: str) -> bool:
    """Whether a piece is the rest of a word, or all of it but the space, or of letters in bytes."""
    if _BYTE.fullmatch(before) or _BYTE.fullmatch(piece):
        return bool(_BYTE.fullmatch(before) and _BYTE.fullmatch(piece))
    return (before == SPACE or _is_spaced(before[-1:])) and _is_spaced(piece[:1])


def _is_spaced(char: str) -> bool:
    """Whether it is part of a word between spaces."""
    return char.isalnum() and unicodedata.category(char) != "Lo"
