"""Translators for marked texts: one that changes nothing, one that turns words about, real ones."""

import re
from pathlib import Path

import pytest

from regard.decode.results import Alignment, Alternative, Translation
from regard.decode.translator import load

TATOEBA = Path(__file__).parents[1] / "models" / "tatoeba-zh-en"


def translation(source, text, links, src_pieces, tgt_pieces, languages=("en", "en")):
    alignment = Alignment(tuple(src_pieces), tuple(tgt_pieces), tuple(links))
    return Translation(source, *languages, (Alternative(text, 0.0, True, alignment),))


def same(texts):
    """Every text as it is, every character from itself."""
    return [
        translation(text, text, [(n, n) for n in range(len(text))], text, text) for text in texts
    ]


def backwards(texts):
    """The words of every text from the last to the first, each from itself."""
    said = []
    for text in texts:
        words = text.split()
        links = [(len(words) - 1 - n, n) for n in range(len(words))]
        said.append(translation(text, " ".join(words[::-1]), links, words, words[::-1]))
    return said


@pytest.fixture
def identity():
    return same


@pytest.fixture
def reversal():
    return backwards


@pytest.fixture(scope="session", params=["ctranslate2", "torch"])
def model(request):
    """The small Chinese-English model, in either engine."""
    return load(TATOEBA, engine=request.param)


def first_misnested(marked):
    """The first tag that closes what is not open, by a stack and nothing else."""
    opened = []
    for found in re.finditer(r"<(/?)([A-Za-z][\w:.-]*)[^<>]*?(/?)>", marked):
        closes, name, alone = found.groups()
        if alone or name in ("br", "img", "wbr", "input"):
            continue
        if not closes:
            opened.append(name)
        elif not opened or opened.pop() != name:
            return found[0]
    return opened[-1] if opened else None


@pytest.fixture
def nesting_fault():
    return first_misnested
