import xml.etree.ElementTree as ET

from regard.view.colours import themed
from regard.view.drawing import DARK, LIGHT, Cells, Circle, Drawing, Line, Polyline, Rect, Text
from regard.view.svg import svg

SPACE = "{http://www.w3.org/2000/svg}"


def elements(*shapes, title=""):
    root = ET.fromstring(svg(Drawing(200, 100, shapes, title)))
    return [(part.tag.removeprefix(SPACE), part.attrib, part.text) for part in root][1:]


def test_the_file_says_its_size_and_what_it_shows():
    root = ET.fromstring(svg(Drawing(200, 100, (), 'a "b" & <c>')))
    assert root.tag == f"{SPACE}svg"
    assert (root.get("width"), root.get("height")) == ("200", "100")
    assert root.get("viewBox") == "0 0 200 100"
    assert (root.get("role"), root.get("aria-label")) == ("img", 'a "b" & <c>')


def test_every_shape_is_an_element_in_the_order_of_the_drawing():
    shapes = (
        Rect(1, 2, 3.5, 4, "#aabbcc", opacity=0.25),
        Circle(5, 6.125, 2, "#aabbcc"),
        Line((0, 1), (2, 3), "#aabbcc", width=2, dash=(4, 1.5)),
        Polyline(((0, 0), (1.0049, 2.5), (3, -0.001)), "#aabbcc", opacity=0.5),
    )
    assert elements(*shapes) == [
        (
            "rect",
            {"x": "1", "y": "2", "width": "3.5", "height": "4", "fill": "#aabbcc"}
            | {"opacity": "0.25"},
            None,
        ),
        ("circle", {"cx": "5", "cy": "6.12", "r": "2", "fill": "#aabbcc"}, None),
        (
            "line",
            {"x1": "0", "y1": "1", "x2": "2", "y2": "3", "stroke": "#aabbcc"}
            | {"stroke-width": "2", "stroke-dasharray": "4 1.5"},
            None,
        ),
        (
            "polyline",
            {"points": "0,0 1,2.5 3,0", "fill": "none", "stroke": "#aabbcc"}
            | {"stroke-width": "1", "stroke-linejoin": "round", "opacity": "0.5"},
            None,
        ),
    ]


def test_text_stays_text_whatever_is_in_it():
    shown = 'x < y & "z" 注意力'
    ((tag, attributes, text),) = elements(Text(1, 2, shown, 9, "#010203", "end", is_bold=True))
    assert (tag, text) == ("text", shown)
    assert attributes == {
        "x": "1", "y": "2", "font-size": "9", "fill": "#010203", "text-anchor": "end",
        "font-weight": "bold",
    }  # fmt: skip


def test_text_is_turned_around_its_own_place():
    ((_, attributes, _),) = elements(Text(10, 20, "x", turned=-45))
    assert attributes["transform"] == "rotate(-45 10 20)"


def test_characters_that_xml_forbids_do_not_break_the_file():
    drawing = Drawing(1, 1, (Text(0, 0, "a\x01\udcffb"),), "\x02")
    root = ET.fromstring(svg(drawing).encode())
    assert root[-1].text == "a\ufffd\ufffdb"
    assert root.get("aria-label") == "\ufffd"


def test_colours_of_the_theme_follow_the_reader_and_have_a_value_without_styles():
    page = svg(Drawing(1, 1, (Rect(0, 0, 1, 1, "paper"), Line((0, 0), (1, 1), "ink"))))
    root = ET.fromstring(page)
    assert (root[1].get("class"), root[1].get("fill")) == ("fill-paper", LIGHT["paper"])
    assert (root[2].get("class"), root[2].get("stroke")) == ("stroke-ink", LIGHT["ink"])
    light, dark = root[0].text.split("@media (prefers-color-scheme:dark)")
    for name in LIGHT:
        assert f"--{name}:{LIGHT[name]}" in light
        assert f"--{name}:{DARK[name]}" in dark
        assert f".fill-{name}{{fill:var(--{name})}}" in dark
        assert f".stroke-{name}{{stroke:var(--{name})}}" in dark


def test_cells_are_one_path_for_each_weight_and_follow_the_reader():
    page = svg(Drawing(9, 9, (Cells(10, 20, 4, 2.5, ((0, 7, 7), (None, 7, 0))),)))
    root = ET.fromstring(page)
    group = root[1]
    assert group.get("transform") == "translate(10 20) scale(4 2.5)"
    assert {path.get("class"): path.get("d") for path in group} == {
        "fill-w0": "M0 0h1v1h-1zM2 1h1v1h-1z",
        "fill-w7": "M1 0h2v1h-2zM1 1h1v1h-1z",
    }
    light, dark = root[0].text.split("@media (prefers-color-scheme:dark)")
    assert f"--w7:{themed('w7')[0]}" in light
    assert f"--w7:{themed('w7')[1]}" in dark
    assert ".fill-w7{fill:var(--w7)}" in dark
    assert "--w8:" not in page


def test_text_on_a_weight_is_black_or_white_as_the_theme_needs():
    page = svg(Drawing(9, 9, (Text(1, 2, "0.71", colour="t45"),)))
    root = ET.fromstring(page)
    light, dark = root[0].text.split("@media (prefers-color-scheme:dark)")
    assert "--t45:#ffffff" in light
    assert "--t45:#000000" in dark
    assert root[1].get("class") == "fill-t45"


def test_stacked_text_goes_down_and_is_still_one_text():
    ((_, attributes, text),) = elements(Text(1, 2, "机器", anchor="end", is_stacked=True))
    assert text == "机器"
    assert (attributes["writing-mode"], attributes["text-anchor"]) == ("vertical-rl", "end")


def test_fonts_with_chinese_are_named_before_whatever_the_reader_has():
    root = ET.fromstring(svg(Drawing(1, 1, ())))
    families = root.get("font-family").split(", ")
    assert "'Noto Sans CJK SC'" in families
    assert families[-1] == "sans-serif"
