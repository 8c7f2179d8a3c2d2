"""What a translation must or must not say: functions that forbid words before they are chosen.

A rule is given the log-probabilities of the next word in each row, the words that the rows have so
far, which are as many in each, and the sentence that each row belongs to. What it forbids becomes
minus infinity, in place. Nothing is renormalised unless asked for, so the score of what remains is
the network's.
"""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from regard.decode.search import Ids, Search, Sentence
from regard.decode.terms import Term, lacking

Numbers = NDArray[np.int64]
Rule = Callable[[Float[Tensor, "N V"], Numbers, Numbers], None]


def rules_of(sentences: Sequence[Sentence], search: Search, eos: int) -> list[Rule]:
    """All that is asked of these translations."""
    rules: list[Rule] = []
    if search.forbidden:
        rules.append(never_says(search.forbidden))
    if search.no_repeat:
        rules.append(repeats_no(search.no_repeat))
    if search.min_len:
        rules.append(is_as_long_as(search.min_len, eos))
    if any(sentence.terms for sentence in sentences):
        rules.append(says_its_terms([sentence.terms for sentence in sentences], eos))
    if any(sentence.prefix for sentence in sentences):
        return [begins_with([sentence.prefix for sentence in sentences], rules)]
    return rules


def renormalized(log_p: Float[Tensor, "N V"]) -> Float[Tensor, "N V"]:
    """The same with probabilities that sum to 1 again; where nothing is allowed nothing becomes."""
    return log_p.log_softmax(-1).nan_to_num(nan=-torch.inf, neginf=-torch.inf)


def begins_with(prefixes: Sequence[Ids], then: Sequence[Rule] = ()) -> Rule:
    """Each sentence begins with its prefix, and these rules hold for what follows.

    They do not hold before: who asks for a beginning gets it.
    """
    longest = max(map(len, prefixes))
    words_BT = np.array([[*prefix, *[-1] * (longest + 1 - len(prefix))] for prefix in prefixes])

    def rule(log_p: Tensor, said: Numbers, owners: Numbers) -> None:
        forced = words_BT[owners, min(said.shape[1], longest)]
        rows = np.flatnonzero(forced >= 0)
        at, words = _on(log_p, rows, forced[rows])
        chosen = log_p[at, words]
        for one in then:
            one(log_p, said, owners)
        log_p[at] = -torch.inf
        log_p[at, words] = chosen

    return rule


def never_says(forbidden: Sequence[Ids]) -> Rule:
    """None of these sequences of words is ever completed."""

    def rule(log_p: Tensor, said: Numbers, owners: Numbers) -> None:
        for *beginning, last in forbidden:
            n = len(beginning)
            if said.shape[1] >= n:
                is_begun = said[:, said.shape[1] - n :] == np.array(beginning, np.int64)
                rows = np.flatnonzero(is_begun.all(axis=1))
                _forbid(log_p, rows, np.full_like(rows, last))

    return rule


def repeats_no(n: int) -> Rule:
    """No n words in a row are said twice."""

    def rule(log_p: Tensor, said: Numbers, owners: Numbers) -> None:
        if said.shape[1] >= n:
            grams = np.lib.stride_tricks.sliding_window_view(said, n, axis=1)
            last = said[:, None, said.shape[1] - n + 1 :]
            rows, places = np.nonzero((grams[:, :, :-1] == last).all(axis=2))
            _forbid(log_p, rows, grams[rows, places, -1])

    return rule


def is_as_long_as(n_words: int, eos: int) -> Rule:
    """No sentence ends before it has so many words."""

    def rule(log_p: Tensor, said: Numbers, owners: Numbers) -> None:
        if said.shape[1] < n_words:
            log_p[:, eos] = -torch.inf

    return rule


def says_its_terms(terms: Sequence[Sequence[Term]], eos: int) -> Rule:
    """No sentence ends before it has said its terms."""

    def rule(log_p: Tensor, said: Numbers, owners: Numbers) -> None:
        pairs = zip(said.tolist(), owners.tolist(), strict=True)
        lacks = [bool(lacking(tuple(words), terms[owner])) for words, owner in pairs]
        rows = np.flatnonzero(lacks)
        _forbid(log_p, rows, np.full_like(rows, eos))

    return rule


def _forbid(log_p: Tensor, rows: Numbers, words: Numbers) -> None:
    if len(rows):
        log_p[_on(log_p, rows, words)] = -torch.inf


def _on(log_p: Tensor, *numbers: Numbers) -> tuple[Tensor, ...]:
    return tuple(torch.from_numpy(side).to(log_p.device) for side in numbers)
