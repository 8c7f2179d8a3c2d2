import numpy as np
import torch

from regard.decode.rules import (
    begins_with,
    is_as_long_as,
    never_says,
    repeats_no,
    rules_of,
    says_its_terms,
)
from regard.decode.search import Search, Sentence

EOS = 1


def allowed(rule, *said, owners=None):
    """The words of 0 to 5 that may follow each row."""
    log_p = torch.zeros(len(said), 6)
    rows = np.array(said, np.int64).reshape(len(said), -1)
    rule(log_p, rows, np.arange(len(said)) if owners is None else np.array(owners))
    assert set(log_p.unique().tolist()) <= {0.0, -torch.inf}
    return [set(torch.nonzero(row == 0.0).flatten().tolist()) for row in log_p]


EVERY = set(range(6))


def test_a_prefix_is_said_word_by_word_and_then_all_is_free():
    rule = begins_with([(4, 5), (), (3,)])
    assert allowed(rule, (), (), ()) == [{4}, EVERY, {3}]
    assert allowed(rule, (4,), (2,), (3,)) == [{5}, EVERY, EVERY]
    assert allowed(rule, (4, 5), (2, 2), (3, 2)) == [EVERY, EVERY, EVERY]
    assert allowed(rule, (4,), (2,), owners=[2, 0]) == [EVERY, {5}]


def test_a_prefix_is_stronger_than_what_else_is_asked():
    rule = begins_with([(4, 4)], [never_says([(4,)]), is_as_long_as(3, EOS)])
    assert allowed(rule, ()) == [{4}]
    assert allowed(rule, (4,)) == [{4}]
    assert allowed(rule, (4, 4)) == [EVERY - {4, EOS}]


def test_a_forbidden_sequence_is_not_completed():
    rule = never_says([(2,), (3, 4), (3, 3, 5)])
    assert allowed(rule, ()) == [EVERY - {2}]
    assert allowed(rule, (3,), (4,)) == [EVERY - {2, 4}, EVERY - {2}]
    assert allowed(rule, (3, 3), (4, 3)) == [EVERY - {2, 4, 5}, EVERY - {2, 4}]


def test_no_n_words_are_said_twice():
    assert allowed(repeats_no(1), (2, 3), (4, 4)) == [EVERY - {2, 3}, EVERY - {4}]
    rows = [(2, 3, 2), (2, 2, 2), (3, 4, 5)]
    assert allowed(repeats_no(2), *rows) == [EVERY - {3}, EVERY - {2}, EVERY]
    assert allowed(repeats_no(3), (2, 3, 4, 2, 3), (2, 3, 4, 3, 2)) == [EVERY - {4}, EVERY]
    assert allowed(repeats_no(3), (2, 3)) == [EVERY]


def test_no_end_before_the_fewest_words_nor_before_all_terms():
    rule = is_as_long_as(2, EOS)
    assert allowed(rule, (2,)) == [EVERY - {EOS}]
    assert allowed(rule, (2, 3)) == [EVERY]
    rule = says_its_terms([(((4, 5),),), ()], EOS)
    assert allowed(rule, (4, 5), (4, 4), (4, 4), owners=[0, 0, 1]) == [EVERY, EVERY - {EOS}, EVERY]


def test_where_nothing_is_asked_there_are_no_rules():
    assert rules_of([Sentence((1,)), Sentence((2,))], Search(), EOS) == []
