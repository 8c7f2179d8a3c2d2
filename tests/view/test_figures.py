import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from regard.view.drawing import Cells, Circle, Line, Polyline, Rect, Text, text_width
from regard.view.figures import draw_figure, wrapped
from regard.view.panels import Bar, Bars, Figure, Heat, Lines, Trace, Words, same
from regard.view.svg import svg

ROOT = Path(__file__).parents[2]
TITLE = Words("a title", "标题")
LINES = Lines(
    TITLE,
    Words("tokens", "词元"),
    Words("loss", "损失"),
    (
        Trace(Words("one", "甲"), ((1.0, 2.0), (10.0, 4.0), (100.0, 8.0)), "both"),
        Trace(Words("other", "乙"), ((1.0, 1.0), (100.0, 1.0)), "dashed"),
    ),
    is_log_across=True,
    mark=3.0,
)
BARS = Bars(
    TITLE,
    Words("share", "比例"),
    (Words("first row", "第一行"), Words("second row", "第二行")),
    (Words("a", "甲"), Words("b", "乙")),
    ((Bar(0.5), Bar(-0.25)), (Bar(1.0, (0.75, 1.25)), Bar(0.0))),
)
HEAT = Heat(
    TITLE,
    ((0.0, 1.0), (0.25, 0.75)),
    Words("query", "查询"),
    Words("key", "键"),
    rows=("r1", "r2"),
    columns=("c1", "c2"),
    most=1.0,
    has_numbers=True,
)


def drawn(*plots, language="en", **more):
    return draw_figure(Figure(Words("the figure", "图"), plots, **more), language)


def only(kind, drawing):
    return [shape for shape in drawing.shapes if isinstance(shape, kind)]


def texts(drawing):
    return [shape.text for shape in only(Text, drawing)]


@pytest.mark.parametrize("plot", [LINES, BARS, HEAT], ids=["lines", "bars", "heat"])
def test_every_word_is_drawn_in_the_language_asked_for(plot):
    english, chinese = drawn(plot), drawn(plot, language="zh")
    assert {"the figure", "a title"} <= set(texts(english))
    assert {"图", "标题"} <= set(texts(chinese))
    assert (english.title, chinese.title) == ("the figure", "图")
    # Numbers and names are the same in both; nothing else is.
    shared = set(texts(english)) & set(texts(chinese))
    assert all(text.isascii() and not text.isalpha() for text in shared), shared


def test_a_point_lies_where_its_values_say():
    first, second, third = only(Circle, drawn(LINES))[-3:]
    assert second.x - first.x == pytest.approx(third.x - second.x)  # equal factors, a log axis
    assert first.y - second.y == pytest.approx((second.y - third.y) / 2)  # 2, 4, 8, a plain one


def test_a_dashed_trace_is_a_line_without_dots_and_a_mark_goes_all_the_way():
    drawing = drawn(LINES)
    plain, dashed = (line for line in only(Polyline, drawing))
    assert (plain.dash, bool(dashed.dash)) == ((), True)
    (mark,) = [line for line in only(Line, drawing) if line.colour == "ink"]
    assert mark.start[1] == mark.end[1]
    assert mark.start[0] < plain.points[1][0] < mark.end[0]


def test_bars_are_as_long_as_their_numbers_on_their_side_of_zero():
    boxes = only(Rect, drawn(BARS))[-4:]
    half, below, whole, nothing = boxes
    assert whole.width == pytest.approx(2 * half.width)
    assert below.width == pytest.approx(half.width / 2)
    assert below.x + below.width == pytest.approx(half.x)
    assert nothing.width == 0


def test_an_interval_is_drawn_around_the_end_of_its_bar():
    drawing = drawn(BARS)
    whole = only(Rect, drawing)[-2]
    (bar,) = [
        line for line in only(Line, drawing) if line.width == 1.4 and line.start[1] == line.end[1]
    ]
    middle = (bar.start[0] + bar.end[0]) / 2
    assert middle == pytest.approx(whole.x + whole.width)


def test_a_row_of_many_bars_makes_the_figure_higher():
    many = Bars(TITLE, TITLE, (same("x"),) * 40, (same(""),), ((Bar(1.0),),) * 40)
    assert drawn(many).height > drawn(BARS).height


def test_shades_follow_the_values():
    (cells,) = only(Cells, drawn(HEAT))
    (nothing, all_), (quarter, most) = cells.levels
    assert nothing == 0
    assert quarter < most < all_
    assert {"0.00", "1.00", "0.25", "0.75", "r1", "c2"} <= set(texts(drawn(HEAT)))


def test_values_below_zero_go_from_the_other_end_or_have_a_colour_of_their_own():
    values = ((-1.0, 0.0, 1.0),)
    (cells,) = only(Cells, drawn(Heat(TITLE, values, TITLE, TITLE)))
    low, middle, high = cells.levels[0]
    assert middle - low == high - middle
    signed = drawn(Heat(TITLE, values, TITLE, TITLE, is_signed=True))
    assert not only(Cells, signed)
    below, above = only(Rect, signed)[1:]
    assert below.fill != above.fill
    assert (below.opacity, above.opacity) == (1.0, 1.0)


def test_plots_stand_side_by_side_and_below_one_another():
    one, two, four = (drawn(*[HEAT] * n) for n in (1, 2, 4))
    assert two.width > one.width
    assert (two.height, two.width) == (one.height, four.width)
    assert four.height > 1.5 * two.height
    assert len(only(Cells, four)) == 4


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("one two three", ["one two", "three"]),
        ("注意力的权重，和为一", ["注意力的", "权重，和", "为一"]),
        ("", [""]),
    ],
)
def test_text_is_wrapped_between_words_or_characters_never_before_a_comma(text, lines):
    assert wrapped(text, 10.0, 45.0) == lines


FIGURES = sorted(ROOT.glob("experiments/*/figure*.svg"))


@pytest.mark.parametrize("path", FIGURES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_every_text_of_a_kept_figure_lies_on_its_paper(path):
    root = ET.parse(path).getroot()
    width, height = float(root.get("width")), float(root.get("height"))
    for text in root.iter("{http://www.w3.org/2000/svg}text"):
        x, y, size = (float(text.get(name)) for name in ("x", "y", "font-size"))
        long = 0.92 * text_width(text.text or "", size)  # `text_width` leans to the wide side
        before = {"middle": long / 2, "end": long}.get(text.get("text-anchor"), 0.0)
        if not text.get("transform"):
            assert x - before >= 0, text.text
            assert x - before + long <= width, text.text
        assert 0 <= y <= height, text.text


def test_a_kept_figure_is_the_one_that_its_result_describes():
    for path in FIGURES:
        found = json.loads((path.parent / "result.json").read_text(encoding="utf-8"))
        title = found["title"]["zh" if ".zh" in path.name else "en"]
        assert ET.parse(path).getroot().get("aria-label") == title


def test_a_figure_is_well_formed_svg_that_follows_the_theme():
    page = svg(drawn(LINES, BARS, HEAT, columns=3))
    ET.fromstring(page)
    assert "prefers-color-scheme:dark" in page
