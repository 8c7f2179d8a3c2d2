"""Small texts made by rule, and a tokenizer of each kind trained on them once."""

from functools import cache
from random import Random

import pytest

from regard.text.tokenizer import train_tokenizer

SIZES = {"unigram": 420, "bpe": 420, "char": 360, "word": 320}
ENGLISH = ["the", "a", "cat", "sat", "on", "mat", "while", "dogs", "ran", "over", "hills"]
ENGLISH += ["and", "birds", "sang", "in", "trees", "12", "345"]
CHINESE = "我们今天去公园看猫和狗他说你好谢谢中国北京上海注意力模型翻译"


def lines(n_lines=400):
    random = Random(7)
    for at in range(n_lines):
        if at % 2:
            yield " ".join(random.choices(ENGLISH, k=8)) + "."
        else:
            yield "".join(random.choices(CHINESE, k=12)) + "，好。"


def train(kind):
    return train_tokenizer(lines(), kind=kind, size=SIZES[kind], languages=["en", "zh"], threads=1)


@pytest.fixture(scope="session")
def corpus():
    """A function from a number of lines to these lines."""
    return lines


@pytest.fixture(scope="session")
def train_again():
    """A function from a kind to a tokenizer of its own."""
    return train


@pytest.fixture(scope="session")
def trained():
    """A function from a kind to the one tokenizer of this kind."""
    return cache(train)


@pytest.fixture(params=SIZES)
def kind(request):
    return request.param


@pytest.fixture
def tokenizer(kind, trained):
    return trained(kind)


@pytest.fixture(params=["unigram", "bpe"])
def subword(request, trained):
    return trained(request.param)
