"""How much of its source a translation looks at, and scores that count it. No torch here."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from regard.decode.search import Hypothesis
from regard.decode.terms import Term, best_first

Weights = NDArray[np.float32]  # a row for each word, in it the weight of each source token

FAINTEST = 1e-30  # attention counts as no less, so that its logarithm is a number


def coverage(weights: Weights) -> float:
    """Σ log min(Σ attention, 1): 0 if all of the source is looked at, the less the more is not."""
    looked_at = weights.sum(axis=0, dtype=np.float64)
    return float(np.log(looked_at.clip(FAINTEST, 1.0)).sum())


def rescored(
    hypotheses: Sequence[Hypothesis],
    weights: Sequence[Weights],
    penalty: float,
    terms: Sequence[Term] = (),
) -> list[Hypothesis]:
    """Hypotheses with `penalty` times their coverage added to their scores, the best first."""
    pairs = zip(hypotheses, weights, strict=True)
    again = [replace(one, score=one.score + penalty * coverage(own)) for one, own in pairs]
    return best_first(again, terms)
