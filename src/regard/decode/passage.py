"""A text as sentences that a model can take, and their translations as one text again.

text -> lines -> parts that fit -> ids          never cut: every character is in some part
translations -> joined with the breaks of the lines, and spaces where the language has them
"""

import re
import unicodedata
from collections.abc import Callable, Sequence
from typing import NamedTuple

from regard.decode.search import Ids
from regard.text.scripts import is_unspaced
from regard.text.sentences import split_to_fit
from regard.text.tokenizer import Tokenizer

_BREAK = re.compile(r"(\s*[\n\r\u2028\u2029]\s*)")


class Passage(NamedTuple):
    """A text in parts, and what stands before each and after the last: line breaks, or nothing."""

    parts: tuple[str, ...]
    gaps: tuple[str, ...]

    def joined(self, translations: Sequence[str], tgt_lang: str) -> str:
        """The translations of the parts as one text."""
        space = "" if is_unspaced(tgt_lang) else " "
        text = ""
        for gap, translation in zip(self.gaps, [*translations, ""], strict=True):
            text += gap
            if translation and text and not text[-1].isspace():
                text += space
            text += translation
        return text


def passage(text: str, fits: Callable[[str], bool]) -> Passage:
    """The parts of a text: its lines, and of a line that does not fit its sentences or less."""
    parts, gaps = [], [""]
    for number, line in enumerate(_BREAK.split(text.strip())):
        if number % 2:
            gaps[-1] += line
            continue
        for part in [line] if fits(line) else split_to_fit(line, fits):
            parts.append(part.strip())
            gaps.append("")
    return Passage(tuple(parts), tuple(gaps))


def is_blank(text: str) -> bool:
    """Whether there is nothing to be seen: spaces, controls, marks that show nothing."""
    # what Python calls printable is all that is of no such category, and the space
    return not any(map(str.isprintable, text.replace(" ", "")))


def spellings(words: str, tokenizer: Tokenizer) -> tuple[Ids, ...]:
    """The ids of words as a text begins with them, and as they follow another character.

    Only what is written without spaces follows directly: else it would be the end of another word.
    """
    alone = tuple(tokenizer.encode(words))
    before = tokenizer.encode("，")
    behind = tokenizer.encode("，" + words)
    follows_directly = words[:1] and unicodedata.category(words[0]) == "Lo"
    if not follows_directly or behind[: len(before)] != before:
        return (alone,)
    return tuple(dict.fromkeys([alone, tuple(behind[len(before) :])]))
