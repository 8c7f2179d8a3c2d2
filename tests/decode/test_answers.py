"""Texts are the same in whatever order their sentences are found."""

import random

import pytest

from regard.decode.answers import Answers
from regard.decode.search import Hypothesis
from regard.decode.translator import load
from regard.decode.wording import sentences_of

TEXTS = ["今天天气很好。", "", "一。\n\n二。\n三。", " \u200b ", "他们去了公园", "你好！\n再见。"]


@pytest.fixture(scope="module")
def wording():
    return load("tests/models/tatoeba-zh-en").wording


@pytest.mark.parametrize("n_best", [1, 2])
def test_texts_are_one_again_in_whatever_order_their_sentences_are_heard_of(wording, n_best):
    asked = wording.asked(TEXTS, [("", "")] * len(TEXTS))
    n_sentences = len(sentences_of(asked))
    words = [wording.tgt.encode(f"number {number}") for number in range(n_sentences)]
    found = [[Hypothesis(tuple(ids), -1.0 - n, True) for n in range(n_best)] for ids in words]
    expected = wording.translations(asked, found)
    assert expected[2].text == "number 1\n\nnumber 2\nnumber 3"
    numbers = list(range(n_sentences))
    for seed in range(5):
        random.Random(seed).shuffle(numbers)
        answers = Answers(wording, asked)
        for number in numbers:
            answers.hear(number, found[number])
        assert answers.all() == expected


def test_a_text_is_put_together_when_its_last_sentence_is_heard_of(wording):
    asked = wording.asked(TEXTS[2:3], [("", "")])
    answers = Answers(wording, asked)
    for number in (2, 0):
        answers.hear(number, [Hypothesis((), 0.0, True)])
        assert not answers.translations
    answers.hear(1, [Hypothesis((), 0.0, True)])
    assert answers.translations


def test_blank_texts_need_no_search(wording):
    answers = Answers(wording, wording.asked(["", "  "], [("", "")] * 2))
    assert [one.text for one in answers.all()] == ["", ""]
