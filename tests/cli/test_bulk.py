"""A file translated into another."""

import gzip
from pathlib import Path

import pytest

from regard.cli import bulk
from regard.cli.main import main

NUMERALS = Path(__file__).parents[1] / "models" / "numerals"
LINES = ["十二", "", "三分之二", "三百零五元四角二分"]
SAID = ["twelve", "", "two thirds", "305 yuan 42 fen"]


def translate(*arguments):
    with pytest.raises(SystemExit) as left:
        main(["translate", "--model", str(NUMERALS), *map(str, arguments)])
    return left.value.code or 0


def written(path, lines):
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return path


def lines_of(path):
    return path.read_text(encoding="utf-8").split("\n")[:-1]


def test_a_file_becomes_a_file_line_for_line(tmp_path, capsys):
    source, target = written(tmp_path / "a.zh", LINES), tmp_path / "a.en"
    assert translate("-i", source, "-o", target) == 0
    assert lines_of(target) == SAID
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.en", "a.zh"]
    assert capsys.readouterr().out == ""
    assert translate("-i", source) == 0
    assert capsys.readouterr().out.splitlines() == SAID


def test_archives_are_read_and_an_empty_file_gives_an_empty_one(tmp_path):
    packed, empty = tmp_path / "a.zh.gz", tmp_path / "empty"
    packed.write_bytes(gzip.compress("\n".join(LINES).encode()))
    empty.touch()
    assert translate("-i", packed, "-o", tmp_path / "a.en") == 0
    assert lines_of(tmp_path / "a.en") == SAID
    assert translate("-i", empty, "-o", tmp_path / "empty.en") == 0
    assert (tmp_path / "empty.en").read_bytes() == b""


def test_of_columns_the_first_is_translated_and_all_are_kept(tmp_path):
    source = written(tmp_path / "a.tsv", ["十二\tid-1", "三分之二\tid-2\tx", ""])
    assert translate("-i", source, "-o", tmp_path / "b.tsv") == 0
    assert lines_of(tmp_path / "b.tsv") == [
        "十二\tid-1\ttwelve", "三分之二\tid-2\tx\ttwo thirds", "\t",
    ]  # fmt: skip


@pytest.fixture
def half_done(tmp_path, monkeypatch):
    """A file of many chunks whose translation stopped after two of them, within the third."""
    monkeypatch.setattr(bulk, "CHUNK", 3)
    source, target = written(tmp_path / "a.zh", LINES * 5), tmp_path / "a.en"
    assert translate("-i", source, "-o", target) == 0
    whole = target.read_bytes()
    target.unlink()

    real, calls = bulk.note, []

    def note_twice(*arguments):
        real(*arguments)
        calls.append(arguments)
        if len(calls) == 3:  # the beginning, and two chunks
            raise KeyboardInterrupt

    monkeypatch.setattr(bulk, "note", note_twice)
    assert translate("-i", source, "-o", target) == 130
    monkeypatch.setattr(bulk, "note", real)
    with (tmp_path / "a.en.part").open("ab") as part:
        part.write(b"half a chu")
    return source, target, whole


def test_what_was_stopped_goes_on_to_the_same_output(half_done, capsys):
    source, target, whole = half_done
    assert not target.exists()
    assert translate("-i", source, "-o", target) == 2
    assert capsys.readouterr().err == (
        f"error: {target}.part is a translation that was not finished; go on with --resume, or "
        "remove it\n"
    )
    assert translate("-i", source, "-o", target, "--resume") == 0
    assert target.read_bytes() == whole
    assert sorted(path.name for path in target.parent.iterdir()) == ["a.en", "a.zh"]


def test_what_was_begun_otherwise_is_refused_by_name(half_done, capsys):
    source, target, _ = half_done
    assert translate("-i", source, "-o", target, "--resume", "--beam", 2) == 2
    assert capsys.readouterr().err == (
        f"error: {target}.part was begun with another beam; ask for the same again, or remove it\n"
    )
    written(source, LINES * 6)
    assert translate("-i", source, "-o", target, "--resume") == 2
    assert "another input, lines;" in capsys.readouterr().err
    written(source, LINES * 5)
    (target.parent / "a.en.part").write_bytes(b"")
    assert translate("-i", source, "-o", target, "--resume") == 3
    assert capsys.readouterr().err == (
        f"error: {target}.part is shorter than it was; remove it and begin again\n"
    )


@pytest.mark.parametrize("name", ["a.zh", "sub/../a.zh", "link.zh"])
def test_no_file_is_written_over_itself(tmp_path, capsys, monkeypatch, name):
    monkeypatch.setenv("REGARD_LANG", "en")
    source = written(tmp_path / "a.zh", LINES)
    (tmp_path / "sub").mkdir()
    (tmp_path / "link.zh").symlink_to(source)
    target = tmp_path / name
    refusal = f"error: {target} would be written over itself; name another place with -o\n"
    for asked in (("-i", source), ("-i", source, "--format", "html")):
        assert translate(*asked, "-o", target) == 2
        assert capsys.readouterr().err == refusal
    with source.open() as lines:
        monkeypatch.setattr("sys.stdin", lines)
        assert translate("-o", target) == 2
    assert capsys.readouterr().err == refusal
    assert lines_of(source) == LINES


def test_places_and_kinds_that_will_not_do_are_refused_before_the_work(tmp_path, capsys):
    source = written(tmp_path / "a.zh", LINES)
    for arguments, message in {
        ("-i", tmp_path / "none"): f"there is no file {tmp_path / 'none'}",
        ("-i", written(tmp_path / "a.docx", LINES)): (
            f"{tmp_path / 'a.docx'} is no text that can be translated: plain text, TSV, TMX, "
            "XLIFF, PO, SRT, VTT and HTML can, .docx cannot; --format says what a file is"
        ),
        ("-i", source, "-o", tmp_path): (
            f"the output {tmp_path} is a directory; name a file in it"
        ),
        ("-i", source, "-o", tmp_path / "a.gz"): (
            f"the output {tmp_path / 'a.gz'} would be plain text; name it without .gz"
        ),
        ("-i", source, "-o", tmp_path / "no" / "a"): (
            f"there is no directory {tmp_path / 'no'} to write to"
        ),
    }.items():
        assert translate(*arguments) in (2, 3)
        assert capsys.readouterr().err == f"error: {message}\n"


def test_how_far_it_is_is_told_now_and_then(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(bulk, "CHUNK", 2)
    monkeypatch.setattr(bulk, "SECONDS", -1.0)
    source = written(tmp_path / "a.zh", LINES)
    assert translate("-i", source, "-o", tmp_path / "a.en") == 0
    first, last = capsys.readouterr().err.splitlines()
    assert first.startswith("2 of 4 lines, ")
    assert last.startswith("4 of 4 lines, ")
