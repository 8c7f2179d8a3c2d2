"""The search that explains, held to what can be computed by looking at every sentence there is."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.decode.reference import reference_beam
from regard.decode.search import Sentence

EOS = 1


def score(log_probs, ids, penalty):
    said = (*ids, EOS)
    return sum(log_probs(said[:t])[word] for t, word in enumerate(said)) / len(said) ** penalty


@given(seed=st.integers(0, 10**6), penalty=st.sampled_from([0.0, 1.0, 1.7]))
def test_a_beam_as_wide_as_the_language_finds_every_sentence_in_order(toy, seed, penalty):
    log_probs = toy(seed, n_words=4).log_probs(Sentence((7,)))
    found = reference_beam(log_probs, width=100, max_len=4, eos=EOS, penalty=penalty)
    every = [ids for n in range(4) for ids in itertools.product((2, 3), repeat=n)]
    every.sort(key=lambda ids: -score(log_probs, ids, penalty))
    assert [one.ids for one in found if one.is_finished] == every
    assert {one.ids for one in found if not one.is_finished} == set(
        itertools.product((2, 3), repeat=4)
    )
    assert found[0].score == pytest.approx(max(one.score for one in found))


def table(ids):
    """After nothing: a is likelier than b. After a all is unlikely; b ends for sure."""
    return {(): [-9.0, -9.0, -0.4, -1.2], (2,): [-5.0, -4.0, -4.1, -4.2]}.get(
        ids, [-99.0, -0.01, -9.0, -9.0]
    )


def test_a_wider_beam_finds_what_a_narrow_one_has_left_behind():
    [narrow] = reference_beam(table, width=1, max_len=9, eos=EOS)
    wide = reference_beam(table, width=2, max_len=9, eos=EOS)
    assert narrow.ids == (2,)
    assert wide[0].ids == (3,)
    assert wide[0].score == pytest.approx((-1.2 - 0.01) / 2)


def test_a_second_group_takes_another_word_and_reports_the_network_s_own_score():
    found = reference_beam(table, width=2, max_len=9, eos=EOS, groups=2, diversity=2.0)
    assert [one.ids for one in found] == [(3,), (2,)]
    assert found[0].score == pytest.approx((-1.2 - 0.01) / 2)
    assert found[1].score == pytest.approx((-0.4 - 4.0) / 2)


def test_a_term_is_said_before_the_end():
    [best, *_] = reference_beam(table, width=2, max_len=9, eos=EOS, terms=(((2, 3),),))
    assert (best.ids, best.is_finished) == ((2, 3), True)
    assert best.score == pytest.approx((-0.4 - 4.2 - 0.01) / 3)
