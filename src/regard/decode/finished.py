"""What searches in slots have come to, read off beside the device for all sentences at once.

A hypothesis is a beam and a step at which it ended, or was cut off; its words are found by
following the beams back from there.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.decode.search import Found, Hypothesis, Ids, Search

Numbers = NDArray[Any]


class Coming:
    """Numbers on their way from the device, as they are when they are asked for.

    The copy stands in the device's queue: it waits for what was queued before, and what is queued
    later waits for it.
    """

    def __init__(self, tensors: Sequence[Tensor]) -> None:
        """Ask for them, in one copy; those of most bytes stand first."""
        parts = [x.contiguous().view(torch.uint8).flatten() for x in tensors]
        together = torch.cat(parts)
        self._kinds = [
            (len(part), x.dtype, x.shape) for part, x in zip(parts, tensors, strict=True)
        ]
        self._copy = together.to("cpu", non_blocking=True)  # pinned, if it comes from a GPU
        self._arrived = torch.cuda.Event() if together.is_cuda else None
        if self._arrived is not None:
            self._arrived.record()

    def is_here(self) -> bool:
        """Whether nobody would wait for them."""
        return self._arrived is None or self._arrived.query()

    def here(self) -> list[Numbers]:
        """The numbers, waited for if need be."""
        if self._arrived is not None:
            self._arrived.synchronize()
        copies = self._copy.split([size for size, _, _ in self._kinds])
        return [
            copy.view(dtype).view(shape).numpy()
            for copy, (_, dtype, shape) in zip(copies, self._kinds, strict=True)
        ]


@dataclass(frozen=True, slots=True)
class Finished:
    """All that the searches of some sentences have written down, by sentence, step and beam."""

    n_said: Numbers  # steps; what stands behind them is not this sentence's
    n_finished: Numbers
    end_scores: Numbers  # of those that ended; minus infinity where none did
    totals: Numbers  # of those that go on, by sentence and beam
    words: Numbers
    parents: Numbers  # the beam that each word followed
    end_parents: Numbers

    def hypotheses(self, search: Search) -> Iterator[Found]:
        """The best of each sentence, the best first; only these are read off."""
        found = zip(self._ended(), self._cut_off(search), strict=True)
        sentences, lengths, beams, scores = map(np.concatenate, found)
        best = np.lexsort((-scores, sentences))  # of two that are as good the earlier comes first
        best = best[_ranks(sentences[best]) < search.nbest]
        sentences, lengths, beams = sentences[best], lengths[best], beams[best]
        said = self._said(sentences, lengths, beams)
        has_ended = lengths < self.n_said[sentences]
        every = map(Hypothesis, said, scores[best].tolist(), has_ended.tolist())
        for n_own in np.bincount(sentences, minlength=len(self.n_said)).tolist():
            yield list(islice(every, n_own))

    def _ended(self) -> tuple[Numbers, ...]:
        """Hypotheses that came to an end: sentence, words, beam and score."""
        is_own = np.arange(self.words.shape[1]) < self.n_said[:, None]
        at = np.nonzero(np.isfinite(self.end_scores) & is_own[..., None])
        return *at[:2], self.end_parents[at], self.end_scores[at]

    def _cut_off(self, search: Search) -> tuple[Numbers, ...]:
        """The same of those that did not, where they are wanted."""
        goes_on = np.isfinite(self.totals) & (self.n_finished < search.beam)[:, None]
        sentences, beams = np.nonzero(goes_on)
        lengths = self.n_said[sentences]
        norms = np.array([n**search.length_penalty for n in lengths.tolist()])
        return sentences, lengths, beams, self.totals[goes_on] / norms

    def _said(self, sentences: Numbers, lengths: Numbers, beams: Numbers) -> Iterator[Ids]:
        """The words of each, followed back."""
        longest = lengths.max(initial=0)
        if self.words.shape[2] == 1:  # there is nothing to follow
            said = self.words[sentences, :longest, 0]
        else:
            said = np.empty((len(sentences), longest), self.words.dtype)
            for t in reversed(range(longest)):
                own = np.flatnonzero(t < lengths)
                at = sentences[own], t, beams[own]
                said[own, t], beams[own] = self.words[at], self.parents[at]
        flat = said[np.arange(longest) < lengths[:, None]].tolist()
        for start, end in pairwise([0, *lengths.cumsum().tolist()]):
            yield tuple(flat[start:end])


def _ranks(groups: Numbers) -> Numbers:
    """How many of the same group stand before each; groups rise."""
    return np.arange(len(groups)) - np.searchsorted(groups, groups)
