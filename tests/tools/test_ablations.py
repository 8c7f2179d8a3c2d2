"""tools/ablations.py: what each variant changes, what a run leaves behind, and the table of it."""

import gzip
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from regard.recipe import read_config

TOOL = Path(__file__).parents[2] / "tools" / "ablations.py"
spec = importlib.util.spec_from_file_location("ablations", TOOL)
ablations = importlib.util.module_from_spec(spec)
spec.loader.exec_module(ablations)

TOY = ("model.d_model=16", "model.n_layers=1", "model.d_ff=32", "data.tokenizer=word",
       "train.tokens=200", "train.device=cpu")  # fmt: skip
FACTS = {
    "signature": "s", "network": "a network", "hardware": "a CPU", "kernels": "off", "torch": "2",
    "regard": "0", "updates": 50, "seconds": 7.0, "set": [],
}  # fmt: skip


def config(name):
    return read_config(ablations.RECIPE, ablations.overrides(Path("data"), name, 2, 1600))


@pytest.mark.parametrize("name", ablations.VARIANTS)
def test_a_variant_is_the_base_with_its_own_change(name):
    base, changed = config("base"), config(name)
    assert (changed.train.seed, changed.train.steps) == (2, 1600)
    assert changed.data == base.data
    changes = {setting.split("=")[0] for setting in ablations.VARIANTS[name]}
    differing = {
        f"{section}.{setting}"
        for section in ("model", "train")
        for setting, value in vars(getattr(changed, section)).items()
        if value != getattr(getattr(base, section), setting)
    }
    assert differing - {"train.snapshots"} == changes


def test_what_is_averaged_are_the_same_shares_of_fewer_updates():
    whole, short = read_config(ablations.RECIPE).train, config("base").train
    assert short.save_every / short.steps == whole.save_every / whole.steps
    assert short.average == whole.average
    assert short.snapshots == (1600,)  # which is what the averaged weights are held against


def test_a_setting_for_all_does_not_undo_what_a_variant_changes():
    words = ablations.overrides(
        Path("data"), "constant rate, no warm-up", 1, 1600, ["train.warmup=100", "train.lr=1e-3"]
    )
    found = read_config(ablations.RECIPE, words).train
    assert (found.warmup, found.lr) == (0, 1e-3)


def runs(scores):
    return {
        (name, seed): {"variant": name, "seed": seed, "bleu": bleu, **FACTS}
        for name, found in scores.items()
        for seed, bleu in found.items()
    }


def test_a_row_has_means_with_intervals_and_differences_by_seed():
    found = runs({"base": {1: 40.0, 2: 41.0, 3: 42.0}, "1 head": {1: 39.0, 2: 40.0, 3: 41.0}})
    # Student's t for 3 seeds: 4.303 * 1 / sqrt(3) = 2.48, and seed by seed there is no spread
    assert ablations.row("base", found) == "| base | 41.0 ± 2.5 |  | 40.0, 41.0, 42.0 |"
    assert ablations.row("1 head", found) == (
        "| 1 head | 40.0 ± 2.5 | -1.0 ± 0.0 | 39.0, 40.0, 41.0 |"
    )


def test_with_one_seed_there_is_no_interval():
    found = runs({"base": {1: 40.0}, "1 head": {1: 39.0, 2: 38.0}})
    assert ablations.row("base", found) == "| base | 40.0 |  | 40.0 |"
    assert ablations.row("1 head", found) == "| 1 head | 38.5 ± 6.4 | -1.0 | 39.0, 38.0 |"


def corpus(place):
    """A few hundred pairs, small enough to be learned from in a second."""
    place.mkdir()
    words = {"en": ("one", "two", "three", "four"), "de": ("eins", "zwei", "drei", "vier")}
    for split, numbers in {"train": range(256), "dev": range(5), ablations.TEST: range(6)}.items():
        for language, named in words.items():
            lines = (" ".join(named[n // 4**k % 4] for k in range(4)) for n in numbers)
            text = "".join(f"{line}\n" for line in lines)
            (place / f"{split}.{language}.gz").write_bytes(gzip.compress(text.encode()))
    return place


@pytest.mark.slow
def test_runs_leave_lines_that_are_not_made_again_and_a_table_of_them(tmp_path):
    data, collected = corpus(tmp_path / "multi30k"), tmp_path / "collected"
    collected.mkdir()
    words = ["--data", data, "-o", tmp_path / "runs", "--work", tmp_path / "work", "--seeds", "1",
             "--steps", "16", "--at-once", "1"]  # fmt: skip
    words += [word for setting in TOY for word in ("--set", setting)]

    def asked(*more):
        command = [sys.executable, TOOL, *words, *more]
        environment = {**os.environ, "OUT": str(collected)}
        return subprocess.run(command, env=environment, capture_output=True, text=True)

    first = asked("base")
    assert first.returncode == 0, first.stdout
    file = collected / "runs.jsonl"
    lines = file.read_text(encoding="utf-8")
    assert [json.loads(line)["variant"] for line in lines.splitlines()] == [
        "base", "base, greedy", "base, not averaged"
    ]  # fmt: skip
    assert (tmp_path / "runs" / "runs.jsonl").read_text(encoding="utf-8") == lines
    assert not list((tmp_path / "work").glob("base*")), "what was scored is not kept"
    again, table = asked("base"), asked("--table")
    assert "seed 1:" in first.stdout
    assert "seed 1:" not in again.stdout
    assert file.read_text(encoding="utf-8") == lines
    assert "| base, not averaged |" in table.stdout
    assert (collected / ablations.RESULTS.name).read_text(encoding="utf-8") + "\n" == table.stdout
