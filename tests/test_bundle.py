import re
import subprocess
import sys

import pytest

from regard.bundle import check_place, open_bundle, write_bundle
from regard.config import ModelConfig
from regard.errors import ModelError
from regard.text.tokenizer import train_tokenizer

TOKENIZER = train_tokenizer(["一 one"], kind="char", size=300)


def write(path, card="card"):
    write_bundle(
        path,
        ModelConfig(),
        (TOKENIZER, TOKENIZER),
        lambda file: file.write_bytes(b"weights"),
        facts={},
        card=card,
    )


def card_of(path):
    return (open_bundle(path).path / "README.md").read_text()


def refuses(sentence):
    return pytest.raises(ModelError, match=f"^{re.escape(sentence)}$")


def test_a_model_takes_the_place_of_an_empty_directory(tmp_path):
    place = tmp_path / "model"
    place.mkdir()
    check_place(place)
    write(place)
    assert card_of(place) == "card"
    assert [*tmp_path.iterdir()] == [place]


@pytest.mark.parametrize("is_folder", [True, False])
def test_a_model_takes_the_place_of_nothing_else(tmp_path, is_folder):
    place = tmp_path / "model"
    if is_folder:
        place.mkdir()
    (place / "thesis" if is_folder else place).write_text("precious")
    for refused in (check_place, write):
        with refuses(f"{place} is there already and is no model; name another place with -o"):
            refused(place)


def test_a_model_is_written_where_a_link_leads(tmp_path):
    disk, link = tmp_path / "disk", tmp_path / "link"
    disk.mkdir()
    link.symlink_to("disk")
    for card in ("first", "second"):
        write(link, card)
        assert (link.is_symlink(), card_of(disk)) == (True, card)
    assert sorted(tmp_path.iterdir()) == [disk, link]


def test_a_link_that_leads_nowhere_is_refused_before_there_is_a_model(tmp_path):
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "gone")
    with refuses(
        f"{link} is a link to {tmp_path / 'gone'}, which is not there; make that directory, "
        "remove the link, or name another place with -o"
    ):
        check_place(link)


def test_a_link_that_leads_in_a_circle_is_a_link_to_nothing(tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    one.symlink_to(other)
    other.symlink_to(one)
    with refuses(
        f"{one} is a link to {other}, which is not there; make that directory, remove the link, "
        "or name another place with -o"
    ):
        check_place(one)
    with refuses(f"there is no model directory {one}"):
        open_bundle(one)


def test_the_directory_one_is_in_is_not_taken_away(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with refuses(
        f"{tmp_path} is the directory you are in, whose place a model cannot take; name a folder "
        f"in it with -o, such as {tmp_path / 'model'}"
    ):
        check_place(tmp_path)
    write(tmp_path / "model")


def test_a_model_is_written_though_the_directory_one_is_in_is_gone(tmp_path, monkeypatch):
    gone, place = tmp_path / "gone", tmp_path / "model"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    for card in ("first", "second"):
        write(place, card)
        assert card_of(place) == card


@pytest.fixture(params=["tmpfs", "bind"])
def volume(tmp_path, request):
    place, other = tmp_path / "my volume", tmp_path / "other"
    place.mkdir()
    other.mkdir()
    how = ["--bind", other] if request.param == "bind" else ["-t", "tmpfs", "tmpfs"]
    mounted = subprocess.run(["mount", *how, place], capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip(f"cannot mount: {mounted.stderr.decode().strip()}")
    yield place
    subprocess.run(["umount", "-l", place], check=True)


def test_a_volume_cannot_be_replaced_but_a_folder_in_it_can(volume):
    with refuses(
        f"{volume} is a mounted volume, whose place a model cannot take; name a folder in it "
        f"with -o, such as {volume / 'model'}"
    ):
        check_place(volume)
    for card in ("first", "second"):
        write(volume / "model", card)
        assert card_of(volume / "model") == card


@pytest.mark.parametrize("is_written_next", [True, False])
def test_a_model_that_a_kill_hid_is_found_by_whoever_opens_or_writes_it(tmp_path, is_written_next):
    code = (
        "import os, sys\nfrom pathlib import Path\nfrom regard.storage import written_whole\n"
        "rename = Path.rename\n"
        "with written_whole(Path(sys.argv[1])):\n"
        "    Path.rename = lambda *to: (rename(*to), os._exit(9))\n"
    )
    place, link = tmp_path / "model", tmp_path / "link"
    link.symlink_to(place)
    write(place)
    ended = subprocess.run([sys.executable, "-c", code, str(place)], check=False)
    assert (ended.returncode, place.exists()) == (9, False)
    if not is_written_next:
        assert card_of(link) == "card"
    check_place(link)
    write(link, "new")
    assert card_of(place) == "new"
    assert sorted(tmp_path.iterdir()) == [link, place]
