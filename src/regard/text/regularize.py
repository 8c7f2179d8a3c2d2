"""Subword regularisation: segmentations drawn by chance, so that a model sees a word in many ways.

SentencePiece's own sampler cannot be seeded again, so these draw from a generator made of the text
and a key: the same two give the same pieces in any process, thread or order.
"""

import heapq
import math
from collections.abc import Mapping
from hashlib import blake2b
from random import Random


def chance(text: str, key: tuple[int, ...]) -> Random:
    """A generator that depends on the text and the key alone."""
    digest = blake2b(f"{key}\n{text}".encode(), digest_size=16).digest()
    return Random(int.from_bytes(digest, "big"))


def endings(scores: Mapping[str, float]) -> dict[str, float | None]:
    """The score of every piece, and None for what is only the end of one.

    Who reads a text backwards from some place may stop where this has nothing.
    """
    ends = dict.fromkeys(piece[start:] for piece in scores for start in range(1, len(piece)))
    return {**ends, **scores}


def drawn_unigram(
    text: str,
    scores: Mapping[str, float | None],
    *,
    unknown: float,
    alpha: float,
    random: Random,
) -> list[str]:
    """Pieces of the text, drawn from all its segmentations with P ∝ exp(alpha · sum of scores).

    Forward sums over the lattice, then a walk back that draws each piece (Kudo, 2018, with l = ∞).
    The scores are those of `endings`; a character that is no piece stands alone with `unknown`.
    """
    sums = [0.0]  # sums[end]: log of the weight of all segmentations of text[:end]
    arcs: list[tuple[list[int], list[float]]] = [([], [])]  # into each end: starts, their weights
    for end in range(1, len(text) + 1):
        starts, weights = [], []
        for start in range(end - 1, -1, -1):
            piece = text[start:end]
            if piece not in scores:
                break
            if (score := scores[piece]) is not None:
                starts.append(start)
                weights.append(sums[start] + alpha * score)
        if not starts or starts[0] != end - 1:
            starts.append(end - 1)
            weights.append(sums[end - 1] + alpha * unknown)
        most = max(weights)
        if len(weights) == 1:  # as where a character is no piece's end: nothing to add up
            sums.append(most)
        else:
            weights = [math.exp(weight - most) for weight in weights]
            sums.append(most + math.log(sum(weights)))
        arcs.append((starts, weights))

    pieces = []
    end = len(text)
    while end:
        starts, weights = arcs[end]
        start = starts[0] if len(starts) == 1 else random.choices(starts, weights)[0]
        pieces.append(text[start:end])
        end = start
    return pieces[::-1]


def drawn_bpe(
    text: str, scores: Mapping[str, float], *, dropout: float, random: Random
) -> list[str]:
    """Pieces of the text by byte-pair merges, best first, each left out with P = dropout.

    With dropout 0 this is BPE itself (Provilkov et al., 2020).
    """
    symbols = list(text)
    after = list(range(1, len(text) + 1))
    before = list(range(-1, len(text) - 1))
    merges: list[tuple[float, int, int, str]] = []

    def offer(left: int, right: int) -> None:
        if left >= 0 and right < len(symbols):
            merged = symbols[left] + symbols[right]
            if merged in scores:
                heapq.heappush(merges, (-scores[merged], left, right, merged))

    for left in range(len(text) - 1):
        offer(left, left + 1)
    while merges:
        _, left, right, merged = heapq.heappop(merges)
        is_stale = after[left] != right or symbols[left] + symbols[right] != merged
        if is_stale or random.random() < dropout:
            continue
        symbols[left], symbols[right] = merged, ""
        after[left] = after[right]
        if after[left] < len(symbols):
            before[after[left]] = left
        offer(before[left], left)
        offer(left, after[left])
    return [symbol for symbol in symbols if symbol]
