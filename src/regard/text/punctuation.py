"""Punctuation as Moses normalises it, which is what many models of others were trained on.

The rules of `normalize-punctuation.perl`, in the order in which sacremoses applies them; a test
holds the two equal. A text that was normalised once may change once more.
"""

import re
from functools import cache

_SPACES = [
    (r"\r", ""), (r"\(", " ("), (r"\)", ") "), (" +", " "), (r"\) ([.!:?;,])", r")\1"),
    (r"\( ", "("), (r" \)", ")"), (r"(\d) %", r"\1%"), (" :", ":"), (" ;", ";"),
    ("`", "'"), ("''", ' " '),
]  # fmt: skip
_QUOTES_AND_DASHES = [
    ("[„“”]", '"'), ("–", "-"), ("—", " - "), (" +", " "), ("´", "'"),
    ("([a-zA-Z])‘([a-zA-Z])", r"\1'\2"), ("([a-zA-Z])’([a-zA-Z])", r"\1'\2"),
    ("[‘‚’]", "'"), ("''", '"'), ("…", "..."),
]  # fmt: skip
_FRENCH_QUOTES = [("\u00a0?«\u00a0|«", '"'), ("\u00a0»\u00a0|\u00a0»|»", '"')]
_PSEUDO_SPACES = [
    ("\u00a0%", "%"), ("nº\u00a0", "nº "), ("\u00a0:", ":"), ("\u00a0ºC", " ºC"),
    ("\u00a0cm", " cm"), (r"\u00a0\?", "?"), ("\u00a0!", "!"), ("\u00a0;", ";"),
    (",\u00a0", ", "), (" +", " "),
]  # fmt: skip
_QUOTE_BEFORE_COMMA = [('"([,.]+)', r'\1"')]
_QUOTE_BEHIND_COMMA = [(',"', '",'), (r'(\.+)"(\s*[^<])', r'"\1\2')]


def moses_punctuation(text: str, language: str) -> str:
    """The text with the quotes, dashes and spaces that Moses gives a text of that language."""
    for pattern, replacement in _rules(language):
        text = pattern.sub(replacement, text)
    return text.strip()


@cache
def _rules(language: str) -> tuple[tuple[re.Pattern[str], str], ...]:
    rules = [*_SPACES, *_QUOTES_AND_DASHES, *_FRENCH_QUOTES, *_PSEUDO_SPACES]
    if language == "en":
        rules += _QUOTE_BEFORE_COMMA
    if language in ("de", "es", "fr"):
        rules += _QUOTE_BEHIND_COMMA
    point = "," if language in ("de", "es", "cz", "cs", "fr") else "."
    rules.append(("(\\d)\u00a0(\\d)", rf"\1{point}\2"))
    return tuple((re.compile(pattern), replacement) for pattern, replacement in rules)
