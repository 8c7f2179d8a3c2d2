import builtins
import json
import re
import shutil
import signal
from functools import partial
from pathlib import Path

import pytest
import torch

from regard.bundle import open_bundle, write_bundle
from regard.cli.fit import all_leave
from regard.cli.main import main
from regard.errors import ModelError
from regard.processors import processor_name
from regard.train.checkpoint import newest_checkpoint
from regard.train.leaving import Leaving

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


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (["--set", "model.n_heads=1", "--set", "model.scale_embeddings=false"],
         "model.n_heads = 2 cannot become 1; model.scale_embeddings = true cannot become false; "
         "with --from {old} only dropout can be changed, and model.n_layers made smaller"),
        (["--size", "base"],
         "the option --size chooses a new network, and --from brings its own; leave one out"),
    ],
)  # fmt: skip
def test_a_network_that_is_there_cannot_become_another(train, tmp_path, capsys, more, sentence):
    assert train() == 0
    capsys.readouterr()
    old = tmp_path / "model"
    assert train(flags=["--from", str(old), "--print-config", *more]) == 2
    assert capsys.readouterr().err == f"error: {sentence.format(old=old)}\n"


@pytest.mark.parametrize(
    ("device", "code", "sentence"),
    [
        ("gpu", 2, 'train.device = "gpu" is not one of auto, cpu, cuda, cuda:0, cuda:1'),
        ("cuda:1", 5, 'device = "cuda:1", but of the GPUs that torch can use there are 1 here; '
         "choose cpu, or install torch for CUDA if there are more"),
    ],
)  # fmt: skip
def test_a_device_that_is_not_there_is_one_sentence(
    train, capsys, monkeypatch, device, code, sentence
):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    assert train(f'train.device="{device}"') == code
    assert capsys.readouterr().err == f"error: {sentence}\n"


def test_parts_of_a_run_are_not_taken_for_its_model(train, tmp_path, monkeypatch):
    assert train() == 0
    folder = tmp_path / "model.run"
    checkpoint = folder / "checkpoints" / "step-00000004"
    for place, sentence in [
        (folder, f"{folder} is the folder of a run, not a model; the model, when the run has "
         f"ended, is beside it, {tmp_path / 'model'}"),
        (checkpoint, f"{checkpoint} is a checkpoint, not a model; the command that made it makes "
         "a model of it with --resume --set train.steps=1"),
    ]:  # fmt: skip
        with pytest.raises(ModelError, match=f"^{re.escape(sentence)}$"):
            open_bundle(place)
    monkeypatch.chdir(folder)
    with pytest.raises(ModelError, match=f"beside it, {re.escape(str(tmp_path / 'model'))}$"):
        open_bundle(Path("."))


def test_how_a_model_is_asked_is_kept_by_a_run_that_goes_on_without_it(train, tmp_path):
    assert train() == 0
    old = tmp_path / "old"
    (tmp_path / "model").rename(old)
    shutil.rmtree(tmp_path / "model.run")
    bundle = open_bundle(old)
    write_bundle(
        old,
        bundle.model,
        (bundle.src_tokenizer, bundle.tgt_tokenizer),
        partial(shutil.copy, old / "model.safetensors"),
        facts={**bundle.facts, "decode": {"beam": 1, "forbidden": [[9]]}},
        card="",
    )
    snapshots = "train.snapshots=[1, 3]"
    assert train("train.steps=2", snapshots, flags=["--from", str(old)]) == 0
    assert train(snapshots, flags=["--resume"]) == 0
    kept = [tmp_path / "model.run" / "snapshots" / f"step-0000000{step}" for step in (1, 3)]
    for place in (*kept, tmp_path / "model"):
        assert open_bundle(place).facts["decode"]["forbidden"] == [[9]]


def test_a_stopped_run_becomes_a_model_by_asking_for_no_more_updates(train, tmp_path):
    assert train() == 0
    weights = tmp_path / "model" / "model.safetensors"
    before = weights.read_bytes()
    shutil.rmtree(tmp_path / "model")
    assert train("train.steps=1", flags=["--resume"]) == 0
    assert weights.read_bytes() == before
    facts = json.loads((tmp_path / "model.run" / "run.json").read_text())
    assert facts["config"]["train"]["steps"] == 4  # where it ends when it goes on


def test_text_that_does_not_say_its_languages_is_told_of(train, tmp_path, capsys):
    places = [(tmp_path / f"a.{end}").rename(tmp_path / f"{end}.txt") for end in ("src", "tgt")]
    text = f'data.train=["{places[0]},{places[1]}"]'
    warning = "warning: the text does not say its languages, and BLEU takes it for English; give"
    assert train(text) == 0
    assert warning in capsys.readouterr().err
    for name in ("model", "model.run"):
        shutil.rmtree(tmp_path / name)
    assert train(text, 'data.src_lang="zh"', 'data.tgt_lang="en"') == 0
    assert warning not in capsys.readouterr().err


def test_who_is_asked_to_leave_after_it_has_spoken_leaves_when_the_others_have_heard():
    """Else it would leave alone, and they would wait for the dead."""
    leaving = Leaving()

    class Two:
        ranks, device = 2, torch.device("cpu")

        def total(self, numbers):
            leaving.signal = signal.SIGTERM
            return numbers

    assert not all_leave(Two(), leaving)
    assert all_leave(Two(), leaving)
