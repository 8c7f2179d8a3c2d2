"""Where pieces stand in their texts."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from regard.decode.results import Alignment
from regard.document.links import Link, links_between, piece_spans
from regard.text.tokenizer import train_tokenizer


def test_pieces_stand_where_their_letters_are_and_spaces_are_passed_over():
    spans = piece_spans(["▁I", "▁like", "▁app", "les", "."], "I like  apples.")
    assert spans == [(0, 1), (2, 6), (8, 11), (11, 14), (14, 15)]
    assert piece_spans(["▁", "好", "。"], " 好。") == [(0, 0), (1, 2), (2, 3)]


def test_bytes_stand_together_where_their_character_is():
    assert piece_spans(["▁a", "<0xE4>", "<0xBD>", "<0xA0>", "b"], "a你b") == [
        (0, 1), (1, 2), (1, 2), (1, 2), (2, 3),
    ]  # fmt: skip


def test_what_was_normalised_is_matched_as_far_as_it_goes():
    assert piece_spans(["▁cafe\u0301", "s"], "cafés")[1] == (4, 5)  # é in one letter, and in two
    assert piece_spans(["A", "B"], "xxAxxBxx") == [(2, 3), (5, 6)]


@given(st.lists(st.text("ab你好 é😀\n", min_size=1, max_size=12), min_size=1, max_size=3))
def test_every_letter_that_a_tokenizer_made_pieces_of_is_in_the_span_of_one(texts):
    tokenizer = train_tokenizer(["ab 你好 é", "abab 好好"], kind="char", size=270)
    for text in texts:
        bare = text.strip()
        spans = piece_spans(tokenizer.pieces(bare), bare)
        covered = {place for start, end in spans for place in range(start, end)}
        assert covered >= {place for place, char in enumerate(bare) if not char.isspace()}
        assert all(a[0] <= b[0] for a, b in pairwise(spans))


def test_links_have_their_shares_and_pieces_that_show_nothing_have_none():
    shares = ((0, 0, 0.9), (1, 0, 0.25), (1, 1, 0.75))
    alignment = Alignment(("▁", "好"), ("▁very", "▁good"), ((0, 0), (1, 1)), shares)
    assert links_between(alignment, "好", "very good") == [
        Link((0, 1), (0, 4), 0.25), Link((0, 1), (5, 9), 0.75),
    ]  # fmt: skip
    bare = Alignment(("▁", "好"), ("▁very", "▁good"), ((1, 0), (1, 1)))
    assert [link.share for link in links_between(bare, "好", "very good")] == [1.0, 1.0]
