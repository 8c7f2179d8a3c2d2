import math
import re

import pytest

from regard.cli import demo
from regard.cli.main import main


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
    assert demo.WORDS["en"].keys() == demo.WORDS["zh"].keys() == {"title", "terms", *demo.STEPS}
