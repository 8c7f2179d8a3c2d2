import random
import re

import numpy as np
import pytest
import sacrebleu
from sacrebleu.significance import PairedTest
from sacremoses import MosesTokenizer

from regard.errors import ConfigError, DataError
from regard.evaluate import compare, scores
from regard.evaluate.bootstrap import SEED, p_value

WORDS = ("the", "a", "cat", "dog", "sat", "on", "under", "mat", "house", "old", "red", "tree")
NAMES = ("bleu", "chrf", "ter", "exact")
MORE = ("bleu_lc", "bleu_moses")


def sentences(n, seed=1):
    draw = random.Random(seed)
    return [" ".join(draw.choices(WORDS, k=draw.randint(3, 12))) + "." for _ in range(n)]


def with_mistakes(lines, share, seed):
    draw = random.Random(seed)
    return [
        " ".join(word if draw.random() > share else draw.choice(WORDS) for word in line.split())
        for line in lines
    ]


REFERENCES = sentences(60)
SYSTEMS = {
    "base": with_mistakes(REFERENCES, 0.15, seed=2),
    "like base": with_mistakes(REFERENCES, 0.15, seed=3),
    "worse": with_mistakes(REFERENCES, 0.45, seed=4),
}


def by_name(estimates):
    return {(e.system, e.score.name): e for e in estimates}


def test_intervals_and_p_are_those_of_sacrebleus_paired_bootstrap(monkeypatch):
    monkeypatch.delenv("SACREBLEU_SEED", raising=False)
    metrics = {"bleu": sacrebleu.BLEU(), "chrf": sacrebleu.CHRF(), "ter": sacrebleu.TER()}
    signatures, theirs = PairedTest(
        list(SYSTEMS.items()), metrics, [REFERENCES], test_type="bs", n_samples=1000
    )()
    ours = by_name(compare(SYSTEMS, REFERENCES, "en"))
    for name, title in (("bleu", "BLEU"), ("chrf", "chrF2"), ("ter", "TER")):
        for system, expected in zip(SYSTEMS, theirs[title], strict=True):
            found = ours[system, name]
            assert found.score.value == expected.score
            assert found.p == expected.p_value
            # they sum in float32
            assert found.mean == pytest.approx(expected.mean, rel=1e-5)
            assert found.interval == pytest.approx(expected.ci, rel=1e-4)
            assert found.score.signature == str(signatures[title])


def bootstrap_written_out(first, second, references, samples, seed):
    """Draw lines, score their text from scratch, count how often chance parts the two as far."""
    rng = np.random.default_rng(seed)

    def bleu(lines, rows):
        return sacrebleu.corpus_bleu(
            [lines[i] for i in rows], [[references[i] for i in rows]]
        ).score

    everything = range(len(references))
    apart = abs(bleu(first, everything) - bleu(second, everything))
    drawn = []
    for _ in range(samples):
        rows = rng.choice(len(references), len(references))
        drawn.append(abs(bleu(first, rows) - bleu(second, rows)))
    mean = sum(drawn) / samples
    return (sum(d - mean >= apart for d in drawn) + 1) / (samples + 1)


@pytest.mark.parametrize("other", ["like base", "worse"])
def test_p_is_that_of_a_bootstrap_that_scores_each_draw_from_its_text(other):
    two = {"base": SYSTEMS["base"][:20], other: SYSTEMS[other][:20]}
    estimates = by_name(compare(two, REFERENCES[:20], "en", samples=200, seed=7))
    expected = bootstrap_written_out(*two.values(), REFERENCES[:20], samples=200, seed=7)
    assert estimates[other, "bleu"].p == pytest.approx(expected, abs=0.01)


def test_p_hardly_depends_on_the_seed_with_many_draws():
    two = {"base": SYSTEMS["base"], "like base": SYSTEMS["like base"]}
    p = [
        by_name(compare(two, REFERENCES, "en", samples=2000, seed=seed))["like base", "bleu"].p
        for seed in (1, 2)
    ]
    assert p[0] != p[1]
    assert p[0] == pytest.approx(p[1], abs=0.05)


def test_systems_that_say_the_same_have_p_1():
    estimates = compare({"one": SYSTEMS["base"], "two": SYSTEMS["base"]}, REFERENCES, "en")
    assert [e.p for e in estimates] == [None] * 6 + [1.0] * 6


def test_a_clearly_worse_system_is_told_apart():
    estimates = by_name(compare(SYSTEMS, REFERENCES, "en"))
    assert all(estimates["worse", name].p < 0.05 for name in (*NAMES, *MORE))


def test_systems_that_are_as_good_but_on_other_lines_are_not_told_apart():
    one, other = SYSTEMS["base"], SYSTEMS["worse"]
    mirrored = {"one first": one + other, "other first": other + one}
    estimates = by_name(compare(mirrored, REFERENCES * 2, "en"))
    assert all(estimates["other first", name].p > 0.3 for name in NAMES)


def test_a_seed_gives_the_same_figures_and_another_seed_others():
    first = compare(SYSTEMS, REFERENCES, "en", samples=100, seed=5)
    assert first == compare(SYSTEMS, REFERENCES, "en", samples=100, seed=5)
    assert first != compare(SYSTEMS, REFERENCES, "en", samples=100, seed=6)


def test_scores_are_those_of_the_whole_corpus_in_the_order_of_the_systems():
    estimates = compare(SYSTEMS, REFERENCES, "en", samples=10)
    assert [(e.system, e.score.name) for e in estimates] == [
        (system, name) for system in SYSTEMS for name in (*NAMES, *MORE)
    ]
    plain = [s.value for lines in SYSTEMS.values() for s in scores(lines, REFERENCES, "en")]
    found = [e.score.value for e in estimates if e.score.name in NAMES]
    assert found == pytest.approx(plain)


def test_lower_cased_figures_are_those_of_sacrebleu_on_the_same_draws(monkeypatch):
    """Moses' words are lower-cased and parted here beforehand, so that any tool takes them."""
    monkeypatch.delenv("SACREBLEU_SEED", raising=False)
    loud = {name: [line.title() for line in lines] for name, lines in SYSTEMS.items()}
    moses = MosesTokenizer(lang="en")

    def parted(lines):
        return [
            moses.tokenize(
                line.lower(), aggressive_dash_splits=False, escape=False, return_str=True
            )
            for line in lines
        ]

    ours = by_name(compare(loud, REFERENCES, "en"))
    given = {
        "bleu_lc": (loud, REFERENCES, sacrebleu.BLEU(lowercase=True)),
        "bleu_moses": (
            {name: parted(lines) for name, lines in loud.items()},
            parted(REFERENCES),
            sacrebleu.BLEU(tokenize="none", force=True),
        ),
    }
    for name, (systems, references, metric) in given.items():
        _, theirs = PairedTest(
            list(systems.items()), {"bleu": metric}, [references], test_type="bs", n_samples=1000
        )()
        for system, expected in zip(systems, theirs["BLEU"], strict=True):
            found = ours[system, name]
            assert (found.score.value, found.p) == (expected.score, expected.p_value)
            assert found.interval == pytest.approx(expected.ci, rel=1e-4)
        assert ours["base", name].score.value > ours["base", "bleu"].score.value


def test_the_interval_holds_95_of_100_draws_of_exact_match():
    # 30 of 100 lines right: each draw is binomial, with a spread of sqrt(100 x 0.3 x 0.7)
    references = [str(i) for i in range(100)]
    hypotheses = references[:30] + ["wrong"] * 70
    estimate = by_name(compare({"it": hypotheses}, references, "en", samples=4000))["it", "exact"]
    assert estimate.score.value == 30
    assert estimate.mean == pytest.approx(30, abs=0.3)
    assert estimate.interval == pytest.approx(1.96 * (100 * 0.3 * 0.7) ** 0.5, rel=0.06)
    assert estimate.p is None


def test_signatures_say_how_often_and_from_which_seed_lines_were_drawn():
    estimates = compare({"it": SYSTEMS["base"]}, REFERENCES, "zh", samples=30, seed=9)
    for estimate in estimates:
        assert estimate.score.signature.startswith("nrefs:1|bs:30|seed:9|case:")
        assert "|version:" in estimate.score.signature


def test_the_least_p_is_that_of_one_draw_more_than_were_made():
    assert p_value(np.full(99, 5.0), difference=5.0) == 1 / 100


def test_the_seed_is_sacrebleus_own(monkeypatch):
    monkeypatch.delenv("SACREBLEU_SEED", raising=False)
    assert PairedTest([("it", ["a"])], {}, [["a"]], "bs")._seed == SEED


@pytest.mark.parametrize(
    ("systems", "references", "options", "kind", "message"),
    [
        ({}, ["a"], {}, DataError, "there is no system to compare"),
        (
            {"good": ["a", "b"], "short": ["a"]},
            ["a", "b"],
            {},
            DataError,
            "short has 1 lines but there are 2 references; lines are pairs, so they must match",
        ),
        (
            {"it": []},
            [],
            {},
            DataError,
            "there is nothing to score: no translation and no reference",
        ),
        (
            {"it": ["a"]},
            ["a"],
            {"samples": 0},
            ConfigError,
            "samples = 0, seed = 12345: there is at least 1 sample, and seeds count from 0",
        ),
        (
            {"it": ["a"]},
            ["a"],
            {"seed": -1},
            ConfigError,
            "samples = 1000, seed = -1: there is at least 1 sample, and seeds count from 0",
        ),
    ],
)
def test_what_cannot_be_compared_is_refused(systems, references, options, kind, message):
    with pytest.raises(kind, match=f"^{re.escape(message)}$"):
        compare(systems, references, "en", **options)
