import os
import shutil
import subprocess
import sys

import torch

from regard.train.checkpoint import (
    Checkpoint,
    checkpoints,
    finish_interrupted,
    newest_checkpoint,
    remove_all_but,
    write_checkpoint,
)
from regard.train.state import TrainState

WRITE = """
import os, shutil, sys
from pathlib import Path
from regard.storage import written_whole

rename, place = Path.rename, Path(sys.argv[1])
def ending(self, target):
    moved = rename(self, target)
    if self == place:
        os._exit(9)
    return moved
Path.rename = ending
with written_whole(place) as building:
    shutil.copytree(place, building, dirs_exist_ok=True)
"""


def checkpoint(step, value=0.0):
    return Checkpoint(TrainState(step=step), {"w": torch.full((2,), value)}, {})


def killed_while_written_again(directory):
    """The one checkpoint there is, of update 3, hidden by a kill between the two renames."""
    place = write_checkpoint(directory, checkpoint(3))
    ended = subprocess.run([sys.executable, "-c", WRITE, str(place)], check=False)
    assert ended.returncode == 9
    assert not checkpoints(directory)
    assert len(os.listdir(directory)) == 2


def names(directory):
    return sorted(path.name for path in directory.iterdir())


def test_a_checkpoint_that_a_kill_hid_is_gone_on_from(tmp_path):
    killed_while_written_again(tmp_path)
    assert newest_checkpoint(tmp_path) is None
    assert finish_interrupted(tmp_path) == [tmp_path / "step-00000003"]
    found = newest_checkpoint(tmp_path)
    assert (found.state.step, found.weights["w"].tolist()) == (3, [0.0, 0.0])
    assert finish_interrupted(tmp_path) == []


def test_a_checkpoint_that_a_kill_hid_is_not_removed_by_the_next_save(tmp_path):
    killed_while_written_again(tmp_path)
    written = write_checkpoint(tmp_path, checkpoint(6))
    remove_all_but(tmp_path, [written])
    assert names(tmp_path) == ["step-00000003", "step-00000006"]
    assert newest_checkpoint(tmp_path).state.step == 6


def test_what_is_hidden_beside_a_checkpoint_is_removed_and_never_brought_back(tmp_path):
    place = write_checkpoint(tmp_path, checkpoint(3))
    for ending in ("", ".old"):
        shutil.copytree(place, tmp_path / f".step-00000003.12345678.draft{ending}")
    assert finish_interrupted(tmp_path) == []
    remove_all_but(tmp_path, [write_checkpoint(tmp_path, checkpoint(6))])
    assert names(tmp_path) == ["step-00000006"]


def test_where_there_are_no_checkpoints_none_is_brought_back(tmp_path):
    assert finish_interrupted(tmp_path / "checkpoints") == []
