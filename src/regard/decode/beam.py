"""Beam search for many sentences at once, one step of the network at a time; equals `reference.py`.

The search knows no model: it is given a step, which maps a word for each row to the logits of the
next, and a state that can reorder its rows. Rows are sentences times beams; a sentence that is done
gives its rows back, so the last long one is not paid for by all.

The network's device finds the likeliest words of each row. What becomes of them is decided beside
it, in numpy: they are few, and there a small step costs a microsecond.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from regard.decode.ready import Ready, S, is_worth_leaving
from regard.decode.rules import Numbers, renormalized, rules_of
from regard.decode.search import Hypothesis, Search, Sentence
from regard.decode.terms import Term, beams_for, best_first, deal, lacking_after, words_of

Floats = NDArray[np.float64]

AHEAD = 1e6  # puts a word before all others, if it is allowed at all


@torch.inference_mode()
def beam_search(
    ready: Ready[S], sentences: Sequence[Sentence], search: Search
) -> list[list[Hypothesis]]:
    """For each sentence its hypotheses, the best first, as many as it has beams."""
    books = _Books(ready, sentences, search)
    live = _Live.at_start(len(sentences), search.groups)
    state, token = ready.state, torch.full((len(sentences),), ready.bos, device=ready.device)
    while True:
        logits, state = ready.step(token, state)
        rows, live = books.go_on(live, logits)
        stays = live.going_on()
        if not len(stays):
            return books.closed()
        leaves = is_worth_leaving(len(stays), len(live.numbers))
        if leaves:
            rows, live = rows[stays], live.of(stays)
        token = ready.tensor(live.said[:, :, -1].flatten())
        rows = rows.flatten()
        if leaves or not np.array_equal(rows, np.arange(len(logits))):
            state = state.reorder(ready.tensor(rows), ready.tensor(stays) if leaves else None)


@dataclass(frozen=True, slots=True)
class _Live:
    """The beginnings of the sentences still searched; all have as many words.

    A sentence has a row of words for each beam, the beams of a group together; at the start it has
    one for all groups.
    """

    numbers: Numbers  # which sentences they are
    totals: Floats  # sentences, groups, beams: Σ log p; minus infinity where there is nothing
    said: NDArray[np.int64]  # sentences, beams, words

    @classmethod
    def at_start(cls, n_sentences: int, n_groups: int) -> "_Live":
        """Nothing written."""
        totals = np.zeros((n_sentences, n_groups, 1))
        return cls(np.arange(n_sentences), totals, np.zeros((n_sentences, 1, 0), np.int64))

    def first_beam(self, group: int) -> int:
        """Where the beams of a group begin."""
        return group * self.totals.shape[2] if self.said.shape[1] > 1 else 0

    def going_on(self) -> Numbers:
        """Places of the sentences that have a beginning left."""
        return np.flatnonzero(np.isfinite(self.totals).any(axis=(1, 2)))

    def of(self, sentences: Numbers) -> "_Live":
        """These sentences alone."""
        return _Live(self.numbers[sentences], self.totals[sentences], self.said[sentences])

    def followed_by(self, groups: "Sequence[_Candidates]") -> "tuple[Numbers, _Live]":
        """The row that each beam comes from, and the beams one word longer."""
        beams_BW = np.concatenate([group.beams for group in groups], axis=1)
        words_BW = np.concatenate([group.words for group in groups], axis=1)
        sentences_B1 = np.arange(len(self.numbers))[:, None]
        said = np.concatenate([self.said[sentences_B1, beams_BW], words_BW[:, :, None]], axis=2)
        totals = np.stack([group.totals for group in groups], axis=1)
        rows_BW = sentences_B1 * self.said.shape[1] + beams_BW
        return rows_BW, _Live(self.numbers, totals, said)


@dataclass(frozen=True, slots=True)
class _Candidates:
    """Words that may follow beams; of each sentence the best come first."""

    totals: Floats  # minus infinity where there is no candidate
    beams: Numbers
    words: Numbers

    def within(self, n_B: Numbers) -> "_Candidates":
        """Of each sentence the first so many."""
        is_within = np.arange(self.totals.shape[1]) < n_B[:, None]
        return _Candidates(np.where(is_within, self.totals, -np.inf), self.beams, self.words)

    def without(self, eos: int, n: int) -> "_Candidates":
        """The first n of those that do not end."""
        is_end = self.words == eos
        others = np.argsort(is_end, axis=1, kind="stable")[:, :n]
        totals = np.where(is_end, -np.inf, self.totals)
        return _Candidates(
            np.take_along_axis(totals, others, axis=1),
            np.take_along_axis(self.beams, others, axis=1),
            np.take_along_axis(self.words, others, axis=1),
        )


class _Books:
    """What is asked for the sentences of a batch, and what they have finished in each group."""

    def __init__(self, ready: Ready[S], sentences: Sequence[Sentence], search: Search) -> None:
        self.eos = ready.eos
        self.penalty, self.diversity = search.length_penalty, search.diversity
        self.n_groups, self.enough = search.groups, search.beam // search.groups
        self.limits = np.array([ready.limit(sentence, search) for sentence in sentences])
        self.widths = np.array([beams_for(one, search) // search.groups for one in sentences])
        self.terms = [sentence.terms for sentence in sentences]
        self.asked = [sorted(words_of(terms)) for terms in self.terms]
        self.rules = rules_of(sentences, search, ready.eos)
        self.renormalizes = search.renormalize
        self.finished: list[list[list[Hypothesis]]] = [
            [[] for _ in range(self.n_groups)] for _ in sentences
        ]

    def closed(self) -> list[list[Hypothesis]]:
        """What each sentence has finished, the best first."""
        found = []
        for groups, terms in zip(self.finished, self.terms, strict=True):
            best = [best_first(group, terms)[: self.enough] for group in groups]
            said = {one.ids: one for group in best for one in group}  # groups may say the same
            found.append(best_first(said.values(), terms))
        return found

    def go_on(self, live: _Live, logits: Float[Tensor, "N V"]) -> tuple[Numbers, _Live]:
        """One word more: the row each beam comes from, and what lives then."""
        log_p_BWC, words_BWC = self._likeliest(live, logits)
        widths, taken = self.widths[live.numbers], list[_Candidates]()
        for group in range(self.n_groups):
            best = self._ranked(live, group, log_p_BWC, words_BWC, taken).within(2 * widths)
            self._cut_off(live, group, best.totals.max(axis=1) == -np.inf)
            self._finish(live, group, best.within(widths))
            is_open = [len(self.finished[n][group]) < self.enough for n in live.numbers]
            others = best.without(self.eos, int(self.widths.max()))
            taken.append(others.within(widths * np.array(is_open)))
        rows, live = live.followed_by(taken)
        is_last = self.limits[live.numbers] == live.said.shape[2]
        for group in range(self.n_groups):
            self._cut_off(live, group, is_last)
        live.totals[is_last] = -np.inf
        return rows, live

    def _likeliest(self, live: _Live, logits: Float[Tensor, "N V"]) -> tuple[Floats, Numbers]:
        """The words of each row that can matter and their log-probabilities.

        They are twice the width; besides, groups before may spoil as many as they have beams, and
        the words of terms are always among them.
        """
        n_sentences, n_beams, n_said = live.said.shape
        log_p = logits.float().log_softmax(-1)  # quicker than logsumexp, which is not vectorised
        for rule in self.rules:
            rule(log_p, live.said.reshape(len(log_p), n_said), live.numbers.repeat(n_beams))
        if self.rules and self.renormalizes:
            log_p = renormalized(log_p)
        asked = [
            (place * n_beams + beam, word)
            for place, number in enumerate(live.numbers)
            for word in self.asked[number]
            for beam in range(n_beams)
        ]
        n_words = self.widths.max() * (self.n_groups + 1) + max(map(len, self.asked))
        n_words = min(int(n_words), log_p.shape[1])
        if asked:
            at = tuple(torch.tensor(asked, device=log_p.device).T)
            words = log_p.index_put(at, log_p[at] + AHEAD).topk(n_words).indices
            log_p = log_p.gather(1, words)
        else:
            log_p, words = log_p.topk(n_words)
        shape = (n_sentences, n_beams, n_words)
        return log_p.cpu().double().numpy().reshape(shape), words.cpu().numpy().reshape(shape)

    def _ranked(
        self,
        live: _Live,
        group: int,
        log_p_BWC: Floats,
        words_BWC: Numbers,
        before: Sequence[_Candidates],
    ) -> _Candidates:
        """All that may follow the beams of a group, the best first."""
        totals_BW, first = live.totals[:, group], live.first_beam(group)
        beams = slice(first, first + totals_BW.shape[1])
        own_words = words_BWC[:, beams]
        totals: Floats = (totals_BW[:, :, None] + log_p_BWC[:, beams]).reshape(
            len(live.numbers), -1
        )
        words: Numbers = own_words.reshape(len(live.numbers), -1)
        worth = totals - self.diversity * _times_taken(words, before) if before else totals
        order = np.argsort(-worth, axis=1, kind="stable")
        for place, number in enumerate(live.numbers):
            if terms := self.terms[number]:
                lacks = _lacks(live.said[place, beams], own_words[place], terms)
                order[place] = _dealt(order[place], lacks, np.isfinite(totals[place]))
        return _Candidates(
            np.take_along_axis(totals, order, axis=1),
            first + order // own_words.shape[2],
            np.take_along_axis(words, order, axis=1),
        )

    def _finish(self, live: _Live, group: int, best: _Candidates) -> None:
        """Note those that end."""
        length = live.said.shape[2] + 1
        for place, c in np.argwhere((best.words == self.eos) & np.isfinite(best.totals)):
            ids = tuple(live.said[place, best.beams[place, c]].tolist())
            score = float(best.totals[place, c]) / length**self.penalty
            self.finished[live.numbers[place]][group].append(Hypothesis(ids, score, True))

    def _cut_off(self, live: _Live, group: int, is_over: NDArray[np.bool_]) -> None:
        """Note what lives of these sentences: nothing may follow, and it did not come to an end."""
        totals_BW, length = live.totals[:, group], max(live.said.shape[2], 1)
        for place, beam in np.argwhere(np.isfinite(totals_BW) & is_over[:, None]):
            ids = tuple(live.said[place, live.first_beam(group) + beam].tolist())
            score = float(totals_BW[place, beam]) / length**self.penalty
            self.finished[live.numbers[place]][group].append(Hypothesis(ids, score, False))


def _times_taken(words_BC: Numbers, groups: Sequence[_Candidates]) -> Numbers:
    """How many beams of these groups have taken each word."""
    taken = [np.where(np.isfinite(group.totals), group.words, -1) for group in groups]
    return (words_BC[:, :, None] == np.concatenate(taken, axis=1)[:, None]).sum(axis=2)


def _lacks(said_WT: Numbers, words_WC: Numbers, terms: Sequence[Term]) -> Numbers:
    """How many words of terms each candidate of a sentence lacks."""
    pairs = zip(said_WT.tolist(), words_WC.tolist(), strict=True)
    return np.array([lacking_after(tuple(said), words, terms) for said, words in pairs]).flatten()


def _dealt(order: Numbers, lacks: Numbers, is_there: NDArray[np.bool_]) -> Numbers:
    """The same order bank by bank; what is no candidate stays behind."""
    there, others = order[is_there[order]], order[~is_there[order]]
    return np.concatenate([there[deal(lacks[there].tolist())], others])
