import itertools
import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from regard.decode.beam import beam_search
from regard.decode.greedy import greedy
from regard.decode.reference import reference_beam
from regard.decode.search import Search, Sentence
from regard.decode.terms import beams_for, lacking

EOS = 1
seeds = st.integers(0, 10**6)
words = st.integers(2, 5)
languages = st.sampled_from([6, 40])  # words there are: all may be looked at, or only the likely
spellings = st.lists(words, min_size=1, max_size=3).map(tuple)
terms = st.lists(st.lists(spellings, min_size=1, max_size=2).map(tuple), max_size=2).map(tuple)
sentences = st.lists(
    st.builds(
        Sentence,
        st.lists(st.integers(0, 9), min_size=1, max_size=4).map(tuple),
        st.lists(words, max_size=2).map(tuple),
        terms,
    ),
    min_size=1,
    max_size=4,
    unique=True,
)
plain = sentences.map(lambda some: [Sentence((*one.ids, n)) for n, one in enumerate(some)])


def expected(network, sentence, search, log_probs=None):
    return reference_beam(
        log_probs or network.log_probs(sentence),
        width=beams_for(sentence, search),
        max_len=network.ready([sentence]).limit(sentence, search),
        eos=EOS,
        penalty=search.length_penalty,
        groups=search.groups,
        diversity=search.diversity,
        terms=sentence.terms,
        enough=search.beam,
    )


def assert_same(found, other):
    assert [(h.ids, h.is_finished) for h in found] == [(h.ids, h.is_finished) for h in other]
    assert [h.score for h in found] == pytest.approx([h.score for h in other], abs=1e-5)


@given(
    seed=seeds,
    n_words=languages,
    some=plain,
    beam=st.integers(1, 5),
    max_len=st.integers(1, 7),
    penalty=st.sampled_from([0.0, 0.6, 1.0, 2.0]),
)
def test_the_batched_search_is_the_one_explained(toy, seed, n_words, some, beam, max_len, penalty):
    network = toy(seed, n_words)
    search = Search(beam=beam, max_len=max_len, length_penalty=penalty)
    for sentence, found in zip(some, beam_search(network.ready(some), some, search), strict=True):
        assert_same(found, expected(network, sentence, search))


@given(
    seed=seeds,
    n_words=languages,
    some=plain,
    groups=st.integers(2, 3),
    each=st.integers(1, 3),
    diversity=st.sampled_from([0.0, 0.5, 3.0]),
)
def test_groups_avoid_the_words_of_those_before(toy, seed, n_words, some, groups, each, diversity):
    network = toy(seed, n_words)
    search = Search(beam=groups * each, groups=groups, diversity=diversity, max_len=5)
    for sentence, found in zip(some, beam_search(network.ready(some), some, search), strict=True):
        assert_same(found, expected(network, sentence, search))
        assert len({one.ids for one in found}) == len(found)


@given(seed=seeds, each=st.integers(1, 3))
def test_groups_that_do_not_mind_one_another_are_one_small_beam(toy, seed, each):
    network, some = toy(seed), [Sentence((7,))]
    search = Search(beam=2 * each, groups=2, diversity=0.0, max_len=5)
    alone = Search(beam=each, max_len=5)
    found = beam_search(network.ready(some), some, search)
    assert found == beam_search(network.ready(some), some, alone)


@given(seed=seeds)
def test_groups_that_mind_much_begin_with_different_words(toy, seed):
    network, some = toy(seed), [Sentence((7,))]
    search = Search(beam=4, groups=4, diversity=1e3, max_len=4, min_len=1)
    [found] = beam_search(network.ready(some), some, search)
    assert len({one.ids[0] for one in found}) == 4


@given(
    seed=seeds,
    n_words=languages,
    some=sentences,
    beam=st.integers(1, 4),
    groups=st.sampled_from([1, 1, 2]),
)
@example(
    seed=1915,
    n_words=40,
    some=[Sentence((4, 1, 5, 4), (), (((4, 3),), ((4, 4, 2),)))],  # terms that begin alike
    beam=1,
    groups=1,
)
def test_terms_are_dealt_as_explained_and_said_by_all_that_ends(
    toy, seed, n_words, some, beam, groups
):
    network = toy(seed, n_words)
    search = Search(beam=groups * beam, groups=groups, max_len=9)
    some = [Sentence(one.ids, (), one.terms) for one in some]
    for sentence, found in zip(some, beam_search(network.ready(some), some, search), strict=True):
        assert_same(found, expected(network, sentence, search))
        assert not any(one.is_finished and lacking(one.ids, sentence.terms) for one in found)
        assert not lacking(found[0].ids, sentence.terms)  # nine words are enough for two of three


@given(seed=seeds, term=st.lists(st.integers(2, 3), min_size=1, max_size=3).map(tuple))
def test_a_beam_as_wide_as_the_language_finds_the_best_sentence_with_the_term(toy, seed, term):
    network, sentence = toy(seed, n_words=4), Sentence((7,), (), ((term,),))
    search = Search(beam=100, max_len=5)

    def score(ids):
        said = (*ids, EOS)
        log_p = [network.log_probs(sentence)(said[:t])[word] for t, word in enumerate(said)]
        return sum(log_p) / len(said)

    every = [ids for n in range(5) for ids in itertools.product((2, 3), repeat=n)]
    best = max((ids for ids in every if not lacking(ids, sentence.terms)), key=score)
    [found] = beam_search(network.ready([sentence]), [sentence], search)
    finished = [one for one in found if one.is_finished]
    assert finished[0].ids == best
    assert finished[0].score == pytest.approx(score(best), abs=1e-5)


def test_a_term_that_has_no_room_leaves_a_hypothesis_without_end(toy):
    sentence = Sentence((7,), (), (((2, 3, 4, 5),),))
    search = Search(beam=3, max_len=3)
    [found] = beam_search(toy(1).ready([sentence]), [sentence], search)
    assert found
    assert not any(one.is_finished for one in found)
    assert all(len(one.ids) == 3 for one in found)


@given(seed=seeds, max_len=st.integers(1, 9), some=plain)
def test_a_beam_of_one_is_greedy(toy, seed, max_len, some):
    network, search = toy(seed), Search(beam=1, max_len=max_len)
    by_beam = beam_search(network.ready(some), some, search)
    for one, other in zip(by_beam, greedy(network.ready(some), some, search), strict=True):
        assert_same(one, other)


@given(seed=seeds, some=sentences, beam=st.integers(1, 4), groups=st.integers(1, 2))
def test_a_sentence_alone_is_the_sentence_in_any_batch(toy, seed, some, beam, groups):
    network = toy(seed, longest=8)
    search = Search(beam=beam * groups, groups=groups, no_repeat=3)
    together = beam_search(network.ready(some), some, search)
    assert together == [beam_search(network.ready([one]), [one], search)[0] for one in some]


@given(seed=seeds, beam=st.integers(1, 4), penalty=st.floats(0, 2))
def test_scores_are_those_of_the_words_summed_again(toy, seed, beam, penalty):
    network, sentence = toy(seed), Sentence((7,))
    search = Search(beam=beam, length_penalty=penalty, max_len=6)
    [found] = beam_search(network.ready([sentence]), [sentence], search)
    for one in found:
        said = (*one.ids, EOS) if one.is_finished else one.ids
        total = sum(network.log_probs(sentence)(said[:t])[word] for t, word in enumerate(said))
        assert one.score == pytest.approx(total / len(said) ** penalty, abs=1e-5)
    assert [h.score for h in found] == sorted((h.score for h in found), reverse=True)
    assert len({h.ids for h in found}) == len(found)


def may_follow(sentence, search, ids, word):
    """The same rules as a plain question."""
    said = [*ids, word]
    if len(ids) < len(sentence.prefix):
        return word == sentence.prefix[len(ids)]
    if any(said[-len(never) :] == list(never) for never in search.forbidden):
        return False
    n = search.no_repeat
    grams = [tuple(said[i : i + n]) for i in range(len(said) - n + 1)]
    if len(said) >= n and grams.count(grams[-1]) > 1:
        return False
    return not (word == EOS and len(ids) < search.min_len)


@given(
    seed=seeds,
    some=sentences,
    beam=st.integers(1, 4),
    forbidden=st.lists(spellings, max_size=2).map(tuple),
    no_repeat=st.integers(1, 3),
    min_len=st.integers(0, 3),
)
def test_rules_forbid_what_they_say_and_nothing_else(
    toy, seed, some, beam, forbidden, no_repeat, min_len
):
    network = toy(seed)
    search = Search(beam=beam, forbidden=forbidden, no_repeat=no_repeat, min_len=min_len, max_len=5)
    for sentence, found in zip(some, beam_search(network.ready(some), some, search), strict=True):

        def log_probs(ids, sentence=sentence):
            table = network.log_probs(sentence)(ids)
            return [
                p if may_follow(sentence, search, ids, word) else -math.inf
                for word, p in enumerate(table)
            ]

        assert_same(found, expected(network, sentence, search, log_probs))


def test_every_sentence_has_its_own_limit(toy):
    some = [Sentence((7,)), Sentence((7, 7, 7))]
    network = toy(1)
    network.step = without_end(network.step)
    found = beam_search(network.ready(some), some, Search(beam=2))
    assert [{len(one.ids) for one in own} for own in found] == [{22}, {26}]
    network.longest = 24
    found = beam_search(network.ready(some), some, Search(beam=2))
    assert [{len(one.ids) for one in own} for own in found] == [{22}, {24}]
    assert not any(one.is_finished for own in found for one in own)


def without_end(step):
    def endless(token, state):
        logits, state = step(token, state)
        logits[:, EOS] = -math.inf
        return logits, state

    return endless


def test_where_nothing_may_follow_a_hypothesis_is_cut_off(toy):
    sentence = Sentence((7,))
    search = Search(beam=2, no_repeat=1, min_len=50)  # four words, each once, and then?
    [found] = beam_search(toy(1).ready([sentence]), [sentence], search)
    assert found
    for one in found:
        assert sorted(one.ids) == [2, 3, 4, 5]
        assert not one.is_finished


def test_what_has_ended_does_not_go_on_even_if_there_is_little_else(toy):
    some = [Sentence((n,)) for n in range(30)]
    search = Search(beam=5, max_len=4)
    for own in beam_search(toy(1, n_words=3).ready(some), some, search):  # one word, and the end
        assert all(EOS not in one.ids for one in own)
        assert len(own) == 5  # 0 to 3 words, and 4 without an end


def test_many_sentences_end_each_at_its_own_time_and_the_search_with_the_last(toy):
    some = [Sentence((n,)) for n in range(24)]
    network, search = toy(3), Search(beam=2)
    found = beam_search(network.ready(some), some, search)
    alone, n_rows = [], 0
    for sentence in some:
        one = toy(3)
        alone += beam_search(one.ready([sentence]), [sentence], search)
        assert one.n_steps <= network.n_steps < 22
        n_rows += one.n_rows
    assert found == alone
    assert all(one.is_finished for own in found for one in own)
    assert n_rows <= network.n_rows < 1.25 * n_rows  # who has ended is no longer stepped
