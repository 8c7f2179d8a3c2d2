"""Numbers, clocks, threads, memory and settings that are not what they should be."""

import json
import os
import re
import time

import pytest
import torch

from regard.cli import fit
from regard.train.checkpoint import checkpoints, newest_checkpoint
from regard.train.objective import Objective
from regard.train.trainer import Trainer

DAY = 86_400.0


def test_another_number_of_threads_is_one_warning(runs):
    settings = ("train.steps=30", "model.dropout=0.0", "train.lr=0.001")
    assert runs.start("whole", *settings).end() == 0
    assert runs.start("parts", "train.steps=4", *settings[1:]).end() == 0
    two = "import torch; torch.set_num_threads(2)"
    child = runs.start("parts", *settings, flags=["--resume"], before=two)
    assert child.end() == 0, child.said()
    warnings = [line for line in child.said().splitlines() if line.startswith("warning")]
    assert warnings == ["warning: this will not repeat to the bit: threads 1 → 2"]
    for one, other in zip(runs.measured("whole"), runs.measured("parts"), strict=True):
        if "loss" in one:
            assert one["loss"] == pytest.approx(other["loss"], abs=1e-4)
    child = runs.start("parts", *settings, flags=["--resume"], before=two)
    assert child.end() == 0
    assert "warning" not in child.said()


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


def spoilt_loss(monkeypatch, calls, factor):
    """Losses times a factor, at some of the calls."""
    whole, seen = Objective.forward, []

    def forward(self, batch):
        seen.append(batch)
        loss = whole(self, batch)
        return loss * factor if len(seen) in calls else loss

    monkeypatch.setattr(Objective, "forward", forward)


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_updates_that_are_not_finite_are_skipped_and_then_stop_the_run(
    runs, monkeypatch, capsys, number
):
    spoilt_loss(monkeypatch, {3, *range(7, 99)}, number)
    assert runs.train("one", "train.steps=20", "train.save_every=3") == 4
    assert re.fullmatch(
        r"error: 5 updates in a row had a loss or gradient that is not finite, the last at update "
        r"11 in the gradient of \S+, the gradient of \S+, the gradient of \S+; a smaller train\.lr "
        r"may help",
        capsys.readouterr().err.splitlines()[-1],
    )
    found = newest_checkpoint(runs.folder("one") / "checkpoints")
    assert (found.state.step, found.state.skipped) == (9, 4)
    assert all(weight.isfinite().all() for weight in found.weights.values())


def test_a_gradient_that_is_not_finite_changes_no_weight(runs, monkeypatch, capsys):
    whole = fit.make_optimizer

    def spoiling(parameters, lr):
        parameters = list(parameters)
        parameters[-1].register_hook(lambda gradient: gradient * float("inf"))
        return whole(parameters, lr)

    monkeypatch.setattr(fit, "make_optimizer", spoiling)
    assert runs.train("one", "train.steps=20", "train.save_every=2") == 4
    assert "the last at update 5 in the gradient of " in capsys.readouterr().err
    places = checkpoints(runs.folder("one") / "checkpoints")
    saved = [newest_checkpoint(runs.folder("one") / "checkpoints").weights for _ in places]
    assert len(places) == 2
    assert all(weight.isfinite().all() for weights in saved for weight in weights.values())


def test_a_run_that_diverges_stops_and_its_best_checkpoint_stays(runs, capsys):
    good = ("train.steps=10", "train.validate_every=5", "train.lr=0.01")
    assert runs.train("one", *good) == 0
    best = newest_checkpoint(runs.folder("one") / "checkpoints")
    assert best.state.best_step == 10
    wild = ("train.steps=2000", "train.validate_every=5", "train.lr=10.0")
    capsys.readouterr()
    assert runs.train("one", *wild, flags=["--resume"]) == 4
    said = capsys.readouterr().err.splitlines()[-1]
    assert re.fullmatch(
        r"error: the loss rose from \d+\.\d\d to \d+\.\d\d by update \d+: the run has diverged; "
        r"choose a smaller train\.lr, or a longer train\.warmup",
        said,
    )
    assert 10 in runs.saved("one")


def test_clocks_that_jump_change_nothing(runs, monkeypatch, capsys):
    assert runs.train("whole", "train.steps=12") == 0
    now, jumps = time.time, iter(range(10**9))
    capsys.readouterr()
    with monkeypatch.context() as spoilt:
        spoilt.setattr(time, "time", lambda: now() + DAY * (-1) ** next(jumps))
        assert runs.train("parts", "train.steps=8") == 0
        for place in checkpoints(runs.folder("parts") / "checkpoints"):
            age = DAY if place.name == "step-00000008" else -DAY  # the newest looks the oldest
            os.utime(place, (now() - age, now() - age))
        assert runs.train("parts", "train.steps=12", flags=["--resume"]) == 0
    runs.assert_same("parts", "whole")
    lines = (runs.folder("parts") / "metrics.jsonl").read_text().splitlines()
    seconds = [metrics["seconds"] for metrics in map(json.loads, lines) if "seconds" in metrics]
    assert all(0.0 <= each < 60.0 for each in seconds)
    left = re.findall(r"(\S+) left", capsys.readouterr().err)
    assert left
    assert all(each.startswith("0:") for each in left)


def test_a_pair_that_does_not_fit_into_memory_is_named(runs, monkeypatch, capsys):
    """By an error like that of torch, which comes when it pleases where memory really is short."""
    assert runs.train("one", "train.steps=4") == 0

    def forward(self, batch):
        raise RuntimeError(
            "[enforce fail at alloc_cpu.cpp:118] err == 0. DefaultCPUAllocator: can't allocate "
            "memory: you tried to allocate 1 bytes. Error code 12 (Cannot allocate memory)"
        )

    monkeypatch.setattr(Objective, "forward", forward)
    capsys.readouterr()
    assert runs.train("one", "train.steps=8", flags=["--resume"]) == 5
    said = capsys.readouterr().err.splitlines()
    assert re.fullmatch(
        r"error: a batch of 1 sentence pairs with \d+ target tokens does not fit in memory; "
        r"choose a smaller train\.tokens, or data\.max_len",
        said[-1],
    )
    assert "target tokens does not fit in memory; such are split" in said[-2]
    assert runs.saved("one") == [4]


def test_metrics_that_cannot_be_written_cost_one_warning(runs, capsys):
    runs.folder("one").mkdir()
    (runs.folder("one") / "metrics.jsonl").symlink_to("/dev/full")
    assert runs.train("one", "train.steps=8", "train.validate_every=4") == 0
    lines = capsys.readouterr().err.splitlines()
    path = runs.folder("one") / "metrics.jsonl"
    assert [line for line in lines if line.startswith("warning")] == [
        f"warning: {path} cannot be written: No space left on device"
    ]
    assert runs.saved("one")[0] == 8


def test_the_same_seed_gives_the_same_losses_whatever_python_hashes(runs):
    settings = ("train.steps=8", "data.tokenizer=unigram", "data.vocab_size=330", "train.seed=7")
    both = [
        runs.start_python(name, *settings, PYTHONHASHSEED=seed)
        for name, seed in (("one", "1"), ("other", "4242"))
    ]
    assert [child.end() for child in both] == [0, 0]
    runs.assert_same("one", "other")
