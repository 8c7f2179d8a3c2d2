import json
import re
from pathlib import Path

import pytest

from regard.data.corpus import Pair
from regard.data.dataset import build_dataset, fingerprint, open_dataset
from regard.errors import DataError
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
    (directory / "src.ids").write_bytes(b"")
    with refuses(
        f"{directory / 'src.ids'} is not the file it was when the dataset was built; build it again"
    ):
        open_dataset(directory)
    (directory / "dataset.json").write_text("{")
    with refuses(f"{directory} holds no dataset"):
        open_dataset(directory)


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
    with refuses(f"{directory} is there already and is no dataset; name another place for it"):
        build(directory)
    assert (directory / "train.zh").read_text() == "precious"


def test_facts_that_are_no_facts_are_no_dataset(tmp_path):
    directory = tmp_path / "data"
    build(directory)
    for facts in ("{}", "[]"):
        (directory / "dataset.json").write_text(facts)
        with refuses(f"{directory} holds no dataset"):
            open_dataset(directory)
