"""Text in parts that a model can take; the parts join to the text, and no character is lost.

Sentences end after 。！？；… and after . ! ? before a space and a capital, each with its closing
quotes and the spaces that follow.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator

from regard.text.scripts import is_han


def split_sentences(text: str) -> list[str]:
    """The sentences of a text, each with the spaces behind it."""
    return _cut(text, _sentence_ends(text))


def split_to_fit(text: str, fits: Callable[[str], bool]) -> list[str]:
    """Parts of the text that fit, cut at sentence ends, else commas, else spaces, else anywhere.

    What fits should still fit when shortened. A character that does not fit alone stands alone.
    """
    parts: list[str] = []
    start = 0
    while start < len(text):
        room = _room(text, start, fits)
        while True:
            end = room if room == len(text) else _best_cut(text, start, room)
            part = text[start:end]
            # Tokens are no exact function of length: a cut elsewhere can cost one more.
            if fits(part) or end - start <= 1 or end == _cluster_end(text, start):
                break
            room = end - 1
        parts.append(part)
        start = end
    return parts


def _cut(text: str, ends: Iterator[int]) -> list[str]:
    parts, start = [], 0
    for end in ends:
        if end > start:
            parts.append(text[start:end])
            start = end
    return parts if start == len(text) else [*parts, text[start:]]


# --- where sentences end

_CLOSING = "\"'”’»」』】》〉）〕］｝)\\]}"
# Always a match where a run of marks begins, so that a long run is read once.
_CANDIDATE = re.compile(rf"(?:([。！？｡；…!?.]++)[{_CLOSING}]*+[^\S\n]*+)?+(\n\s*+)?+")
_MARK = re.compile(r"[。！？｡；…!?.\n]")
_OPENING = "\"'“‘«「『【《〈（〔［([¿¡"
_ABBREVIATIONS = re.compile(
    "al|approx|apr|aug|ave|bros|bzw|ca|capt|cf|ch|chap|co|col|corp|dec|dept|dr|ed|eds|eq|eqs|esq|"
    "est|etc|feb|figs?|gen|gov|hon|inc|jan|jr|jul|jun|lt|ltd|maj|mlle|mme|mrs?|ms|mt|nov|oct|op|"
    "prof|refs?|rep|rev|secs?|sen|sept?|sgt|sr|st|univ|viz|vols?|vs",
    re.IGNORECASE,
)
_LAST_WORD = re.compile(r"\S*\Z")


def _sentence_ends(text: str) -> Iterator[int]:
    at, start = 0, 0
    while mark := _MARK.search(text, at):
        found = _CANDIDATE.match(text, mark.start())
        assert found is not None
        at = found.end()
        if found[2] is not None or _ends_sentence(text, start, found):
            start = at
            yield at


def _ends_sentence(text: str, start: int, found: re.Match[str]) -> bool:
    marks, end = found[1], found.end()
    following = text[end : end + 1]
    is_spaced = text[end - 1 : end].isspace()
    if not following:
        return True
    if following in "，、；：,;:。！？.!?)）":  # “好！”，他说
        return False
    if marks[-1] in "。！？｡；":
        return True
    if marks[-1] == "…":
        return not following.islower()
    if not is_spaced:
        return marks[-1] in "!?" and is_han(following)
    if not (
        following.isupper() or following.isdigit() or following in _OPENING or is_han(following)
    ):
        return False
    return marks != "." or not _is_abbreviated(text, start, found.start(), following)


def _is_abbreviated(text: str, start: int, dot: int, following: str) -> bool:
    """Whether the full stop belongs to its word: Dr., J., 1. at the start of a list item."""
    if dot - start < 16 and text[start:dot].strip().isdigit():
        return True
    found = _LAST_WORD.search(text, max(start, dot - 24), dot)
    assert found is not None
    word = found[0].lstrip(_OPENING)
    if word.lower() in ("no", "nos", "p", "pp"):  # words too, unless a number follows
        return following.isdigit()
    is_initial = len(word) == 1 and word.isupper() and word != "I"
    is_dotted = re.fullmatch(r"(?:\w\.)+\w", word) is not None  # U.S, e.g
    return is_initial or is_dotted or _ABBREVIATIONS.fullmatch(word) is not None


# --- where else a text may be cut

_CLAUSE = re.compile(rf"[，、；：,;:—][{_CLOSING}]*+\s*+")
_GAP = re.compile(r"\s++")
_WINDOW = 32  # how far behind a cut one must look to judge it
_LONGEST_CLUSTER = 64  # a million marks on one letter are not one character to anybody


def _room(text: str, start: int, fits: Callable[[str], bool]) -> int:
    """The farthest end at which text[start:end] fits, or start + 1."""
    low, step = start, 256
    while low < len(text):  # doubling, so that a book is not measured to fill a page
        high = min(len(text), low + step)
        if not fits(text[start:high]):
            break
        low, step = high, 2 * step
    else:
        return low
    while high - low > 1:
        middle = (low + high) // 2
        if fits(text[start:middle]):
            low = middle
        else:
            high = middle
    return max(low, start + 1)


def _best_cut(text: str, start: int, room: int) -> int:
    """The last good place to cut at or before `room`."""
    window = text[start : room + _WINDOW]
    ends = _sentence_ends(window), _clause_ends(window), (m.end() for m in _GAP.finditer(window))
    for level in ends:
        within = [end for end in level if 0 < end <= room - start and end < len(window)]
        if within:
            return start + within[-1]
    end = room
    while end > start and not _is_border(text, end) and room - end < _LONGEST_CLUSTER:
        end -= 1
    if end > start and _is_border(text, end):
        return end
    return max(room, _cluster_end(text, start)) if room - start < _LONGEST_CLUSTER else room


def _clause_ends(window: str) -> Iterator[int]:
    for found in _CLAUSE.finditer(window):
        is_number = found[0] in ",:" and window[found.end() : found.end() + 1].isdigit()
        is_address = found[0] == ":" and window.startswith("//", found.end())
        if not is_number and not is_address:
            yield found.end()


def _cluster_end(text: str, start: int) -> int:
    """The end of the character at `start` with all that hangs on it."""
    end = start + 1
    while end < len(text) and end - start < _LONGEST_CLUSTER and not _is_border(text, end):
        end += 1
    return end


def _is_border(text: str, at: int) -> bool:
    """Whether one may cut before text[at] without parting a letter from its marks."""
    if at >= len(text):
        return True
    before, after = text[at - 1], text[at]
    is_joined = (
        unicodedata.category(after).startswith("M")
        or "\u200d" in (before, after)
        or "\U0001f3fb" <= after <= "\U0001f3ff"
        or (before, after) == ("\r", "\n")
        or "\U000e0020" <= after <= "\U000e007f"
    )
    return not is_joined and not _is_inside_flag(text, at)


def _is_inside_flag(text: str, at: int) -> bool:
    """Whether `at` parts a pair of regional indicators, counted from the start of their run."""
    run = at
    while run > max(0, at - _LONGEST_CLUSTER) and "\U0001f1e6" <= text[run - 1] <= "\U0001f1ff":
        run -= 1
    return (at - run) % 2 == 1 and "\U0001f1e6" <= text[at] <= "\U0001f1ff"
