import json
import shutil
import tomllib

import pytest

from regard.bundle import open_bundle
from regard.cli import judge
from regard.cli.main import main

SMALL = (
    "model.d_model=16", "model.n_heads=2", "model.d_ff=16", "data.vocab_size=330",
    "train.validate_every=20", "train.save_every=20", "train.tokens=256",
)  # fmt: skip


@pytest.fixture(autouse=True)
def _few_are_judged(monkeypatch):
    """A network that has learned nothing goes on and on, and 500 sentences take it seconds."""
    monkeypatch.setattr(judge, "JUDGED", 40)


def run(*arguments):
    with pytest.raises(SystemExit) as left:
        main([str(argument) for argument in arguments])
    return left.value.code or 0


def sets(*settings):
    return [word for setting in settings for word in ("--set", setting)]


def settings_of(folder):
    return json.loads((folder / "run.json").read_text())["config"]


def weights(model):
    return (model / "model.safetensors").read_bytes()


def test_a_run_goes_on_as_it_began_whether_or_not_its_text_is_named_again(tmp_path, text):
    for name, steps in (("whole", 40), ("bare", 20)):
        asked = sets(*SMALL, "train.warmup=30", f"train.steps={steps}")
        assert run("train", *text, "-o", tmp_path / name, *asked) == 0
    for name in ("named", "all"):
        shutil.copytree(tmp_path / "bare.run", tmp_path / f"{name}.run")
    more = (*sets("train.steps=40"), "--resume")
    assert run("train", "-o", tmp_path / "bare", *more) == 0
    assert run("train", *text, "-o", tmp_path / "named", *more) == 0
    assert run("train", *text, "-o", tmp_path / "all", *sets(*SMALL), *more) == 0
    for name in ("bare", "named", "all"):
        assert weights(tmp_path / name) == weights(tmp_path / "whole")
    larger = "--size", "base"  # that is another network, and the run says so
    assert run("train", *text, "-o", tmp_path / "named", *larger, *more) == 2


def test_a_model_that_learns_more_goes_on_at_its_own_pace_without_it(tmp_path, text):
    old, tuned = tmp_path / "old", tmp_path / "tuned"
    small = sets(*SMALL, "train.steps=4")
    assert run("train", *text, "-o", old, *small) == 0
    assert run("train", "--from", old, *text, "-o", tuned, *sets("train.steps=4")) == 0
    began = settings_of(tmp_path / "tuned.run")
    assert began["train"]["schedule"] == "cosine"
    assert run("train", *text, "-o", tuned, "--resume", *sets("train.steps=8")) == 0
    assert settings_of(tmp_path / "tuned.run") == {**began, "train": {**began["train"], "steps": 8}}


def test_a_run_that_never_got_on_decides_nothing_for_other_text(tmp_path, text, capsys):
    command, shown = ("train", *text, "-o", tmp_path / "m", "--print-config"), []
    for more in ((), ("--resume",)):
        assert run(*command, *more) == 0
        shown.append(tomllib.loads(capsys.readouterr().out))
        facts = {"command": [], "text": "", "ranks": 1, "device": "", "threads": 1, "versions": {}}
        other = {**shown[0], "train": {**shown[0]["train"], "steps": 7}}
        (tmp_path / "m.run").mkdir(exist_ok=True)
        (tmp_path / "m.run" / "run.json").write_text(json.dumps({**facts, "config": other}))
    assert shown[0] == shown[1]
    nothing_named = ("train", "-o", tmp_path / "m", "--resume", "--print-config")
    assert run(*nothing_named) == 0
    assert tomllib.loads(capsys.readouterr().out)["train"]["steps"] == 7


def test_weights_bring_their_network_and_words_to_other_text(tmp_path, text):
    out = "-o", tmp_path / "model"
    assert run("train", *text, *out, *sets(*SMALL, "train.steps=4")) == 0
    words = len(open_bundle(tmp_path / "model").src_tokenizer.vocab)
    for path in text[1::2]:
        path.write_text(path.read_text() * 2)
    assert run("train", *text, *out, *sets("train.steps=4"), "--resume-weights-only") == 0
    bundle = open_bundle(tmp_path / "model")
    assert (bundle.model.d_model, len(bundle.src_tokenizer.vocab)) == (16, words)


def test_going_on_and_beginning_anew_are_not_asked_for_at_once(tmp_path, capsys):
    assert run("train", "-o", tmp_path / "m", "--resume", "--resume-weights-only") == 2
    assert "choose one" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
