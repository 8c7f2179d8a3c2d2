"""Which pairs go together, for every epoch: a pure function of lengths, seed and epoch.

Two kinds of batches:

    packed   one fixed shape per side, every batch full: pairs are dealt like cards, the longest
             first, each round to the hands that hold least, so that all hands end up equal
    padded   rows filled up to the longest: pairs of like lengths, cut where the budget is spent

Nothing is remembered between epochs, so a place in the data is two numbers, epoch and step, and
each of several ranks takes its own steps from the same plan.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regard.errors import ConfigError

Lengths = NDArray[np.integer]

TILE = 64  # sides of packed rows are multiples of this, which matrix units like
SLACK = 0.002  # room beyond the fullest hand of the trials
TRIALS = 4


@dataclass(frozen=True, slots=True)
class PackedShape:
    """The one shape of all packed batches: tokens of each side, sentences, the longest of each."""

    n_src: int
    n_tgt: int
    n_slots: int
    max_src_len: int
    max_tgt_len: int


@dataclass(frozen=True, slots=True)
class Plan:
    """The batches of one epoch, in order: batch i is pairs `pairs[ends[i - 1] : ends[i]]`."""

    pairs: NDArray[np.int64]
    ends: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.ends)

    def batch(self, step: int) -> NDArray[np.int64]:
        """The pairs of one batch."""
        return self.pairs[self.ends[step - 1] if step else 0 : self.ends[step]]


def n_packed_batches(src_lens: Lengths, tgt_lens: Lengths, tokens: int, ranks: int = 1) -> int:
    """As few batches of about `tokens` a side as hold the corpus, the same number for each rank."""
    per_side = (int(src_lens.sum()) + int(tgt_lens.sum())) / 2
    return max(math.ceil(per_side / tokens / ranks), 1) * ranks


def packed_shape(src_lens: Lengths, tgt_lens: Lengths, n_batches: int) -> PackedShape:
    """The shape that a fair share of the corpus fits, each side by its own total.

    How fair a share can be depends on the corpus, so a few trial deals tell.
    """
    trials = [_deal(src_lens, tgt_lens, n_batches, _generator(0, 0, t)) for t in range(TRIALS)]
    n_src, n_tgt = (
        _side(max(np.bincount(hands, lens, minlength=n_batches).max() for hands in trials))
        for lens in (src_lens, tgt_lens)
    )
    longest = int(src_lens.max()), int(tgt_lens.max())
    most_pairs = max(int(np.bincount(hands, minlength=n_batches).max()) for hands in trials)
    # the sentences of padding that fill a row whose hand is the lightest
    fillers = max(
        math.ceil((side - np.bincount(hands, lens, minlength=n_batches).min()) / most)
        for hands in trials
        for side, lens, most in zip((n_src, n_tgt), (src_lens, tgt_lens), longest, strict=True)
    )
    return PackedShape(n_src, n_tgt, most_pairs + 2 * fillers + 2, *longest)


def _side(load: float) -> int:
    return math.ceil((load * (1 + SLACK) + 8) / TILE) * TILE


def packed_plan(
    src_lens: Lengths, tgt_lens: Lengths, shape: PackedShape, n_batches: int, seed: int, epoch: int
) -> Plan:
    """Every pair once, dealt into `n_batches` hands that all fit the shape."""
    if n_batches > len(src_lens):
        raise too_few(len(src_lens), n_batches)
    for attempt in range(16):
        generator = _generator(seed, epoch, attempt)
        hands = _deal(src_lens, tgt_lens, n_batches, generator)
        loads = (np.bincount(hands, lens, minlength=n_batches) for lens in (src_lens, tgt_lens))
        sides = shape.n_src, shape.n_tgt
        if all(load.max() <= side for load, side in zip(loads, sides, strict=True)):
            return _plan_of_hands(hands, n_batches, generator)
    raise ConfigError(
        "the corpus cannot be dealt evenly into {n_batches} batches of {n_src} and {n_tgt} tokens; "
        "choose more tokens a batch, or padded batches",
        n_batches=n_batches,
        n_src=shape.n_src,
        n_tgt=shape.n_tgt,
    )


def too_few(n_pairs: int, n_batches: int) -> ConfigError:
    """What to say of a corpus that does not fill even one batch for each."""
    return ConfigError(
        "{pairs} pairs are too few for {batches} batches; choose more tokens a batch, or fewer "
        "processes",
        pairs=n_pairs,
        batches=n_batches,
    )


def padded_plan(
    src_lens: Lengths, tgt_lens: Lengths, tokens: int, seed: int, epoch: int, ranks: int = 1
) -> Plan:
    """Batches of at most `tokens` places a side, padding counted, in an order drawn anew."""
    generator = _generator(seed, epoch, 0)
    order = _by_length(src_lens, tgt_lens, generator)
    ends = _cut(src_lens[order], tgt_lens[order], tokens)
    starts = np.concatenate([[0], ends[:-1]])
    groups = [order[start:end] for start, end in zip(starts, ends, strict=True)]
    groups = _equal_steps(groups, ranks)
    if len(groups) % ranks:
        raise too_few(len(src_lens), ranks)
    shuffled = [groups[i] for i in generator.permutation(len(groups))]
    return Plan(np.concatenate(shuffled), np.cumsum([len(group) for group in shuffled]))


def _generator(seed: int, epoch: int, attempt: int) -> np.random.Generator:
    # A counter-based generator: the key is all there is to it.
    return np.random.Generator(np.random.Philox(key=[seed, (epoch << 8) + attempt]))


def _deal(
    src_lens: Lengths, tgt_lens: Lengths, n_hands: int, generator: np.random.Generator
) -> NDArray[np.int64]:
    """The hand of each pair. Lengths are in shares of a hand, so that both sides count alike."""
    src = src_lens / max(src_lens.sum() / n_hands, 1)
    tgt = tgt_lens / max(tgt_lens.sum() / n_hands, 1)
    longest_first = np.lexsort((generator.random(len(src)), -(src + tgt)))
    hands = np.empty(len(src), dtype=np.int64)
    src_load, tgt_load = np.zeros(n_hands), np.zeros(n_hands)
    for turn, start in enumerate(range(0, len(src), n_hands)):
        cards = longest_first[start : start + n_hands]
        if turn % 2:  # what is long on one side goes where that side is short
            cards = cards[np.argsort(tgt[cards] - src[cards], kind="stable")]
            order = np.argsort(src_load - tgt_load, kind="stable")
        else:  # the longest goes where there is least
            order = np.argsort(src_load + tgt_load, kind="stable")
        receivers = order[: len(cards)]
        hands[cards] = receivers
        src_load[receivers] += src[cards]
        tgt_load[receivers] += tgt[cards]
    return hands


def _plan_of_hands(hands: NDArray[np.int64], n_hands: int, generator: np.random.Generator) -> Plan:
    """Hands in a drawn order, and the pairs of each in a drawn order, not the longest first."""
    place_of_hand = generator.permutation(n_hands)
    pairs = np.lexsort((generator.random(len(hands)), place_of_hand[hands]))
    return Plan(pairs, np.cumsum(np.bincount(place_of_hand[hands], minlength=n_hands)))


def _by_length(
    src_lens: Lengths, tgt_lens: Lengths, generator: np.random.Generator
) -> NDArray[np.int64]:
    """Like shapes together: by the longer side, then to and fro by which it is, ties drawn."""
    longer = np.maximum(src_lens, tgt_lens)
    lean = src_lens.astype(np.int64) - tgt_lens
    to_and_fro = np.where(longer % 2, -lean, lean)
    return np.lexsort((generator.random(len(lean)), to_and_fro, longer))


def _cut(src_lens: Lengths, tgt_lens: Lengths, tokens: int) -> NDArray[np.int64]:
    """Where batches end: before rows times the longest would exceed the budget on either side."""
    ends, rows, width = [], 0, 0
    longest = np.maximum(src_lens, tgt_lens).tolist()
    for i, length in enumerate(longest):
        wider = max(width, length)
        if rows and (rows + 1) * wider > tokens:
            ends.append(i)
            rows, wider = 0, length
        rows, width = rows + 1, wider
    return np.array([*ends, len(longest)], dtype=np.int64)


def _equal_steps(groups: list[NDArray[np.int64]], ranks: int) -> list[NDArray[np.int64]]:
    """As many batches as ranks share evenly, by cutting the largest in two."""
    groups = sorted(groups, key=len)
    while len(groups) % ranks and len(groups[-1]) > 1:
        largest = groups.pop()
        half = len(largest) // 2
        groups = sorted([*groups, largest[:half], largest[half:]], key=len)
    return groups
