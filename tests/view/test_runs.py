import json
import math
from pathlib import Path

import pytest

from regard.errors import DataError
from regard.view.runs import Run, names_apart, read_run


@pytest.fixture
def written(tmp_path):
    """Writes lines, as text or as tables, into the folder of a run."""

    def write(*lines, name="model.run"):
        folder = tmp_path / name
        folder.mkdir(parents=True)
        texts = [line if isinstance(line, str) else json.dumps(line) + "\n" for line in lines]
        (folder / "metrics.jsonl").write_text("".join(texts), encoding="utf-8")
        return folder

    return write


def losses(*steps, first=0.0):
    return [{"step": step, "loss": first + step} for step in steps]


def test_the_quantities_are_read_by_their_names(written):
    run = read_run(
        written(
            {"step": 50, "loss": 3.5, "lr": 1e-4, "tokens_per_s": 12000, "seconds": 12.3},
            {"step": 50, "dev_loss": 2.5, "dev_bleu": 12.5},
            {"step": 100, "loss": 3, "mood": "good", "notes": ["a"]},
        )
    )
    assert run.name == "model"
    assert run.series == {
        "loss": ((50, 3.5), (100, 3)),
        "lr": ((50, 1e-4),),
        "tokens_per_s": ((50, 12000),),
        "dev_loss": ((50, 2.5),),
        "dev_bleu": ((50, 12.5),),
    }


def test_a_run_goes_by_its_folder_its_file_or_its_model_even_before_that_is_written(written):
    folder = written(*losses(1))
    model = folder.with_name("model")
    for _ in range(2):
        runs = [read_run(path) for path in (folder, folder / "metrics.jsonl", model)]
        assert {(run.name, run.path) for run in runs} == {("model", folder / "metrics.jsonl")}
        model.mkdir(exist_ok=True)


def test_the_folder_one_stands_in_is_a_run_too(written, monkeypatch):
    monkeypatch.chdir(written(*losses(1)))
    assert read_run(Path()).name == "model"
    Path("../model").mkdir()
    monkeypatch.chdir("../model")
    assert read_run(Path()).name == "model"


def test_a_copy_of_a_file_goes_by_its_own_name(written):
    folder = written(*losses(1))
    copy = (folder / "metrics.jsonl").rename(folder / "first try.jsonl")
    assert read_run(copy).name == "first try"


def test_a_resumed_run_replaces_what_came_after_its_checkpoint(written):
    folder = written(*losses(10, 20, 30, 40), *losses(20, 30, first=100.0))
    assert read_run(folder).series["loss"] == ((10, 10), (20, 120), (30, 130))


def test_a_step_that_goes_back_voids_every_quantity_of_that_step_and_later(written):
    folder = written(
        *losses(10, 20), {"step": 20, "dev_bleu": 1}, *losses(30), {"step": 30, "dev_bleu": 2},
        *losses(25, first=100.0), {"step": 20, "dev_bleu": 3},
    )  # fmt: skip
    assert read_run(folder).series == {"loss": ((10, 10),), "dev_bleu": ((20, 3),)}


def test_a_line_of_the_same_step_adds_to_it_and_replaces_only_what_it_names(written):
    folder = written({"step": 5, "loss": 1, "lr": 2}, {"step": 5, "dev_exact": 3}, *losses(5))
    assert read_run(folder).series == {
        "loss": ((5, 5),),
        "lr": ((5, 2),),
        "dev_exact": ((5, 3),),
    }


@pytest.mark.parametrize(
    "torn",
    [
        '{"step": 20, "lo',
        '{"step": 20, "lo{"step": 15, "loss": 1}\n',
        "\n",
        "[20, 3]\n",
        '"step"\n',
        '{"step": null, "loss": 1}\n',
        '{"step": "20", "loss": 1}\n',
        '{"step": true, "loss": 1}\n',
        '{"step": -1, "loss": 1}\n',
        '{"step": NaN, "loss": 1}\n',
        '{"step": 1e999, "loss": 1}\n',
        '{"loss": 1}\n',
        "[" * 100_000 + "\n",
        '{"step": 2' + "0" * 5000 + ', "loss": 1}\n',
        "\x00\ufffd\n",
    ],
)
def test_a_line_that_is_no_metrics_is_passed_over(written, torn):
    assert read_run(written(*losses(10), torn)).series == {"loss": ((10, 10),)}


def test_bytes_that_are_no_text_are_passed_over(written):
    folder = written(*losses(10))
    with (folder / "metrics.jsonl").open("ab") as file:
        file.write(b'\xff\xfe\n{"step": 20, "loss": 20}\n')
    assert read_run(folder).series["loss"] == ((10, 10), (20, 20))


@pytest.mark.parametrize("value", ["NaN", "Infinity", "null", '"high"', "false", "1" + "0" * 400])
def test_a_value_that_is_no_number_is_kept_as_a_gap(written, value):
    folder = written(*losses(1), f'{{"step": 2, "loss": {value}}}\n', *losses(3))
    (_, gap, after) = read_run(folder).series["loss"]
    assert gap[0] == 2
    assert not math.isfinite(gap[1])
    assert after == (3, 3)


@pytest.mark.parametrize(
    "lines", [(), ("\n",), ('{"step": 1, "lo',), ({"step": 1, "loss": math.nan, "seconds": 2},)]
)
def test_a_file_without_one_usable_line_is_refused(written, lines):
    folder = written(*lines)
    with pytest.raises(DataError) as caught:
        read_run(folder)
    assert str(caught.value) == (
        f'{folder / "metrics.jsonl"} has no line to draw; a line is {{"step": 50, "loss": 3.2}}, '
        "as regard train writes it"
    )


@pytest.mark.parametrize("name", ["nothing", "empty", "/"])
def test_a_place_without_a_run_is_refused(tmp_path, name):
    (tmp_path / "empty").mkdir()
    path = tmp_path / name
    with pytest.raises(DataError) as caught:
        read_run(path)
    assert str(caught.value) == (
        f"there is no training run at {path}; name a metrics.jsonl, the folder that holds one, or "
        "the model beside that folder"
    )


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (["/r/a.run/metrics.jsonl", "/r/b.run/metrics.jsonl"], ["a", "b"]),
        (["/x/m.run/metrics.jsonl", "/y/m.run/metrics.jsonl"], ["x/m", "y/m"]),
        (
            ["/x/1/m.run/metrics.jsonl", "/y/1/m.run/metrics.jsonl", "/n.run/metrics.jsonl"],
            ["x/1/m", "y/1/m", "n"],
        ),
        (["/x/m.jsonl", "/y/m.jsonl"], ["x/m", "y/m"]),
        (
            ["/x/m/metrics.jsonl", "/x/m.run/metrics.jsonl"],
            ["/x/m/metrics.jsonl", "/x/m.run/metrics.jsonl"],
        ),
    ],
)
def test_names_that_collide_are_told_apart_by_their_folders(paths, names):
    runs = []
    for path in map(Path, paths):
        name = path.parent.name.removesuffix(".run") if path.stem == "metrics" else path.stem
        runs.append(Run(name, path, {}))
    assert names_apart(runs) == names
