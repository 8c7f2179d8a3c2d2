import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.text.sentences import split_sentences, split_to_fit

PARTS = [
    "Dr. ",
    "J. ",
    "3.14",
    "https://a.b/c",
    "“好。”",
    "\r\n",
    "🏴\U000e0067\U000e007f",
    "word ",
]
TEXTUAL = st.text(
    st.sampled_from('ab A1 .!?…。！？；，,\n"”’)）我们\u0301\u200d👩🇨\r'), max_size=80
)
ANY = st.one_of(TEXTUAL, st.text(), st.lists(st.sampled_from(PARTS)).map("".join))


@given(ANY)
def test_sentences_join_to_the_text(text):
    sentences = split_sentences(text)
    assert "".join(sentences) == text
    assert all(sentences)


@pytest.mark.parametrize(
    "sentences",
    [
        ["他来了。", "她走了！", "真的？", "是的；", "好……", "再见"],
        ["他说：“好。”", "然后走了。"],
        ["“好！”，他说。", "（对。）", "下一句"],
        ["真的？！！", "是"],
        ["Dr. Smith and Mrs. Jones arrived. ", "They sat."],
        ["He paid $3.50 for it. ", "It cost 1,000.00 before."],
        ["See https://example.com/a.b?c=D. ", "It is there."],
        ["J. R. R. Tolkien wrote it. ", "He did."],
        ["The U.S. Army came, e.g. Americans. ", "Yes."],
        ["No. 5 is alive. ", "No. ", "It is not."],
        ["1. First point. ", "2. Second point."],
        ["In 1999. ", "The end."],
        ['He said "stop!" ', '"Why?" ', "(Nobody knew.) ", "Then..."],
        ["wait... what? ", "Yes… no, well… "],
        ["version 2.0 of foo.py is out! ", "See Fig. 3 and vol. 2."],
        ["Hello!", "你好. ", "再见"],
        ["line\n", "line\n\n", "line"],
        ["I saw her and I. ", "Then we left."],
    ],
)
def test_sentences_end_where_a_reader_ends_them(sentences):
    assert split_sentences("".join(sentences)) == sentences


def test_nothing_has_no_sentences():
    assert split_sentences("") == split_to_fit("", lambda part: True) == []


@given(text=ANY, room=st.integers(1, 12))
def test_parts_join_to_the_text_and_fit(text, room):
    parts = split_to_fit(text, lambda part: len(part) <= room)
    assert "".join(parts) == text
    assert all(parts)
    if text.isascii() and "\r" not in text:
        assert all(len(part) <= room for part in parts)


@given(text=ANY, salt=st.integers(0, 50))
def test_parts_join_to_the_text_whatever_is_said_to_fit(text, salt):
    assert "".join(split_to_fit(text, lambda part: hash((part, salt)) % 3 == 0)) == text
    assert "".join(split_to_fit(text, lambda part: False)) == text


@given(text=TEXTUAL)
def test_what_fits_is_left_whole(text):
    assert split_to_fit(text, lambda part: True) == ([text] if text else [])


@pytest.mark.parametrize(
    ("room", "parts"),
    [
        (12, ["One is. ", "Two are. ", "Three."]),
        (20, ["One is. Two are. ", "Three."]),
        (11, ["I came, ", "and I saw, ", "I won."]),
        (9, ["long and ", "winding ", "road"]),
        (5, ["我来了，", "我看见、", "我赢"]),
        (4, ["注意力机", "制在翻译", "里"]),
        (9, ["pay ", "3,500, ", "or 12:30"]),
        (3, ["e\u0301", "e\u0301", "e\u0301"]),
        (4, ["🇨🇳🇨🇳", "🇨🇳"]),
        (2, ["👩\u200d👧", "ab"]),
    ],
)
def test_text_is_cut_at_sentences_then_clauses_then_spaces_then_anywhere(room, parts):
    assert split_to_fit("".join(parts), lambda part: len(part) <= room) == parts


@pytest.mark.parametrize("unit", [".", "J. ", "!a", "。”", "\n", "\u0301", "🇨🇳"])
def test_a_long_run_of_marks_is_split_in_seconds(unit):
    text = "a" + unit * 300_000
    start = time.perf_counter()
    assert "".join(split_sentences(text)) == text
    assert "".join(split_to_fit(text, lambda part: len(part) <= 500)) == text
    assert time.perf_counter() - start < 20


def test_a_long_text_is_measured_in_small_parts():
    measured = []

    def fits(part):
        measured.append(len(part))
        return len(part) <= 300

    split_to_fit("我们去公园，" * 100_000, fits)
    assert max(measured) < 2000
    assert sum(measured) < 30 * 600_000
