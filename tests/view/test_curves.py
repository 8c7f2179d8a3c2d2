import math
import re
import xml.etree.ElementTree as ET
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.view.curves import COLOURS, ENGLISH, PANEL_WIDTH, draw_curves, thinned
from regard.view.drawing import Circle, Line, Polyline, Text, text_width
from regard.view.runs import Run
from regard.view.svg import svg

FULL = {
    "loss": ((10, 8.0), (20, 4.0), (40, 3.0)),
    "dev_loss": ((20, 4.5), (40, 3.5)),
    "dev_bleu": ((20, 1.0), (40, 12.0)),
    "dev_chrf": ((20, 10.0), (40, 35.0)),
    "dev_accuracy": ((20, 0.3), (40, 0.6)),
    "dev_exact": ((20, 0.0), (40, 0.2)),
    "lr": ((10, 1e-4), (20, 2e-4), (40, 1e-4)),
    "tokens_per_s": ((10, 9000.0), (20, 12_000.0), (40, 11_000.0)),
}


def run(name="model", **series):
    return Run(name, Path(f"/runs/{name}.run/metrics.jsonl"), series)


def shapes(drawing, kind):
    return [shape for shape in drawing.shapes if isinstance(shape, kind)]


def texts(drawing):
    return [text.text for text in shapes(drawing, Text)]


def titles(drawing):
    return [text.text for text in shapes(drawing, Text) if text.is_bold]


def svg_parts(drawing, tag):
    root = ET.fromstring(svg(drawing))
    return root.findall(f"{{http://www.w3.org/2000/svg}}{tag}")


def test_each_quantity_has_a_panel_and_the_losses_share_one():
    drawing = draw_curves([run(**FULL)])
    assert titles(drawing) == [
        ENGLISH[key]
        for key in (
            "loss", "dev_bleu", "dev_chrf", "dev_accuracy", "dev_exact", "lr", "tokens_per_s",
        )
    ]  # fmt: skip
    assert texts(drawing).count("updates") == 7


def test_there_is_a_line_for_each_quantity_of_each_run():
    assert len(svg_parts(draw_curves([run(**FULL)]), "polyline")) == 8
    three = [run(name, **FULL) for name in "abc"]
    assert len(svg_parts(draw_curves(three), "polyline")) == 24
    partly = [run("a", loss=FULL["loss"]), run("b", loss=FULL["loss"], lr=FULL["lr"])]
    assert len(svg_parts(draw_curves(partly), "polyline")) == 3


def test_points_land_where_the_ticks_say():
    """The scale is taken from the ticks that the reader sees, not from the code."""
    drawing = draw_curves([run(loss=((10, 2.5), (50, 7.0), (100, 3.25)))])
    across = {t.text: t.x for t in shapes(drawing, Text) if t.anchor == "middle"}
    up = sorted({ln.start[1] for ln in shapes(drawing, Line) if ln.colour == "grid"}, reverse=True)
    labels = [float(t.text) for t in shapes(drawing, Text) if t.anchor == "end"]
    assert labels == [2, 3, 4, 5, 6, 7]
    per_step = (across["100"] - across["0"]) / 100
    per_unit = (up[-1] - up[0]) / 5
    expected = [
        (across["0"] + step * per_step, up[0] + (value - 2) * per_unit)
        for step, value in ((10, 2.5), (50, 7.0), (100, 3.25))
    ]
    (line,) = svg_parts(drawing, "polyline")
    found = [tuple(map(float, point.split(","))) for point in line.get("points").split()]
    assert found == [pytest.approx(point, abs=0.01) for point in expected]


def test_on_a_logarithmic_axis_halving_the_loss_goes_down_by_one_length():
    drawing = draw_curves(
        [run(loss=((1, 8.0), (2, 4.0), (3, 2.0), (4, 0.0), (5, 1.0)))], is_log=True
    )
    (line,) = shapes(drawing, Polyline)
    (_, a), (_, b), (_, c) = line.points
    assert b - a == pytest.approx(c - b)
    (dot,) = shapes(drawing, Circle)  # 0 has no logarithm, so what follows stands alone
    assert dot.y - c == pytest.approx(b - a)


def test_only_the_loss_is_logarithmic():
    series = {key: FULL[key] for key in ("dev_bleu", "lr")}
    assert draw_curves([run(**series)], is_log=True) == draw_curves([run(**series)])


def test_a_run_with_nothing_above_zero_still_has_its_legend_on_a_logarithmic_axis():
    assert texts(draw_curves([run(loss=((1, 0.0),))], is_log=True)) == ["model"]


def test_what_is_no_number_is_a_gap():
    for gap in (math.nan, math.inf, -math.inf):
        drawing = draw_curves([run(loss=((1, 5.0), (2, 4.0), (3, gap), (4, 3.0), (5, 2.0)))])
        first, second = shapes(drawing, Polyline)
        assert len(first.points) == len(second.points) == 2
        assert first.points[-1][0] < second.points[0][0]


def test_a_point_alone_is_a_dot():
    drawing = draw_curves([run(loss=((1, 5.0),), lr=((1, math.nan), (2, 1e-4), (3, math.nan)))])
    assert shapes(drawing, Polyline) == []
    assert len(shapes(drawing, Circle)) == 2


def test_a_quantity_without_a_number_has_no_panel():
    assert titles(draw_curves([run(loss=((1, math.nan),), lr=((1, 1e-4),))])) == ["learning rate"]


def test_development_is_told_from_training_by_dots():
    drawing = draw_curves([run(loss=FULL["loss"], dev_loss=FULL["dev_loss"])])
    train, dev = shapes(drawing, Polyline)
    dots = {(dot.x, dot.y) for dot in shapes(drawing, Circle) if dot.fill == dev.colour}
    assert dots == set(dev.points)
    assert train.width < dev.width
    assert {"training", "dev set"} <= set(texts(drawing))
    assert "dev set" not in texts(draw_curves([run(loss=FULL["loss"])]))


def test_shares_are_shown_in_percent():
    drawing = draw_curves([run(dev_exact=((1, 0.25), (2, 0.75)))])
    labels = [text.text for text in shapes(drawing, Text) if text.anchor == "end"]
    assert labels == ["20", "30", "40", "50", "60", "70", "80"]


def test_a_score_that_is_not_known_is_drawn_under_its_own_name():
    drawing = draw_curves([run(dev_comet=((1, 0.5), (2, 0.75)), lr=((1, 1e-4), (2, 1e-4)))])
    assert titles(drawing) == ["dev_comet", "learning rate"]


def test_rates_and_speeds_start_at_zero():
    drawing = draw_curves([run(tokens_per_s=((1, 9000.0), (2, 9100.0)))])
    labels = [text.text for text in shapes(drawing, Text) if text.anchor == "end"]
    assert labels[0] == "0"


def test_runs_differ_in_colour_and_dash_and_the_legend_shows_both():
    runs = [run(f"run {number}", loss=FULL["loss"]) for number in range(20)]
    drawing = draw_curves(runs)
    styles = [(line.colour, line.dash) for line in shapes(drawing, Polyline)]
    assert len(set(styles)) == 20
    for (colour, dash), (next_colour, next_dash) in pairwise(styles):
        assert colour != next_colour
        assert dash != next_dash
    samples = [ln for ln in shapes(drawing, Line) if ln.width == 2.0]
    assert [(ln.colour, ln.dash) for ln in samples] == styles
    for number, sample in enumerate(samples):
        (name,) = [text for text in shapes(drawing, Text) if text.text == f"run {number}"]
        assert 0 < name.x - sample.end[0] < 12
        assert abs(name.y - sample.start[1]) < 6


def test_the_colours_are_okabe_and_itos():
    published = {
        "#E69F00", "#56B4E9", "#009E73", "#F0E442", "#0072B2", "#D55E00", "#CC79A7",
    }  # fmt: skip
    assert set(COLOURS) == published - {"#F0E442"} | {"ink"}


def test_nothing_leaves_the_paper_and_the_legend_meets_no_panel():
    names = ["模型" * 60, *(f"a run with quite a long name, number {n}" for n in range(9))]
    drawing = draw_curves([run(name, **FULL) for name in names])
    for text in shapes(drawing, Text):
        width = text_width(text.text, text.size)
        left = text.x - {"start": 0, "middle": width / 2, "end": width}[text.anchor]
        assert left >= 0, text
        assert left + width <= drawing.width, text
        assert text.size <= text.y <= drawing.height
    legend_ends = max(t.y for t in shapes(drawing, Text) if "number" in t.text)
    assert legend_ends + 12 < min(t.y for t in shapes(drawing, Text) if t.is_bold)


def test_a_name_that_is_too_long_keeps_both_its_ends():
    drawing = draw_curves([run("first" + "-" * 400 + "last", loss=FULL["loss"])])
    (name,) = [text.text for text in shapes(drawing, Text) if "…" in text.text]
    assert re.fullmatch(r"first-+…-+last", name)
    assert drawing.width < 2 * PANEL_WIDTH


def test_names_that_collide_are_told_apart():
    runs = [
        Run("model", Path(f"/{folder}/model.run/metrics.jsonl"), {"loss": FULL["loss"]})
        for folder in ("old", "new")
    ]
    assert {"old/model", "new/model"} <= set(texts(draw_curves(runs)))


def test_the_words_are_the_callers():
    words = {key: f"<{key}>" for key in ENGLISH}
    drawing = draw_curves([run(**FULL)], words)
    assert drawing.title == "<title>"
    shown = [text for text in texts(drawing) if text.startswith("<")]
    assert set(shown) == set(words.values()) - {"<title>"}


@given(st.lists(st.tuples(st.floats(0, 30), st.floats(-100, 100)), max_size=300))
def test_thinning_keeps_ends_and_extremes_of_every_column_in_order(points):
    points.sort(key=lambda point: point[0])
    kept = thinned(points)
    rest = iter(points)
    assert all(point in rest for point in kept)
    for column in range(31):
        before = [y for x, y in points if int(x) == column]
        after = [y for x, y in kept if int(x) == column]
        assert len(after) <= 4
        if before:
            assert (min(after), max(after)) == (min(before), max(before))
            assert (after[0], after[-1]) == (before[0], before[-1])


def test_a_long_run_keeps_its_spike_and_costs_no_more_than_the_paper_can_show():
    series = tuple((step, 50.0 if step == 61_234 else 3.0) for step in range(200_000))
    (line,) = shapes(draw_curves([run(loss=series)]), Polyline)
    assert len(line.points) <= 4 * PANEL_WIDTH
    heights = [y for _, y in line.points]
    assert sum(y < (min(heights) + max(heights)) / 2 for y in heights) == 1


def test_the_axis_of_a_short_run_counts_whole_updates():
    for steps in range(6):
        drawing = draw_curves([run(loss=tuple((step, 1.0) for step in range(steps + 1)))])
        labels = [t.text for t in shapes(drawing, Text) if t.anchor == "middle"][:-1]
        assert labels == [str(step) for step in range(max(steps, 1) + 1)]
