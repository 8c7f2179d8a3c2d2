"""Which script a text is written in, as far as regard needs to know."""

import re
from collections.abc import Iterator

HAN_WEIGHT = 3.0  # a Chinese character says about as much as three Latin letters
_UNSPACED = ("zh", "cmn", "zho", "yue", "ja", "th", "lo", "km", "my")


def is_han(character: str) -> bool:
    """A Chinese character of any of the blocks."""
    return (
        "\u4e00" <= character <= "\u9fff"
        or "\u3400" <= character <= "\u4dbf"
        or "\U00020000" <= character <= "\U0003ffff"
        or "\uf900" <= character <= "\ufaff"
    )


def is_mostly_han(text: str) -> bool:
    """Whether a text is Chinese, rather than another language with some Chinese in it."""
    n_han = sum(map(is_han, text))
    n_others = sum(char.isalpha() for char in text) - n_han
    return n_han * HAN_WEIGHT > n_others


def is_unspaced(language: str) -> bool:
    """Whether a language writes its words without spaces."""
    return re.split("[-_]", language.lower())[0] in _UNSPACED


def stands_in(word: str, text: str) -> bool:
    """Whether a word stands in a text, and by itself: "art" stands in no "part".

    One in small letters may begin a sentence; where words are not spaced, any place will do.
    """
    return any(True for _ in standing_in(word, text))


def standing_in(word: str, text: str) -> Iterator[tuple[int, int]]:
    """From where to where it stands there, each time."""
    if word not in (text.lower() if word.islower() else text):
        return
    before = r"(?<![A-Za-z0-9])" if word[:1].isascii() else ""
    after = r"(?![A-Za-z0-9])" if word[-1:].isascii() else ""
    pattern = before + re.escape(word) + after
    for found in re.finditer(pattern, text, re.IGNORECASE if word.islower() else 0):
        yield found.span()
