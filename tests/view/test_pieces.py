import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.view.pieces import as_pieces, as_words, is_special, readable, text_of

ENGLISH = (
    "▁Ma", "ch", "ine", "▁learning", "▁is", "n", "'", "t", "▁", "ar", "t", "▁at", "▁", "3", ".",
    "5", "0", "▁dollars", ".", "</s>",
)  # fmt: skip
CHINESE = ("▁", "机器", "学习", "是", "人", "工", "。", "</s>")


def test_pieces_that_go_on_with_a_word_have_a_dot_and_first_ones_no_sign():
    assert as_pieces(ENGLISH).labels == (
        "Ma", "⋅ch", "⋅ine", "learning", "is", "⋅n", "'", "⋅t", "␣", "ar", "⋅t", "at", "␣", "3",
        ".", "⋅5", "⋅0", "dollars", ".", "</s>",
    )  # fmt: skip
    assert as_pieces(CHINESE).labels == ("␣", *CHINESE[1:])


def test_words_are_what_stands_between_spaces_without_the_punctuation_around_it():
    words = as_words(ENGLISH)
    assert words.labels == (
        "Machine", "learning", "isn't", "art", "at", "3.50", "dollars", ".", "</s>",
    )  # fmt: skip
    assert words.sizes == (3, 1, 4, 3, 1, 5, 1, 1, 1)
    assert words.starts == (0, 3, 4, 8, 11, 12, 17, 18, 19)


def test_chinese_stays_as_it_was_cut_and_takes_the_space_before_it_along():
    words = as_words(CHINESE)
    assert words.labels == ("机器", "学习", "是", "人", "工", "。", "</s>")
    assert words.sizes == (2, 1, 1, 1, 1, 1, 1)


@pytest.mark.parametrize(
    ("pieces", "words"),
    [
        (("▁GPU", "很", "快"), ("GPU", "很", "快")),
        (("▁用", "GP", "U", "训练"), ("用", "GPU", "训练")),
        (("▁す", "し", "を"), ("す", "し", "を")),
        (("▁well", "-", "known", "▁-", "▁a", "-"), ("well-known", "-", "a", "-")),
        (("▁re", "ste", ",", "▁", "l", "’", "é", "té"), ("reste", ",", "l’été")),
        (("▁на", "ука", "!"), ("наука", "!")),
        (("▁हि", "न्दी"), ("हिन्दी",)),
        (("<2zh>", "▁a", "b", "</s>"), ("<2zh>", "ab", "</s>")),
        (("a", "b", " ", "c", "</s>"), ("ab", "c", "</s>")),  # by characters
        (("I", "like", "apples", "</s>"), ("I", "like", "apples", "</s>")),  # by words
        ((">>cmn<<", "▁a"), (">>cmn<<", "a")),
    ],
)
def test_words_of_many_scripts_and_tokenizers(pieces, words):
    assert as_words(pieces).labels == words


def test_the_bytes_of_a_character_are_one_word_and_each_is_shown_as_the_byte_it_is():
    spelled = tuple(f"<0x{byte:02X}>" for byte in "君".encode())
    pieces = ("▁", "梦", *spelled, "</s>")
    assert as_pieces(pieces).labels == ("␣", "梦", "<0xE5>", "<0x90>", "<0x9B>", "</s>")
    assert as_words(pieces).labels == ("梦", "君", "</s>")
    broken = ("▁a", spelled[0], "</s>")
    assert as_words(broken).labels == ("a", "\ufffd", "</s>")


def test_sinks_are_ends_language_tokens_spaces_and_punctuation():
    pieces = ("<2en>", "▁", "好", "，", "…", "+", "$", "<0xE5>", "</s>")
    assert as_pieces(pieces).is_sink == (
        True, True, False, True, True, False, False, False, True,
    )  # fmt: skip
    assert as_words(("▁", "好", "▁", "。", "</s>")).is_sink == (False, True, True)


@given(st.lists(st.text(max_size=4).map(lambda text: f"▁{text}"), min_size=1, max_size=9))
def test_units_hold_every_piece_once_and_labels_disturb_nothing(pieces):
    for units in (as_pieces(pieces), as_words(pieces)):
        assert sum(units.sizes) == len(pieces)
        assert len(units.labels) == len(units.sizes) == len(units.is_sink)
        assert all(units.labels)
        assert all(label == readable(label) for label in units.labels)


@given(st.lists(st.text("abcé", min_size=1), min_size=1), st.sets(st.integers(1, 30)))
def test_words_are_the_same_however_their_letters_were_cut(words, cuts):
    text = "".join(f"▁{word}" for word in words)
    ends = sorted({0, len(text), *(place for place in cuts if place < len(text))})
    pieces = [text[start:end] for start, end in pairwise(ends)]
    pieces = [part for piece in pieces for part in re.findall("▁?[^▁]*", piece) if part]
    assert as_words(pieces).labels == tuple(words)


def test_what_would_move_a_cursor_or_turn_the_text_around_is_replaced():
    assert readable("a\x1b[2Jb\u202ec\x9bd\n") == "a\ufffd[2Jb\ufffdc\ufffdd\ufffd"
    assert as_pieces(("▁a\x1b",)).labels == ("a\ufffd",)
    assert text_of(("▁x\x07", "</s>")) == "x\ufffd"


def test_special_pieces_are_told_from_bytes_and_from_text():
    assert [is_special(piece) for piece in ("</s>", "<2en>", "<0x41>", "<", "<>", "a<b>")] == [
        True, True, False, False, False, False,
    ]  # fmt: skip


def test_the_text_is_that_of_the_pieces():
    assert text_of(CHINESE) == "机器学习是人工。"
    assert text_of(ENGLISH) == "Machine learning isn't art at 3.50 dollars."
