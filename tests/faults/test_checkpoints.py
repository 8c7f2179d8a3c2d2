"""Disks that are full, read-only or gone, and bytes that are not what was written."""

import os
import shutil
import subprocess
from contextlib import contextmanager

import pytest
import torch

from regard.errors import ModelError
from regard.train.checkpoint import Checkpoint, newest_checkpoint, write_checkpoint
from regard.train.state import TrainState

NO_SPACE = "No space left on device"


@contextmanager
def small_disk(place, size):
    """A file system of so many bytes."""
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", place], capture_output=True
    )
    if mounted.returncode:
        pytest.skip(f"cannot mount a small disk: {mounted.stderr.decode().strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", place], check=True)


def fill(place, leave):
    """Use up a disk but for so many bytes."""
    free = os.statvfs(place).f_bavail * os.statvfs(place).f_frsize
    (place / "filler").write_bytes(bytes(max(free - leave, 0)))


def names(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_a_full_disk_costs_a_save_and_not_the_checkpoint_before_it(runs, tmp_path, capsys):
    assert runs.train("whole", "train.steps=12") == 0
    with small_disk(tmp_path / "disk", "2m") as disk:
        assert runs.train("disk/one", "train.steps=6", "train.save_every=3") == 0
        before = names(disk / "one.run" / "checkpoints")
        fill(disk, leave=60_000)
        capsys.readouterr()
        assert runs.train("disk/one", "train.steps=12", flags=["--resume"]) == 5
        said = capsys.readouterr().err
        for update in (8, 12):
            assert f"warning: update {update} could not be saved: " in said
        assert NO_SPACE in said.splitlines()[-1]
        assert said.splitlines()[-1].startswith("error: ")
        assert names(disk / "one.run" / "checkpoints") == before
        assert runs.saved("disk/one")[0] == 6
        (disk / "filler").unlink()
        assert runs.train("disk/one", "train.steps=12", flags=["--resume"]) == 0
        assert runs.weights("disk/one") == runs.weights("whole")
        assert [m["step"] for m in runs.measured("disk/one") if "loss" in m] == [*range(1, 13)]


def test_a_disk_without_a_free_byte_is_a_sentence_and_harms_nothing(runs, tmp_path, capsys):
    with small_disk(tmp_path / "disk", "2m") as disk:
        assert runs.train("disk/one", "train.steps=6") == 0
        before = names(disk)
        fill(disk, leave=0)
        capsys.readouterr()
        assert runs.train("disk/one", "train.steps=12", flags=["--resume"]) == 5
        assert NO_SPACE in capsys.readouterr().err.splitlines()[-1]
        (disk / "filler").unlink()
        assert names(disk) == before
        assert runs.train("disk/one", "train.steps=12", flags=["--resume"]) == 0


def test_a_limit_on_the_size_of_files_is_like_a_full_disk(runs):
    assert runs.train("one", "train.steps=4") == 0
    before = names(runs.folder("one") / "checkpoints")
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, 30_000))"
    child = runs.start("one", "train.steps=12", flags=["--resume"], before=limit)
    assert child.end() == 5
    for update in (8, 12):
        assert f"warning: update {update} could not be saved: " in child.said()
    assert "File too large" in child.said().splitlines()[-1]
    assert names(runs.folder("one") / "checkpoints") == before
    assert runs.saved("one")[0] == 4


def test_a_file_where_checkpoints_belong_stops_the_run_at_its_end(runs, capsys):
    runs.folder("one").mkdir()
    (runs.folder("one") / "checkpoints").write_text("a file")
    assert runs.train("one", "train.steps=8") == 5
    said = capsys.readouterr().err
    for update in (4, 8):
        assert f"warning: update {update} could not be saved: " in said
    assert said.splitlines()[-1].startswith("error: ")


def test_a_folder_that_cannot_be_written_keeps_what_it_has(runs, capsys):
    assert runs.train("one", "train.steps=4") == 0
    directory = runs.folder("one") / "checkpoints"
    is_root = os.geteuid() == 0  # whom no mode keeps from writing
    lock, free = (["chattr", "+i"], ["chattr", "-i"]) if is_root else (["chmod", "500"],) * 2
    if not shutil.which(lock[0]) or subprocess.run([*lock, directory]).returncode:
        pytest.skip("no folder can be made unwritable here")
    try:
        assert runs.train("one", "train.steps=8", flags=["--resume"]) == 5
    finally:
        subprocess.run([*(free if is_root else ["chmod", "700"]), directory], check=True)
    assert "warning: update 8 could not be saved: " in capsys.readouterr().err
    assert runs.saved("one")[0] == 4
    assert not runs.half_written("one")


def test_a_folder_deleted_under_a_run_is_made_again(runs):
    child = runs.start("one", "train.steps=40")
    child.until_step(9)
    shutil.rmtree(runs.folder("one"), ignore_errors=True)
    assert child.end() == 0, child.said()
    assert runs.saved("one")[0] == 40
    assert runs.weights("one")


def test_a_snapshot_that_cannot_be_kept_costs_a_warning(runs, capsys):
    runs.folder("one").mkdir()
    (runs.folder("one") / "snapshots").write_text("a file")
    assert runs.train("one", "train.steps=4", "train.snapshots=[2]") == 0
    assert "warning: the snapshot of update 2 could not be kept: " in capsys.readouterr().err


def damages(dice, files, n_flips):
    """What can happen to the bytes of files: some lost, one changed, or those of another."""
    for path in files:
        yield path, path.read_bytes()[:-2]
        yield path, b""
        for other in files:
            if other != path:
                yield path, other.read_bytes()
    for path in dice.choices(files, [path.stat().st_size for path in files], k=n_flips):
        content = bytearray(path.read_bytes())
        at = dice.randrange(len(content))
        content[at] ^= 1 << dice.randrange(8)
        yield path, bytes(content)


@pytest.mark.timeout(600)
def test_a_damaged_checkpoint_is_passed_over_for_the_one_before_it(
    runs, dice, often, record_property
):
    assert runs.train("one", "train.steps=8", "train.ema=0.9") == 0
    directory = runs.folder("one") / "checkpoints"
    newest = directory / "step-00000008"
    right, flips, n = newest_checkpoint(directory), often(60, 200), 0
    for path, damaged in list(damages(dice, sorted(newest.iterdir()), flips)):
        whole, warned = path.read_bytes(), []
        path.write_bytes(damaged)
        found = newest_checkpoint(directory, warned.append)
        if warned:
            assert warned == [newest]
            assert found.state.step == 4
            n += 1
        else:  # a space of the manifest, say: nothing that is read has changed
            assert path.name == "MANIFEST.json"
            assert found.state == right.state
            assert all(torch.equal(found.weights[k], right.weights[k]) for k in right.weights)
        path.write_bytes(whole)
    assert n > 0.8 * flips
    record_property("counted", f"{flips} flipped bytes, 0 loaded")


def test_a_run_goes_on_from_the_one_before_and_keeps_what_it_saves_then(runs, capsys):
    """Not even when those it passed over are of later updates than all it saves."""
    assert runs.train("whole", "train.steps=12") == 0
    assert runs.train("parts", "train.steps=12", "train.save_every=3") == 0
    shutil.rmtree(runs.place / "parts")
    for step in (9, 12):
        (runs.folder("parts") / "checkpoints" / f"step-{step:08d}" / "state.json").write_text("")
    with pytest.raises(AssertionError):
        runs.saved("parts")
    write_checkpoint(runs.folder("parts") / "checkpoints", first_of(runs))
    settings = ("train.save_every=2", "train.steps=12")
    capsys.readouterr()
    child = runs.start("parts", *settings, flags=["--resume"], before=LEAVE_AT_FIVE)
    assert child.end() == 0
    for step in (9, 12):
        place = runs.folder("parts") / "checkpoints" / f"step-{step:08d}"
        assert f"warning: {place} is damaged, so it is passed over\n" in child.said()
    assert runs.saved("parts")[:2] == [5, 4]
    assert runs.train("parts", *settings, flags=["--resume"]) == 0
    runs.assert_same("parts", "whole")


LEAVE_AT_FIVE = """
import os, signal
from regard.train.trainer import Trainer
step = Trainer.train_step
def leaving(self):
    if self.state.step == 4:
        os.kill(os.getpid(), signal.SIGTERM)
    return step(self)
Trainer.train_step = leaving
"""


def first_of(runs):
    """The checkpoint after two updates."""
    assert runs.train("first", "train.steps=2") == 0
    return newest_checkpoint(runs.folder("first") / "checkpoints")


@pytest.mark.parametrize("kind", ["weights", "moments", "running_average"])
@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_nothing_that_is_not_finite_is_saved(tmp_path, kind, number):
    tensors = {name: {"w": torch.ones(3)} for name in ("weights", "moments", "running_average")}
    tensors[kind]["w"][1] = number
    with pytest.raises(
        ModelError, match=r"^w holds numbers that are not finite, so it is not saved$"
    ):
        write_checkpoint(tmp_path, Checkpoint(TrainState(step=1), **tensors))
    assert not list(tmp_path.iterdir())
