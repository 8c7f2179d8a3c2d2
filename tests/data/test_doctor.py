import gzip
import re

import pytest

from regard.data.doctor import LISTED, advice, as_table, examine
from regard.data.splits import find_splits
from regard.errors import DataError

ZH = [f"第{i}句话说的是不同的事情，数字是{i * 7}。" for i in range(1, 301)]
EN = [f"Sentence {i} says something else, and its number is {i * 7}." for i in range(1, 301)]


def write(directory, name, zh, en):
    for language, lines in (("zh", zh), ("en", en)):
        text = "".join(f"{line}\n" for line in lines)
        (directory / f"{name}.{language}").write_bytes(text.encode())


@pytest.fixture
def corpus(tmp_path):
    write(tmp_path, "train", ZH, EN)
    write(tmp_path, "dev", ["新的一句话。"] * 2, ["A new sentence.", "Another new sentence."])
    write(tmp_path, "test", ["又一句新的话。"], ["One more new sentence."])
    return tmp_path


def found(directory):
    return as_table(examine(find_splits([directory], "zh", "en")))


def lines_of(table, kind):
    return [fault["line"] for fault in table["faults"] if fault["kind"] == kind]


def test_a_good_corpus_has_nothing_to_mend(corpus):
    table = found(corpus)
    assert table["pairs"] == 300
    assert table["languages"] == ["zh", "en"]
    assert table["faults"] == []
    assert table["advice"] == {}
    assert table["overlap"]["test"]["pairs"] == table["overlap"]["dev"]["pairs"] == 0
    assert {name: split["pairs"] for name, split in table["splits"].items()} == {
        "train": 300, "dev": 2, "test": 1,
    }  # fmt: skip
    lengths = table["splits"]["train"]["characters"]["en"]
    assert lengths["longest"] == max(map(len, EN))
    assert lengths["mean"] == pytest.approx(sum(map(len, EN)) / 300, abs=0.1)
    assert 3000 < table["tokens_per_epoch"] < 15000


PLANTED = {
    "duplicate": (ZH[0], EN[0]),
    "identical": ("Kubernetes API", "Kubernetes API"),
    "ratio": ("好。", EN[0] * 3),
    "script": ("This is not Chinese at all", "This is not Chinese either"),
    "line-break": ("一行\u2028还是一行的话", "One line\rstill the same line"),
    "not-nfc": ("咖啡馆在哪里", "Where is the cafe\u0301"),
    "empty-source": ("", "Nothing stands on the other side."),
    "empty-target": ("另一边什么也没有。", "   "),
    "nul": ("这里有一个\0字符", "There is a character here"),
    "invalid-utf8": (b"\xff\xfe\xfa", b"Bytes that are no text"),
}


@pytest.mark.parametrize("kind", PLANTED)
def test_every_planted_fault_is_named_with_its_line(corpus, kind):
    for language, text in zip(("zh", "en"), PLANTED[kind], strict=True):
        raw = text if isinstance(text, bytes) else text.encode()
        path = corpus / f"train.{language}"
        lines = path.read_bytes().split(b"\n")
        path.write_bytes(b"\n".join([*lines[:200], raw, *lines[200:]]))
    table = found(corpus)
    assert lines_of(table, kind)[:1] == [201]
    assert {fault["file"] for fault in table["faults"]} <= {
        str(corpus / "train.zh"),
        str(corpus / "train.en"),
    }


def test_a_line_too_long_is_named(corpus):
    write(corpus, "train", [*ZH, "长" * 400_000], [*EN, "A long line."])
    table = found(corpus)
    assert lines_of(table, "too-long") == [301]
    assert table["pairs"] == 300


def test_overlap_is_counted_exact_and_by_letters_with_both_lines(corpus):
    write(corpus, "test", [ZH[9], "新的。", ZH[19] + "……"], [EN[9], "New.", EN[19].upper()])
    table = found(corpus)
    overlap = table["overlap"]["test"]
    assert (overlap["pairs"], overlap["folded"]) == (1, 2)
    assert overlap["lines"] == [[1, 10]]
    assert overlap["folded_lines"] == [[1, 10], [3, 20]]
    assert lines_of(table, "overlap") == [10]
    assert table["advice"] == {"drop_overlap": 1}


def test_a_test_set_of_another_name_counts_as_test(corpus):
    for language in ("zh", "en"):
        (corpus / f"test.{language}").rename(corpus / f"test_2016.{language}")
    write(corpus, "test_2017", [ZH[1]], [EN[1]])
    table = found(corpus)
    assert table["overlap"]["test"]["pairs"] == table["overlap"]["test_2017"]["pairs"] == 1
    assert table["overlap"]["test"]["lines"] == [[1, 2]]


def cut_off(data):
    return gzip.compress(data)[:-20]


def bomb(data):
    return gzip.compress(b"0" * (300 << 20))


BROKEN = {
    "line-count": lambda data: data.rpartition(b"\n")[0].rpartition(b"\n")[0] + b"\n",
    "encoding": lambda data: data.decode().encode("gb18030"),
    "archive": cut_off,
    "bomb": bomb,
    "unreadable": lambda data: b"",
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_file_that_cannot_be_read_is_a_fault_and_the_others_are_still_examined(corpus, kind):
    path = corpus / "train.zh"
    path.write_bytes(BROKEN[kind](path.read_bytes()))
    report = examine(find_splits([corpus], "zh", "en"))
    (fault,) = [fault for fault in as_table(report)["faults"] if fault["kind"] == kind]
    assert str(path) in fault["detail"]
    assert fault["detail"] == str(report.errors[0])
    assert report.splits["test"].pairs == 1


def test_unequal_line_counts_are_told_with_both_counts_and_the_place(corpus):
    write(corpus, "train", ZH, EN[:100] + EN[101:])
    (fault,) = [f for f in found(corpus)["faults"] if f["kind"] == "line-count"]
    assert "300 lines" in fault["detail"]
    assert "299" in fault["detail"]
    assert abs(fault["line"] - 101) <= 20


def test_characters_that_no_piece_covers_are_counted(corpus):
    write(corpus, "test", ["㐀字很少见。"], ["The character is rare."])
    assert {"character": "㐀", "count": 1} in found(corpus)["uncovered"]


def test_all_faults_are_counted_and_only_so_many_named(corpus):
    write(corpus, "train", [*ZH, *[""] * (LISTED + 50)], [*EN, *["x"] * (LISTED + 50)])
    table = found(corpus)
    assert table["splits"]["train"]["counts"]["empty-source"] == LISTED + 50
    assert len(table["faults"]) == LISTED


def test_advice_names_filters_with_what_they_would_drop(corpus):
    write(corpus, "train", [*ZH, ZH[0], ZH[0]], [*EN, EN[0], EN[0]])
    write(corpus, "test", [ZH[0]], [EN[0]])
    assert advice(examine(find_splits([corpus]))) == {"dedup": 2, "drop_overlap": 3}


def test_files_may_be_given_two_by_two(corpus):
    files = [corpus / name for name in ("train.zh", "train.en", "test.zh", "test.en")]
    table = as_table(examine(find_splits(files)))
    assert list(table["splits"]) == ["train", "test"]
    assert table["languages"] == ["zh", "en"]
    alone = find_splits([corpus / "dev.zh", corpus / "dev.en"])
    assert list(alone) == ["train"]
    others = find_splits([corpus / "dev.zh", corpus / "test.en"])
    assert (others["train"].src, others["train"].tgt) == (corpus / "dev.zh", corpus / "test.en")


def test_parts_may_be_one_file_each(tmp_path):
    for name, lines in (("train", range(300)), ("test", range(7, 9))):
        text = "".join(f"{ZH[i]}\t{EN[i]}\n" for i in lines)
        (tmp_path / f"{name}.tsv").write_text(text)
    assert as_table(examine(find_splits([tmp_path])))["overlap"]["test"]["lines"] == [
        [1, 8],
        [2, 9],
    ]


def test_one_file_with_both_sides_is_the_training_part(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"{zh}\t{en}\n" for zh, en in zip(ZH, EN, strict=True)))
    assert as_table(examine(find_splits([path])))["pairs"] == 300


def test_a_side_without_its_partner_is_refused(corpus):
    sentence = "dev has no partner; give the two sides of each part, such as train.zh train.en"
    files = [corpus / "train.zh", corpus / "train.en", corpus / "dev.zh"]
    with pytest.raises(DataError, match=f"^{re.escape(sentence)}$"):
        find_splits(files)


def test_parts_may_be_named_after_their_languages(tmp_path):
    write(tmp_path, "train.zh-en", ZH, EN)
    write(tmp_path, "test.zh-en", ZH[3:4], EN[3:4])
    table = found(tmp_path)
    assert table["overlap"]["test"]["lines"] == [[1, 4]]
    assert list(table["splits"]) == ["train", "test.zh-en"]


def test_without_a_training_part_nothing_is_said_of_overlap(tmp_path):
    write(tmp_path, "dev", ZH[:5], EN[:5])
    write(tmp_path, "test", ZH[:5], EN[:5])
    assert found(tmp_path)["overlap"] == {}


def test_sides_of_one_ending_are_told_apart(tmp_path):
    (tmp_path / "a.txt").write_text("".join(f"{line}\n" for line in ZH))
    (tmp_path / "b.txt").write_text("".join(f"{line}\n" for line in EN))
    table = as_table(examine(find_splits([tmp_path / "a.txt", tmp_path / "b.txt"])))
    assert list(table["splits"]["train"]["characters"]) == ["source", "target"]
