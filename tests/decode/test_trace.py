"""A search that tells all finds what the others find, and what it tells adds up."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.decode.beam import beam_search
from regard.decode.reference import reference_beam
from regard.decode.search import Search, Sentence
from regard.decode.trace import trace


@given(
    seed=st.integers(0, 10**6),
    beam=st.integers(1, 5),
    penalty=st.sampled_from([0.0, 1.0, 1.5]),
    max_len=st.integers(1, 8),
)
def test_a_traced_search_finds_what_the_others_find(toy, seed, beam, penalty, max_len):
    sentence = Sentence((7, 8, 9))
    search = Search(beam=beam, nbest=beam, length_penalty=penalty, max_len=max_len)
    network = toy(seed)
    found = trace(network.ready([sentence]), sentence, search).hypotheses
    [fast] = beam_search(network.ready([sentence]), [sentence], search)
    slow = reference_beam(
        network.log_probs(sentence), width=beam, max_len=max_len, eos=network.eos, penalty=penalty
    )
    for others in (fast, slow):
        assert [one.ids for one in found] == [one.ids for one in others]
        assert [one.score for one in found] == pytest.approx([one.score for one in others])


@given(seed=st.integers(0, 10**6), beam=st.integers(1, 4))
def test_every_candidate_s_words_lead_to_its_total_and_the_best_are_kept(toy, seed, beam):
    sentence, network = Sentence((3,)), toy(seed)
    log_probs = network.log_probs(sentence)
    traced = trace(network.ready([sentence]), sentence, Search(beam=beam, max_len=6))
    live = [()]
    for step in traced.steps:
        assert len(step) <= 2 * beam
        assert [one.total for one in step] == sorted((one.total for one in step), reverse=True)
        for one in step:
            words = (*live[one.parent], one.word)
            gains = [log_probs(words[:n])[word] for n, word in enumerate(words)]
            assert one.log_prob == pytest.approx(gains[-1], abs=1e-5)
            assert one.total == pytest.approx(sum(gains), abs=1e-4)
        going_on = [one for one in step if one.word != network.eos]
        kept = [one for one in step if one.fate == "kept"]
        assert kept == going_on[: len(kept)]
        assert len(kept) in (0, min(beam, len(going_on)))
        live = [(*live[one.parent], one.word) for one in kept]


def test_a_forced_beginning_is_the_only_candidate_while_it_lasts(toy):
    sentence, network = Sentence((3,), prefix=(4, 2)), toy(5)
    search = Search(beam=3, nbest=3, max_len=6)
    traced = trace(network.ready([sentence]), sentence, search)
    assert [[one.word for one in step] for step in traced.steps[:2]] == [[4], [2]]
    assert all(one.ids[:2] == (4, 2) for one in traced.hypotheses)
    assert list(traced.hypotheses) == beam_search(network.ready([sentence]), [sentence], search)[0]
