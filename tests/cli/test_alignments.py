"""`regard evaluate --gold`: the error rate of alignments."""

import json
from pathlib import Path

import pytest

from regard.cli.main import main

TATOEBA = Path(__file__).parents[1] / "models" / "tatoeba-zh-en"


def evaluate(*arguments):
    with pytest.raises(SystemExit) as left:
        main(["evaluate", *map(str, arguments)])
    return left.value.code or 0


@pytest.fixture
def files(tmp_path):
    texts = {"zh": "我 喜欢 吃 苹果 。\n", "en": "I like eating apples .\n",
             "gold": "0-0 1-1 2-2 3-3 4-4\n", "ours": "0-0 1-1 2-2 3-3 4-0\n"}  # fmt: skip
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return {name: tmp_path / name for name in texts}


def test_links_of_a_file_and_of_a_model_are_judged(files, capsys):
    assert evaluate("--alignments", files["ours"], "--gold", files["gold"]) == 0
    assert capsys.readouterr().out == "AER 0.2000  (1 pairs, 5 links, 5 sure and 0 possible)\n"
    given = ("--model", TATOEBA, "--src", files["zh"], "--ref", files["en"])
    assert evaluate(*given, "--gold", files["gold"], "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["pairs"], found["sure"]) == (1, 5)
    assert found["aer"] < 0.2


def test_what_is_missing_or_does_not_fit_is_said(files, capsys):
    sentence = (
        "error: give --gold and what is judged by it: --alignments, or --model with --src and "
        "--ref\n"
    )
    for arguments in (("--alignments", files["ours"]), ("--gold", files["gold"])):
        assert evaluate(*arguments) == 2
        assert capsys.readouterr().err == sentence
    files["gold"].write_text("0-0\n1-1\n")
    assert evaluate("--alignments", files["ours"], "--gold", files["gold"]) == 3
    assert capsys.readouterr().err == (
        f"error: {files['ours']} has 1 lines but {files['gold']} has 2; each line is a pair\n"
    )
    assert evaluate("--hyp", files["en"]) == 2
    assert capsys.readouterr().err == "error: there is no --ref to score against\n"
