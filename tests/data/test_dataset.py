import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from regard.data.corpus import Pair
from regard.data.dataset import FORMAT, build_dataset, fingerprint, open_dataset
from regard.errors import DataError, ModelError
from regard.text.tokenizer import load_tokenizer, train_tokenizer

TEXTS = [
    ("一 二 三", "one two three"),
    ("四", "four"),
    ("五 六", "five six"),
    ("七 \u2028八", "7\t8"),
]
TOKENIZER = train_tokenizer([text for pair in TEXTS for text in pair], kind="char", size=400)


def pairs(texts=TEXTS):
    return [Pair(src, tgt, line, tgt_lang="en") for line, (src, tgt) in enumerate(texts, 1)]


def build(directory, texts=TEXTS, **more):
    settings = {"fingerprint": "f", "max_len": 100, **more}
    return build_dataset(directory, pairs(texts), TOKENIZER, TOKENIZER, **settings)


def refuses(sentence):
    return pytest.raises(DataError, match=f"^{re.escape(sentence)}$")


@pytest.mark.parametrize("workers", [1, 2])
def test_a_dataset_gives_back_the_ids_and_texts_of_every_pair(tmp_path, workers):
    many = TEXTS * 3000  # more than one chunk for each worker
    dataset = build(tmp_path / "data", many, workers=workers)
    assert len(dataset) == len(many)
    for i in (0, 1, 5, 4095, 4096, 8191, 8192, len(many) - 1):
        src, tgt = many[i]
        assert dataset.src[i].tolist() == TOKENIZER.encode(src)
        assert dataset.tgt[i].tolist() == TOKENIZER.encode(tgt)
        assert (dataset.src.sentence(i), dataset.tgt.sentence(i)) == (src, tgt)
        assert dataset.lines[i] == i + 1
        assert dataset.language(i) == "en"
    assert dataset.src.lens[:2].tolist() == [len(TOKENIZER.encode(src)) for src, _ in TEXTS[:2]]


def test_pairs_too_long_are_dropped_on_both_sides_and_counted(tmp_path):
    dataset = build(tmp_path / "data", max_len=5)
    assert [dataset.tgt.sentence(i) for i in range(len(dataset))] == ["four", "7\t8"]
    assert dataset.lines.tolist() == [2, 4]
    assert dataset.dropped == {"max_len": 2}


def test_progress_counts_every_pair_that_was_read(tmp_path):
    seen = []
    build(tmp_path / "data", TEXTS * 2000, max_len=5, progress=seen.append)
    assert seen[-1] == 8000
    assert seen == sorted(seen)


def test_the_tokenizers_travel_with_the_dataset(tmp_path):
    build(tmp_path / "data")
    assert load_tokenizer(tmp_path / "data" / "src_tokenizer").encode("一") == TOKENIZER.encode(
        "一"
    )


@pytest.mark.parametrize("workers", [1, 2])
def test_what_goes_wrong_in_a_process_that_reads_goes_wrong_here(tmp_path, workers):
    with pytest.raises(UnicodeEncodeError, match="surrogates not allowed"):
        build(tmp_path / "data", [*TEXTS, ("\udc80", "one")], workers=workers)
    assert not [*tmp_path.iterdir()]


def test_a_tokenizer_that_a_process_cannot_read_is_named(tmp_path, monkeypatch):
    whole = type(TOKENIZER).save

    def save(self, directory):
        whole(self, directory)
        (directory / "tokenizer.json").write_text("{}")

    monkeypatch.setattr(type(TOKENIZER), "save", save)
    with pytest.raises(ModelError, match=r"_tokenizer/tokenizer\.json"):
        build(tmp_path / "data", workers=2)


BUILD = """
import signal, sys, time
from itertools import count
from pathlib import Path
from regard.data.corpus import Pair
from regard.data.dataset import build_dataset
from regard.errors import ResourceError
from regard.text.tokenizer import load_tokenizer

def progress(n_pairs):
    print(n_pairs, flush=True)
    time.sleep(0.1)

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
    tokenizer = load_tokenizer(Path(sys.argv[1]))
    pairs = (Pair("一", "one", line, tgt_lang="en") for line in count(1))
    settings = {"fingerprint": "f", "max_len": 9, "workers": 2, "progress": progress}
    try:
        build_dataset(Path(sys.argv[2]), pairs, tokenizer, tokenizer, **settings)
    except ResourceError as error:
        print(error)
    except KeyboardInterrupt:
        print("left")
"""
needs_proc = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc")


@contextmanager
def endless_build(folder):
    """A process that builds a dataset of endless text with two others, in a group of its own."""
    TOKENIZER.save(folder / "tokenizer")
    with (folder / "said").open("w") as said:
        process = subprocess.Popen(
            [sys.executable, "-c", BUILD, str(folder / "tokenizer"), str(folder / "data")],
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
            start_new_session=True,
        )
    with process:
        try:
            yield process
        finally:
            process.kill()


def readers_of(process):
    """The processes that read for it."""
    lists = Path(f"/proc/{process.pid}/task").glob("*/children")
    children = [int(pid) for pids in lists for pid in pids.read_text().split()]
    return [pid for pid in children if "spawn_main" in state(pid, "cmdline")]


def state(pid, name):
    try:
        return Path(f"/proc/{pid}/{name}").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def is_alive(pid):
    return state(pid, "stat").rpartition(")")[2].split()[:1] not in ([], ["Z"], ["X"])


def until(is_so, seconds=30):
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end, f"waited for {seconds} s in vain"
        time.sleep(0.01)


@needs_proc
def test_the_death_of_a_process_that_reads_is_a_sentence(tmp_path):
    with endless_build(tmp_path) as process:
        process.stdout.readline()
        os.kill(readers_of(process)[0], signal.SIGKILL)
        assert process.stdout.read().splitlines()[-1] == (
            "a process that reads the text has died, perhaps for want of memory; free some of it, "
            "or let the run have fewer processors, as with taskset"
        )
    assert (tmp_path / "said").read_text() == ""
    assert not list(tmp_path.glob(".data.*"))


@needs_proc
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_processes_that_read_end_with_the_one_they_read_for(tmp_path, number):
    with endless_build(tmp_path) as process:
        process.stdout.readline()
        readers = readers_of(process)
        assert len(readers) == 2
        process.send_signal(number)
        assert process.wait(10) == -number
        until(lambda: not any(map(is_alive, readers)), seconds=5)
    assert "Traceback" not in (tmp_path / "said").read_text()
    assert len(list(tmp_path.glob(".data.*"))) == 1
    build(tmp_path / "data")
    assert not list(tmp_path.glob(".data.*"))


@needs_proc
@pytest.mark.parametrize("is_early", [True, False])
def test_ctrl_c_is_heard_by_one_process_alone(tmp_path, is_early):
    """Even while those that read have not quite begun."""
    with endless_build(tmp_path) as process:
        if is_early:
            until(lambda: len(readers_of(process)) == 2)
        else:
            process.stdout.readline()
        os.killpg(process.pid, signal.SIGINT)
        assert process.stdout.read().splitlines()[-1] == "left"
    assert process.returncode == 0
    assert (tmp_path / "said").read_text() == ""
    assert not list(tmp_path.glob(".data.*"))


def test_an_empty_corpus_is_an_empty_dataset(tmp_path):
    assert len(build(tmp_path / "data", [])) == 0


def test_a_dataset_of_other_things_is_refused(tmp_path):
    directory = tmp_path / "data"
    build(directory)
    assert len(open_dataset(directory, "f")) == 4
    with refuses(
        f"the dataset in {directory} was made from other files or settings; build it again"
    ):
        open_dataset(directory, "g")


def test_a_folder_without_a_dataset_or_with_half_of_one_is_refused(tmp_path):
    with refuses(f"{tmp_path / 'nothing'} holds no dataset"):
        open_dataset(tmp_path / "nothing")
    directory = tmp_path / "data"
    build(directory)
    shutil.copytree(directory, tmp_path / "whole")
    (directory / "src.ids").write_bytes(b"")
    (directory / "langs.npy").unlink()
    for name in ("langs.npy", "src.ids"):
        path = directory / name
        with refuses(f"{path} is not the file it was when the dataset was built; build it again"):
            open_dataset(directory)
        shutil.copy(tmp_path / "whole" / name, path)
    (directory / "dataset.json").write_text("{")
    with refuses(f"{directory} holds no dataset"):
        open_dataset(directory)


def flip_last_byte(path):
    *first, last = path.read_bytes()
    path.write_bytes(bytes([*first, last ^ 1]))


@pytest.mark.parametrize(
    "name",
    ["src.ids", "src.text", "src.ends.npy", "src.text_ends.npy", "tgt.ids", "tgt.text",
     "tgt.ends.npy", "tgt.text_ends.npy", "lines.npy", "langs.npy"],
)  # fmt: skip
def test_a_flipped_byte_is_noticed_wherever_it_is(tmp_path, name):
    build(tmp_path / "data")
    path = tmp_path / "data" / name
    flip_last_byte(path)
    with refuses(f"{path} is not the file it was when the dataset was built; build it again"):
        open_dataset(tmp_path / "data")


def test_a_dataset_of_another_format_is_none(tmp_path, monkeypatch):
    build(tmp_path / "data")
    monkeypatch.setattr("regard.data.dataset.FORMAT", FORMAT + 1)
    with refuses(f"{tmp_path / 'data'} holds no dataset"):
        open_dataset(tmp_path / "data")


def test_a_spoilt_dataset_is_built_again_in_its_place(tmp_path):
    directory = tmp_path / "data"
    build(directory)
    (directory / "dataset.json").unlink()
    (directory / ".stray").write_text("left by a file browser")
    assert len(build(directory)) == 4
    for path in directory.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert len(build(directory)) == 4


def test_a_build_that_fails_leaves_the_older_dataset_and_no_rubbish(tmp_path):
    directory = tmp_path / "data"
    build(directory)

    def broken():
        yield from pairs()
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        build_dataset(directory, broken(), TOKENIZER, TOKENIZER, fingerprint="g", max_len=9)
    assert len(open_dataset(directory, "f")) == 4
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_a_fingerprint_changes_with_every_byte_tokenizer_and_setting(tmp_path):
    text, folder = tmp_path / "a.zh", tmp_path / "tokenizer"
    text.write_text("一\n")
    TOKENIZER.save(folder)
    first = fingerprint([text], [folder], {"max_len": 9})
    assert fingerprint([text], [folder], {"max_len": 9}) == first
    assert fingerprint([text], [folder], {"max_len": 8}) != first
    text.write_text("二\n")
    assert fingerprint([text], [folder], {"max_len": 9}) != first
    text.write_text("一\n")
    facts = Path(folder / "tokenizer.json")
    facts.write_text(facts.read_text() + " ")
    assert fingerprint([text], [folder], {"max_len": 9}) != first


def test_the_facts_are_plain_json(tmp_path):
    build(tmp_path / "data")
    facts = json.loads((tmp_path / "data" / "dataset.json").read_text())
    assert (facts["pairs"], facts["languages"]) == (4, ["en"])


def test_a_folder_that_is_no_dataset_is_never_replaced(tmp_path):
    directory = tmp_path / "data"
    directory.mkdir()
    (directory / "train.zh").write_text("precious")
    with refuses(
        f"{directory} is there already and is no dataset; move it away, or name another place"
    ):
        build(directory)
    assert (directory / "train.zh").read_text() == "precious"


def test_facts_that_are_no_facts_are_no_dataset(tmp_path):
    directory = tmp_path / "data"
    build(directory)
    whole = json.loads((directory / "dataset.json").read_text())
    changed = [
        {**whole, "dtypes": {"src": "uint99", "tgt": "uint16"}},
        {**whole, "sums": 3},
        {**whole, "languages": ["fr"]},
        {name: value for name, value in whole.items() if name != "sum"},
    ]
    for facts in ("{}", "[]", "[" * 100_000, "\x00", *map(json.dumps, changed)):
        (directory / "dataset.json").write_text(facts)
        with refuses(f"{directory} holds no dataset"):
            open_dataset(directory)
