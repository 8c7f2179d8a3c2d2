"""Beam search as one would explain it: no cache, no batch, nothing clever. The fast one equals it.

hypotheses = the `width` likeliest beginnings, each with the sum of its words' log-probabilities
every step: all beginnings times all words, the 2 x width best of them
    one that ends, among the best `width`, is finished
    the best `width` others go on
done when `width` have finished; the best is the one of the highest score

score = sum of log p(word | words before, source) / length ** penalty, the end counted in both
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

LogProbs = Callable[[Sequence[int]], Sequence[float]]
"""Words written so far (after the start) to the log-probability of each word of the vocabulary."""


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """A translation: its words without the end, its score, and whether it came to an end."""

    ids: tuple[int, ...]
    score: float
    is_finished: bool


def reference_beam(
    log_probs: LogProbs, *, width: int, max_len: int, eos: int, penalty: float = 1.0
) -> list[Hypothesis]:
    """The finished hypotheses, the best first; at `max_len` words those that live are cut off."""
    live: list[tuple[float, tuple[int, ...]]] = [(0.0, ())]
    finished: list[Hypothesis] = []
    for length in range(1, max_len + 1):
        candidates = [
            (total + log_p, beam, word)
            for beam, (total, ids) in enumerate(live)
            for word, log_p in enumerate(log_probs(ids))
            if log_p > -math.inf  # what is forbidden is no candidate
        ]
        candidates.sort(key=lambda c: (-c[0], c[1], c[2]))  # of equals, the first
        going_on = []
        for rank, (total, beam, word) in enumerate(candidates[: 2 * width]):
            if word != eos:
                going_on.append((total, (*live[beam][1], word)))
            elif rank < width:
                finished.append(Hypothesis(live[beam][1], total / length**penalty, True))
        live = going_on[:width]
        if len(finished) >= width:
            break
    else:
        finished += [Hypothesis(ids, total / max_len**penalty, False) for total, ids in live]
    return sorted(finished, key=lambda hypothesis: -hypothesis.score)[:width]
