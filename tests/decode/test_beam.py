import math
from dataclasses import dataclass

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.decode.beam import beam_search
from regard.decode.greedy import greedy
from regard.decode.reference import reference_beam
from regard.decode.rules import begins_with, is_as_long_as, never_says, repeats_no

CPU = torch.device("cpu")
BOS, EOS, WORDS = 0, 1, 6


def table(seed, sentence, ids):
    """A distribution over the next word that depends on sentence and words, and on nothing else."""
    generator = torch.Generator().manual_seed(hash((seed, sentence, *ids)) % 2**31)
    logits = torch.randn(WORDS, generator=generator, dtype=torch.float64) * 2.0
    logits[BOS] = -math.inf
    return logits.log_softmax(-1)


@dataclass
class Written:
    """Which sentence each row is, and the words it has been given."""

    rows: list[tuple[int, tuple[int, ...]]]

    def reorder(self, rows):
        return Written([self.rows[row] for row in rows.tolist()])


def network(seed):
    def step(token, state):
        rows = [
            (sentence, (*ids, int(word)) if word != BOS else ids)
            for word, (sentence, ids) in zip(token, state.rows, strict=True)
        ]
        return torch.stack([table(seed, *row) for row in rows]), Written(rows)

    return step


def search(seed, sentences, width, max_len, penalty=1.0, rules=()):
    state = Written([(sentence, ()) for sentence in sentences])
    return beam_search(
        network(seed), state, len(sentences), rules=rules,
        width=width, max_len=max_len, bos=BOS, eos=EOS, device=CPU, penalty=penalty,
    )  # fmt: skip


@given(
    seed=st.integers(0, 10**6),
    width=st.integers(1, 5),
    max_len=st.integers(1, 7),
    penalty=st.sampled_from([0.0, 0.6, 1.0, 2.0]),
    n_sentences=st.integers(1, 4),
)
def test_the_batched_search_is_the_one_explained(seed, width, max_len, penalty, n_sentences):
    found = search(seed, range(n_sentences), width, max_len, penalty)
    for sentence, hypotheses in enumerate(found):
        expected = reference_beam(
            lambda ids, sentence=sentence: table(seed, sentence, ids).tolist(),
            width=width, max_len=max_len, eos=EOS, penalty=penalty,
        )  # fmt: skip
        assert [(h.ids, h.is_finished) for h in hypotheses] == [
            (h.ids, h.is_finished) for h in expected
        ]
        for one, other in zip(hypotheses, expected, strict=True):
            assert one.score == pytest.approx(other.score, abs=1e-5)


@given(seed=st.integers(0, 10**6), max_len=st.integers(1, 9))
def test_a_beam_of_one_is_greedy(seed, max_len):
    [[best]] = search(seed, [0], 1, max_len)
    step, state = network(seed), Written([(0, ())])
    assert [list(best.ids)] == greedy(step, state, 1, bos=BOS, eos=EOS, max_len=max_len, device=CPU)


@given(seed=st.integers(0, 10**6), width=st.integers(1, 4))
def test_a_sentence_alone_is_the_sentence_in_any_batch(seed, width):
    together = search(seed, [0, 1, 2, 3], width, 6)
    alone = [search(seed, [sentence], width, 6)[0] for sentence in (0, 1, 2, 3)]
    assert together == alone


@given(seed=st.integers(0, 10**6), width=st.integers(1, 4), penalty=st.floats(0, 2))
def test_scores_are_those_of_the_words_summed_again(seed, width, penalty):
    [hypotheses] = search(seed, [0], width, 6, penalty)
    for hypothesis in hypotheses:
        words = [*hypothesis.ids, EOS] if hypothesis.is_finished else [*hypothesis.ids]
        total = sum(float(table(seed, 0, words[:t])[word]) for t, word in enumerate(words))
        assert hypothesis.score == pytest.approx(total / len(words) ** penalty, abs=1e-5)
    assert [h.score for h in hypotheses] == sorted((h.score for h in hypotheses), reverse=True)
    assert len({h.ids for h in hypotheses}) == len(hypotheses)


def forbids_after(prefixes, forbidden, n, at_least):
    """The same rules as a plain question: may this word follow those?"""

    def may_follow(sentence, ids, word):
        said = [*ids, word]
        prefix = prefixes[sentence]
        if len(ids) < len(prefix) and word != prefix[len(ids)]:
            return False
        if any(said[-len(words) :] == list(words) for words in forbidden):
            return False
        grams = [tuple(said[i : i + n]) for i in range(len(said) - n + 1)]
        if len(said) >= n and grams.count(grams[-1]) > 1:
            return False
        return not (word == EOS and len(ids) < at_least)

    return may_follow


@given(
    seed=st.integers(0, 10**6),
    width=st.integers(1, 4),
    prefixes=st.lists(st.lists(st.integers(2, 5), max_size=3), min_size=2, max_size=2),
    forbidden=st.lists(st.lists(st.integers(2, 5), min_size=1, max_size=3), max_size=2),
    n=st.integers(1, 3),
    at_least=st.integers(0, 3),
)
def test_rules_forbid_what_they_say_and_nothing_else(seed, width, prefixes, forbidden, n, at_least):
    rules = (
        begins_with(prefixes),
        never_says(forbidden),
        repeats_no(n),
        is_as_long_as(at_least, EOS),
    )
    may_follow = forbids_after(prefixes, forbidden, n, at_least)
    found = search(seed, [0, 1], width, 5, rules=rules)
    for sentence, hypotheses in enumerate(found):

        def log_probs(ids, sentence=sentence):
            allowed = table(seed, sentence, ids).tolist()
            return [
                p if may_follow(sentence, ids, word) else -math.inf
                for word, p in enumerate(allowed)
            ]

        expected = reference_beam(log_probs, width=width, max_len=5, eos=EOS)
        assert [h.ids for h in hypotheses] == [h.ids for h in expected]
