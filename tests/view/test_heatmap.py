import itertools
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from regard.view.captions import words_in
from regard.view.colours import LEVELS
from regard.view.drawing import Cells, Line, Text, text_width
from regard.view.heatmap import draw_attention, draw_heads, hatching
from regard.view.matrix import KINDS, Choice, matrix_of
from regard.view.png import write_png
from regard.view.svg import svg

EN, ZH = words_in("en"), words_in("zh")


def shapes(drawing, kind):
    return [shape for shape in drawing.shapes if isinstance(shape, kind)]


def texts(drawing):
    return [text.text for text in shapes(drawing, Text)]


def cells(drawing):
    """The matrix itself, which is drawn before the legend."""
    return shapes(drawing, Cells)[0]


def test_a_cell_has_the_step_of_its_weight_and_unseen_ones_are_left_out(attended):
    seen = attended()
    for kind in KINDS:
        matrix = matrix_of(seen, Choice(kind, 1, 2))
        levels = cells(draw_attention(seen, Choice(kind, 1, 2), EN)).levels
        for row, column in itertools.product(*map(range, matrix.weights.shape)):
            if matrix.can_see[row, column]:
                assert levels[row][column] == round(LEVELS * float(matrix.weights[row, column]))
            else:
                assert levels[row][column] is None


def test_labels_stand_beside_their_rows_and_above_their_columns(attended):
    seen = attended()
    drawing = draw_attention(seen, Choice(), EN)
    grid, matrix = cells(drawing), matrix_of(seen)
    beside = [text for text in shapes(drawing, Text) if text.anchor == "end" and text.x < grid.x]
    assert tuple(text.text for text in beside) == matrix.queries
    for row, text in enumerate(beside):
        assert grid.y + row * grid.height < text.y < grid.y + (row + 1) * grid.height
    for column, label in enumerate(matrix.keys):
        (text,) = [one for one in shapes(drawing, Text) if one.text == label and one.y < grid.y]
        assert grid.x + column * grid.width < text.x < grid.x + (column + 1) * grid.width
        assert text.is_stacked == (label not in ("␣", "</s>"))


def test_it_says_which_matrix_it_is_and_what_its_rows_are(attended):
    drawing = draw_attention(attended(), Choice("encoder", 2, 3), EN)
    assert "encoder self-attention, layer 2 of 3, head 3 of 3" in texts(drawing)
    assert "机器学习是分支。" in texts(drawing)
    assert "→ Machine learning is a branch." in texts(drawing)
    said = " ".join(texts(drawing))
    assert EN["encoder_axes"] in said
    assert drawing.title.startswith("encoder self-attention, layer 2 of 3, head 3 of 3. ␣: ")
    chinese = draw_attention(attended(), Choice("decoder"), ZH)
    assert "解码器自注意力，第2层（共2层），3个头的平均" in texts(chinese)


def test_the_hidden_share_is_printed(attended):
    seen = attended()
    matrix = matrix_of(seen, Choice(in_words=True, hides_sinks=True))
    whole = round(100 * sum(share for _, share in matrix.hidden))
    said = " ".join(texts(draw_attention(seen, Choice(in_words=True, hides_sinks=True), EN)))
    assert f"{whole} % of the attention is on" in said
    chinese = "".join(texts(draw_attention(seen, Choice(in_words=True, hides_sinks=True), ZH)))
    assert f"{whole}%的注意力在" in chinese
    assert "of the attention is on" not in " ".join(texts(draw_attention(seen, Choice(), EN)))


def test_numbers_are_printed_in_large_cells_and_in_large_cells_only(attended):
    seen = attended()
    matrix = matrix_of(seen)
    printed = [text for text in texts(draw_attention(seen, Choice(), EN)) if text[:2] == "0."]
    expected = [f"{weight:.2f}" for weight in matrix.weights.flat if weight >= 0.05]
    assert sorted(printed) == sorted(expected)
    many = draw_attention(attended(src=["▁a"] * 40), Choice(), EN)
    assert not [text for text in texts(many) if text[:2] == "0."]


@pytest.mark.parametrize("size", [1, 7, 15, 33, 90])
@pytest.mark.parametrize("words", [EN, ZH], ids=["en", "zh"])
def test_nothing_leaves_the_paper(attended, size, words):
    long = "an uncommonly long sentence without an end " * 4
    seen = attended(src=[f"▁{'长' * n}" for n in range(size)], tgt=["▁wordwithoutend"], text=long)
    for choice in (Choice(), Choice("encoder", hides_sinks=True)):
        for draw in (draw_attention, draw_heads):
            drawing = draw(seen, choice, words)
            for text in shapes(drawing, Text):
                if text.is_stacked or text.turned:
                    height = len(text.text) * text.size if text.is_stacked else 0
                    assert text.y - height >= 0
                    continue
                width = text_width(text.text, text.size)
                left = text.x - {"start": 0, "middle": width / 2, "end": width}[text.anchor]
                assert left >= 0, text
                assert left + width <= drawing.width, text
                assert text.y <= drawing.height
            for grid in shapes(drawing, Cells):
                assert grid.x + grid.width * len(grid.levels[0]) <= drawing.width
                assert grid.y + grid.height * len(grid.levels) <= drawing.height


def test_every_head_is_a_thumbnail_in_the_row_of_its_layer(attended):
    seen = attended()
    drawing = draw_heads(seen, Choice("encoder"), EN)
    *thumbnails, _ = shapes(drawing, Cells)
    assert len(thumbnails) == 9
    assert len({one.y for one in thumbnails}) == len({one.x for one in thumbnails}) == 3
    levels = np.array(thumbnails[5].levels)  # the second layer's third head
    assert np.array_equal(levels, np.rint(LEVELS * seen.encoder[1, 2].astype(float)))
    assert {"head 1", "head 3", "layer 3"} <= set(texts(drawing))
    one = draw_heads(seen, Choice("encoder", layer=2), EN)
    assert len(shapes(one, Cells)) == 3 + 1
    assert "encoder self-attention, every head of layer 2" in texts(one)


@pytest.mark.parametrize("shape", [(1, 1), (5, 5), (3, 6), (6, 3)])
def test_hatching_crosses_every_cell_that_cannot_be_seen_once_and_no_other(shape):
    rng = np.random.default_rng(3)
    for can_see in (rng.random(shape) < 0.6, np.tril(np.ones(shape, bool)), np.zeros(shape, bool)):
        crossed = []
        for (row, column), (end_row, end_column) in hatching(can_see):
            assert row - end_row == end_column - column >= 1
            crossed += [(row - 1 - n, column + n) for n in range(row - end_row)]
        assert sorted(crossed) == [tuple(place) for place in np.argwhere(~can_see).tolist()]


def test_the_causal_mask_is_hatched_and_not_told_by_colour_alone(attended):
    seen = attended()
    assert [
        line
        for line in shapes(draw_attention(seen, Choice("decoder"), EN), Line)
        if line.opacity < 1
    ]
    assert not [
        line for line in shapes(draw_attention(seen, Choice(), EN), Line) if line.opacity < 1
    ]


def test_in_svg_the_words_are_text_and_the_cells_have_their_colours_in_both_themes(attended):
    page = svg(draw_attention(attended(), Choice(), EN))
    root = ET.fromstring(page)
    space = "{http://www.w3.org/2000/svg}"
    shown = {part.text for part in root.iter(f"{space}text")}
    assert {"机器", "学习", "Ma", "⋅ch", "</s>"} <= shown
    names = set(re.findall(r'class="fill-(w\d+)"', page))
    for name in names:
        assert len(re.findall(rf"--{name}:#[0-9a-f]{{6}}", page)) == 2


def test_in_png_it_is_drawn_with_nothing_left_unshown_but_what_no_font_has(attended, tmp_path):
    unshown = write_png(
        draw_attention(attended(src=("▁ab", "</s>")), Choice(), EN), tmp_path / "x.png"
    )
    assert unshown == ""
    assert (tmp_path / "x.png").read_bytes()[:4] == b"\x89PNG"
