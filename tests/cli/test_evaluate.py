import json
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
import sacrebleu

from regard.bundle import open_bundle
from regard.cli.main import main
from regard.model.build import build_model

NUMERALS = Path(__file__).parents[1] / "models" / "numerals"


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
        "evaluate", "--model", NUMERALS, "--src", files / "src.zh", "--ref", files / "ref.en",
        "--compare", files / "bad.en", "--beam", 1, "--json",
    ) == 0  # fmt: skip
    report = json.loads(capsys.readouterr().out)
    model, bad = report["systems"]["numerals"], report["systems"]["bad.en"]
    assert model["scores"]["exact"]["value"] == 100.0
    assert model["run"]["seconds"] > 0
    assert model["run"]["sentences_per_s"] == pytest.approx(3 / model["run"]["seconds"])
    assert model["run"]["peak_bytes"] > 2**20
    assert bad["outputs"]["empty"] == [3]
    assert bad["scores"]["bleu"]["p"] is not None
    assert report["tgt_lang"] == "en"


def test_a_model_is_opened_and_verified_once(files, capsys, monkeypatch):
    verified = []
    monkeypatch.setattr("regard.bundle._check_files", lambda path, files: verified.append(path))
    assert run(
        "evaluate", "--model", NUMERALS, "--src", files / "src.zh", "--ref", files / "ref.en"
    ) == 0  # fmt: skip
    assert verified == [NUMERALS]


class TwoWays:
    """A translator as far as evaluating looks at it, which writes down what it was asked."""

    directions = (("en", "zh"), ("zh", "en"))

    def __init__(self):
        self.asked = []

    def translate(self, texts, *, beam, tgt_lang):
        self.asked.append((len(texts), beam, tgt_lang))
        return [SimpleNamespace(text=text, tgt_lang=tgt_lang or "zh") for text in texts]


def test_a_model_of_two_directions_goes_to_the_language_of_the_reference(
    files, capsys, monkeypatch
):
    model = TwoWays()
    monkeypatch.setattr("regard.decode.translator.load", lambda path, device: model)
    given = ("--model", files, "--src", files / "src.zh", "--ref", files / "ref.en", "--json")
    assert run("evaluate", *given, "--beam", 4) == 0
    assert json.loads(capsys.readouterr().out)["tgt_lang"] == "en"
    assert model.asked == [(1, 4, "en"), (3, 4, "en")]  # first one, to be ready


def test_a_model_that_is_not_there_is_named(files, capsys, monkeypatch):
    monkeypatch.setenv("REGARD_LANG", "en")
    place = files / "nothing"
    given = ("--model", place, "--src", files / "src.zh", "--ref", files / "ref.en")
    assert run("evaluate", *given) == 4
    assert capsys.readouterr().err == f"error: there is no model directory {place}\n"


def test_the_table_has_a_row_for_each_system_and_every_signature(files, capsys, monkeypatch):
    monkeypatch.setenv("REGARD_LANG", "zh")
    assert run(
        "evaluate", "--hyp", files / "good.en", "--ref", files / "ref.en",
        "--compare", files / "bad.en",
    ) == 0  # fmt: skip
    out = capsys.readouterr().out
    assert re.search(r"^系统 .*\ngood\.en .*\nbad\.en .*\n\n", out)
    titles = ["BLEU", "BLEU (lc, Moses tokens)", "chrF", "TER", "exact"]
    assert re.findall(r"^(\S.*\S) +nrefs:1\|", out, re.MULTILINE) == titles


@pytest.mark.parametrize(
    ("language", "missing", "said"),
    [
        ("en", "package",
         "BLEU of lower-cased Moses words is left out: pip install 'regard[moses]'"),
        ("zh", "package", "没有小写Moses分词的BLEU：请pip install 'regard[moses]'"),
        ("en", "rules", "BLEU of lower-cased Moses words is left out: Moses has no rules for xx; "
         "--to names another language, such as de"),
        ("zh", "rules", "没有小写Moses分词的BLEU：Moses没有xx的规则；可用--to另指语言，例如de"),
    ],
)  # fmt: skip
def test_why_there_is_no_figure_in_moses_words_is_told_to_those_who_ask(
    files, capsys, monkeypatch, language, missing, said
):
    monkeypatch.setenv("REGARD_LANG", language)
    to = ("--to", "xx") if missing == "rules" else ()
    if missing == "package":
        for module in ("evaluate.metrics", "cli.evaluate"):
            monkeypatch.setattr(f"regard.{module}.find_spec", lambda name: None)
    for asks in ((), ("--moses",)):
        given = ("--hyp", files / "good.en", "--ref", files / "ref.en", "--json", *to, *asks)
        assert run("evaluate", *given) == 0
        shown = capsys.readouterr()
        assert shown.err == (f"{said}\n" if asks else "")
        assert json.loads(shown.out)["systems"]["good.en"]["scores"]["bleu_moses"] is None


def test_words_that_do_not_fit_the_language_are_a_warning(files, capsys, monkeypatch):
    monkeypatch.setenv("REGARD_LANG", "en")
    given = ("--hyp", files / "src.zh", "--ref", files / "src.zh")
    assert run("evaluate", *given, "--to", "en") == 0
    assert capsys.readouterr().err == (
        "warning: BLEU's words do not fit this text; is en its language? give --to\n"
    )
    assert run("evaluate", *given) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        ((), 2, "give --model or --hyp: what is to be scored"),
        (("--model", NUMERALS), 2, "a model needs --src, the text to translate"),
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
    assert run("inspect", NUMERALS) == 0
    out = capsys.readouterr().out
    assert "from → to: zh → en" in out
    assert "network: transformer, 2+2 layers, d 96, 4 heads, d_ff 384, pre-norm" in out
    assert run("inspect", NUMERALS, "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    bundle = open_bundle(NUMERALS)
    vocabs = bundle.src_tokenizer.vocab, bundle.tgt_tokenizer.vocab
    network = build_model(bundle.model, *map(len, vocabs))
    assert facts["n_parameters"] == sum(p.numel() for p in network.parameters())
