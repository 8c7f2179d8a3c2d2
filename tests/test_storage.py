import fcntl
import shutil
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from regard.storage import put_back, sha256, write_json, written_whole


def test_a_folder_appears_whole_and_readable(tmp_path):
    place = tmp_path / "deep" / "folder"
    with written_whole(place) as building:
        write_json(building / "a.json", {"甲": 1})
        assert not place.exists()
    assert (place / "a.json").read_text() == '{\n "甲": 1\n}\n'
    assert stat.S_IMODE(place.stat().st_mode) & 0o500 == 0o500
    assert [path.name for path in place.parent.iterdir()] == ["folder"]


def test_a_folder_that_fails_leaves_the_old_one(tmp_path):
    place = tmp_path / "folder"
    with written_whole(place) as building:
        (building / "a").write_text("old")
    with pytest.raises(FileNotFoundError), written_whole(place) as building:
        (building / "nowhere" / "a").write_text("new")
    assert (place / "a").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


@pytest.mark.parametrize("error", [OSError("full"), KeyboardInterrupt()])
def test_what_goes_wrong_between_two_renames_leaves_the_old_folder(tmp_path, monkeypatch, error):
    place, rename = tmp_path / "folder", Path.rename
    with written_whole(place) as building:
        (building / "a").write_text("old")

    def failing(self, target):
        if target == place and self.name.endswith(".draft"):
            raise error
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", failing)
    with pytest.raises(type(error)), written_whole(place) as building:
        (building / "a").write_text("new")
    assert (place / "a").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_a_folder_is_replaced_with_all_its_files(tmp_path):
    place = tmp_path / "folder"
    for names in ("ab", "bc"):
        with written_whole(place) as building:
            for name in names:
                (building / name).write_text(names)
    assert {path.name: path.read_text() for path in place.iterdir()} == {"b": "bc", "c": "bc"}


def test_a_kill_at_any_moment_leaves_a_whole_folder(tmp_path):
    """Ten kills of a process that does nothing but replace one folder."""
    code = (
        "import sys\nfrom pathlib import Path\nfrom regard.storage import written_whole\n"
        "n = 0\nprint('ready', flush=True)\n"
        "while True:\n    n += 1\n"
        "    with written_whole(Path(sys.argv[1]) / 'folder') as b:\n"
        "        for name in 'abc': (b / name).write_text(str(n) * 50_000)\n"
    )
    for attempt in range(10):
        process = subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE
        )
        process.stdout.readline()
        time.sleep(0.01 + 0.013 * attempt)
        process.kill()
        process.wait()
        process.stdout.close()
        found = [p for p in tmp_path.iterdir() if (p / "c").exists() and not p.name.startswith(".")]
        hidden = [p for p in tmp_path.iterdir() if p.name.endswith(".old")]
        assert found or hidden or attempt == 0
        for place in found:
            assert len({(place / name).read_text() for name in "abc"}) == 1


def left_behind(place, *, ends):
    """What a process leaves that ends as no program can prevent."""
    code = (
        "import os, signal, sys\nfrom pathlib import Path\nfrom regard.storage import *\n"
        "kill = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
        "place = Path(sys.argv[1])\n"
        "with written_whole(place) as building:\n"
        "    (building / 'a').write_text('new')\n"
        f"    {ends}\n"
    )
    killed = subprocess.run([sys.executable, "-c", code, str(place)], check=False)
    assert killed.returncode == -9
    return sorted(path for path in place.parent.iterdir() if path.name.startswith("."))


def test_what_a_killed_process_left_is_removed_by_the_next(tmp_path):
    place = tmp_path / "folder"
    assert len(left_behind(place, ends="kill()")) == 1
    assert len(left_behind(place, ends="kill()")) == 1
    with written_whole(place) as building:
        assert [*tmp_path.iterdir()] == [building]
    assert [*tmp_path.iterdir()] == [place]


BETWEEN = "rename = Path.rename; Path.rename = lambda *to: (rename(*to), kill())"


@pytest.fixture
def hidden(tmp_path):
    """A place whose old and new folder a kill between the two renames left hidden."""
    place = tmp_path / "folder"
    with written_whole(place) as building:
        (building / "a").write_text("old")
    left = left_behind(place, ends=BETWEEN)
    assert [(path / "a").read_text() for path in left] == ["new", "old"]
    assert not place.exists()
    return place


def test_what_a_kill_between_two_renames_hid_gets_its_name_back(hidden):
    assert put_back(hidden)
    assert (hidden / "a").read_text() == "old"
    assert not put_back(hidden)
    with written_whole(hidden) as building:
        (building / "a").write_text("newer")
    assert [*hidden.parent.iterdir()] == [hidden]
    assert (hidden / "a").read_text() == "newer"


def test_what_was_hidden_is_in_its_place_when_another_fails(hidden):
    with pytest.raises(KeyboardInterrupt), written_whole(hidden):
        raise KeyboardInterrupt
    assert (hidden / "a").read_text() == "old"
    assert [*hidden.parent.iterdir()] == [hidden]


def test_what_is_hidden_for_a_moment_is_left_to_whoever_is_writing_it(tmp_path, monkeypatch):
    place, rename, seen = tmp_path / "folder", Path.rename, []
    with written_whole(place):
        pass

    def looked_at(self, target):
        moved = rename(self, target)
        if self == place:
            seen.append((place.exists(), put_back(place), place.exists()))
        return moved

    monkeypatch.setattr(Path, "rename", looked_at)
    with written_whole(place) as building:
        (building / "a").write_text("new")
    assert seen == [(False, False, False)]
    assert (place / "a").read_text() == "new"


def test_a_folder_that_was_taken_away_later_does_not_come_back(tmp_path):
    place = tmp_path / "folder"
    for text in ("old", "new"):
        with written_whole(place) as building:
            (building / "a").write_text(text)
    shutil.copytree(place, tmp_path / ".folder.12345678.draft.old")  # killed after both renames
    shutil.rmtree(place)
    assert not put_back(place)


def test_where_nobody_can_lock_what_is_hidden_gets_its_name_back_too(hidden, monkeypatch):
    def unable(*_):
        raise OSError("no locks available")

    monkeypatch.setattr(fcntl, "flock", unable)
    assert put_back(hidden)
    assert (hidden / "a").read_text() == "old"


def test_where_a_folder_cannot_be_put_back_nothing_is_removed(hidden, monkeypatch):
    rename, left = Path.rename, sorted(hidden.parent.iterdir())

    def unable(self, target):
        if self.name.endswith(".old"):
            raise OSError("read-only")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", unable)
    assert not put_back(hidden)
    with written_whole(hidden):
        pass
    assert sorted(hidden.parent.iterdir()) == sorted([*left, hidden])


def test_where_a_link_leads_is_written_and_the_link_stays(tmp_path):
    target, link = tmp_path / "disk" / "folder", tmp_path / "link"
    target.mkdir(parents=True)
    (target / "a").write_text("old")
    link.symlink_to(target)
    with written_whole(link) as building:
        (building / "a").write_text("new")
    assert link.readlink() == target
    assert (target / "a").read_text() == "new"
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a", "disk", "folder", "link"]


def test_a_folder_that_is_being_made_is_left_to_its_maker(tmp_path):
    place = tmp_path / "folder"
    with written_whole(place) as one:
        (one / "a").write_text("1")
        with written_whole(place):
            assert one.exists()
        assert one.exists()
    assert (place / "a").read_text() == "1"
    assert [*tmp_path.iterdir()] == [place]


def test_hidden_folders_that_are_not_its_own_are_left_alone(tmp_path):
    others = [
        ".folder.original",
        ".folder.v2.12345678.draft",
        ".folder.draft",
        ".other.12345678.draft",
    ]
    for name in others:
        (tmp_path / name).mkdir()
    with written_whole(tmp_path / "folder"):
        pass
    assert {path.name for path in tmp_path.iterdir()} == {*others, "folder"}


def test_where_nobody_can_lock_nothing_is_removed(tmp_path, monkeypatch):
    place = tmp_path / "folder"
    left = left_behind(place, ends="kill()")

    def unable(*_):
        raise OSError("no locks available")

    monkeypatch.setattr(fcntl, "flock", unable)
    with written_whole(place):
        pass
    assert sorted(tmp_path.iterdir()) == sorted([*left, place])


def test_a_file_is_known_by_its_bytes(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"abc")
    assert sha256(path) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
