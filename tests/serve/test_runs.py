"""Runs that a server watches: their curves, thinned, and what they said."""

import json
import math
from types import SimpleNamespace

import pytest

from regard.errors import ConfigError
from regard.serve.protocols.runs import samples_of, snapshots_of, tables_of, thinned
from regard.serve.thorough import ThoroughModel


def written(folder, name, lines):
    folder.mkdir(exist_ok=True)
    (folder / name).write_text("\n".join(map(json.dumps, lines)))


def test_a_long_curve_keeps_its_ends_and_its_order_and_a_gap_is_null():
    series = (*((float(n), 1.0 / (n + 1)) for n in range(5000)), (5000.0, math.nan))
    points = thinned(series)
    assert len(points) <= 401
    assert points[0] == (0.0, 1.0)
    assert points[-1] == (5000.0, None)
    assert points == sorted(points, key=lambda point: point[0])
    assert set(points[:-1]) <= set(series)
    assert thinned(series[:3]) == list(series[:3])


def test_a_run_that_has_written_nothing_yet_has_no_curves(tmp_path):
    [table] = tables_of([tmp_path / "none"])
    assert table == {"name": "none", "series": {}, "samples": []}


def test_a_resumed_run_says_again_what_it_had_said(tmp_path):
    lines = [{"step": step, "src": "茶", "said": said} for step, said in
             ((100, "a"), (200, "b"), (300, "c"), (200, "d"))]  # fmt: skip
    written(tmp_path, "samples.jsonl", [*lines, {"step": 400}])
    texts = {one["step"]: [text["translation"] for text in one["texts"]]
             for one in samples_of(tmp_path / "samples.jsonl")}  # fmt: skip
    assert texts == {100: ["a"], 200: ["d"]}


def test_snapshots_are_found_beside_the_curves_in_their_order(tmp_path):
    run = tmp_path / "tea.run"
    written(run, "metrics.jsonl", [{"step": 1, "loss": 2.0}])
    for name in ("step-00000200", "step-00000100", "other"):
        (run / "snapshots" / name).mkdir(parents=True)
    for path in (run, tmp_path / "tea"):  # the run, or the model that it makes
        assert [one.name for one in snapshots_of(path)] == ["step-00000100", "step-00000200"]


def test_a_network_without_an_embedding_says_so():
    model = ThoroughModel(None, "cpu")
    model.engine = SimpleNamespace(network=object())
    with pytest.raises(ConfigError, match=r"^only a Transformer has an embedding to show$"):
        model.embed((1, 2))
