"""What a translation must or must not say: functions that forbid words before they are chosen.

A rule is given the log-probabilities of the next word in each row, the words that the row has so
far, and which sentence the row belongs to; what it forbids becomes minus infinity. Nothing is
renormalised, so the score of what remains is still the network's.
"""

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

Words = Sequence[int]
Rule = Callable[
    [Float[Tensor, "N V"], Sequence[Words], Sequence[int]],
    Float[Tensor, "N V"],
]


def begins_with(prefixes: Sequence[Words]) -> Rule:
    """Each sentence begins with its prefix, and goes on freely; an empty one asks for nothing."""

    def rule(log_p: Tensor, rows: Sequence[Words], owners: Sequence[int]) -> Tensor:
        forced = [
            (row, prefixes[owner][len(words)])
            for row, (words, owner) in enumerate(zip(rows, owners, strict=True))
            if len(words) < len(prefixes[owner])
        ]
        if not forced:
            return log_p
        at, word = (torch.tensor(side, device=log_p.device) for side in zip(*forced, strict=True))
        only = torch.full_like(log_p[at], -torch.inf)
        only.scatter_(1, word[:, None], log_p[at, word][:, None])
        return log_p.index_copy(0, at, only)

    return rule


def never_says(forbidden: Sequence[Words]) -> Rule:
    """None of these sequences of words is ever completed."""

    def rule(log_p: Tensor, rows: Sequence[Words], owners: Sequence[int]) -> Tensor:
        return _without(
            log_p,
            [
                (row, words[-1])
                for row, said in enumerate(rows)
                for words in forbidden
                if len(said) >= len(words) - 1 and _ends_with(said, words[:-1])
            ],
        )

    return rule


def repeats_no(n: int) -> Rule:
    """No n words in a row are said twice."""

    def rule(log_p: Tensor, rows: Sequence[Words], owners: Sequence[int]) -> Tensor:
        return _without(
            log_p,
            [
                (row, said[start + n - 1])
                for row, said in enumerate(rows)
                if len(said) >= n
                for start in range(len(said) - n + 1)
                if _ends_with(said, said[start : start + n - 1])
            ],
        )

    return rule


def is_as_long_as(n_words: int, eos: int) -> Rule:
    """No sentence ends before it has so many words."""

    def rule(log_p: Tensor, rows: Sequence[Words], owners: Sequence[int]) -> Tensor:
        return _without(log_p, [(row, eos) for row, said in enumerate(rows) if len(said) < n_words])

    return rule


def _ends_with(said: Words, words: Words) -> bool:
    return not words or list(said[-len(words) :]) == list(words)


def _without(log_p: Tensor, places: Sequence[tuple[int, int]]) -> Tensor:
    """The same with these words of these rows forbidden."""
    if not places:
        return log_p
    rows, words = (torch.tensor(side, device=log_p.device) for side in zip(*places, strict=True))
    return log_p.index_put((rows, words), torch.tensor(-torch.inf, device=log_p.device))
