import re
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.data.corpus import (
    CorpusFiles,
    Fault,
    Pair,
    Tally,
    fault_error,
    find_corpus,
    missing_file_error,
    mix,
    read_pairs,
)
from regard.errors import ConfigError, DataError

LINE = st.text(st.characters(codec="utf-8", exclude_characters="\n\r"), max_size=3)


def refuses(sentence, kind=DataError):
    return pytest.raises(kind, match=f"^{re.escape(sentence)}$")


def corpus(tmp_path, src, tgt):
    (tmp_path / "train.zh").write_bytes(src if isinstance(src, bytes) else src.encode())
    (tmp_path / "train.en").write_bytes(tgt if isinstance(tgt, bytes) else tgt.encode())
    return CorpusFiles(tmp_path / "train.zh", tmp_path / "train.en", None, "zh", "en")


def touched(tmp_path, *names):
    for name in names:
        (tmp_path / name).write_text("x\n")


def test_a_pair_knows_its_line_and_its_languages(tmp_path):
    files = corpus(tmp_path, "一\n二\n", "one\ntwo\n")
    assert list(read_pairs(files)) == [
        Pair("一", "one", 1, 0, "zh", "en"),
        Pair("二", "two", 2, 0, "zh", "en"),
    ]


@given(st.lists(st.tuples(LINE, LINE), min_size=1))
def test_pairs_and_tally_together_are_the_lines(tmp_path, pairs):
    pairs = [("first", "first"), *pairs]
    files = corpus(tmp_path, *("\n".join(side) + "\n" for side in zip(*pairs, strict=True)))
    tally = Tally()
    read = list(read_pairs(files, tally=tally))
    assert len(read) + sum(tally.counts.values()) == len(pairs)
    for pair in read:
        assert (pair.src, pair.tgt) == pairs[pair.line - 1]


def test_bad_pairs_are_dropped_on_both_sides_and_counted_by_kind(tmp_path):
    src = b"a\n\n \xe3\x80\x80\nd\n\xff\nf\nx\0y\nh\nlast\n"
    tgt = b"A\nB\n\t\n\xc2\x85\nE\n\xfe\nG\n" + b"h" * 101 + b"\nLAST\n"
    files = corpus(tmp_path, src, tgt)
    zh, en = str(files.src), str(files.tgt)
    tally = Tally()
    pairs = list(read_pairs(files, tally=tally, max_line_bytes=100))
    assert [pair.line for pair in pairs] == [1, 9]
    assert tally.examples == {
        "empty-source": [Fault("empty-source", zh, 2, "")],
        "empty-both": [Fault("empty-both", zh, 3, "")],
        "empty-target": [Fault("empty-target", en, 4, "")],
        "invalid-utf8": [
            Fault("invalid-utf8", zh, 5, "0xff at byte 1"),
            Fault("invalid-utf8", en, 6, "0xfe at byte 1"),
        ],
        "nul": [Fault("nul", zh, 7, "byte 2")],
        "too-long": [Fault("too-long", en, 8, "101 bytes")],
    }
    assert tally.counts == {kind: len(found) for kind, found in tally.examples.items()}


def test_a_tally_keeps_the_first_of_each_kind_or_all_of_them(tmp_path):
    files = corpus(tmp_path, "a\n" + "\n" * 50, "b\n" + "\n" * 50)
    first, everything = Tally(), Tally(keep_all=True)
    for tally in (first, everything):
        list(read_pairs(files, tally=tally))
        assert tally.counts == {"empty-both": 50}
    assert [fault.line for fault in first.examples["empty-both"]] == list(range(2, 22))
    assert [fault.line for fault in everything.examples["empty-both"]] == list(range(2, 52))


def test_carriage_returns_that_were_taken_off_are_counted(tmp_path):
    files = corpus(tmp_path, "a\r\nb\r\n", "A\nB\n")
    tally = Tally()
    assert [pair.src for pair in read_pairs(files, tally=tally)] == ["a", "b"]
    assert tally.carriage_returns == {str(files.src): 2}
    assert tally.counts == {}


@pytest.mark.parametrize(
    ("src", "tgt", "sentence"),
    [
        (b"a\nb\xff\n", b"A\nB\n", "{zh}, line 2 is not UTF-8: 0xff at byte 2; correct it"),
        (b"a\nb\n", b"A and more\nB\0\n", "{en}, line 2 has a NUL: byte 2; remove it"),
        (b"a\n" + b"b" * 101, b"A\nB\n", "{zh}, line 2 is too long: 101 bytes; split it"),
    ],
)
def test_reading_stops_at_a_bad_line_if_that_is_asked(tmp_path, src, tgt, sentence):
    files = corpus(tmp_path, src, tgt)
    pairs = read_pairs(files, on_bad="stop", max_line_bytes=100)
    assert next(pairs).line == 1
    rest = ", or let bad pairs be dropped"
    with refuses(sentence.format(zh=files.src, en=files.tgt) + rest):
        next(pairs)


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        ("missing-language", "x.tmx, unit 7 lacks a language that was asked for: it has zh, de"),
        ("missing-segment", "x.tmx, unit 7 has no <seg> for zh, de"),
        ("missing-column", "x.tmx, line 7 does not have two sides: zh, de"),
        ("invalid-json", "x.tmx, line 7 does not have two sides: zh, de"),
    ],
)
def test_every_kind_of_fault_has_its_sentence(kind, sentence):
    assert str(fault_error(Fault(kind, "x.tmx", 7, "zh, de"))) == sentence


def test_empty_pairs_never_stop_reading(tmp_path):
    files = corpus(tmp_path, "a\n\nc\n", "A\nB\n \n")
    assert [pair.src for pair in read_pairs(files, on_bad="stop")] == ["a"]


def test_a_file_with_both_sides_is_read_too(tmp_path):
    path = tmp_path / "x.tsv"
    path.write_text("一\tone\nno column\n", encoding="utf-8")
    tally = Tally()
    files = CorpusFiles(None, None, path, "zh", "en")
    assert list(read_pairs(files, tally=tally)) == [Pair("一", "one", 1, 0, "zh", "en")]
    assert tally.examples == {
        "missing-column": [Fault("missing-column", str(path), 2, "no column")]
    }


def numbered(n):
    return lambda: iter([Pair(str(i), str(i), i) for i in range(n)])


def test_a_mix_reads_each_corpus_as_often_as_its_weight_says():
    pairs = list(mix([(1, numbered(1000)), (2, numbered(1000)), (0.25, numbered(1000))], seed=0))
    lines = {place: [pair.line for pair in pairs if pair.corpus == place] for place in range(3)}
    assert lines[0] == list(range(1000))
    assert lines[1] == [*range(1000), *range(1000)]
    assert 200 < len(lines[2]) < 300
    assert lines[2] == sorted(set(lines[2]))


def test_a_mix_interleaves_by_weight():
    start = list(islice(mix([(1, numbered(5000)), (3, numbered(5000))], seed=1), 4000))
    assert 900 < sum(pair.corpus == 0 for pair in start) < 1100


def test_a_mix_depends_on_its_seed_alone():
    corpora = [(1.5, numbered(50)), (0.5, numbered(50))]
    assert list(mix(corpora, seed=3)) == list(mix(corpora, seed=3))
    assert list(mix(corpora, seed=3)) != list(mix(corpora, seed=4))


@pytest.mark.parametrize("weight", [0, -1.0, float("nan"), float("inf")])
def test_a_weight_must_be_above_zero(weight):
    with refuses(f"the weight of corpus 2 is {weight} but must be a number above 0", ConfigError):
        next(mix([(1, numbered(1)), (weight, numbered(1))], seed=0))


def test_a_directory_with_two_languages_needs_no_word_about_them(tmp_path):
    touched(tmp_path, "train.zh", "train.en.gz", "dev.zh", "dev.en", "train.lang", "README.md")
    assert find_corpus(tmp_path, None, None) == CorpusFiles(
        tmp_path / "train.en.gz", tmp_path / "train.zh", None, "en", "zh"
    )
    assert find_corpus(tmp_path, "zh", None, "dev") == CorpusFiles(
        tmp_path / "dev.zh", tmp_path / "dev.en", None, "zh", "en"
    )
    assert find_corpus(str(tmp_path), None, "en").src_lang == "zh"
    assert find_corpus(tmp_path, "zh", "en").src == tmp_path / "train.zh"


def test_a_prefix_and_two_languages_are_a_corpus(tmp_path):
    touched(tmp_path, *(f"test_2016.{name}" for name in ("de", "en", "fr", "zh_CN", "en.gz")))
    assert find_corpus(tmp_path / "test_2016", "de", "en") == CorpusFiles(
        tmp_path / "test_2016.de", tmp_path / "test_2016.en", None, "de", "en"
    )
    assert find_corpus(tmp_path / "test_2016", "zh", "fr").src == tmp_path / "test_2016.zh_CN"


def test_one_file_with_both_sides_is_a_corpus(tmp_path):
    touched(tmp_path, "train.tsv")
    wanted = CorpusFiles(None, None, tmp_path / "train.tsv", "", "")
    assert find_corpus(tmp_path / "train.tsv", None, None) == wanted
    assert find_corpus(tmp_path, None, None) == wanted
    assert find_corpus(tmp_path / "train.tsv", "zh", "en").tgt_lang == "en"
    assert find_corpus("-", "zh", "en") == CorpusFiles(None, None, Path("-"), "zh", "en")


def test_a_file_that_names_its_languages_gives_them(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text('{"zh-CN": "a", "en": "b"}')
    for asked, wanted in [
        ((None, None), ("zh-CN", "en")),
        (("en", None), ("en", "zh-CN")),
        ((None, "zh"), ("en", "zh")),
        (("fr", "de"), ("fr", "de")),
    ]:
        found = find_corpus(path, *asked)
        assert (found.src_lang, found.tgt_lang) == wanted


def test_a_corpus_that_is_not_clear_is_refused_with_what_there_is(tmp_path):
    touched(tmp_path, "train.de", "train.en", "train.fr", "dev.en", "test.tsv", "test.jsonl")
    with refuses(
        f"{tmp_path} has de, en, fr; say which language is the source and which the target"
    ):
        find_corpus(tmp_path, None, None)
    with refuses(f"{tmp_path} has en; say which language is the source and which the target"):
        find_corpus(tmp_path, None, None, "dev")
    with refuses(f"{tmp_path} has no zh; its languages are de, en, fr"):
        find_corpus(tmp_path, "zh", "en")
    with refuses(
        f"{tmp_path} has several files with both sides (test.tsv, test.jsonl); "
        "name the one you mean"
    ):
        find_corpus(tmp_path, "zh", "en", "test")
    with refuses(
        f"{tmp_path} has no valid.LANGUAGE files; it has dev.en, test.jsonl, test.tsv, train.de, "
        "train.en, train.fr"
    ):
        find_corpus(tmp_path, None, None, "valid")
    for place in (tmp_path / "x", tmp_path / "x" / "y"):
        with refuses(
            f"there is no corpus {place}: no file, no directory, and no file {place}.LANGUAGE"
        ):
            find_corpus(place, "zh", "en")


def test_a_directory_where_a_file_belongs_is_told_where_it_goes(tmp_path):
    (tmp_path / "corpus").mkdir()
    (tmp_path / "b.en").touch()
    sentence = (
        f"{tmp_path / 'corpus'} is a directory, but --src and --tgt take files; a directory with "
        f'both sides goes by data.train = ["{tmp_path / "corpus"}"]'
    )
    for two in (("corpus", "b.en"), ("b.en", "corpus")):
        with pytest.raises(DataError, match=f"^{re.escape(sentence)}$"):
            find_corpus(",".join(str(tmp_path / name) for name in two), None, None)


def test_a_missing_file_is_named_with_what_the_recipe_knows_of_it():
    assert str(missing_file_error("train.zh.gz", None)) == "there is no file train.zh.gz"
    assert str(missing_file_error("train.zh.gz", {})) == "there is no file train.zh.gz"
    source = {"licence": "CC0", "sha256": "ab12", "address": "https://example.org/train.zh.gz"}
    assert str(missing_file_error("train.zh.gz", source)) == (
        "there is no file train.zh.gz; the recipe says where it comes from: address "
        "https://example.org/train.zh.gz, sha256 ab12, licence CC0"
    )
    assert str(missing_file_error("train.zh.gz", {"address": "https://example.org"})) == (
        "there is no file train.zh.gz; the recipe says where it comes from: address "
        "https://example.org"
    )
