import json
import re

import pytest
import sacrebleu

from regard.cli.main import main
from regard.cli.translate import BUNDLED


def run(*arguments):
    with pytest.raises(SystemExit) as left:
        main([*map(str, arguments)])
    return left.value.code or 0


@pytest.fixture
def files(tmp_path):
    texts = {
        "src.zh": ["二十一", "三分之二", "五元"],
        "ref.en": ["twenty-one", "two thirds", "5 yuan"],
        "good.en": ["twenty-one", "two thirds", "5 yuan 5 fen"],
        "bad.en": ["twenty", "a third", ""],
    }
    for name, lines in texts.items():
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    return tmp_path


def test_translations_are_scored_as_sacrebleu_scores_them(files, capsys):
    assert run("evaluate", "--hyp", files / "good.en", "--ref", files / "ref.en", "--json") == 0
    report = json.loads(capsys.readouterr().out)
    hypotheses = (files / "good.en").read_text().splitlines()
    references = (files / "ref.en").read_text().splitlines()
    found = report["systems"]["good.en"]["scores"]
    assert found["bleu"]["value"] == pytest.approx(
        sacrebleu.corpus_bleu(hypotheses, [references], force=True).score
    )
    assert "tok:13a" in found["bleu"]["signature"]
    assert found["exact"]["value"] == pytest.approx(200 / 3)


def test_a_model_is_scored_beside_files_with_its_speed(files, capsys):
    assert run(
        "evaluate", "--model", BUNDLED, "--src", files / "src.zh", "--ref", files / "ref.en",
        "--compare", files / "bad.en", "--json",
    ) == 0  # fmt: skip
    report = json.loads(capsys.readouterr().out)
    model, bad = report["systems"]["model"], report["systems"]["bad.en"]
    assert model["scores"]["exact"]["value"] == 100.0
    assert model["run"]["seconds"] > 0
    assert bad["outputs"]["empty"] == [3]
    assert bad["scores"]["bleu"]["p"] is not None
    assert report["tgt_lang"] == "en"


def test_the_table_has_a_row_for_each_system_and_every_signature(files, capsys, monkeypatch):
    monkeypatch.setenv("REGARD_LANG", "zh")
    assert run(
        "evaluate", "--hyp", files / "good.en", "--ref", files / "ref.en",
        "--compare", files / "bad.en",
    ) == 0  # fmt: skip
    out = capsys.readouterr().out
    assert re.search(r"^系统 .*\ngood\.en .*\nbad\.en .*\n\nBLEU .*nrefs:1", out)


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        ((), 2, "give --model or --hyp: what is to be scored"),
        (("--model", BUNDLED), 2, "a model needs --src, the text to translate"),
    ],
)
def test_what_cannot_be_scored_is_one_sentence(
    files, arguments, code, sentence, capsys, monkeypatch
):
    monkeypatch.setenv("REGARD_LANG", "en")
    assert run("evaluate", "--ref", files / "ref.en", *arguments) == code
    assert capsys.readouterr().err == f"error: {sentence}\n"


def test_a_line_that_is_no_text_is_named(files, capsys, monkeypatch):
    monkeypatch.setenv("REGARD_LANG", "en")
    (files / "bad.en").write_bytes(b"one\n\xff\xfe two\n\n")
    assert run("evaluate", "--hyp", files / "bad.en", "--ref", files / "ref.en") == 3
    said = capsys.readouterr().err
    assert re.fullmatch(
        rf"error: {re.escape(str(files / 'bad.en'))}, line 2 is no text: invalid-utf8, .*; "
        r"correct it first\n",
        said,
    )


def test_a_model_is_described(capsys, monkeypatch):
    monkeypatch.setenv("REGARD_LANG", "en")
    assert run("inspect", BUNDLED) == 0
    out = capsys.readouterr().out
    assert "from → to: zh → en" in out
    assert "network: transformer, 2+2, d 96" in out
    assert run("inspect", BUNDLED, "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    from regard.decode.translator import open_translator

    network = open_translator(BUNDLED).network
    assert facts["n_parameters"] == sum(p.numel() for p in network.parameters())
