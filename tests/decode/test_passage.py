"""A text in parts, and one text again."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.decode.passage import is_blank, passage, spellings
from regard.text.normalize import Normalizer
from regard.text.tokenizer import train_tokenizer


def fits(part):
    return len(part) <= 12


@given(st.text("ab 。.！\n\r，", max_size=80))
def test_no_character_that_can_be_seen_is_lost_and_every_part_fits(text):
    parts = passage(text, fits).parts
    assert "".join("".join(parts).split()) == "".join(text.split())
    assert all(map(fits, parts))


@given(st.lists(st.text("ab", min_size=1, max_size=5), min_size=1, max_size=4))
def test_line_breaks_stand_where_they_stood(lines):
    text = "\n".join(lines)
    cut = passage(text, fits)
    assert cut.parts == tuple(lines)
    assert cut.joined([line.upper() for line in lines], "en") == text.upper()
    assert passage("a\n\n  b", fits).joined(["A", "B"], "en") == "A\n\n  B"


def test_parts_are_joined_as_their_language_writes():
    cut = passage("one two. Three four. Five.", fits)
    assert cut.parts == ("one two.", "Three four.", "Five.")
    assert cut.joined(["一二。", "三四。", "五。"], "zh") == "一二。三四。五。"
    assert cut.joined(["eins.", "zwei.", "drei."], "de") == "eins. zwei. drei."
    assert cut.joined(["eins.", "", "drei."], "de") == "eins. drei."


@pytest.mark.parametrize("text", ["", " ", "\t\u3000", "\u200b\u200d", "\x07\x1b", "\ufeff"])
def test_what_shows_nothing_is_blank(text):
    assert is_blank(text)


@given(st.text(min_size=1))
def test_what_has_a_letter_digit_mark_or_sign_is_not_blank(text):
    is_seen = any(unicodedata.category(char)[0] in "LNPSM" for char in text)
    assert is_blank(text) == (not is_seen)


def test_a_word_is_spelled_as_it_stands_at_the_start_and_behind_another():
    texts = ["机器学习，机器学习。学习机器", "machine learning, the machine is learning"] * 50
    tokenizer = train_tokenizer(texts, kind="bpe", size=320, normalizer=Normalizer())
    first, *rest = spellings("机器学习", tokenizer)
    assert tokenizer.decode(first) == "机器学习"
    [behind] = rest
    assert tokenizer.decode([*tokenizer.encode("，"), *behind]) == "，机器学习"
    [machine] = spellings("machine", tokenizer)  # never the end of another word
    assert tokenizer.decode([*tokenizer.encode("the"), *machine]) == "the machine"
