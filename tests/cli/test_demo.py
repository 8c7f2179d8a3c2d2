import math
import re

import pytest
import torch

from regard.bundle import write_bundle
from regard.cli import demo
from regard.cli.main import main
from regard.config import ModelConfig
from regard.decode import translator
from regard.model.build import build_model
from regard.model.weights import save_tensors, weights_of
from regard.text.tokenizer import train_tokenizer


def shown(capsys, monkeypatch, language):
    monkeypatch.setenv("REGARD_LANG", language)
    with pytest.raises(SystemExit):
        main(["demo"])
    return capsys.readouterr().out


def matrix_under(caption, text):
    """The three rows of numbers under a caption."""
    rows = text[text.index(f"\n{caption}\n") :].splitlines()[2:5]
    return [[float(x) for x in re.findall(r"-?\d+(?:\.\d+)?", row)] for row in rows]


def times(a, b):
    return [
        [sum(x * y for x, y in zip(row, col, strict=True)) for col in zip(*b, strict=True)]
        for row in a
    ]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_worked_example_is_what_math_alone_makes_of_its_x_and_w(capsys, monkeypatch, language):
    text, words = shown(capsys, monkeypatch, language), demo.WORDS[language]
    x, w_query, w_key, w_value = (
        matrix_under(words[name], text) for name in ("x", "w_query", "w_key", "w_value")
    )
    query, key, value = times(x, w_query), times(x, w_key), times(x, w_value)
    dots = times(query, [list(column) for column in zip(*key, strict=True)])
    scores = [[dot / math.sqrt(3) for dot in row] for row in dots]
    exps = [[math.exp(score) for score in row] for row in scores]
    weights = [[e / sum(row) for e in row] for row in exps]
    output = times(weights, value)
    for name, expected in {
        "query": query, "key": key, "value": value, "dots": dots,
        "scores": scores, "weights": weights, "output": output,
    }.items():  # fmt: skip
        rounded = [[round(number, 4) for number in row] for row in expected]
        assert matrix_under(words[name], text) == rounded, name


def test_whole_numbers_are_shown_whole_and_others_to_four_digits(capsys, monkeypatch):
    text = shown(capsys, monkeypatch, "en")
    assert "\n   1   0   2\n" in text
    assert re.search(r"\d\.\d{4}\b", text)
    assert not re.search(r"\d\.\d{5}", text)


def test_the_first_row_is_shown_as_its_terms(capsys, monkeypatch):
    last = shown(capsys, monkeypatch, "en").splitlines()[-2:]
    terms = re.findall(r"(\d\.\d+) · \[(\d+), (\d+), (\d+)\]", last[0])
    total = [sum(float(w) * float(v[d]) for w, *v in terms) for d in range(3)]
    assert [float(x) for x in re.findall(r"\d\.\d+", last[1])] == pytest.approx(total, abs=1e-3)


def test_both_languages_have_words_for_every_step():
    rest = {"title", "terms", "translations", "picture", "zh", "en"}
    assert demo.WORDS["en"].keys() == demo.WORDS["zh"].keys() == {*rest, *demo.STEPS}


@pytest.fixture
def both_ways(tmp_path, monkeypatch):
    """A network that has learned nothing, of both directions, in the place of the model."""
    config = ModelConfig(d_model=16, n_heads=2, n_layers=1, d_ff=16, max_len=128)
    texts = [*demo.CHINESE, *demo.ENGLISH]
    tokenizer = train_tokenizer(texts, kind="char", size=500, languages=["zh", "en"])
    torch.manual_seed(1)
    network = build_model(config, len(tokenizer.vocab), len(tokenizer.vocab))
    write_bundle(
        tmp_path / "model",
        config,
        (tokenizer, tokenizer),
        lambda path: save_tensors(weights_of(network), path),
        facts={"directions": [["zh", "en"], ["en", "zh"]]},
        card="",
    )
    monkeypatch.setattr(translator, "BUNDLED", tmp_path / "model")


@pytest.mark.usefixtures("both_ways")
@pytest.mark.parametrize(("language", "heads"), [
    ("en", ["From Chinese to English", "From English to Chinese", "Where the model looked"]),
    ("zh", ["中译英", "英译中", "模型看了哪里"]),
])  # fmt: skip
def test_a_model_of_both_directions_shows_a_dozen_each_way_and_a_picture(
    capsys, monkeypatch, language, heads
):
    asked = []
    translate = translator.Translator.translate
    monkeypatch.setattr(
        translator.Translator,
        "translate",
        lambda self, texts, **more: asked.append((texts, more)) or translate(self, texts, **more),
    )
    text = shown(capsys, monkeypatch, language)
    places = [text.index(head) for head in [*heads, demo.WORDS[language]["title"]]]
    assert places == sorted(places)
    assert asked[:2] == [
        (demo.CHINESE, {"src_lang": "zh", "tgt_lang": "en"}),
        (demo.ENGLISH, {"src_lang": "en", "tgt_lang": "zh"}),
    ]
    for texts, place in ((demo.CHINESE, places[0]), (demo.ENGLISH, places[1])):
        lines = text[place:].splitlines()[2:14]
        assert [line.split(" → ")[0].strip() for line in lines] == list(texts)
    assert "░░ ≥ 0.05" in text[places[2] : places[3]]


def test_there_are_a_dozen_each_way_with_machine_learning_among_them():
    assert len(demo.CHINESE) == len(demo.ENGLISH) == len(demo.NUMERALS) == 12
    assert "机器学习" in demo.CHINESE
    assert "machine learning" in demo.ENGLISH


def test_a_model_of_one_direction_is_asked_for_numerals(capsys, monkeypatch):
    monkeypatch.setattr(translator.Translator, "directions", (("zh", "en"),))
    text = shown(capsys, monkeypatch, "en")
    lines = text.splitlines()[2:14]
    assert [line.split(" → ")[0].strip() for line in lines] == list(demo.NUMERALS)
    assert "From English to Chinese" not in text
