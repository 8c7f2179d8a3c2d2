"""`regard translate -i a.po -o b.po`: written whole, resumable, and what is left is named."""

from pathlib import Path
from typing import get_args

import pytest

from regard.cli import bulk, documents
from regard.cli.main import main
from regard.cli.translate import FORMATS
from regard.document.document import Format

TATOEBA = Path(__file__).parents[1] / "models" / "tatoeba-zh-en"
PO = """\
msgid ""
msgstr ""
"Content-Type: text/plain; charset=UTF-8\\n"

msgid "我喜欢吃<b>苹果</b>。"
msgstr ""

msgctxt "menu"
msgid "{n, plural, one {一个} other {很多}}"
msgstr ""

msgid "你好，%s！"
msgstr ""
"""
SAID = PO.replace(
    'msgid "我喜欢吃<b>苹果</b>。"\nmsgstr ""',
    '#, fuzzy\nmsgid "我喜欢吃<b>苹果</b>。"\nmsgstr "I like eating <b>apples</b>."',
).replace('msgid "你好，%s！"\nmsgstr ""', '#, fuzzy\nmsgid "你好，%s！"\nmsgstr "Hello, %s!"')
LEFT = "{}, line 9 (menu): left untranslated: it is a message with plural or select branches\n"
COUNTED = "2 of 3 units translated, {} of them from the memory; 1 left\n"


def translate(*arguments):
    with pytest.raises(SystemExit) as left:
        main(["translate", "--model", str(TATOEBA), *map(str, arguments)])
    return left.value.code or 0


@pytest.fixture
def catalogue(tmp_path):
    path = tmp_path / "a.po"
    path.write_text(PO, encoding="utf-8")
    return path


def test_a_document_becomes_a_document_and_what_is_left_is_named(catalogue, capfd):
    target = catalogue.with_name("b.po")
    assert translate("-i", catalogue, "-o", target) == 0
    assert target.read_text(encoding="utf-8") == SAID
    said = capfd.readouterr()
    assert (said.out, said.err) == ("", LEFT.format(catalogue) + COUNTED.format(0))
    assert sorted(path.name for path in target.parent.iterdir()) == ["a.po", "b.po"]
    assert translate("-i", catalogue) == 0
    assert capfd.readouterr().out == SAID


def test_what_is_said_to_the_person_is_in_their_language(catalogue, capsys, monkeypatch):
    monkeypatch.setenv("REGARD_LANG", "zh")
    assert translate("-i", catalogue, "-o", catalogue.with_name("b.po")) == 0
    assert capsys.readouterr().err == (
        f"{catalogue}第9行 (menu)：没有翻译：是带plural或select分支的消息\n"
        "3个单元中翻译了2个，其中0个来自翻译记忆；1个没有翻译\n"
    )


def test_a_document_that_was_stopped_goes_on_to_the_same_output(catalogue, capsys, monkeypatch):
    monkeypatch.setattr(documents, "CHUNK", 1)
    target, real, calls = catalogue.with_name("b.po"), bulk.note, []

    def note_twice(*arguments):
        real(*arguments)
        calls.append(arguments)
        if len(calls) == 3:  # the beginning, and two units
            raise KeyboardInterrupt

    monkeypatch.setattr(bulk, "note", note_twice)
    assert translate("-i", catalogue, "-o", target) == 130
    assert not target.exists()
    assert translate("-i", catalogue, "-o", target) == 2
    assert "is a translation that was not finished" in capsys.readouterr().err
    assert translate("-i", catalogue, "-o", target, "--resume", "--beam", 2) == 2
    assert "was begun with another beam;" in capsys.readouterr().err
    assert translate("-i", catalogue, "-o", target, "--resume") == 0
    assert target.read_text(encoding="utf-8") == SAID
    assert capsys.readouterr().err == LEFT.format(catalogue) + COUNTED.format(0)
    assert len(list(target.parent.iterdir())) == 2


def test_a_memory_and_a_glossary_are_used(catalogue, tmp_path, capfd):
    memory, terms = tmp_path / "m.tmx", tmp_path / "g.csv"
    memory.write_text(
        '<tmx version="1.4"><header srclang="zh"/><body><tu><tuv xml:lang="zh"><seg>你好，%s！'
        '</seg></tuv><tuv xml:lang="en"><seg>Hi %s!</seg></tuv></tu></body></tmx>',
        encoding="utf-8",
    )
    terms.write_text("苹果,pears\n", encoding="utf-8")
    assert translate("-i", catalogue, "--memory", memory, "--glossary", terms) == 0
    said = capfd.readouterr()
    assert 'msgstr "I like eating <b>pears</b>."' in said.out
    assert '\n\nmsgid "你好，%s！"\nmsgstr "Hi %s!"\n' in said.out
    assert said.err.endswith(COUNTED.format(1))


def test_a_term_that_was_not_said_is_told():
    assert list(documents._not_said(["我吃苹果"], ["I eat."], {"苹果": "apple", "梨": "pear"})) == [
        "apple"
    ]
    assert list(documents._not_said(["a part"], ["x"], {"art": "Kunst"})) == []
    assert list(documents._not_said(["Art is"], ["Die Kunst"], {"art": "kunst"})) == []


def test_the_format_can_be_named_and_lines_stay_lines(catalogue, tmp_path, capfd):
    other = tmp_path / "a.txt"
    other.write_text(PO, encoding="utf-8")
    assert translate("-i", other, "--format", "po") == 0
    assert capfd.readouterr().out == SAID
    assert translate("-i", catalogue, "--format", "txt") == 0
    assert capfd.readouterr().out.count("\n") == PO.count("\n")


def test_tags_and_placeholders_in_rows_are_kept_too(tmp_path, capsys):
    rows = tmp_path / "a.tsv"
    rows.write_text("你好，%s！\t1\n我喜欢吃<b>苹果</b>。\t2\n\n", encoding="utf-8")
    assert translate("-i", rows) == 0
    assert capsys.readouterr().out == (
        "你好，%s！\t1\tHello, %s!\n我喜欢吃<b>苹果</b>。\t2\tI like eating <b>apples</b>.\n\t\n"
    )
    rows.write_text("{n, plural, one {一个} other {很多}}\n", encoding="utf-8")
    assert translate("-i", rows) == 0
    said = capsys.readouterr()
    assert said.out == "{n, plural, one {一个} other {很多}}\t\n"
    assert said.err == (
        "left untranslated: {n, plural, one {一个} other {很多}}: it is a message with plural or "
        "select branches\n"
    )


def test_what_makes_no_sense_for_a_document_is_refused(catalogue, tmp_path, capsys):
    for option in (["--nbest", 2], ["--alignments"], ["--json"], ["--prefix", "x"]):
        assert translate("-i", catalogue, *option) == 2
        assert capsys.readouterr().err == (
            f"error: {option[0]} is for lines of text, not for a document; leave it out\n"
        )
    lines = tmp_path / "a.zh"
    lines.write_text("好\n", encoding="utf-8")
    assert translate("-i", lines, "--memory", "m.tmx") == 2
    assert capsys.readouterr().err == (
        "error: the option --memory is for documents, not for lines of text\n"
    )
    assert translate("-i", catalogue, "--glossary", tmp_path / "none.tsv") == 3
    assert capsys.readouterr().err == f"error: there is no file {tmp_path / 'none.tsv'}\n"
    assert translate("-i", tmp_path / "none.po") == 3
    assert capsys.readouterr().err == f"error: there is no file {tmp_path / 'none.po'}\n"


def test_an_empty_document_is_an_empty_document(tmp_path):
    source, target = tmp_path / "a.srt", tmp_path / "b.srt"
    source.touch()
    assert translate("-i", source, "-o", target) == 0
    assert target.read_bytes() == b""


def test_the_formats_of_the_command_line_are_those_of_documents():
    assert get_args(Format) == FORMATS
