"""Numbers, clocks, threads, memory and settings that are not what they should be."""

import json
import os
import re
import time
from pathlib import Path

import pytest
import torch

from regard.cli import fit
from regard.train.checkpoint import checkpoints, newest_checkpoint, weights_in
from regard.train.objective import Objective
from regard.train.trainer import Trainer

DAY = 86_400.0


def test_another_number_of_threads_is_one_warning(runs):
    settings = ("train.validate_every=4", "model.dropout=0.0", "train.lr=0.001")
    assert runs.start("whole", "train.steps=20", *settings).end() == 0
    two = "import torch; torch.set_num_threads(2)"
    assert runs.start("parts", "train.steps=4", *settings, before=two).end() == 0
    child = runs.start("parts", "train.steps=20", *settings, flags=["--resume"])
    assert child.end() == 0, child.said()
    warnings = [line for line in child.said().splitlines() if line.startswith("warning")]
    assert warnings == ["warning: this will not repeat to the bit: threads 2 → 1"]
    for one, other in zip(runs.measured("whole"), runs.measured("parts"), strict=True):
        assert one == pytest.approx(other, abs=1e-4)


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
    first, last = (weights_in(p) for p in checkpoints(runs.folder("one") / "checkpoints"))
    assert all(torch.equal(first[name], last[name]) for name in first)


def test_a_weight_that_is_not_finite_is_named_and_never_saved(runs, monkeypatch, capsys):
    whole = Trainer.train_step

    def spoiling(self):
        if self.state.step == 4:
            with torch.no_grad():
                self.model.decoder.layers[0].feed_forward.inner.bias[0] = float("nan")
        return whole(self)

    monkeypatch.setattr(Trainer, "train_step", spoiling)
    assert runs.train("one", "train.steps=20", "train.save_every=3") == 4
    assert capsys.readouterr().err.splitlines()[-1] == (
        "error: decoder.layers.0.feed_forward.inner.bias holds numbers that are not finite, so it "
        "is not saved"
    )
    assert runs.saved("one") == [3]
    assert runs.train("two", "train.steps=20", "train.save_every=20") == 4
    assert capsys.readouterr().err.splitlines()[-1] == (
        "error: 5 updates in a row had a loss or gradient that is not finite, the last at update 9 "
        "in decoder.layers.0.feed_forward.inner.bias; a smaller train.lr may help"
    )


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
    pace = "train.validate_every=4"
    assert runs.train("whole", "train.steps=12", pace) == 0
    now, jumps = time.time, iter(range(10**9))
    capsys.readouterr()
    with monkeypatch.context() as spoilt:
        spoilt.setattr(time, "time", lambda: now() + DAY * (-1) ** next(jumps))
        assert runs.train("parts", "train.steps=8", pace) == 0
        for place in checkpoints(runs.folder("parts") / "checkpoints"):
            age = DAY if place.name == "step-00000008" else -DAY  # the newest looks the oldest
            os.utime(place, (now() - age, now() - age))
        assert runs.train("parts", "train.steps=12", pace, flags=["--resume"]) == 0
    runs.assert_same("parts", "whole")
    lines = (runs.folder("parts") / "metrics.jsonl").read_text().splitlines()
    seconds = [metrics["seconds"] for metrics in map(json.loads, lines) if "seconds" in metrics]
    assert all(0.0 <= each < 60.0 for each in seconds)
    left = re.findall(r"(\S+) left", capsys.readouterr().err)
    assert left
    assert all(each.startswith("0:") for each in left)


LIMIT = """
import re, resource
size = int(re.search(r"VmSize:\\s+(\\d+)", open("/proc/self/status").read())[1]) * 1024
resource.setrlimit(resource.RLIMIT_AS, (size + {megabytes} * 2**20,) * 2)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is measured by /proc")
def test_too_little_memory_splits_batches_or_ends_in_a_sentence(runs):
    runs.write_corpus(2000)
    large = ("train.tokens=1000000", "train.save_every=1")
    assert runs.start("one", *large, "train.steps=1").end() == 0
    limit = LIMIT.format(megabytes=40)
    child = runs.start("one", *large, "train.steps=2", flags=["--resume"], before=limit)
    assert child.end() == 5, child.said()
    assert child.said().splitlines()[-1] == (
        "error: memory is used up, with train.tokens = 1000000; choose a smaller one, or a "
        "smaller model"
    )
    assert runs.saved("one") == [1]
    limit = LIMIT.format(megabytes=160)
    child = runs.start("one", *large, "train.steps=2", flags=["--resume"], before=limit)
    assert child.end() == 0, child.said()
    assert "target tokens does not fit in memory; such are split\n" in child.said()
    assert runs.saved("one") == [2, 1]


def test_a_pair_that_does_not_fit_into_memory_is_named(runs, monkeypatch, capsys):
    """By an error like that of torch: when memory really is short for one pair, it is for all."""
    assert runs.train("one", "train.steps=4") == 0

    def forward(self, batch):
        raise RuntimeError(
            "[enforce fail at alloc_cpu.cpp:118] err == 0. DefaultCPUAllocator: can't allocate "
            "memory: you tried to allocate 1 bytes. Error code 12 (Cannot allocate memory)"
        )

    monkeypatch.setattr(Objective, "forward", forward)
    capsys.readouterr()
    assert runs.train("one", "train.steps=8", flags=["--resume"]) == 5
    assert re.fullmatch(
        r"error: a batch of 1 sentence pairs with \d+ target tokens does not fit in memory; "
        r"choose a smaller train\.tokens, or data\.max_len",
        capsys.readouterr().err.splitlines()[-1],
    )
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
    assert runs.start("one", *settings).end() == 0  # whose hashes nobody chose
    assert runs.start_python("other", *settings, PYTHONHASHSEED="4242").end() == 0
    runs.assert_same("one", "other")
