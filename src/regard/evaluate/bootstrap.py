"""Whether one system is better than another, or was only lucky with this test set.

The test set is drawn again and again from its own lines, with replacement, and every system is
scored on the same draws (Koehn, 2004). How far the scores scatter is the interval; how often chance
alone would part two systems as far as they are apart is p.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sacrebleu.metrics.base import Metric
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.significance import estimate_ci

from regard.errors import ConfigError, DataError
from regard.evaluate.metrics import (
    Score,
    bleu_metric,
    check_lines,
    exact_signature,
    is_exact,
    lowercase_metric,
    moses_metric,
    ter_metric,
)

SAMPLES, SEED = 1000, 12345  # sacreBLEU's own, so that its command gives the same figures

Counts = NDArray[np.float64]


@dataclass(frozen=True)
class Estimate:
    """A system's score; mean ± interval holds 95 % of the draws; p is against the first system."""

    system: str
    score: Score
    mean: float
    interval: float
    p: float | None


def compare(
    systems: Mapping[str, Sequence[str]],
    references: Sequence[str],
    tgt_lang: str,
    *,
    samples: int = SAMPLES,
    seed: int = SEED,
) -> tuple[Estimate, ...]:
    """BLEU, chrF, TER and exact match of each system, in order; the first is the baseline.

    Then, where the language has them, BLEU of lower-cased text in 13a's words and in Moses'.

    One system alone gets its intervals. p is sacreBLEU's, but for one case: systems that never
    differ have p = 1 here, where sacreBLEU counts no draw as beyond a difference of 0 and gives
    the least p there is.
    """
    _check(systems, references, samples, seed)
    metrics: dict[str, Metric | None] = {
        "bleu": bleu_metric(tgt_lang),
        "chrf": CHRF(),
        "ter": ter_metric(tgt_lang),
        "exact": None,
    }
    more = {"bleu_lc": lowercase_metric(tgt_lang), "bleu_moses": moses_metric(tgt_lang)}
    metrics |= {name: metric for name, metric in more.items() if metric is not None}
    columns = [
        _compared(name, metric, systems, references, samples, seed)
        for name, metric in metrics.items()
    ]
    return tuple(estimate for row in zip(*columns, strict=True) for estimate in row)


def p_value(drawn: NDArray[np.float64], difference: float) -> float:
    """The share of draws that chance alone parts at least as far as the systems are apart.

    drawn: differences of the two systems, one a draw. Less their mean, they are what chance does.

    sacreBLEU, after Moses, drops the sign before it takes the mean away, so this is about half of a
    two-sided p: of pairs of equally good systems, one in eight (not in twenty) is below 0.05.
    """
    distances = np.abs(drawn)
    beyond = int(np.sum(distances - distances.mean() >= abs(difference)))
    return (beyond + 1) / (len(drawn) + 1)  # + 1: what was observed is itself one draw


def _compared(
    name: str,
    metric: Metric | None,
    systems: Mapping[str, Sequence[str]],
    references: Sequence[str],
    samples: int,
    seed: int,
) -> list[Estimate]:
    """One metric of every system."""
    estimates: list[Estimate] = []
    baseline = baseline_drawn = None
    for system, hypotheses in systems.items():
        counts = _counts(metric, hypotheses, references)
        value = _value(metric, counts.sum(0))
        drawn = np.array([_value(metric, total) for total in _draws(counts, samples, seed)])
        score = Score(name, value, _signature(metric, samples, seed))
        mean, interval = estimate_ci(drawn)
        p = None
        if baseline is None:
            baseline, baseline_drawn = value, drawn
        else:
            p = p_value(drawn - baseline_drawn, value - baseline)
        estimates.append(Estimate(system, score, float(mean), float(interval), p))
    return estimates


def _draws(counts: Counts, samples: int, seed: int) -> Counts:
    """The summed counts of each draw."""
    # The same seed draws the same lines for every system: this is what pairs them.
    rng = np.random.default_rng(seed)
    n_lines = len(counts)
    times = (np.bincount(rng.choice(n_lines, n_lines), minlength=n_lines) for _ in range(samples))
    return np.stack([n @ counts for n in times])


def _counts(metric: Metric | None, hypotheses: Sequence[str], references: Sequence[str]) -> Counts:
    """One row of counts a line; a corpus is scored from the sum of its rows. None: exact match."""
    if metric is None:
        rows = [[is_exact(*pair), 1] for pair in zip(hypotheses, references, strict=True)]
    else:
        rows = metric._extract_corpus_statistics(hypotheses, [references])
    return np.array(rows, dtype=np.float64)


def _value(metric: Metric | None, total: Counts) -> float:
    if metric is None:
        return float(100 * total[0] / total[1])
    return float(metric._compute_score_from_stats(list(total)).score)


def _signature(metric: Metric | None, samples: int, seed: int) -> str:
    if metric is None:
        return exact_signature(f"bs:{samples}", f"seed:{seed}")
    signature = metric.get_signature()
    signature.update("bs", samples)
    signature.update("seed", seed)
    return str(signature)


def _check(
    systems: Mapping[str, Sequence[str]], references: Sequence[str], samples: int, seed: int
) -> None:
    if not systems:
        raise DataError("there is no system to compare")
    for system, hypotheses in systems.items():
        if len(hypotheses) != len(references):
            raise DataError(
                "{system} has {hypotheses} lines but there are {references} references; lines are "
                "pairs, so they must match",
                system=system,
                hypotheses=len(hypotheses),
                references=len(references),
            )
        check_lines(hypotheses, references)
    if samples < 1 or seed < 0:
        raise ConfigError(
            "samples = {samples}, seed = {seed}: there is at least 1 sample, and seeds count from "
            "0",
            samples=samples,
            seed=seed,
        )
