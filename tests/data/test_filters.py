from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.data.corpus import Pair
from regard.data.filters import filtered, folded, pair_key, pair_keys, ratio, wrong_script


def zh_en(*texts):
    return [Pair(src, tgt, i, 0, "zh", "en") for i, (src, tgt) in enumerate(texts, 1)]


GOOD = ("我喜欢音乐。", "I like music.")


def test_without_filters_nothing_is_dropped():
    pairs, dropped = zh_en(GOOD, GOOD, ("a", "b")), Counter()
    assert list(filtered(pairs, dropped)) == pairs
    assert not dropped


def test_each_filter_drops_and_counts_what_its_name_says():
    pairs = zh_en(
        GOOD,
        ("是。", "This goes on and on, although the source had nothing of the sort to say."),
        ("I like music.", "I like music."),
        GOOD,
        ("再见", "Goodbye"),
        ("早上好", "Good morning"),
    )
    dropped = Counter()
    kept = list(
        filtered(
            pairs,
            dropped,
            max_ratio=4.0,
            script=True,
            dedup=True,
            overlap={pair_key("再见", "Goodbye")},
            held_out=pair_keys([Pair("早上好", "Good morning", 1, 0, "zh", "en")]),
        )
    )
    assert [pair.line for pair in kept] == [1]
    assert dropped == {
        "max_ratio": 1, "script": 1, "dedup": 1, "drop_overlap": 1, "held_out": 1,
    }  # fmt: skip


def test_a_chinese_character_weighs_as_much_as_three_letters():
    assert ratio("音乐", "sixabc") == 1.0
    assert ratio("abcd", "ab") == ratio("ab", "abcd") == 2.0
    assert ratio("", "abcd") == 4.0


@pytest.mark.parametrize(
    ("src", "tgt", "is_wrong"),
    [
        ("我喜欢音乐。", "I like music.", False),
        ("I like music.", "I like music.", True),
        ("我喜欢音乐。", "我喜欢音乐。", True),
        ("3.14", "3.14", False),
        ("API", "API", False),
        ("使用kubectl命令", "Use the kubectl command", False),
        ("我", "The character 我 means I", False),
    ],
)
def test_a_side_in_the_wrong_script_is_found(src, tgt, is_wrong):
    assert wrong_script(Pair(src, tgt, 1, 0, "zh-CN", "en")) is is_wrong


def test_languages_of_unknown_script_are_left_alone():
    assert not wrong_script(Pair("anything", "任何", 1, 0, "xx", "yy"))


def test_folding_leaves_letters_and_digits_alone():
    assert folded("Ｈello,  World!") == folded("hello world") == "helloworld"
    assert folded("链子……。") == folded("链子。")
    assert folded("...") != folded("!!!")


@given(st.text(), st.text(), st.text(), st.text())
def test_different_pairs_have_different_keys(a, b, c, d):
    assert (pair_key(a, b) == pair_key(c, d)) == ((a, b) == (c, d))
