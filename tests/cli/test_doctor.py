import json

import pytest

from regard.cli.main import main


@pytest.fixture
def corpus(tmp_path):
    lines = {"zh": [f"第{i}句。" for i in range(200)], "en": [f"Sentence {i}." for i in range(200)]}
    for name, keep in (("train", slice(None)), ("test", slice(3, 5))):
        for language, texts in lines.items():
            (tmp_path / f"{name}.{language}").write_text("\n".join(texts[keep]) + "\n")
    return tmp_path


def run(*arguments):
    with pytest.raises(SystemExit) as left:
        main(["doctor", *map(str, arguments)])
    return left.value.code or 0


def test_json_goes_to_stdout_and_says_what_overlaps(corpus, capsys):
    assert run(corpus, "--json") == 0
    table = json.loads(capsys.readouterr().out)
    assert table["overlap"]["test"]["lines"] == [[1, 4], [2, 5]]


@pytest.mark.parametrize(
    ("language", "said"),
    [("en", "worth turning on: drop_overlap (2)"), ("zh", "建议打开的过滤器：drop_overlap (2)")],
)
def test_the_report_is_in_the_readers_language(corpus, capsys, monkeypatch, language, said):
    monkeypatch.setenv("REGARD_LANG", language)
    assert run(corpus, "--from", "zh", "--to", "en") == 0
    out = capsys.readouterr().out
    assert said in out
    assert "200" in out


def test_a_broken_corpus_is_reported_and_then_refused(corpus, capsys):
    (corpus / "train.zh").write_text("一行\n")
    assert run(corpus, "--json") == 3
    said = capsys.readouterr()
    assert json.loads(said.out)["faults"][0]["kind"] == "line-count"
    assert said.err.count("\n") == 1


def test_a_corpus_that_is_not_there_is_one_sentence(tmp_path, capsys):
    assert run(tmp_path / "nothing") == 3
    assert capsys.readouterr().err.count("\n") == 1


def test_a_corpus_without_one_pair_is_not_well(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("REGARD_LANG", "en")
    path = tmp_path / "text"
    path.write_text("only one side\nand another line\n")
    assert run(path) == 3
    assert capsys.readouterr().err == (
        f"error: no pair could be read from {path}; two plain files need both their names, one "
        "file with both sides is TSV, JSONL, TMX, XLIFF or PO by its ending\n"
    )
