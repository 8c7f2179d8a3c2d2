import builtins
import json
import re

import pytest

from regard.cli.main import main
from regard.processors import processor_name
from regard.train.checkpoint import newest_checkpoint

RECIPE = """
[model]
d_model = 8
n_layers = 1
n_heads = 2
d_ff = 8

[data]
train = ["{folder}/a.src,{folder}/a.tgt"]
tokenizer = "char"
vocab_size = 300

[train]
tokens = 256
warmup = 2
save_every = 2
steps = 4
"""


@pytest.fixture
def train(tmp_path, monkeypatch):
    """Train by the command line; the exit code."""
    monkeypatch.setenv("REGARD_LANG", "en")
    lines = "".join(f"{n * 7919 % 1000:03d}\n" for n in range(60))
    for name in ("a.src", "a.tgt"):
        (tmp_path / name).write_text(lines)
    (tmp_path / "recipe.toml").write_text(RECIPE.format(folder=tmp_path))

    def run(*settings, flags=()):
        words = [word for setting in settings for word in ("--set", setting)]
        place = str(tmp_path / "model")
        with pytest.raises(SystemExit) as left:
            main(["train", str(tmp_path / "recipe.toml"), "-o", place, *words, *flags])
        return left.value.code or 0

    return run


def test_a_run_that_is_there_is_not_begun_again_by_accident(train, tmp_path, capsys):
    assert train() == 0
    capsys.readouterr()
    assert train() == 2
    assert capsys.readouterr().err == (
        f"error: {tmp_path / 'model.run'} holds a run that reached update 4; go on with --resume, "
        "or name another place with -o\n"
    )


def test_the_folder_holds_all_that_the_numbers_depend_on(train, tmp_path):
    assert train("train.seed=3") == 0
    facts = json.loads((tmp_path / "model.run" / "run.json").read_text())
    assert facts["config"]["train"]["seed"] == 3
    assert facts["threads"] == 1
    assert facts["device"] == processor_name()
    assert re.fullmatch(r"[0-9a-f]{64}", facts["text"])
    assert set(facts["versions"]) == {"regard", "torch", "python"}


def test_a_budget_that_was_found_is_written_down_and_kept(train, tmp_path, capsys):
    assert train('train.tokens="auto"') == 0
    assert "train.tokens = 4096 fits this machine" in capsys.readouterr().err
    path = tmp_path / "model.run" / "run.json"
    facts = json.loads(path.read_text())
    assert facts["config"]["train"]["tokens"] == 4096
    facts["config"]["train"]["tokens"] = 512  # as if found on a machine with less
    path.write_text(json.dumps(facts))
    assert train('train.tokens="auto"', "train.steps=6", flags=["--resume"]) == 0
    assert "train.tokens = 512 fits this machine" in capsys.readouterr().err
    assert json.loads(path.read_text())["config"]["train"]["tokens"] == 512


def test_weights_can_be_taken_over_again_and_again(train, tmp_path):
    assert train() == 0
    for _ in range(3):
        assert train(flags=["--resume-weights-only"]) == 0
    for kept in ("checkpoints", "metrics.jsonl", "samples.jsonl"):
        names = sorted(path.name for path in (tmp_path / "model.run").glob(f"{kept}*"))
        assert names == [kept, f"{kept}.before", f"{kept}.before1", f"{kept}.before2"]
    assert newest_checkpoint(tmp_path / "model.run" / "checkpoints").state.step == 4


def test_resuming_where_there_is_nothing_begins(train, tmp_path):
    assert train(flags=["--resume"]) == 0
    assert (tmp_path / "model").is_dir()


def test_a_run_that_has_ended_ends_again_with_the_same_model(train, tmp_path):
    assert train() == 0
    before = (tmp_path / "model" / "model.safetensors").read_bytes()
    assert train(flags=["--resume"]) == 0
    assert (tmp_path / "model" / "model.safetensors").read_bytes() == before


def test_a_board_without_its_package_is_a_sentence(train, capsys, monkeypatch):
    whole = builtins.__import__

    def missing(name, *more):
        if name == "torch.utils.tensorboard":
            raise ImportError(name)
        return whole(name, *more)

    monkeypatch.setattr(builtins, "__import__", missing)
    assert train(flags=["--tensorboard"]) == 2
    assert capsys.readouterr().err == (
        "error: the option --tensorboard needs a package: pip install 'regard[tensorboard]'\n"
    )


def test_two_files_as_a_board_and_as_metrics_say_the_same(train, tmp_path):
    tensorboard = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    assert train("train.log_every=1", flags=["--tensorboard"]) == 0
    events = tensorboard.EventAccumulator(str(tmp_path / "model.run" / "tensorboard")).Reload()
    shown = {event.step: event.value for event in events.Scalars("loss")}
    lines = (tmp_path / "model.run" / "metrics.jsonl").read_text().splitlines()
    written = {m["step"]: m["loss"] for m in map(json.loads, lines) if "loss" in m}
    assert shown == pytest.approx(written)
