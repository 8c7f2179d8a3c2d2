import pytest

from regard.view.drawing import DARK, LIGHT, text_width, writable


def luminance(colour):
    """As the W3C defines it for the contrast of text."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("theme", [LIGHT, DARK])
@pytest.mark.parametrize("colour", ["ink", "muted"])
def test_text_can_be_read_on_the_paper_of_its_theme(theme, colour):
    lower, higher = sorted((luminance(theme["paper"]), luminance(theme[colour])))
    assert (higher + 0.05) / (lower + 0.05) >= 4.5


def test_the_themes_have_the_same_colours():
    assert list(LIGHT) == list(DARK)


def test_a_chinese_character_is_as_wide_as_it_is_high():
    assert text_width("注意力", 12) == 36
    assert text_width("abc", 10) < 20


def test_what_no_file_can_hold_is_replaced_and_the_rest_is_kept():
    assert writable("a\x00b\nc\udcffd\uffff") == "a\ufffdb\ufffdc\ufffdd\ufffd"
    assert writable("注意力　é\u200d🙂") == "注意力　é\u200d🙂"
