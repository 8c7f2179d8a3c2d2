"""`regard translate`: arguments, a stream, formats, what is refused."""

import io
import json
import os
import subprocess
import sys
from itertools import islice
from pathlib import Path

import pytest

from regard.cli.main import main
from regard.data.tasks import examples
from regard.decode.translator import load

MODELS = Path(__file__).parents[1] / "models"
TATOEBA, NUMERALS = MODELS / "tatoeba-zh-en", MODELS / "numerals"


def translate(*arguments):
    with pytest.raises(SystemExit) as left:
        main(["translate", *map(str, arguments)])
    return left.value.code or 0


@pytest.fixture
def typed(monkeypatch):
    """Lines on stdin."""

    def say(data):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))

    return say


def test_without_a_model_the_one_that_comes_with_regard_is_asked(capsys, typed):
    assert translate("机器学习", "我喜欢喝茶。", "machine learning") == 0
    first, second, third = capsys.readouterr().out.splitlines()
    assert (first, second, third) == ("machine learning", "I like to drink tea.", "机器学习")
    typed("I like tea.\n\n我喜歡喝茶。\n".encode())
    assert translate("--to", "en") == 0
    said = capsys.readouterr().out.splitlines()
    assert said[1:] == ["", "I like to drink tea."]  # traditional script is understood too


def test_a_model_of_numerals_gets_unseen_ones_right():
    unseen = list(islice(examples("numerals", 2, "test"), 300))
    said = load(NUMERALS).translate([example.src for example in unseen])
    assert sum(a.text == b.tgt for a, b in zip(said, unseen, strict=True)) >= 0.98 * len(unseen)


def test_lines_end_as_they_may_and_each_has_its_answer(capsys, typed):
    typed("十二\r\n   \n\n三分之二".encode())
    assert translate("--model", NUMERALS) == 0
    assert capsys.readouterr().out == "twelve\n\n\ntwo thirds\n"
    typed(b"")
    assert translate("--model", NUMERALS) == 0
    assert capsys.readouterr().out == ""


def test_bytes_that_are_no_text_are_read_as_far_as_they_go_or_as_asked(capsys, typed):
    typed("十二\n\xff\n".encode("latin-1", "ignore") + "十二\n".encode())
    assert translate("--model", NUMERALS, "--on-bad", "empty") == 0
    said = capsys.readouterr()
    assert said.out.count("\n") == 3
    assert said.out.split("\n")[1] == ""
    assert "warning: line 2 is no text (invalid-utf8, 0xff at byte 1)\n" in said.err
    typed(b"\xff\n")
    assert translate("--model", NUMERALS, "--on-bad", "stop") == 3
    assert capsys.readouterr().err == (
        "error: line 1 is no text: invalid-utf8, 0xff at byte 1; correct it, or choose --on-bad\n"
    )
    typed(b"\xff\n")
    assert translate("--model", NUMERALS) == 0
    assert capsys.readouterr().out.count("\n") == 1


def test_a_line_is_answered_before_the_next_is_there():
    command = [sys.executable, "-m", "regard", "translate", "--model", NUMERALS]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        for asked, answer in (("十二", "twelve"), ("三分之二", "two thirds")):
            process.stdin.write(f"{asked}\n".encode())
            process.stdin.flush()
            assert process.stdout.readline().decode() == f"{answer}\n"
        process.stdin.close()
        assert process.wait(timeout=20) == 0


def test_whoever_stops_reading_is_not_told_of_a_broken_pipe():
    lines = "十二\n" * 3000
    done = subprocess.run(
        f"{sys.executable} -m regard translate --model {NUMERALS} --beam 1 | head -n 1",
        shell=True, input=lines.encode(), capture_output=True, check=True,
    )  # fmt: skip
    assert done.stdout == b"twelve\n"
    assert done.stderr == b""


def test_several_translations_are_numbered_and_scored(capsys):
    assert translate("--model", TATOEBA, "--nbest", 3, "我喜欢吃苹果。", "好") == 0
    rows = [line.split(" ||| ") for line in capsys.readouterr().out.splitlines()]
    assert [number for number, _, _ in rows] == ["0"] * 3 + ["1"] * 3
    assert rows[0][1] == "I like eating apples."
    assert float(rows[0][2]) > float(rows[1][2]) > float(rows[2][2])


def test_alignments_stand_behind_the_translation(capsys):
    assert translate("--model", TATOEBA, "--alignments", "我喜欢吃苹果。") == 0
    text, pairs = capsys.readouterr().out.rstrip("\n").split(" ||| ")
    assert text == "I like eating apples."
    assert [int(pair.split("-")[1]) for pair in pairs.split()] == list(range(len(pairs.split())))


def test_json_has_everything_in_one_line_each(capsys):
    assert translate("--model", TATOEBA, "--json", "--alignments", "--nbest", 2, "好", "") == 0
    first, second = map(json.loads, capsys.readouterr().out.splitlines())
    assert (first["source"], first["from"], first["to"]) == ("好", "zh", "en")
    assert first["alternatives"][0]["text"] == first["text"]
    assert first["alternatives"][0]["alignment"]["src_pieces"] == ["▁", "好"]
    assert second["text"] == ""


def test_what_is_drawn_depends_on_the_seed_and_on_nothing_else(capsys):
    said = []
    for seed in (1, 1, 2):
        arguments = ("--temperature", 1.5, "--nbest", 3, "--seed", seed)
        assert translate("--model", TATOEBA, *arguments, "我们明天去公园玩吧。") == 0
        said.append(capsys.readouterr().out)
    assert said[0] == said[1] != said[2]


def test_terms_come_from_a_file_and_words_can_be_forbidden(capsys, tmp_path):
    terms = tmp_path / "terms.tsv"
    terms.write_text("苹果\tpears\n\n", encoding="utf-8")
    assert translate("--model", TATOEBA, "--terms", terms, "我喜欢吃苹果。") == 0
    assert "pears" in capsys.readouterr().out
    assert translate("--model", TATOEBA, "--forbid", "apples", "我喜欢吃苹果。") == 0
    assert "apples" not in capsys.readouterr().out
    assert translate("--model", TATOEBA, "--prefix", "Apples", "我喜欢吃苹果。") == 0
    assert capsys.readouterr().out.startswith("Apples")
    terms.write_text("苹果 pears\n", encoding="utf-8")
    assert translate("--terms", terms, "好") == 3
    assert capsys.readouterr().err == (
        f"error: {terms}, line 1 is no term: the source's word, then what it is called, in two "
        "columns\n"
    )


def test_what_makes_no_sense_is_refused(capsys, tmp_path):
    assert translate("-i", tmp_path / "a", "text") == 2
    assert capsys.readouterr().err == "error: give a text or -i FILE, not both\n"
    assert translate("--resume", "text") == 2
    assert capsys.readouterr().err == ("error: the option --resume needs -i FILE and -o FILE\n")
    assert translate("--format", "po", "text") == 2
    assert capsys.readouterr().err == "error: the option --format needs -i FILE\n"
    assert translate("--model", NUMERALS, "--to", "fr", "十二") == 2
    assert capsys.readouterr().err == ("error: this model does not go ? → fr; it goes zh → en\n")


@pytest.mark.slow
def test_translating_with_ctranslate2_imports_no_torch(tmp_path):
    environment = {**os.environ, "REGARD_CACHE": str(tmp_path)}
    command = f"regard.cli.main.main(['translate', '--model', '{NUMERALS}', '十二'])"
    subprocess.run(  # the first time converts, which needs torch
        [sys.executable, "-c", f"import regard.cli.main; {command}"],
        env=environment, check=True, capture_output=True,
    )  # fmt: skip
    forbid = "import sys; sys.modules['torch'] = None; import regard.cli.main; "
    done = subprocess.run(
        [sys.executable, "-c", forbid + command], env=environment, capture_output=True, check=True
    )
    assert done.stdout == b"twelve\n"
