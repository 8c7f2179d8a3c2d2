from hypothesis import given
from hypothesis import strategies as st

from regard.decode.search import Search, Sentence
from regard.decode.terms import WIDEST, beams_for, deal, lacking, lacking_after, words_of

ids = st.lists(st.integers(0, 3), max_size=8).map(tuple)
spellings = st.lists(st.integers(0, 3), min_size=1, max_size=4).map(tuple)
terms = st.lists(st.lists(spellings, min_size=1, max_size=3).map(tuple), max_size=3).map(tuple)


def test_what_is_lacking_counts_from_the_nearest_spelling():
    term = ((5, 6, 7), (8, 9))
    assert lacking((), (term,)) == 2
    assert lacking((5, 6), (term,)) == 1
    assert lacking((5, 6, 1), (term,)) == 2  # a beginning counts at the end alone
    assert lacking((1, 8, 9, 1), (term,)) == 0
    assert lacking((1, 8), (term, ((1,),))) == 1


@given(ids=ids, terms=terms)
def test_nothing_is_lacking_if_and_only_if_every_term_stands_there(ids, terms):
    text = " ".join(map(str, ("", *ids, "")))
    stands = [any(" ".join(map(str, ("", *s, ""))) in text for s in term) for term in terms]
    assert (lacking(ids, terms) == 0) == all(stands)


@given(ids=ids, terms=terms)
def test_what_is_lacking_can_be_said_in_so_many_words_if_terms_do_not_disturb_each_other(
    ids, terms
):
    for term in terms:
        n = lacking(ids, [term])
        ends = [(*ids, *spelling[len(spelling) - n :]) for spelling in term if n <= len(spelling)]
        assert any(not lacking(end, [term]) for end in ends)
        assert n == 0 or all(lacking((*ids, word), [term]) >= n - 1 for word in range(4))


@given(ids=ids, terms=terms)
def test_some_word_always_leaves_less_to_say_whatever_terms_have_in_common(ids, terms):
    n = lacking(ids, terms)
    assert n == 0 or min(lacking((*ids, word), terms) for word in range(4)) < n


def test_what_begins_two_terms_counts_for_one_of_them():
    terms = ((4, 3),), ((4, 4, 2),)
    assert [lacking((4, 4, 2, 4, 3)[:n], terms) for n in range(6)] == [5, 4, 3, 2, 1, 0]
    assert lacking((4, 4, 4), terms) == 3


@given(ids=ids, terms=terms)
def test_many_words_at_once_are_the_words_one_by_one(ids, terms):
    words = list(range(5))
    assert lacking_after(ids, words, terms) == [lacking((*ids, w), terms) for w in words]


def test_the_beam_is_dealt_bank_by_bank_the_likeliest_of_each_first():
    assert deal([3, 3, 3, 1, 3, 1, 2]) == [3, 6, 0, 5, 1, 2, 4]
    assert deal([0, 0, 0]) == [0, 1, 2]
    assert deal([]) == []


def test_many_words_to_say_ask_for_more_beams():
    def beams(*terms, beam=5, groups=1):
        return beams_for(Sentence((1,), (), terms), Search(beam=beam, groups=groups))

    assert beams() == 5
    assert beams(((1, 2),)) == 5
    assert beams(((1, 2, 3, 4),), ((5, 6), (7, 8, 9))) == 7
    assert beams(((1,),), beam=1) == 2
    assert beams(((1, 2, 3),), beam=4, groups=2) == 8
    assert beams(*(((n,),) for n in range(99))) == WIDEST


def test_the_words_of_terms_are_those_of_all_spellings():
    assert words_of((((1, 2), (3,)), ((2, 4),))) == {1, 2, 3, 4}
