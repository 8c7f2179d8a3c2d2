import bz2
import gzip
import io
import lzma
import re
import sys
from collections import Counter
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from regard.data import streams
from regard.data.streams import BadText, guess_encoding, read_blocks, read_lines, sound_text
from regard.errors import DataError

PACK = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": zstandard.ZstdCompressor().compress,
}
CHINESE = "注意力机制让模型自己决定看哪里，这一点很重要。\n"


def refuses(sentence):
    return pytest.raises(DataError, match=f"^{re.escape(sentence)}$")


def written(path, content):
    path.write_bytes(content)
    return path


def lines_of(path, **settings):
    return list(read_lines(path, **settings))


@given(st.lists(st.text(st.characters(exclude_characters="\n\r\0", codec="utf-8"))))
def test_lines_are_split_at_the_line_feed_only(tmp_path, lines):
    content = "".join(line + "\n" for line in ["first", *lines]).encode()
    path = written(tmp_path / "x", content)
    assert lines_of(path) == ["first", *lines]
    assert len(lines) + 1 == content.count(b"\n")


@given(st.lists(st.binary(max_size=30), min_size=1), st.integers(1, 40), st.integers(1, 60))
def test_blocks_of_any_size_make_the_same_lines(lines, size, limit):
    content = b"\n".join(line.replace(b"\n", b"") for line in lines)
    blocks = (content[i : i + size] for i in range(0, len(content), size))
    found = []
    for chunk in streams.whole_lines(blocks, limit):
        found += [chunk] if isinstance(chunk, int) else chunk.split(b"\n")
    wanted = content.removesuffix(b"\n").split(b"\n") if content else []
    assert len(found) == len(wanted)
    for line, right in zip(found, wanted, strict=True):
        assert line == (len(right) if isinstance(line, int) else right)
        assert len(right) > limit if isinstance(line, int) else True


def test_a_last_line_without_line_feed_counts_too(tmp_path):
    assert lines_of(written(tmp_path / "x", b"a\nb")) == ["a", "b"]


def test_the_carriage_return_of_crlf_is_taken_off_and_counted_and_a_lone_one_stays(tmp_path):
    path = written(tmp_path / "x", b"a\r\nb\rc\r\r\nd\n")
    returns = Counter()
    assert lines_of(path, carriage_returns=returns) == ["a", "b\rc\r", "d"]
    assert returns == {str(path): 2}


def test_a_mark_is_taken_off_at_the_start_only(tmp_path):
    path = written(tmp_path / "x", "\ufeffa\n\ufeffb\n".encode())
    assert lines_of(path) == ["a", "\ufeffb"]


@pytest.mark.parametrize("archive", PACK)
@pytest.mark.parametrize("name", ["train.zh", "train.zh.gz", "train.zh.xz"])
def test_compression_is_known_by_content_whatever_the_name(tmp_path, archive, name):
    path = written(tmp_path / name, PACK[archive](CHINESE.encode() * 3))
    assert lines_of(path) == [CHINESE[:-1]] * 3


@pytest.mark.parametrize("archive", PACK)
def test_archives_one_after_another_are_one_text(tmp_path, archive):
    pack = PACK[archive]
    content = pack(b"a\n") + pack(b"b\n") + b"\0" * 8 + pack(b"c\n" * 300_000)
    assert lines_of(written(tmp_path / "x", content)) == ["a", "b", *["c"] * 300_000]


@pytest.mark.parametrize("archive", PACK)
def test_blocks_stay_small_whatever_the_archive_holds(tmp_path, archive):
    path = written(tmp_path / "x", PACK[archive](bytes(40 << 20)))
    sizes = [len(block) for block in read_blocks(path)]
    assert sum(sizes) == 40 << 20
    assert max(sizes) <= 16 << 20


def test_stdin_is_a_file_too(monkeypatch):
    stdin = io.TextIOWrapper(io.BytesIO(gzip.compress(b"a\tb\n")))
    monkeypatch.setattr(sys, "stdin", stdin)
    assert lines_of(Path("-")) == ["a\tb"]
    assert not stdin.buffer.closed


@pytest.mark.parametrize(
    ("line", "detail"),
    [
        (b"ab\xffcd", "0xff at byte 3"),
        (b"\xc0\xaf", "0xc0 at byte 1"),  # overlong
        (b"abc\xed\xa0\x80", "0xed at byte 4"),  # a surrogate
        (b"abc\xe6\xb3", "0xe6 at byte 4"),  # cut off
        ("机器翻译".encode("gb18030"), "0xbb at byte 1, GB18030?"),
    ],
)
def test_a_line_that_is_not_utf8_says_where(tmp_path, line, detail):
    path = written(tmp_path / "x", b"good\n" + line + b"\ngood\n")
    assert lines_of(path) == ["good", BadText("invalid-utf8", detail), "good"]


def test_a_line_with_a_nul_says_where(tmp_path):
    path = written(tmp_path / "x", b"good\nab\0c\ngood\nand long enough to be no UTF-16\n")
    assert lines_of(path)[1] == BadText("nul", "byte 3")


@pytest.mark.parametrize("length", [1001, 300_000, 3_000_000])
@pytest.mark.parametrize("end", [b"", b"\n", b"\nnext\n"])
def test_a_line_over_the_limit_is_named_with_its_length(tmp_path, length, end):
    path = written(tmp_path / "x", b"a\n" + b"x" * length + end)
    found = lines_of(path, max_line_bytes=1000)
    assert found[:2] == ["a", BadText("too-long", f"{length} bytes")]
    assert found[2:] == end.decode().split()


def test_text_from_elsewhere_is_held_to_the_same():
    assert sound_text("好", 3) == "好"
    assert sound_text("好", 2) == BadText("too-long", "3 bytes")
    assert sound_text("a\0", 9) == BadText("nul", "character 2")
    assert sound_text("a\ud800", 9) == BadText("invalid-utf8", "U+D800 alone at character 2")


@pytest.mark.parametrize(
    ("text", "encoding", "name"),
    [
        (CHINESE, "gb18030", "GB18030"),
        (CHINESE, "gbk", "GB18030"),
        (CHINESE, "utf-16", "UTF-16"),
        (CHINESE, "utf-16-le", "UTF-16LE"),
        (CHINESE, "utf-16-be", "UTF-16BE"),
        ("two young men\n", "utf-16-le", "UTF-16LE"),
        (CHINESE, "utf-32", "UTF-32"),
        ("注意力機制讓模型自己決定看哪裡，這一點很重要。\n", "big5", "BIG5"),
        ("Zwei junge weiße Männer sind im Freien, in der Nähe vieler Büsche.\n", "cp1252",
         "WINDOWS-1252"),
    ],
)  # fmt: skip
def test_a_file_in_another_encoding_is_named_with_what_to_do(tmp_path, text, encoding, name):
    content = (text * 30).encode(encoding)
    assert guess_encoding(content) == name
    path = written(tmp_path / "train.zh", content)
    with refuses(
        f"{path} is not UTF-8 but looks like {name}; convert it with iconv -f {name} -t UTF-8"
    ):
        lines_of(path)


def test_a_file_of_no_known_encoding_is_refused_rather_than_dropped_line_by_line(tmp_path):
    path = written(tmp_path / "x", b"\xff\x81\x8f\x9d\xa0\n" * 600 + b"good\n" * 900)
    with refuses(
        f"{path} is not UTF-8: 600 of its first 1000 lines are not; find out its encoding and "
        "convert it with iconv -f ENCODING -t UTF-8"
    ):
        lines_of(path)


def test_half_of_the_lines_being_bad_is_still_a_matter_of_lines(tmp_path):
    path = written(tmp_path / "x", b"\xff\n" * 500 + b"good\n" * 500)
    assert sum(isinstance(line, BadText) for line in lines_of(path)) == 500


def test_an_empty_file_is_refused(tmp_path):
    path = written(tmp_path / "train.zh.gz", b"")
    with refuses(f"{path} is empty"):
        lines_of(path)


@pytest.mark.parametrize("archive", PACK)
def test_an_archive_of_nothing_is_refused(tmp_path, archive):
    path = written(tmp_path / "train.zh", PACK[archive](b""))
    with refuses(f"{path} holds an archive of nothing"):
        lines_of(path)


def test_a_missing_file_and_a_directory_are_refused(tmp_path):
    with refuses(f"there is no file {tmp_path / 'x'}"):
        lines_of(tmp_path / "x")
    with refuses(f"{tmp_path} cannot be read: Is a directory"):
        lines_of(tmp_path)
