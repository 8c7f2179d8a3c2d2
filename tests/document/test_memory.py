"""A translation memory: exact matches, used whole or not at all."""

import pytest

from regard.document.memory import Memory, read_memory
from regard.document.parts import HTML, TEXT, Rules

XML = Rules(kind="xml")
MEMORY = Memory(
    [
        ("Hello world", "你好，世界"),
        ("Save %s", "保存%s"),
        ("Fish & chips", "鱼 & 薯条"),
        ("Old", "旧"),
        ("Old", "老"),
        ("Empty", " "),
    ]
)


@pytest.mark.parametrize(
    ("marked", "rules", "found"),
    [
        ("Hello world", TEXT, "你好，世界"),
        ("  Hello \n world ", TEXT, "  你好，世界 "),
        ("<b>Hello world</b>", XML, "<b>你好，世界</b>"),
        ("<p><b>Hello world</b><br></p>", HTML, "<p><b>你好，世界</b><br></p>"),
        ("Hello <b>world</b>", XML, None),  # where would the tag go?
        ("Save %s", TEXT, "保存%s"),
        ("Save %d", TEXT, None),
        ("Fish &amp; chips", XML, "鱼 &amp; 薯条"),
        ("Old", TEXT, "老"),  # the later
        ("Empty", TEXT, None),
        ("hello world", TEXT, None),  # exact is exact
        ("", TEXT, None),
    ],
)
def test_a_match_is_exact_and_comes_with_the_markup_around_it(marked, rules, found):
    assert MEMORY.find(marked, rules) == found


def test_a_match_with_other_placeholders_is_none():
    assert Memory([("Save %s", "保存")]).find("Save %s", TEXT) is None


def test_memories_are_tmx_and_go_both_ways(tmp_path):
    path = tmp_path / "a.tmx"
    path.write_text(
        '<tmx version="1.4"><header/><body><tu><tuv xml:lang="en-US"><seg>Hi <ph>x</ph>you</seg>'
        '</tuv><tuv xml:lang="zh-CN"><seg>你好</seg></tuv></tu><tu><tuv xml:lang="en"><seg>Alone'
        "</seg></tuv></tu></body></tmx>",
        encoding="utf-8",
    )
    assert read_memory([path], "en", "zh").find("Hi you", TEXT) == "你好"
    back = read_memory([path], "zh", "en")
    assert (len(back), back.find("你好", TEXT)) == (1, "Hi you")
