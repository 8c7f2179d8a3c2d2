"""One word after the other, none taken back: the most probable one is the greedy choice.

The search knows no model: it is given a step. How a word is chosen is a function too, so that words
can also be drawn, see `sampling.py`.
"""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from regard.decode.ready import Ready, S, is_worth_leaving
from regard.decode.rules import Numbers, renormalized, rules_of
from regard.decode.search import Hypothesis, Search, Sentence

Choose = Callable[[Float[Tensor, "N V"], int, Numbers], Int[Tensor, "N"]]
"""Log-probabilities, how many words there are already, and which rows these are, to a word each."""


def greedy(
    ready: Ready[S], sentences: Sequence[Sentence], search: Search
) -> list[list[Hypothesis]]:
    """For each sentence the one translation in which every word is the most probable."""
    return write(ready, sentences, search, lambda log_p, n_said, rows: log_p.argmax(-1))


@torch.inference_mode()
def write(
    ready: Ready[S], sentences: Sequence[Sentence], search: Search, choose: Choose, each: int = 1
) -> list[list[Hypothesis]]:
    """Translations of each sentence, the best first: `each` of them, in rows side by side."""
    rules = rules_of(sentences, search, ready.eos)
    pages = _Pages(np.array([ready.limit(one, search) for one in sentences]).repeat(each))
    rows = np.arange(len(pages.limits))  # those still written, by their first numbers
    state = ready.state if each == 1 else ready.state.reorder(ready.tensor(rows // each))
    token = torch.full((len(rows),), ready.bos, device=ready.device)
    for n_said in range(pages.limits.max()):
        logits, state = ready.step(token, state)
        log_p = logits.float().log_softmax(-1)  # quicker than logsumexp, which is not vectorised
        for rule in rules:
            rule(log_p, pages.said[rows, :n_said], rows // each)
        if rules and search.renormalize:
            log_p = renormalized(log_p)
        token = choose(log_p, n_said, rows)
        gains = log_p.gather(1, token[:, None])[:, 0]
        pages.write(rows, token.cpu().numpy(), gains.cpu().numpy(), ready.eos)
        is_wanted = pages.is_open[rows].reshape(-1, each).max(axis=1)
        if not is_wanted.any():
            break
        if is_worth_leaving(int(is_wanted.sum()), len(is_wanted)):
            stays = np.flatnonzero(is_wanted.repeat(each))
            at = ready.tensor(stays)
            rows, token = rows[stays], token[at]
            state = state.reorder(at, ready.tensor(np.flatnonzero(is_wanted)))
    found = pages.hypotheses(search.length_penalty)
    return [
        sorted(found[row : row + each], key=lambda one: -one.score)
        for row in range(0, len(found), each)
    ]


class _Pages:
    """What the rows have written so far, whether they still do, and whether they came to an end."""

    def __init__(self, limits: Numbers) -> None:
        self.limits = limits
        self.said = np.zeros((len(limits), limits.max()), np.int64)
        self.lens = np.zeros(len(limits), np.int64)  # the end counted
        self.totals = np.zeros(len(limits))
        self.is_open = np.ones(len(limits), bool)
        self.is_finished = np.zeros(len(limits), bool)

    def write(self, rows: Numbers, words: Numbers, gains: NDArray[np.floating], eos: int) -> None:
        """A word more in those rows that are open; where none is allowed the row is closed."""
        is_written = self.is_open[rows] & np.isfinite(gains)
        self.is_open[rows] = is_written
        rows, words = rows[is_written], words[is_written]
        self.said[rows, self.lens[rows]] = words
        self.lens[rows] += 1
        self.totals[rows] += gains[is_written]
        self.is_finished[rows] = words == eos
        self.is_open[rows] = (words != eos) & (self.lens[rows] < self.limits[rows])

    def hypotheses(self, penalty: float) -> list[Hypothesis]:
        """A hypothesis for each row."""
        scores = self.totals / np.maximum(self.lens, 1) ** penalty
        lens = self.lens - self.is_finished
        return [
            Hypothesis(tuple(said[:n].tolist()), float(score), bool(is_finished))
            for said, n, score, is_finished in zip(
                self.said, lens, scores, self.is_finished, strict=True
            )
        ]
