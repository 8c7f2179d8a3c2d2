import re
import unicodedata

import numpy as np
import pytest

from regard.view.captions import words_in
from regard.view.colours import DARK_RAMP, LIGHT_RAMP, colour_at
from regard.view.matrix import KINDS, Choice, matrix_of
from regard.view.terminal import SHADES, Screen, columns_of, pooled, show_attention, show_heads

EN, ZH = words_in("en"), words_in("zh")
PLAIN, COLOUR = Screen(80), Screen(80, "truecolor")
CODE = re.compile(r"\x1b\[[0-9;]*m")


def width(text):
    """By the Unicode standard, without our own count."""
    return sum(1 + (unicodedata.east_asian_width(one) in "WF") for one in CODE.sub("", text))


def lines_of(text):
    return CODE.sub("", text).splitlines()


def rows_of(shown, matrix):
    """The lines of the matrix, which stand between two empty ones, and the labels above them."""
    _, drawn, _ = shown.split("\n\n")
    lines = drawn.split("\n")
    n_rows = len(matrix.queries)
    return lines[-n_rows:], lines[:-n_rows]


@pytest.mark.parametrize("screen", [PLAIN, COLOUR], ids=["shades", "colours"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_row_starts_its_blocks_in_the_same_column_and_has_two_for_each_key(
    attended, kind, screen
):
    seen = attended()
    matrix = matrix_of(seen, Choice(kind))
    rows, above = rows_of(show_attention(seen, Choice(kind), EN, screen), matrix)
    side = max(map(width, matrix.queries)) + 1
    for row, label in zip(rows, matrix.queries, strict=True):
        plain = CODE.sub("", row)
        assert plain.strip().startswith(label)
        start = plain[: plain.index(label)] + label
        assert width(start) + 1 == side
    # A label of a column stands above its block, character by character.
    cells = _columns(above[-1])
    for column, key in enumerate(matrix.keys):
        assert cells[side + 2 * column] == key[-1]


def _columns(line):
    """The character that each column of a terminal shows."""
    shown = {}
    at = 0
    for character in line:
        shown[at] = character
        at += width(character)
    return shown


def test_blocks_have_the_colours_of_their_weights(attended):
    seen = attended()
    matrix = matrix_of(seen)
    for is_light, ramp in ((False, DARK_RAMP), (True, LIGHT_RAMP)):
        screen = Screen(80, "truecolor", is_light)
        rows, _ = rows_of(show_attention(seen, Choice(), EN, screen), matrix)
        for row, weights in zip(rows, matrix.weights, strict=True):
            found = re.findall(r"\x1b\[48;2;(\d+);(\d+);(\d+)m  \x1b\[0m", row)
            assert [tuple(map(int, one)) for one in found] == [
                colour_at(float(weight), ramp) for weight in weights
            ]


def test_without_colour_shades_grow_with_the_weight_and_no_code_is_written(attended):
    seen = attended(sharp=4.0)
    matrix = matrix_of(seen, Choice(head=1))
    shown = show_attention(seen, Choice(head=1), EN, PLAIN)
    assert "\x1b" not in shown
    rows, _ = rows_of(shown, matrix)
    side = max(map(width, matrix.queries)) + 1
    pairs = []
    for row, label, weights in zip(rows, matrix.queries, matrix.weights, strict=True):
        blocks = row[row.index(label) + len(label) + 1 :]
        assert width(row[: row.index(label)] + label) + 1 == side
        pairs += [
            (float(weight), SHADES.index(blocks[2 * column]))
            for column, weight in enumerate(weights)
        ]
        assert all(blocks[2 * n] == blocks[2 * n + 1] for n in range(len(weights)))
    assert {shade for _, shade in pairs} == set(range(5))
    shades = [shade for _, shade in sorted(pairs)]
    assert shades == sorted(shades)


def test_256_colours_are_those_of_the_cube(attended):
    shown = show_attention(attended(), Choice(), EN, Screen(80, "256"))
    found = {int(number) for number in re.findall(r"48;5;(\d+)m", shown)}
    assert found
    assert all(16 <= number < 232 for number in found)
    assert "48;2" not in shown


def test_beside_a_row_stands_where_it_looks_most(attended):
    seen = attended()
    matrix = matrix_of(seen)
    rows, _ = rows_of(show_attention(seen, Choice(), EN, PLAIN), matrix)
    for row, weights in zip(rows, matrix.weights, strict=True):
        most = int(np.argmax(weights))
        assert f"{matrix.keys[most]} {weights[most]:.2f}" in row


def test_what_cannot_be_seen_is_hatched(attended):
    seen = attended()
    matrix = matrix_of(seen, Choice("decoder"))
    rows, _ = rows_of(show_attention(seen, Choice("decoder"), EN, PLAIN), matrix)
    assert [row.count("//") for row in rows] == list(range(9, -1, -1))


@pytest.mark.parametrize("screen", [Screen(40), Screen(61), Screen(200), Screen(40, "truecolor")])
@pytest.mark.parametrize("words", [EN, ZH], ids=["en", "zh"])
def test_no_line_is_wider_than_the_terminal(attended, screen, words):
    seen = attended(
        src=[f"▁{'注意力' * (n % 3 + 1)}" for n in range(50)],
        tgt=("▁incomprehensibilities", "▁a", "</s>"),
        text="a sentence " * 20,
    )
    for choice in (Choice(), Choice("encoder", hides_sinks=True), Choice("decoder")):
        for show in (show_attention, show_heads):
            for line in lines_of(show(seen, choice, words, screen)):
                assert width(line) <= screen.width, line


def test_a_matrix_that_is_too_wide_is_cut_into_parts_with_every_column(attended):
    seen = attended(src=[f"▁{chr(ord('A') + n)}" for n in range(26)], tgt=("▁x", "</s>"))
    lines = lines_of(show_attention(seen, Choice(), EN, Screen(40)))
    heads = [line for line in lines if re.fullmatch(r" +([A-Z] ?)+", line)]
    assert len(heads) == 2
    assert "".join("".join(heads).split()) == "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    assert sum(line.lstrip().startswith("x ") for line in lines) == 2


def test_thumbnails_show_every_head(attended):
    seen = attended()
    shown = show_heads(seen, Choice("encoder"), EN, PLAIN)
    assert len(re.findall(r"head \d", shown)) == 9
    assert re.findall(r"layer \d", shown) == ["layer 1", "layer 2", "layer 3"]
    assert "encoder self-attention, every head of 3 layers" in shown
    colours = show_heads(seen, Choice("encoder", layer=2), ZH, COLOUR)
    assert colours.count("▀") == 3 * 8 * 4
    assert "第2层" in colours
    red, green, blue = colour_at(float(seen.encoder[1, 0, 0, 0]), DARK_RAMP)
    assert f"\x1b[38;2;{red};{green};{blue};48;2;" in colours


def test_a_smaller_matrix_keeps_the_largest_of_what_it_stands_for():
    weights = np.arange(42, dtype=np.float32).reshape(6, 7)
    small = pooled(weights, 3, 2)
    assert small.tolist() == [[9, 13], [23, 27], [37, 41]]
    assert np.array_equal(pooled(weights, 6, 7), weights)


def test_the_legend_and_the_hidden_share_are_said(attended):
    shown = show_attention(attended(), Choice(hides_sinks=True), EN, PLAIN)
    assert "weight ░░ ≥ 0.05  ▒▒ ≥ 0.2  ▓▓ ≥ 0.4  ██ ≥ 0.7" in shown
    assert re.search(r"\d+ % of the attention is on .*</s> \(\d+ %\)", shown)
    assert re.search(
        "[0-9]+%的注意力在", show_attention(attended(), Choice(hides_sinks=True), ZH, PLAIN)
    )


@pytest.mark.parametrize(
    ("text", "columns"), [("abc", 3), ("机器", 4), ("é", 1), ("e\u0301", 1), ("。", 2), ("ｱ", 1)]
)
def test_columns_of_text(text, columns):
    assert columns_of(text) == columns
