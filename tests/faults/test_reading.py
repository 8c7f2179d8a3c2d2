"""Files as hostile or as broken as they come: each is named, or dropped in pairs and counted."""

import bz2
import gzip
import lzma
import re
import subprocess
import sys
import tracemalloc
from pathlib import Path

import polib
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from regard.data.corpus import CorpusFiles, Tally, read_pairs
from regard.errors import DataError

PACK = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": zstandard.ZstdCompressor(write_checksum=True).compress,
}
TU = (
    '<tu><tuv xml:lang="zh"><seg>第{0}句话。</seg></tuv>'
    '<tuv xml:lang="en"><seg>{0}.</seg></tuv></tu>'
)


PO = polib.POFile()
PO.metadata = {"Content-Type": "text/plain; charset=UTF-8", "Language": "en"}
PO.extend([polib.POEntry(msgid="一", msgstr="one"), polib.POEntry(msgid="二\n", msgstr="two\n")])
SEEDS = [
    f"<tmx><body>{TU.format(1)}<tu/></body></tmx>".encode(),
    f"<tmx><body>{TU.format(1)}</body></tmx>".encode("utf-16"),
    '{"zh": "一", "en": "one"}\n{"src": "二", "tgt": "two"}\n'.encode(),
    "一\tone\r\n二\ttwo\n".encode(),
    str(PO).encode(),
    PO.to_binary(),
    *(pack("一\tone\n".encode()) for pack in PACK.values()),
]


def refuses(sentence):
    return pytest.raises(DataError, match=f"^{re.escape(sentence)}$")


def one(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return CorpusFiles(None, None, path, "zh", "en")


def two(tmp_path, src, tgt):
    for name, content in (("train.zh", src), ("train.en", tgt)):
        (tmp_path / name).write_bytes(content)
    return CorpusFiles(tmp_path / "train.zh", tmp_path / "train.en", None, "zh", "en")


def texts(files, **settings):
    return [(pair.src, pair.tgt) for pair in read_pairs(files, **settings)]


def peak_megabytes(script, *arguments):
    """The most memory that a fresh Python held while it ran a script, above its start.

    Not ru_maxrss, which begins with what the parent held.
    """
    if not Path("/proc/self/status").exists():
        pytest.skip("memory is measured by /proc")
    wrapped = (
        "import re, sys\n"
        "from pathlib import Path\n"
        "from regard.data.corpus import CorpusFiles, Tally, read_pairs\n"
        "from regard.errors import DataError\n"
        "status = Path('/proc/self/status')\n"
        "peak = lambda: int(re.search(r'VmHWM:\\s+(\\d+) kB', status.read_text())[1]) / 1024\n"
        "start = peak()\n" + script + "\nprint(peak() - start)\n"
    )
    command = [sys.executable, "-c", wrapped, *map(str, arguments)]
    run = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    *said, peak = run.stdout.splitlines()
    return said, float(peak)


def tmx(units, head=""):
    return f'<?xml version="1.0"?>\n{head}<tmx version="1.4"><body>{units}</body></tmx>'


# 18: line counts


@pytest.mark.parametrize("archive", [None, *PACK])
def test_unequal_line_counts_are_never_truncated(tmp_path, archive):
    pack = PACK[archive] if archive else bytes
    files = two(tmp_path, pack(b"a\n" * 29_000), pack(b"b\n" * 28_999))
    with pytest.raises(DataError) as refused:
        texts(files)
    assert str(refused.value).startswith(
        f"{files.src} has 29000 lines but {files.tgt} has 28999; "
        "lines are pairs, so they must match"
    )


# 19: what does not end a line


def test_nothing_but_the_line_feed_ends_a_line(tmp_path):
    odd = "a\rb\u2028c\u2029d\x85e\x0bf\x0cg\x1ch"
    content = f"{odd}\n{odd}\r\n{odd}".encode()
    files = two(tmp_path, content, content)
    assert texts(files) == [(odd, odd)] * 3
    wc = subprocess.run(["wc", "-l"], input=content + b"\n", capture_output=True, check=True)
    assert int(wc.stdout) == 3


# 20: encodings


@pytest.mark.parametrize("bad", [b"\xff\xfe\xfd", b"\xc0\xaf", b"\xed\xa0\x80", b"\x80", b"\xf5"])
def test_invalid_utf8_drops_the_pair_on_both_sides(tmp_path, bad):
    files = two(tmp_path, b"a\n" + bad + b"\nc\nd\n", b"A\nB\nC\nD\n")
    tally = Tally()
    assert texts(files, tally=tally) == [("a", "A"), ("c", "C"), ("d", "D")]
    assert tally.counts == {"invalid-utf8": 1}
    assert tally.examples["invalid-utf8"][0].line == 2


@pytest.mark.parametrize(
    ("encoding", "name"), [("utf-16", "UTF-16"), ("gbk", "GB18030"), ("gb18030", "GB18030")]
)
@pytest.mark.parametrize("on_bad", ["drop", "stop"])
def test_a_whole_file_in_another_encoding_is_named_whatever_the_policy(
    tmp_path, encoding, name, on_bad
):
    src = "我们用注意力机制翻译句子。\n" * 50
    files = two(tmp_path, src.encode(encoding), b"A\n" * 50)
    with refuses(
        f"{files.src} is not UTF-8 but looks like {name}; convert it with iconv -f {name} -t UTF-8"
    ):
        texts(files, on_bad=on_bad)


# 21: marks, NUL, ends of files, archives


def test_an_empty_file_is_named(tmp_path):
    files = two(tmp_path, b"a\n", b"")
    with refuses(f"{files.tgt} is empty"):
        texts(files)


def test_a_mark_a_nul_and_a_missing_last_line_feed_are_handled(tmp_path):
    files = two(tmp_path, "\ufeff一\n二\0\n三".encode(), b"one\ntwo\nthree")
    tally = Tally()
    assert texts(files, tally=tally) == [("一", "one"), ("三", "three")]
    assert tally.counts == {"nul": 1}


@pytest.mark.parametrize("archive", PACK)
@pytest.mark.parametrize("share", [0.1, 0.5, 0.99])
def test_a_cut_off_archive_says_how_far_it_got(tmp_path, archive, share):
    content = b"".join(b"%d\t%d\n" % (i * i, i) for i in range(20_000))
    packed = PACK[archive](content)
    files = one(tmp_path / "x.tsv", packed[: int(len(packed) * share)])
    with pytest.raises(DataError) as refused:
        texts(files)
    said = re.fullmatch(
        rf"{re.escape(str(files.both))} is cut off: its {archive} data end after (\d+) bytes of "
        "content; fetch it again",
        str(refused.value),
    )
    assert said
    assert 0 <= int(said[1]) <= len(content)


@pytest.mark.parametrize("archive", PACK)
def test_a_damaged_archive_is_named(tmp_path, archive):
    content = b"".join(b"%d\t%d\n" % (i * i, i) for i in range(20_000))
    packed = bytearray(PACK[archive](content))
    middle = len(packed) // 2
    packed[middle : middle + 50] = bytes(byte ^ 0x55 for byte in packed[middle : middle + 50])
    files = one(tmp_path / "x.tsv", bytes(packed))
    pattern = (
        rf"{re.escape(str(files.both))} is damaged: its {archive} data cannot be unpacked after "
        r"\d+ bytes of content \(.+\); fetch it again"
    )
    with pytest.raises(DataError, match=f"^{pattern}$"):
        texts(files)


@pytest.mark.parametrize(
    ("archive", "name"),
    [*((archive, "x.tsv") for archive in PACK), ("gz", "x.tmx"), ("zst", "x.tmx"), ("zst", "x.po")],
)
def test_a_bomb_is_refused_in_little_memory(tmp_path, archive, name):
    """One GB from at most one MB; zst makes it of 32 KB in one piece, the others of many."""
    packed = (
        PACK[archive](bytes(1 << 20)) * 1024 if archive != "zst" else PACK["zst"](bytes(1 << 30))
    )
    if name != "x.tsv":  # XML and PO must begin as such, to be read on
        packed = PACK[archive](b"<tmx>" if name == "x.tmx" else b"# ") + packed
    path = tmp_path / name
    path.write_bytes(packed)
    script = (
        "try:\n    for _ in read_pairs(CorpusFiles(None, None, Path(sys.argv[1]), 'zh', 'en')):\n"
        "        pass\nexcept DataError as error:\n    print(error)"
    )
    said, peak = peak_megabytes(script, path)
    assert len(said) == 1
    assert peak < 150
    if name == "x.tsv":
        found = re.fullmatch(
            r".*/x\.tsv grows to (\d+) bytes and more from its first (\d+); that is no text, so "
            "unpack it yourself if you trust it",
            said[0],
        )
        assert int(found[1]) > 200 * int(found[2])
        assert 256 << 20 < int(found[1]) < 300 << 20


def test_text_that_only_packs_well_is_no_bomb(tmp_path):
    packed = gzip.compress(b"yes\tja\n" * 200_000)
    assert len(packed) * 200 < 7 * 200_000
    assert len(texts(one(tmp_path / "x.tsv", packed))) == 200_000


# 22: empty lines


def test_empty_lines_are_dropped_in_pairs_and_counted(tmp_path):
    files = two(tmp_path, "a\n\n\u3000\n \nd\n".encode(), "A\nB\nC\n\t\n\u00a0\n".encode())
    tally = Tally()
    assert texts(files, tally=tally) == [("a", "A")]
    assert tally.counts == {"empty-source": 2, "empty-both": 1, "empty-target": 1}


# 23: long lines


def test_a_line_of_fifty_megabytes_is_dropped_without_being_held(tmp_path):
    files = two(tmp_path, b"a\n" + b"x" * 50_000_000 + b"\nc\n", b"A\nB\nC\n")
    script = (
        "tally = Tally()\nfiles = CorpusFiles(Path(sys.argv[1]), Path(sys.argv[2]), None, '', '')\n"
        "print([pair.src for pair in read_pairs(files, tally=tally)])\n"
        "print(tally.counts, tally.examples['too-long'][0].detail)"
    )
    said, peak = peak_megabytes(script, files.src, files.tgt)
    assert said == ["['a', 'c']", "{'too-long': 1} 50000000 bytes"]
    assert peak < 30


@pytest.mark.parametrize(
    "text", ["a" + "\u0301" * 1_000_000, "👩‍👩‍👧‍👦" * 100_000, "word " * 100_000]
)
def test_marks_and_joiners_without_end_are_a_text_like_any_other(tmp_path, text):
    files = two(tmp_path, text.encode() + b"\n", b"A\n")
    assert texts(files, max_line_bytes=10_000_000) == [(text, "A")]
    tally = Tally()
    assert texts(files, max_line_bytes=100_000, tally=tally) == []
    assert tally.counts == {"too-long": 1}


# any bytes at all


@pytest.mark.parametrize("name", ["x", "x.tsv", "x.jsonl", "x.tmx", "x.po", "x.mo"])
@given(data=st.data())
def test_any_bytes_are_pairs_or_a_named_error(tmp_path, name, data):
    seed = data.draw(st.sampled_from(SEEDS))
    at = data.draw(st.integers(0, len(seed)))
    content = (
        seed[:at] + data.draw(st.binary(max_size=8)) + seed[at + data.draw(st.integers(0, 4)) :]
    )
    files = one(tmp_path / name, content)
    said = ""
    try:
        assert all(pair.src.strip() and pair.tgt.strip() for pair in read_pairs(files))
    except DataError as error:
        said = error.in_language("zh")
    assert not said or str(files.both) in said


# 28: TMX and XLIFF

LAUGHS = "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 10))


@pytest.mark.parametrize(
    "declared",
    [
        f'<!ENTITY l0 "ha">{LAUGHS}',
        '<!ENTITY x SYSTEM "file:///etc/passwd">',
        '<!ENTITY % x SYSTEM "http://127.0.0.1:9/x.dtd"> %x;',
        "<!ELEMENT tmx ANY>",
    ],
)
def test_declarations_inside_a_document_are_refused(tmp_path, declared):
    head = f"<!DOCTYPE tmx [{declared}]>"
    files = one(tmp_path / "x.tmx", tmx(TU.format("&l9;"), head))
    with refuses(
        f"{files.both}, line 2: declarations within <!DOCTYPE> are refused, since an entity can "
        "grow without end; remove all between [ and ]"
    ):
        texts(files)


def test_an_entity_that_would_have_to_be_fetched_is_refused_rather_than_left_out(tmp_path):
    files = one(tmp_path / "x.tmx", tmx(TU.format("&nbsp;"), '<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n'))
    with refuses(
        f"{files.both}, line 3: the entity &nbsp; is not defined; write the character itself"
    ):
        texts(files)


@pytest.mark.parametrize("place", ["<seg>", "<tu>"])
def test_nesting_without_end_is_refused(tmp_path, place):
    units = TU.format(1).replace(place, place + "<hi>" * 100_000)
    files = one(tmp_path / "x.tmx", tmx(units))
    with refuses(f"{files.both}, line 2: elements nest more than 200 deep"):
        texts(files)


@pytest.mark.parametrize("start", ["<!--", '<tu a="', "<?x ", "<tu "])
def test_a_tag_or_comment_without_end_is_refused_in_little_memory(tmp_path, start):
    files = one(tmp_path / "x.tmx", tmx(start + "x" * 20_000_000))
    tracemalloc.start()
    with refuses(f"{files.both}, line 2: a tag or comment is longer than 1000000 bytes"):
        texts(files)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20_000_000


def test_broken_xml_is_refused_with_its_line(tmp_path):
    files = one(tmp_path / "x.tmx", tmx("\n\n" + TU.format(1))[:-20])
    with refuses(f"{files.both}, line 4: the XML cannot be read: unclosed token"):
        texts(files)


def test_xml_in_an_encoding_that_the_parser_does_not_know_is_refused(tmp_path):
    text = tmx(TU.format("很好") * 20)
    files = one(tmp_path / "x.tmx", text.encode("gbk"))
    with refuses(
        f"{files.both} is not UTF-8 but looks like GB18030; "
        "convert it with iconv -f GB18030 -t UTF-8"
    ):
        texts(files)
    declared = text.replace('"1.0"?', '"1.0" encoding="GBK"?')
    files = one(tmp_path / "x.tmx", declared.encode("gbk"))
    with refuses(
        f"{files.both} declares an encoding that cannot be read (multi-byte encodings are not "
        "supported); convert it to UTF-8 with iconv, and say so in its first line"
    ):
        texts(files)


@pytest.mark.parametrize("code", ["", "zz", "FFFFFFFF", "1" + "0" * 40])
def test_a_character_code_that_is_none_is_refused_with_its_line(tmp_path, code):
    units = (
        f'<file id="f"><unit id="u"><segment>\n<source>a<cp hex="{code}"/></source>'
        "<target>b</target></segment></unit></file>"
    )
    files = one(tmp_path / "x.xlf", f'<xliff version="2.0" srcLang="zh">{units}</xliff>')
    start = re.escape(f"{files.both}, line 2: the XML cannot be read: ")
    with pytest.raises(DataError, match=f"^{start}"):
        texts(files)


def test_what_a_unit_lacks_is_counted_and_the_others_are_read(tmp_path):
    units = TU.format(1) + TU.replace("zh", "de").format(2) + "<tu/>" + TU.format(3)
    files = one(tmp_path / "x.tmx", tmx(units).encode("utf-16"))
    tally = Tally()
    pairs = list(read_pairs(files, tally=tally))
    assert [(pair.line, pair.tgt) for pair in pairs] == [(1, "1."), (4, "3.")]
    assert tally.counts == {"missing-language": 2}


@pytest.mark.slow
def test_a_large_tmx_takes_little_memory(tmp_path):
    """100,000 units are to take less than 40 MB; a reader that keeps units would show by 20,000."""
    with (tmp_path / "x.tmx").open("w", encoding="utf-8") as file:
        file.write(tmx("")[: -len("</body></tmx>")])
        file.writelines(TU.format("好" * 60 + str(i)) + "\n" for i in range(20_000))
        file.write("</body></tmx>")
    script = (
        "files = CorpusFiles(None, None, Path(sys.argv[1]), 'zh', 'en')\n"
        "print(sum(1 for _ in read_pairs(files)))"
    )
    said, peak = peak_megabytes(script, tmp_path / "x.tmx")
    assert said == ["20000"]
    assert peak < 12
