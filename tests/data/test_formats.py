import gzip
import json
import re
import struct
from collections import Counter
from pathlib import Path

import polib
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.data import formats
from regard.data.formats import Unit, format_of, languages_in, read_both, read_plain
from regard.data.streams import BadText
from regard.errors import DataError

TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\n\r\0"))
COLUMN = st.text(st.characters(codec="utf-8", exclude_characters="\n\r\0\t"))
ANY = st.text(st.characters(codec="utf-8", exclude_characters="\0"))
# An empty entry is the header; \a and its like have escapes that polib does not write.
MESSAGE = st.text(st.characters(codec="utf-8", exclude_characters="\0\a\b\v\f\r\x04"), min_size=1)


def refuses(sentence):
    return pytest.raises(DataError, match=f"^{re.escape(sentence)}$")


def written(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def both(path, src="zh", tgt="en", limit=1_000_000):
    return list(read_both(path, src, tgt, limit, Counter()))


def sides(units):
    return [(src, tgt) for _, src, tgt in units]


def catalogue(pairs, language=""):
    po = polib.POFile()
    po.metadata = {"Content-Type": "text/plain; charset=UTF-8", "Language": language}
    po.extend(polib.POEntry(msgid=src, msgstr=tgt) for src, tgt in pairs)
    return po


@given(st.lists(st.tuples(TEXT, TEXT), min_size=1))
def test_plain_pairs_come_back_as_they_were_written(tmp_path, pairs):
    pairs = [("first", "first"), *pairs]
    src = written(tmp_path / "a", "".join(src + "\n" for src, _ in pairs))
    tgt = written(tmp_path / "b", "".join(tgt + "\n" for _, tgt in pairs))
    units = list(read_plain(src, tgt, 1_000_000, Counter()))
    assert sides(units) == pairs
    assert [unit.number for unit in units] == list(range(1, len(pairs) + 1))


@given(st.lists(st.tuples(COLUMN, COLUMN), min_size=1), st.booleans())
def test_tsv_comes_back_as_it_was_written_and_more_columns_are_left_alone(tmp_path, pairs, more):
    rest = "\tscore\t1" if more else ""
    path = written(tmp_path / "x.tsv", "".join(f"{a}\t{b}{rest}\n" for a, b in pairs))
    # The mark that an encoding puts first is no text.
    (a, b), *others = pairs
    assert sides(both(path)) == [(a.removeprefix("\ufeff"), b), *others]


@pytest.mark.parametrize(
    "shape",
    [
        lambda src, tgt: {"src": src, "tgt": tgt, "id": 7},
        lambda src, tgt: {"translation": {"en": tgt, "zh-CN": src}},
        lambda src, tgt: {"zh": src, "en": tgt, "fr": "non"},
    ],
)
@pytest.mark.parametrize("ascii_only", [True, False])
@given(st.lists(st.tuples(ANY, ANY), min_size=1))
def test_jsonl_of_three_shapes_comes_back_as_it_was_written(tmp_path, shape, ascii_only, pairs):
    lines = (json.dumps(shape(*pair), ensure_ascii=ascii_only) for pair in pairs)
    path = written(tmp_path / "x.jsonl", "".join(line + "\n" for line in lines))
    assert sides(both(path)) == pairs


@given(st.lists(st.tuples(MESSAGE, MESSAGE), min_size=1, unique_by=lambda pair: pair[0]))
def test_po_and_mo_come_back_as_they_were_written(tmp_path, pairs):
    po = catalogue(pairs)
    path = written(tmp_path / "x.po", str(po))
    assert sides(both(path)) == pairs
    path = written(tmp_path / "x.mo", po.to_binary())
    assert sorted(sides(both(path))) == sorted(pairs)


def test_a_line_without_two_columns_keeps_its_place(tmp_path):
    path = written(tmp_path / "x.tsv", "一\tone\n" + "二" * 50 + "\n三\tthree\n")
    assert both(path) == [
        Unit(1, "一", "one"),
        Unit(2, BadText("missing-column", "二" * 39 + "…"), ""),
        Unit(3, "三", "three"),
    ]


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ('{"src": "a"', BadText("invalid-json", '{"src": "a"')),
        ("[1]", BadText("invalid-json", "[1]")),
        ("7" * 5000, BadText("invalid-json", "7" * 39 + "…")),
        ("[" * 100_000, BadText("invalid-json", "[" * 39 + "…")),
        ('{"src": "a"}', BadText("missing-language", "src")),
        ('{"src": "a", "tgt": null}', BadText("missing-language", "src")),
        ('{"zh": "a", "de": "b"}', BadText("missing-language", "zh, de")),
        ('{"zh": "a\\u0000", "en": "b"}', BadText("nul", "character 2")),
        ('{"zh": "\\ud800", "en": "b"}', BadText("invalid-utf8", "U+D800 alone at character 1")),
    ],
)
def test_hostile_json_keeps_its_place(tmp_path, line, fault):
    path = written(tmp_path / "x.jsonl", line + "\n" + '{"src": "a", "tgt": "b"}\n')
    assert both(path) == [Unit(1, fault, both(path)[0].tgt), Unit(2, "a", "b")]


def test_an_empty_line_of_jsonl_is_an_empty_pair(tmp_path):
    path = written(tmp_path / "x.jsonl", '{"src": "a", "tgt": "b"}\n\n')
    assert sides(both(path)) == [("a", "b"), ("", "")]


PO = """
msgid ""
msgstr ""
"Content-Type: text/plain; charset=UTF-8\\n"
"Language: zh_CN\\n"

#, fuzzy
msgid "a"
msgstr "一"

msgid "b"
msgstr ""

msgctxt "menu"
msgid "c"
msgstr "三"

msgid "%d file"
msgid_plural "%d files"
msgstr[0] "%d个文件"

#~ msgid "d"
#~ msgstr "四"
"""


def test_po_skips_what_is_not_finished_and_makes_pairs_of_plural_forms(tmp_path):
    path = written(tmp_path / "x.po", PO)
    assert both(path, "en", "zh") == [
        Unit(7, BadText("fuzzy", ""), ""),
        Unit(11, BadText("untranslated", ""), ""),
        Unit(14, "c", "三"),
        Unit(18, "%d file", "%d个文件"),
        Unit(18, "%d files", "%d个文件"),
        Unit(22, BadText("obsolete", ""), ""),
    ]


def test_po_and_mo_are_read_in_either_direction(tmp_path):
    po = catalogue([("one", "一")], language="zh_CN")
    for path in (written(tmp_path / "x.po", str(po)), written(tmp_path / "x.mo", po.to_binary())):
        assert sides(both(path, "en", "zh")) == [("one", "一")]
        assert sides(both(path, "zh", "en")) == [("一", "one")]
        assert sides(both(path, "", "")) == [("one", "一")]


def test_each_plural_form_translates_the_plural_but_the_first(tmp_path):
    po = catalogue([])
    forms = {0: "%d plik", 1: "%d pliki", 2: "%d plików"}
    po.append(polib.POEntry(msgid="%d Datei", msgid_plural="%d Dateien", msgstr_plural=forms))
    wanted = [("%d Datei", "%d plik"), ("%d Dateien", "%d pliki"), ("%d Dateien", "%d plików")]
    for path in (written(tmp_path / "x.po", str(po)), written(tmp_path / "x.mo", po.to_binary())):
        assert sides(both(path, "de", "pl")) == wanted


def test_po_in_the_encoding_its_header_names_is_read(tmp_path):
    content = PO.replace("UTF-8", "GBK").encode("gbk")
    assert both(written(tmp_path / "x.po", content), "en", "zh")[2] == Unit(14, "c", "三")


def test_po_in_another_encoding_than_its_header_names_is_refused(tmp_path):
    path = written(tmp_path / "x.po", PO.encode("gbk"))
    with refuses(
        f"{path} is not UTF-8 but looks like GB18030; convert it with iconv -f GB18030 -t UTF-8"
    ):
        both(path)
    path = written(tmp_path / "x.po", PO.replace("UTF-8", "ASCII"))
    with refuses(
        f"{path} is not in ascii, the charset of its header: 'ascii' codec can't decode byte 0xe4 "
        "in position 112: ordinal not in range(128)"
    ):
        both(path)


def test_a_template_whose_charset_is_not_filled_in_is_utf8(tmp_path):
    path = written(tmp_path / "x.pot", PO.replace("UTF-8", "CHARSET"))
    assert both(path, "en", "zh")[2] == Unit(14, "c", "三")


def test_a_broken_po_is_refused_with_its_line(tmp_path):
    path = written(tmp_path / "x.po", 'msgid "a"\nmsgstr "b"\nnonsense\n')
    with refuses(f"{path} cannot be read as PO: Syntax error in po file (line 3)"):
        both(path)


def test_catalogues_are_read_whole_and_so_have_a_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(formats, "CATALOGUE_BYTES", 100)
    path = written(tmp_path / "x.po", PO)
    with refuses(f"{path} is larger than 100 bytes; PO and MO files are read whole, so split it"):
        both(path)


@pytest.mark.parametrize("keep", [4, 20, 60, -4])
def test_a_cut_off_mo_is_refused(tmp_path, keep):
    content = catalogue([("one", "一"), ("two", "二")]).to_binary()
    path = written(tmp_path / "x.mo", content[:keep].rstrip(b"\0"))
    with refuses(f"{path} is no MO file, or is cut off; fetch it again"):
        both(path)


def test_an_mo_whose_strings_lie_over_one_another_is_refused(tmp_path):
    """A few bytes would otherwise be read as very many."""
    places = struct.pack("<2I", 900, 28) * 50
    content = struct.pack("<7I", 0x950412DE, 0, 50, 28, 28, 0, 28) + places + b"x" * 600
    path = written(tmp_path / "x.mo", content)
    with refuses(f"{path} is no MO file, or is cut off; fetch it again"):
        both(path)


def test_an_mo_entry_that_is_no_text_keeps_its_place(tmp_path):
    content = catalogue([("one", "一"), ("two", "二")]).to_binary()
    path = written(tmp_path / "x.mo", content.replace("一".encode(), b"\xff\xff\xff"))
    first, second = both(path, "en", "zh")
    assert first.src.kind == "invalid-utf8"
    assert second == Unit(3, "two", "二")


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("x.tsv", b"", "tsv"),
        ("x.JSONL.gz", b"", "jsonl"),
        ("x.sdlxliff", b"", "xml"),
        ("x", b"\xef\xbb\xbf<?xml version='1.0'?>", "xml"),
        ("x", "<?xml version='1.0' encoding='UTF-16'?>".encode("utf-16"), "xml"),
        ("x", b"\n<tmx>", "xml"),
        ("x.bin", b"\xde\x12\x04\x95", "mo"),
        ("x", b'# Chinese\nmsgid ""\n', "po"),
        ("x.txt", b'{"src": 1}', "jsonl"),
        ("x.txt", b"one\ttwo", "tsv"),
        ("-", b"", "tsv"),
    ],
)
def test_a_format_is_known_by_its_name_or_else_by_its_beginning(tmp_path, name, content, kind):
    path = Path(name) if name == "-" else written(tmp_path / name, content)
    assert format_of(path) == kind


def test_a_file_names_its_languages_if_its_format_does(tmp_path):
    assert languages_in(written(tmp_path / "x.jsonl", '{"zh": "a", "en": "b"}')) == ["zh", "en"]
    assert languages_in(written(tmp_path / "x.jsonl", '{"src": "a", "tgt": "b"}')) == []
    assert languages_in(written(tmp_path / "x.jsonl", "nonsense")) == []
    assert languages_in(written(tmp_path / "x.tsv", "a\tb")) == []


def test_unequal_line_counts_are_told_with_the_place_where_lengths_part(tmp_path):
    lines = ["x" * (7 * i % 50 + 1) for i in range(300)]
    src = written(tmp_path / "train.de", "".join(line + "\n" for line in lines))
    shorter = lines[:120] + lines[122:]
    tgt = written(tmp_path / "train.en", "".join(line * 2 + "\n" for line in shorter))
    with refuses(
        f"{src} has 300 lines but {tgt} has 298; lines are pairs, so they must match: "
        "by their lengths they part between lines 116 and 127"
    ):
        list(read_plain(src, tgt, 1_000_000, Counter()))
    with refuses(
        f"{tgt} has 298 lines but {src} has 300; lines are pairs, so they must match: "
        "by their lengths they part between lines 116 and 127"
    ):
        list(read_plain(tgt, src, 1_000_000, Counter()))


def test_a_file_that_just_ends_is_told_to(tmp_path):
    lines = ["x" * (7 * i % 50 + 1) for i in range(300)]
    src = written(tmp_path / "train.de", "".join(line + "\n" for line in lines))
    tgt = written(tmp_path / "train.en", "".join(line * 2 + "\n" for line in lines[:60]))
    with refuses(
        f"{src} has 300 lines but {tgt} has 60; lines are pairs, so they must match: "
        f"{tgt} ends after line 60"
    ):
        list(read_plain(src, tgt, 1_000_000, Counter()))
    with refuses(
        f"{tgt} has 60 lines but {src} has 300; lines are pairs, so they must match: "
        f"{tgt} ends after line 60"
    ):
        list(read_plain(tgt, src, 1_000_000, Counter()))


def test_very_unequal_line_counts_are_told_without_a_place(tmp_path, monkeypatch):
    monkeypatch.setattr(formats, "MAX_SHIFT", 1)
    src, tgt = written(tmp_path / "train.de", "a\nb\nc\n"), written(tmp_path / "train.en", "a")
    with refuses(f"{src} has 3 lines but {tgt} has 1; lines are pairs, so they must match"):
        list(read_plain(src, tgt, 1_000_000, Counter()))


@pytest.mark.parametrize("name", ["x.tmx", "x.po", "x.mo", "x.jsonl", "x"])
def test_an_archive_of_nothing_is_named_in_every_format(tmp_path, name):
    path = written(tmp_path / name, gzip.compress(b""))
    with refuses(f"{path} holds an archive of nothing"):
        both(path)
