import stat
import subprocess
import sys
import time

import pytest

from regard.storage import sha256, write_json, written_whole


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


def test_a_file_is_known_by_its_bytes(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"abc")
    assert sha256(path) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
