"""A beam search that tells all: every candidate of every step, and what became of it.

It is the search of `reference.py` for one sentence, one step of the network at a time, and finds
what `beam.py` finds. Groups and terms, which change who is taken, are not told of here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from regard.decode.ready import Ready, S
from regard.decode.rules import rules_of
from regard.decode.search import Hypothesis, Ids, Search, Sentence

Fate = Literal["kept", "finished", "pruned"]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A word behind one of the beginnings that were kept at the step before."""

    parent: int  # which of them, counted from the best; 0 at the first step, where there is one
    word: int
    log_prob: float  # of this word
    total: float  # Σ log p of all its words
    score: float  # total / length^penalty
    fate: Fate


@dataclass(frozen=True, slots=True)
class Traced:
    """All steps of a search, each with its candidates from the best down, and what was found."""

    steps: tuple[tuple[Candidate, ...], ...]
    hypotheses: tuple[Hypothesis, ...]


@torch.inference_mode()
def trace(ready: Ready[S], sentence: Sentence, search: Search) -> Traced:
    """The search for the translation of one sentence."""
    rules = rules_of([sentence], search, ready.eos)
    limit, penalty = ready.limit(sentence, search), search.length_penalty
    live: list[tuple[float, Ids]] = [(0.0, ())]
    steps: list[tuple[Candidate, ...]] = []
    done: list[Hypothesis] = []
    state, token = ready.state, torch.tensor([ready.bos], device=ready.device)
    while live:
        logits, state = ready.step(token, state)
        log_p = logits.float().log_softmax(-1)
        said = np.array([ids for _, ids in live], np.int64).reshape(len(live), -1)
        for rule in rules:
            rule(log_p, said, np.zeros(len(live), np.int64))
        best = _judged(_ranked(live, log_p, search), search, ready.eos, len(done))
        steps.append(tuple(best))
        if not best:  # nothing may follow
            done += [Hypothesis(ids, _score(total, ids, penalty), False) for total, ids in live]
        done += [
            Hypothesis(live[one.parent][1], one.score, True)
            for one in best
            if one.fate == "finished"
        ]
        kept = [one for one in best if one.fate == "kept"]
        live = [(one.total, (*live[one.parent][1], one.word)) for one in kept]
        if live and len(live[0][1]) == limit:
            done += [Hypothesis(ids, _score(total, ids, penalty), False) for total, ids in live]
            break
        if live:
            token = torch.tensor([one.word for one in kept], device=ready.device)
            rows = torch.tensor([one.parent for one in kept], device=ready.device)
            state = state.reorder(rows)
    found = sorted(done, key=lambda one: -one.score)[: search.beam]
    return Traced(tuple(steps), tuple(found[: search.nbest]))


def _ranked(
    live: Sequence[tuple[float, Ids]], log_p: Float[Tensor, "W V"], search: Search
) -> list[Candidate]:
    """The 2 x beam best of all beginnings times all words; of equals, the first."""
    n_words = min(2 * search.beam, log_p.shape[1])
    values, words = log_p.topk(n_words)
    length = len(live[0][1]) + 1
    candidates = [
        Candidate(
            parent, word, gain, total + gain, (total + gain) / length**search.length_penalty, "kept"
        )
        for parent, (total, _) in enumerate(live)
        for word, gain in zip(words[parent].tolist(), values[parent].tolist(), strict=True)
        if np.isfinite(gain)
    ]
    candidates.sort(key=lambda one: -one.total)
    return candidates[: 2 * search.beam]


def _judged(
    candidates: Sequence[Candidate], search: Search, eos: int, n_done: int
) -> list[Candidate]:
    """The same with their fates: ends among the best are finished, the best others go on."""
    n_done += sum(one.word == eos for one in candidates[: search.beam])
    is_over = n_done >= search.beam  # then nobody goes on
    judged, n_kept = [], 0
    for place, one in enumerate(candidates):
        fate: Fate = "pruned"
        if one.word == eos:
            fate = "finished" if place < search.beam else "pruned"
        elif n_kept < search.beam and not is_over:
            fate, n_kept = "kept", n_kept + 1
        judged.append(Candidate(one.parent, one.word, one.log_prob, one.total, one.score, fate))
    return judged


def _score(total: float, words: Ids, penalty: float) -> float:
    return total / max(len(words), 1) ** penalty
