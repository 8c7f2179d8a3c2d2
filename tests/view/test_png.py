import pytest
from matplotlib import font_manager, image

from regard.errors import ResourceError
from regard.view import png
from regard.view.colours import LIGHT_RAMP, channels
from regard.view.drawing import FAMILIES, Cells, Circle, Drawing, Line, Polyline, Rect, Text
from regard.view.png import write_png

RED, BLUE, WHITE = (255, 0, 0), (0, 0, 255), (255, 255, 255)
PAPER = Rect(0, 0, 60, 40, "paper")


def pixels(tmp_path, *shapes, scale=2):
    """A function from a place of the drawing to the colour there."""
    path = tmp_path / "x.png"
    assert write_png(Drawing(60, 40, (PAPER, *shapes)), path, scale=scale) == ""
    shown = (image.imread(path)[..., :3] * 255).round().astype(int)
    return lambda x, y: tuple(shown[int(y * scale), int(x * scale)].tolist())


@pytest.mark.parametrize(("width", "height"), [(60, 40), (851, 333), (7, 1001)])
@pytest.mark.parametrize("scale", [1, 2, 3])
def test_the_picture_has_the_size_of_the_drawing_times_the_scale(tmp_path, width, height, scale):
    path = tmp_path / "x.png"
    write_png(Drawing(width, height, (Rect(0, 0, width, height, "paper"),)), path, scale=scale)
    assert path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert image.imread(path).shape[:2] == (height * scale, width * scale)


def test_shapes_lie_where_the_drawing_says_with_y_going_down(tmp_path):
    at = pixels(tmp_path, Rect(10, 5, 20, 10, "#ff0000"), Circle(50, 30, 4, "#0000ff"))
    assert [at(11, 6), at(29, 14)] == [RED, RED]
    assert [at(9, 6), at(31, 6), at(11, 4), at(11, 16)] == [WHITE] * 4
    assert [at(50, 30), at(53, 30), at(50, 27)] == [BLUE] * 3
    assert [at(55, 30), at(53.5, 26.5)] == [WHITE] * 2


def test_later_shapes_lie_over_earlier_ones_whatever_their_kind(tmp_path):
    line = Line((0, 20), (60, 20), "#ff0000", width=4)
    dot = Circle(30, 20, 5, "#0000ff")
    assert pixels(tmp_path, line, dot)(30, 20) == BLUE
    assert pixels(tmp_path, dot, line)(30, 20) == RED


def test_dashes_are_as_long_as_said_however_wide_the_line(tmp_path):
    at = pixels(tmp_path, Polyline(((0, 20), (60, 20)), "#ff0000", width=4, dash=(10, 6)))
    assert [at(x, 20) == RED for x in (5, 13, 21, 29, 37, 45)] == [True, False] * 3


def test_opacity_lets_the_paper_through(tmp_path):
    at = pixels(tmp_path, Rect(0, 0, 60, 40, "#ff0000", opacity=0.5))
    assert at(30, 20) == pytest.approx((255, 127.5, 127.5), abs=1)


def ink(tmp_path, text):
    """The rows and columns of the drawing that a text touches."""
    at = pixels(tmp_path, text)
    touched = [(x, y) for x in range(60) for y in range(40) if at(x, y) != WHITE]
    return {x for x, _ in touched}, {y for _, y in touched}


@pytest.mark.parametrize(
    ("anchor", "low", "high"), [("start", 30, 60), ("middle", 20, 40), ("end", 0, 30)]
)
def test_text_stands_on_its_baseline_at_its_anchor(tmp_path, anchor, low, high):
    columns, rows = ink(tmp_path, Text(30, 20, "MM", 10, anchor=anchor))
    assert low - 1 <= min(columns) < max(columns) <= high + 1
    assert 10 <= min(rows) < max(rows) <= 20


def test_text_is_turned_clockwise(tmp_path):
    columns, rows = ink(tmp_path, Text(30, 5, "MMM", 10, turned=90))
    assert 29 <= min(columns) < max(columns) <= 41
    assert min(rows) >= 4
    assert max(rows) > 25


def test_stacked_text_goes_down_to_its_place(tmp_path):
    columns, rows = ink(tmp_path, Text(30, 35, "MMM", 8, anchor="end", is_stacked=True))
    assert 24 <= min(columns) < max(columns) <= 36
    assert min(rows) < 20
    assert 28 < max(rows) <= 35


def test_cells_have_the_colours_of_their_weights_to_the_edge(tmp_path):
    at = pixels(tmp_path, Cells(10, 5, 8, 6, ((0, 64), (None, 32))))
    assert at(19, 6) == at(25, 10) == channels(LIGHT_RAMP[-1])
    assert at(11, 6) == at(17, 10) == channels(LIGHT_RAMP[0])
    assert at(22, 13) == channels(LIGHT_RAMP[8])
    assert at(12, 13) == at(27, 8) == WHITE


def test_dollars_in_a_name_are_no_formula(tmp_path):
    columns, _ = ink(tmp_path, Text(2, 20, r"$\x$", 10))
    assert max(columns) > 20


def test_chinese_is_shown_where_a_font_has_it(tmp_path):
    installed = {font.name for font in font_manager.fontManager.ttflist}
    if not installed.intersection(FAMILIES):
        pytest.skip("no font with Chinese characters")
    columns, _ = ink(tmp_path, Text(2, 20, "注意力", 10))
    assert max(columns) > 20


def test_what_no_font_shows_comes_back_and_nothing_is_warned_of(tmp_path, monkeypatch):
    monkeypatch.setattr(png, "FAMILIES", ("No Such Font",))
    drawing = Drawing(60, 40, (Text(0, 20, "aé 意注意"),))
    assert write_png(drawing, tmp_path / "x.png") == "意注"
    assert (tmp_path / "x.png").exists()


def test_without_matplotlib_the_way_to_it_is_named(tmp_path, monkeypatch):
    def missing(name):
        raise ModuleNotFoundError(f"No module named {name.partition('.')[0]!r}")

    monkeypatch.setattr("importlib.import_module", missing)
    path = tmp_path / "x.png"
    with pytest.raises(ResourceError) as caught:
        write_png(Drawing(1, 1, ()), path)
    assert str(caught.value) == (
        f"{path} needs matplotlib, which cannot be imported (No module named 'matplotlib'); "
        "pip install 'regard[plots]', or name a file that ends in .svg"
    )
    assert not path.exists()
