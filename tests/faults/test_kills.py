"""Ended without a word, at any moment: what was saved is whole, and the run goes on as if never."""

import time

import pytest

from regard.train.checkpoint import newest_checkpoint

SAVING = """
import torch
from pathlib import Path
from regard.train.checkpoint import *
from regard.train.state import TrainState

directory = Path({directory!r})
found = newest_checkpoint(directory)
step = found.state.step if found else 0
while True:
    step += 1
    tensors = {{f"w{{i}}": torch.full((3000,), float(step)) for i in range(8)}}
    write_checkpoint(directory, Checkpoint(TrainState(step=step), tensors, tensors, tensors))
    remove_all_but(directory, checkpoints(directory)[:2])
"""
EXACT = (
    "data.sampled=true", "data.tokenizer=unigram", "data.vocab_size=330", "train.accumulate=2",
    "train.save_every=5", "train.validate_every=3",
)  # fmt: skip
CASES = {
    "a running average": ("train.ema=0.9",),
    "the best averaged, and patience": (
        "train.average=3", "train.average_of=best", "train.patience=3", "train.lr=0.2",
    ),
}  # fmt: skip


@pytest.mark.timeout(600)
def test_a_kill_while_saving_leaves_a_checkpoint_that_loads(
    runs, dice, often, tmp_path, record_property
):
    directory, reached, halved, kills = tmp_path / "checkpoints", 0, 0, often(15, 100)
    for _ in range(kills):
        child = runs.start_code("saving", SAVING.format(directory=str(directory)))
        child.until((directory / f"step-{reached + 1:08d}").exists)
        time.sleep(dice.uniform(0.0, 0.1))
        assert child.kill() == -9
        halved += any(directory.glob(".step-*"))
        warned = []
        found = newest_checkpoint(directory, warned.append)
        assert not warned
        assert found.state.step > reached
        reached = found.state.step
        for tensors in (found.weights, found.moments, found.running_average):
            assert len(tensors) == 8
            assert all(bool((tensor == reached).all()) for tensor in tensors.values())
    assert halved > 0.3 * kills  # or it would prove little
    counted = f"{kills} kills, {halved} of them in the middle of a save, 0 corrupt"
    record_property("counted", counted)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("case", CASES)
def test_a_killed_run_goes_on_to_the_bit(runs, dice, often, case, record_property):
    settings = (*EXACT, *CASES[case], f"train.steps={often(30, 60)}")
    assert runs.start("whole", *settings).end() == 0
    last = runs.last_step("whole")
    start, kills = often(runs.start, runs.start_python), often(1, 5)
    for workers in (0, 2):
        name, helped = f"with {workers}", (*settings, f"train.workers={workers}")
        for step in sorted(dice.sample(range(1, last - 3), kills)):
            child = start(name, *helped, flags=["--resume"])
            child.until_step(step)
            time.sleep(dice.uniform(0.0, 0.01))
            assert child.kill() == -9
        child = start(name, *helped, flags=["--resume"])
        assert child.end() == 0, child.said()
        runs.assert_same(name, "whole")
    counted = f"{2 * kills} kills and resumes with {case}: losses and weights the same to the bit"
    record_property("counted", counted)


def test_a_killed_command_goes_on_to_the_bit(runs, dice):
    """The same by the command line, in fresh processes."""
    settings = (*EXACT, "train.ema=0.9", "train.workers=2", "train.steps=20")
    assert runs.start("whole", *settings).end() == 0
    child = runs.start_python("parts", *settings)
    child.until_step(dice.randrange(1, 17))
    assert child.kill() == -9
    child = runs.start_python("parts", *settings, flags=["--resume"])
    assert child.end() == 0, child.said()
    runs.assert_same("parts", "whole")


@pytest.mark.parametrize("workers", [0, 2])
def test_the_lock_of_a_killed_run_holds_nobody_up(runs, workers):
    settings = ("train.steps=100000", f"train.workers={workers}")
    child = runs.start("one", *settings)
    child.until_step(5)
    assert child.kill() == -9
    child = runs.start("one", "train.steps=8", flags=["--resume"])
    assert child.end() == 0, child.said()
