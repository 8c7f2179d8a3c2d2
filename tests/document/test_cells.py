"""Cells of a translation, and what they have from where."""

import pytest

from regard.document.cells import Cells, Whole
from regard.document.links import Link


def span(text, word):
    return text.index(word), text.index(word) + len(word)


def cells_of(source, target, shares, joints=None):
    """Cells of texts whose links are given between words, by their places in the texts."""
    links = [Link(span(source, a), span(target, b), share) for a, b, share in shares]
    return Cells(source, Whole(target, tuple(links), joints or {}))


def test_words_and_pieces_and_marks_are_cells_and_joints_part_them():
    links = (Link((0, 1), (0, 2)), Link((1, 2), (2, 3)))
    cells = Cells("ab", Whole("我们好, it's state-of-the-art 3.5!", links, {}))
    assert [cells.said(n) for n in range(len(cells))] == [
        "我们", "好", ",", "it's", "state-of-the-art", "3.5", "!",
    ]  # fmt: skip
    assert len(Cells("ab", Whole("onetwo", (), {0: 0, 1: 3, 2: 6}))) == 2


def test_a_word_that_looks_on_has_less_than_the_one_that_comes_from_there():
    shares = [("他", "He", 0.8), ("去", "went", 0.7), ("去", "to", 0.2), ("学校", "to", 0.4),
              ("学校", "school", 0.8)]  # fmt: skip
    cells = cells_of("他去学校", "He went to school", shares)
    inside = cells.inside((2, 4))
    assert inside == {2: pytest.approx(0.4 * 0.4 / 0.8), 3: pytest.approx(0.8)}
    low, gains = cells.gains((2, 4))
    assert low == 2
    assert [gain > 0 for gain in gains] == [False, True]


def test_a_piece_that_is_cut_is_dealt_out_in_order():
    cells = cells_of(
        "这本书很好", "This book is good", [("这本书", "This", 0.9), ("这本书", "book", 0.9)]
    )
    assert cells.inside((2, 3)) == {0: 0.0, 1: pytest.approx(0.9 * 2 / 3)}
    assert cells.inside((0, 3)) == {0: pytest.approx(0.9), 1: pytest.approx(0.9)}


def test_words_have_nothing_from_marks():
    cells = cells_of("好。", "Good.", [("。", "Good", 0.9), ("好", "Good", 0.1), ("。", ".", 1.0)])
    assert cells.inside((1, 2)) == {1: 1.0}
    assert cells.inside((0, 1)) == {0: pytest.approx(0.1)}


def test_places_beside_a_place_of_the_source_are_found_on_either_side():
    cells = cells_of("a b c", "z y x", [("a", "x", 1.0), ("b", "y", 1.0), ("c", "z", 1.0)])
    assert cells.beside(2, 0, 3, is_after=True) == 1
    assert cells.beside(2, 0, 3, is_after=False) == 2
    assert cells.beside(0, 0, 3, is_after=False) is None
    assert cells.nearest((4, 5), 0, 3) == 0
