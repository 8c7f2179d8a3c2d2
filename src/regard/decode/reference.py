"""Beam search as one would explain it: no cache, no batch, nothing clever. The fast one equals it.

hypotheses = the `width` likeliest beginnings, each with the sum of its words' log-probabilities
every step: all beginnings times all words, the 2 x width best of them
    one that ends, among the best `width`, is finished
    the best `width` others go on
done when `enough` have finished, or nothing may follow; the best is the one of the highest score

score = sum of log p(word | words before, source) / length ** penalty, the end counted in both

Two things change which are the best, and nothing else. Diverse search: the beam falls into groups,
each a search of its own, and a word is worth less to a group by `diversity` for every beam of the
groups before it that takes it at this step. Terms: see `terms.py`; what lacks one may not end.
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence

from regard.decode.search import Hypothesis, Ids
from regard.decode.terms import Term, best_first, deal, lacking

LogProbs = Callable[[Ids], Sequence[float]]
"""Words written so far (after the start) to the log-probability of each word of the vocabulary."""
Live = list[tuple[float, Ids]]


def reference_beam(
    log_probs: LogProbs,
    *,
    width: int,
    max_len: int,
    eos: int,
    penalty: float = 1.0,
    groups: int = 1,
    diversity: float = 0.0,
    terms: Sequence[Term] = (),
    enough: int | None = None,
) -> list[Hypothesis]:
    """The finished hypotheses, the best first; what cannot go on is cut off, and among them."""
    width, enough = width // groups, (enough or width) // groups
    live: list[Live] = [[(0.0, ())] for _ in range(groups)]
    finished: list[list[Hypothesis]] = [[] for _ in range(groups)]
    for length in range(1, max_len + 2):
        taken: Counter[int] = Counter()
        for group, done in zip(range(groups), finished, strict=True):
            best = _candidates(live[group], log_probs, terms, eos) if length <= max_len else []
            best.sort(key=lambda c: diversity * taken[c[1][-1]] - c[0])  # of equals, the first
            best = [best[i] for i in deal([lacking(ids, terms) for _, ids in best])][: 2 * width]
            if not best:
                done += [Hypothesis(ids, _score(p, ids, penalty), False) for p, ids in live[group]]
            done += [
                Hypothesis(ids[:-1], _score(total, ids, penalty), True)
                for total, ids in best[:width]
                if ids[-1] == eos
            ]
            going_on = [(total, ids) for total, ids in best if ids[-1] != eos]
            live[group] = going_on[:width] if len(done) < enough else []
            taken.update(ids[-1] for _, ids in live[group])
    found = [best_first(done, terms)[:enough] for done in finished]
    said = {one.ids: one for group_found in found for one in group_found}  # groups may say the same
    return best_first(said.values(), terms)


def _candidates(live: Live, log_probs: LogProbs, terms: Sequence[Term], eos: int) -> Live:
    return [
        (total + log_p, (*ids, word))
        for total, ids in live
        for word, log_p in enumerate(log_probs(ids))
        if log_p > -math.inf  # what is forbidden is no candidate
        and not (word == eos and lacking(ids, terms))
    ]


def _score(total: float, words: Ids, penalty: float) -> float:
    return total / max(len(words), 1) ** penalty
