"""Words that stand by themselves."""

import pytest

from regard.text.scripts import stands_in


@pytest.mark.parametrize(
    ("word", "text", "stands"),
    [
        ("art", "a part of it", False),
        ("art", "Art is long", True),
        ("Art", "art is long", False),
        ("art", "(art)", True),
        ("art", "state-of-the-art", True),
        ("苹果", "我吃苹果吗", True),
        ("pod", "创建pod并", True),
        ("pod", "创建pods并", False),
        ("C++", "C++ is", True),
        ("a.b", "axb", False),
    ],
)
def test_a_word_of_letters_stands_between_others_and_a_chinese_one_anywhere(word, text, stands):
    assert stands_in(word, text) is stands
