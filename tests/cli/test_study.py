import json

import pytest

from regard.cli.main import main
from regard.study import conduct as conducting
from regard.study.claim import Claim, Result, at_least
from regard.study.contents import CONTENTS
from regard.view.panels import Figure, Heat, Words

WORDS = Words("the number", "这个数")
CLAIM = Claim(
    note="002",
    words=Words("It is so.", "正是如此。"),
    measured=WORDS,
    bound=at_least(1.0),
    control=WORDS,
)
FIGURE = Figure(WORDS, (Heat(WORDS, ((1.0,),), WORDS, WORDS),))


@pytest.fixture(autouse=True)
def _in_english_and_elsewhere(monkeypatch, tmp_path):
    monkeypatch.setenv("REGARD_LANG", "en")
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def asked(monkeypatch):
    """Every experiment as one that takes no time, and how each was run; e02 has no control."""
    seen = []

    def experiments(model=None):
        def make(name):
            def run(seed, quick):
                seen.append((name, seed, quick, model))
                control = 2.0 if name == "e02_addressing" else 0.25
                return Result((CLAIM.found(2.5, control),), FIGURE)

            return run

        return {name: make(name) for name in CONTENTS}

    monkeypatch.setattr(conducting, "experiments", experiments)
    return seen


def run(*arguments):
    with pytest.raises(SystemExit) as left:
        main(["study", *map(str, arguments)])
    return left.value.code or 0


def test_without_a_name_the_experiments_are_listed_and_none_is_run(asked, capsys):
    assert run() == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(CONTENTS)
    assert asked == []


def test_a_claim_is_one_line_with_its_verdict_its_number_and_its_control(asked, capsys, tmp_path):
    assert run("e04", "--seed", 7) == 0
    said = capsys.readouterr()
    assert said.out == ("e04_root_d  holds  It is so.  [note 002] 2.5 (at least 1), control 0.25\n")
    assert "written to experiments/e04_root_d" in said.err
    assert asked == [("e04_root_d", 7, False, None)]
    found = json.loads((tmp_path / "experiments/e04_root_d/result.json").read_text())
    assert (found["seed"], found["findings"][0]["verdict"]) == (7, "holds")
    assert (tmp_path / "experiments/e04_root_d/figure.svg").exists()


def test_a_real_experiment_says_each_verdict_in_the_words_promised(capsys):
    assert run("e02", "--quick", "--seed", 11) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("  ")[1] for line in lines] == [
        "holds with a limit",
        "holds",
        "does not hold",
    ]


def test_chinese_readers_are_answered_in_chinese(asked, capsys, monkeypatch):
    monkeypatch.setenv("REGARD_LANG", "zh")
    assert run("e04", "--quick") == 0
    said = capsys.readouterr().out
    assert said == "e04_root_d  成立  正是如此。  [笔记002] 2.5（至少1），对照0.25\n"


def test_the_quick_form_writes_nothing_unless_told_where(asked, tmp_path, capsys):
    assert run("e04", "--quick") == 0
    assert list(tmp_path.iterdir()) == []
    assert run("e04", "--quick", "--out", "there") == 0
    assert json.loads((tmp_path / "there/e04_root_d/result.json").read_text())["quick"] is True
    assert [quick for _, _, quick, _ in asked] == [True, True]


def test_a_control_that_fails_is_said_and_the_others_are_run_all_the_same(asked, capsys, tmp_path):
    assert run("--all") == 4
    said = capsys.readouterr()
    assert len(said.out.splitlines()) == len(CONTENTS) - 1
    assert (
        "e02_addressing: e02_addressing shows nothing, for its control came out as its number did: "
        "2.5 and 2, where at least 1 was asked of: the number"
    ) in said.err
    assert not (tmp_path / "experiments/e02_addressing").exists()
    assert [name for name, *_ in asked] == list(CONTENTS)


def test_a_model_is_handed_to_those_who_look_into_one(asked, tmp_path):
    assert run("e13", "--quick", "--model", tmp_path) == 0
    assert asked == [("e13_poem", 1, True, tmp_path)]


def test_an_unknown_name_is_a_matter_of_usage(asked, capsys):
    assert run("e04_rot") == 2
    assert capsys.readouterr().err == (
        "error: there is no experiment e04_rot; did you mean e04_root_d? regard study lists all\n"
    )


def test_a_model_without_self_attention_is_refused(tmp_path, capsys):
    from regard.bundle import write_bundle
    from regard.config import ModelConfig
    from regard.model import build_model
    from regard.model.weights import save_tensors, weights_of
    from regard.text.tokenizer import train_tokenizer

    config = ModelConfig(kind="recurrent", d_model=8, n_layers=1, max_len=32)
    tokenizer = train_tokenizer(["梦里若有"], kind="char", size=300)
    weights = weights_of(build_model(config, len(tokenizer.vocab), len(tokenizer.vocab)))
    path = tmp_path / "model"
    write_bundle(path, config, (tokenizer, tokenizer), lambda place: save_tensors(weights, place),
                 facts={}, card="")  # fmt: skip
    assert run("e13", "--quick", "--model", path) == 4
    assert capsys.readouterr().err == (
        f"e13_poem: {path} has no self-attention to look into; name a Transformer with --model\n"
    )
