"""Runs that go on, or whose weights are taken over: only as what they are, and nothing is lost."""

import json
import re
import shutil
from pathlib import Path

import pytest
import torch

from regard.bundle import open_bundle
from regard.cli import fit
from regard.cli.main import main
from regard.cli.past import facts_before
from regard.data.prepare import vocabulary_print
from regard.train.checkpoint import checkpoints, newest_checkpoint
from regard.train.trainer import Trainer

ANEW = "--resume-weights-only"
OFFER = "; resume with what it began with, or take its weights alone with --resume-weights-only"


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ("train.tokens=128", "train.tokens was 256 when this run began and is 128 now"),
        ("train.accumulate=2", "train.accumulate was 1 when this run began and is 2 now"),
        ("data.vocab_size=301", "data.vocab_size was 300 when this run began and is 301 now"),
        ("", "the training text is not what it was when this run began"),
    ],
)
def test_a_changed_batch_vocabulary_or_text_is_refused_by_name(runs, capsys, setting, sentence):
    assert runs.train("one", "train.steps=4") == 0
    before = runs.measured("one")
    settings = ["train.steps=8", *([setting] if setting else [])]
    if not setting:
        for name in ("corpus.src", "corpus.tgt"):
            with (runs.place / name).open("a") as file:
                file.write("ba do\n")
    capsys.readouterr()
    assert runs.train("one", *settings, flags=["--resume"]) == 2
    assert capsys.readouterr().err == f"error: {sentence}{OFFER}\n"
    assert (runs.saved("one"), runs.measured("one")) == ([4], before)

    began = newest_checkpoint(runs.folder("one") / "checkpoints")
    assert runs.train("one", *settings, flags=["--resume-weights-only"]) == 0
    assert runs.saved("one")[0] == 8
    kept = newest_checkpoint(runs.folder("one") / "checkpoints.before")
    assert kept.state == began.state
    first = runs.measured("one")[0]
    assert first["step"] == 1
    assert first["loss"] < before[0]["loss"] - 0.3  # it had learned that much already


def test_weights_taken_over_are_saved_before_the_first_update(runs, monkeypatch):
    """A kill soon after must not leave a run that begins with nothing."""
    assert runs.train("one", "train.steps=4") == 0
    began = newest_checkpoint(runs.folder("one") / "checkpoints").weights

    def killed(trainer):
        raise KeyboardInterrupt

    with monkeypatch.context() as spoilt:
        spoilt.setattr(Trainer, "train_step", killed)
        assert runs.train("one", "train.steps=4", flags=["--resume-weights-only"]) == 130
    found = newest_checkpoint(runs.folder("one") / "checkpoints")
    assert found.state.step == 0
    assert all(torch.equal(found.weights[name], began[name]) for name in began)
    assert runs.train("one", "train.steps=4", flags=["--resume"]) == 0


def assert_same_weights(runs, *names):
    one, other = (newest_checkpoint(runs.folder(name) / "checkpoints").weights for name in names)
    assert all(torch.equal(one[name], weight) for name, weight in other.items())


def test_a_run_that_began_with_a_models_words_goes_on_with_them(runs, tmp_path):
    """Without --from a resume would make a vocabulary of its own, of the same size."""
    assert runs.train("old", "train.steps=4") == 0
    for name in ("corpus.src", "corpus.tgt"):  # the same letters, some oftener than before
        path = runs.place / name
        path.write_text(re.sub(r"\b(ba|do)", r"lulu\1", path.read_text()))
    from_old = ["--from", str(runs.place / "old")]
    assert runs.train("tuned", "train.steps=4", flags=from_old) == 0
    words = vocabulary_print(runs.folder("tuned") / "data")
    assert runs.train("tuned", "train.steps=8", flags=["--resume"]) == 0
    assert vocabulary_print(runs.folder("tuned") / "data") == words
    whole = [*from_old, "--resume"]
    assert runs.train("whole", "train.steps=8", flags=whole) == 0
    assert_same_weights(runs, "tuned", "whole")


def test_a_run_that_began_with_a_model_and_got_nowhere_does_not_begin_without_it(
    runs, capsys, monkeypatch
):
    assert runs.train("old", "train.steps=4") == 0
    from_old = ["--from", str(runs.place / "old")]

    with monkeypatch.context() as spoilt:
        spoilt.setattr(fit._Run, "go", leave_at_once)
        assert runs.train("tuned", "train.steps=4", flags=from_old) == 130
    for flag in ("--resume", "--resume-weights-only"):
        capsys.readouterr()
        assert runs.train("tuned", "train.steps=4", flags=[flag]) == 2
        assert capsys.readouterr().err == (
            f"error: {runs.folder('tuned')} was begun with --from {runs.place / 'old'} and has no "
            "checkpoint yet; give --from again, or name another place with -o\n"
        )
    assert runs.train("tuned", "train.steps=4", flags=[*from_old, "--resume"]) == 0
    assert runs.train("whole", "train.steps=4", flags=from_old) == 0
    assert_same_weights(runs, "tuned", "whole")


def test_ranks_that_begin_again_do_not_take_the_same_weights_over_again(runs, capsys, monkeypatch):
    assert runs.train("one", "train.steps=4") == 0
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "1")
    capsys.readouterr()
    assert runs.train("one", "train.steps=4", flags=[ANEW]) == 2
    assert "would begin once more" in capsys.readouterr().err
    assert runs.saved("one") == [4]


def test_an_average_leaves_out_the_weights_that_were_taken_over(runs):
    assert runs.train("one", "train.steps=4") == 0
    last = ("train.steps=12", "train.average=9", "train.average_of=last")
    assert runs.train("one", *last, flags=[ANEW]) == 0
    made = open_bundle(runs.place / "one").facts["weights"]
    assert made.startswith("average of updates 4, 8, 12")


def test_a_vocabulary_that_was_lost_is_never_replaced_by_another(runs, capsys):
    assert runs.train("old", "train.steps=4") == 0
    runs.write_corpus(150)
    from_old = ["--from", str(runs.place / "old")]
    assert runs.train("tuned", "train.steps=4", flags=from_old) == 0
    words = vocabulary_print(runs.folder("tuned") / "data")
    shutil.rmtree(runs.folder("tuned") / "data")
    for flag in ("--resume", "--resume-weights-only"):  # its size is the same, its words are not
        capsys.readouterr()
        assert runs.train("tuned", "train.steps=8", flags=[flag]) == 2
        assert "error: the vocabulary that the weights belong to" in capsys.readouterr().err
    assert runs.train("tuned", "train.steps=8", flags=["--resume", *from_old]) == 0
    assert vocabulary_print(runs.folder("tuned") / "data") == words


def test_weights_whose_words_nobody_knows_are_not_given_others(runs, capsys):
    assert runs.train("old", "train.steps=4") == 0
    folder = runs.folder("old")
    shutil.rmtree(folder / "data")
    (folder / "run.json").unlink()
    runs.write_corpus(150)
    capsys.readouterr()
    assert runs.train("old", "train.steps=4", flags=[ANEW]) == 4
    assert capsys.readouterr().err == (
        f"error: {folder} has neither run.json nor data, so nobody knows the vocabulary of its "
        "weights; name a model that has it with --from\n"
    )
    model = runs.place / "model"
    (runs.place / "old").rename(model)
    assert runs.train("old", "train.steps=4", flags=[ANEW, "--from", str(model)]) == 0
    said = capsys.readouterr().err
    assert f"the weights are those of {folder}, not of the model named with --from" in said
    assert "run.json cannot be read: make sure that these weights were trained in" in said


def test_a_run_remembers_the_model_it_began_with_and_no_other(runs, capsys):
    for name in ("old", "other"):
        assert runs.train(name, "train.steps=4") == 0
    old, other = (["--from", str(runs.place / name)] for name in ("old", "other"))
    assert runs.train("tuned", "train.steps=4", flags=old) == 0
    capsys.readouterr()
    for flag, model, said in (("--resume", old, 0), ("--resume", other, 1), (ANEW, other, 1)):
        assert runs.train("tuned", "train.steps=8", flags=[flag, *model]) == 0
        assert capsys.readouterr().err.count("the weights are those of") == said
        facts = json.loads((runs.folder("tuned") / "run.json").read_text())
        assert facts["from"] == str(runs.place / "old")


def test_weights_that_do_not_fit_leave_their_run_as_it_was(runs, capsys):
    assert runs.train("one", "train.steps=4") == 0
    before = sorted(path.name for path in runs.folder("one").iterdir())
    capsys.readouterr()
    wider = ("train.steps=4", "model.d_model=32")
    assert runs.train("one", *wider, flags=["--resume-weights-only"]) == 2
    assert capsys.readouterr().err == (
        "error: model.d_model was 16 when this run began and is 32 now; "
        "weights are of no use to another network\n"
    )
    assert sorted(path.name for path in runs.folder("one").iterdir()) == before
    assert runs.train("one", "train.steps=8", flags=["--resume"]) == 0
    assert runs.train("whole", "train.steps=8") == 0
    assert_same_weights(runs, "one", "whole")


@pytest.mark.parametrize("at_call", range(1, 8))
def test_a_kill_while_weights_are_taken_over_loses_neither_run(runs, monkeypatch, at_call):
    assert runs.train("one", "train.steps=4", "train.snapshots=[2]") == 0
    metrics = runs.folder("one") / "metrics.jsonl"
    measured = metrics.read_bytes()
    began = newest_checkpoint(runs.folder("one") / "checkpoints")
    whole, calls = Path.rename, []

    def rename(self, target):
        if runs.folder("one") in (self.parent, Path(target).parent) and "draft" not in self.name:
            calls.append(self)
            if len(calls) == at_call:
                raise KeyboardInterrupt
        return whole(self, target)

    with monkeypatch.context() as spoilt:
        spoilt.setattr(Path, "rename", rename)
        spoilt.setattr(Path, "replace", rename)
        code = runs.train("one", "train.steps=4", "train.tokens=128", flags=[ANEW])
        assert (code, len(calls)) == (130, at_call)
    goes_on = at_call == 1  # before the old checkpoints were moved: the old run, as it was
    facts = facts_before(runs.folder("one"), is_text_named=True)
    assert facts["config"]["train"]["tokens"] == (256 if goes_on else 128)
    tokens = f"train.tokens={256 if goes_on else 128}"
    assert runs.train("one", "train.steps=4", tokens, flags=["--resume"]) == 0
    found = {
        place.name: [path.name for path in checkpoints(place)]
        for place in runs.folder("one").glob("checkpoints*")
    }
    whole_run, anew = [f"step-{began.state.step:08d}"], ["step-00000004", "step-00000000"]
    if goes_on:
        assert found == {"checkpoints": whole_run}
        assert metrics.read_bytes() == measured
        assert (runs.folder("one") / "snapshots").exists()
    else:
        assert found == {"checkpoints": anew, "checkpoints.before": whole_run}
        assert metrics.with_name("metrics.jsonl.before").read_bytes() == measured
        assert (runs.folder("one") / "snapshots.before").exists()
        assert (runs.folder("one") / "run.json.before").exists()


def test_a_checkpoint_that_a_kill_hid_is_gone_on_from(runs, capsys):
    assert runs.train("one", "train.steps=4") == 0
    assert runs.train("whole", "train.steps=8") == 0
    place = checkpoints(runs.folder("one") / "checkpoints")[0]
    draft = place.with_name(f".{place.name}.abcdefgh.draft")
    shutil.copytree(place, draft)  # as between the two moves of one that is written again
    place.rename(draft.with_name(f"{draft.name}.old"))
    assert runs.train("one", "train.steps=8", flags=["--resume"]) == 0
    assert "going on from update 4" in capsys.readouterr().err
    assert_same_weights(runs, "one", "whole")


def test_where_every_checkpoint_is_damaged_nothing_is_begun_and_nothing_lost(runs, capsys):
    assert runs.train("one", "train.steps=8") == 0
    model = (runs.place / "one" / "model.safetensors").read_bytes()
    directory = runs.folder("one") / "checkpoints"
    for place in checkpoints(directory):
        with (place / "model.safetensors").open("r+b") as file:
            file.truncate(100)
    names = [path.name for path in checkpoints(directory)]
    for flag in ("--resume", "--resume-weights-only"):
        capsys.readouterr()
        assert runs.train("one", "train.steps=12", flags=[flag]) == 4
        assert capsys.readouterr().err.splitlines()[-1] == (
            f"error: every checkpoint in {directory} is damaged, so there is nothing to go on "
            "from; name another place with -o to begin anew"
        )
    assert [path.name for path in checkpoints(directory)] == names
    assert (runs.place / "one" / "model.safetensors").read_bytes() == model


def test_a_run_whose_record_is_lost_is_not_gone_on_with_blindly(runs, capsys):
    assert runs.train("one", "train.steps=4") == 0
    record = runs.folder("one") / "run.json"
    record.write_text("")
    sentence = (
        f"error: {record} cannot be read, so nobody knows what this run began with; take its "
        "weights alone, with --resume-weights-only and a recipe, or --src and --tgt\n"
    )
    capsys.readouterr()
    assert runs.train("one", "train.steps=8", "train.tokens=64", flags=["--resume"]) == 4
    assert capsys.readouterr().err == sentence
    for flag in ("--resume", ANEW):  # and no word of what to train on
        with pytest.raises(SystemExit) as left:
            main(["train", "-o", str(runs.place / "one"), flag])
        assert (left.value.code, capsys.readouterr().err) == (4, sentence)
    assert runs.train("one", "train.steps=8", flags=[ANEW]) == 0


def without(facts, section, name):
    left = {key: value for key, value in facts["config"][section].items() if key != name}
    return {**facts, "config": {**facts["config"], section: left}}


@pytest.mark.parametrize(
    "spoil",
    [
        lambda facts: [],
        lambda facts: {**facts, "config": []},
        lambda facts: {**facts, "config": {**facts["config"], "data": None}},
        lambda facts: {**facts, "ranks": "2"},
        lambda facts: {**facts, "versions": {}},
        lambda facts: {**facts, "decode": [1]},
        lambda facts: without(facts, "train", "steps"),
        lambda facts: without(facts, "data", "train"),
        lambda facts: {**facts, "config": {**facts["config"], "train": {"steps": "x"}}},
    ],
)
def test_a_record_that_somebody_spoilt_is_one_that_cannot_be_read(runs, capsys, spoil):
    assert runs.train("one", "train.steps=4") == 0
    record = runs.folder("one") / "run.json"
    record.write_text(json.dumps(spoil(json.loads(record.read_text()))))
    capsys.readouterr()
    assert runs.train("one", "train.steps=8", flags=["--resume"]) == 4
    assert "run.json cannot be read" in capsys.readouterr().err


def test_a_model_on_the_way_changes_nothing_about_the_end(runs):
    """Not even where the run was stopped between two validations."""
    asked = ("train.average=3", "train.average_of=best", "train.validate_every=2")
    assert runs.train("whole", "train.steps=12", *asked) == 0
    assert runs.train_and_leave(3, "parts", "train.steps=12", *asked) == 0
    assert runs.saved("parts")[0] == 3
    for steps in (1, 3):
        assert runs.train("parts", f"train.steps={steps}", *asked, flags=["--resume"]) == 0
        assert open_bundle(runs.place / "parts").facts["updates"] == 3
    assert runs.train("parts", "train.steps=12", *asked, flags=["--resume"]) == 0
    one, other = (runs.place / name / "model.safetensors" for name in ("whole", "parts"))
    assert one.read_bytes() == other.read_bytes()


def test_weights_that_were_taken_over_can_be_a_model_at_once(runs, monkeypatch):
    assert runs.train("one", "train.steps=4") == 0
    weights = runs.place / "one" / "model.safetensors"
    before = weights.read_bytes()
    with monkeypatch.context() as spoilt:
        spoilt.setattr(fit._Run, "_fit", leave_at_once)
        assert runs.train("one", "train.steps=8", flags=[ANEW]) == 130
    weights.write_bytes(b"")
    assert runs.train("one", "train.steps=1", flags=["--resume"]) == 0
    assert weights.read_bytes() == before
    alone = ["train", "-o", str(runs.place / "one"), "--resume"]
    with pytest.raises(SystemExit):
        main(alone)
    assert runs.saved("one")[0] == 8


def test_where_there_is_no_checkpoint_yet_there_is_no_model_either(runs, monkeypatch, capsys):
    with monkeypatch.context() as spoilt:
        spoilt.setattr(fit._Run, "_fit", leave_at_once)
        assert runs.train("one", "train.steps=8") == 130
    capsys.readouterr()
    assert runs.train("one", "train.steps=1", flags=["--resume"]) == 2
    assert capsys.readouterr().err == (
        f"error: {runs.folder('one')} has no checkpoint yet to make a model of; leave out --resume "
        "to begin again with train.steps = 1\n"
    )
    assert runs.train("one", "train.steps=1") == 0


def leave_at_once(*_):
    raise KeyboardInterrupt
