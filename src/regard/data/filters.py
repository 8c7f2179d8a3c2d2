"""Pairs that are better left out, by plain names, each counted.

max_ratio      one side more than so many times as long as the other (in weighed characters)
dedup          a pair that was there before
script         a side written in the wrong script for its language
drop_overlap   a pair that also stands in the development or test set
held_out       a pair that was chosen from the training text to judge by, and its copies
"""

import hashlib
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Iterator

from regard.data.corpus import Pair
from regard.text.scripts import HAN_WEIGHT, is_han


def filtered(
    pairs: Iterable[Pair],
    dropped: Counter[str],
    *,
    max_ratio: float = 0.0,
    dedup: bool = False,
    script: bool = False,
    overlap: Collection[int] = frozenset(),
    held_out: Collection[int] = frozenset(),
) -> Iterator[Pair]:
    """The pairs that pass every filter that is on; `dropped` counts the others by filter."""
    seen: set[int] = set()
    for pair in pairs:
        key = pair_key(pair.src, pair.tgt) if dedup or overlap or held_out else 0
        if max_ratio and ratio(pair.src, pair.tgt) > max_ratio:
            dropped["max_ratio"] += 1
        elif script and wrong_script(pair):
            dropped["script"] += 1
        elif overlap and key in overlap:
            dropped["drop_overlap"] += 1
        elif held_out and key in held_out:
            dropped["held_out"] += 1
        elif dedup and key in seen:
            dropped["dedup"] += 1
        else:
            if dedup:
                seen.add(key)
            yield pair


def pair_key(src: str, tgt: str) -> int:
    """A pair in 64 bits: what it takes to know it again."""
    digest = hashlib.blake2b(f"{src}\0{tgt}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little")


def pair_keys(pairs: Iterable[Pair]) -> set[int]:
    """What it takes to know any of these pairs again."""
    return {pair_key(pair.src, pair.tgt) for pair in pairs}


def folded(text: str) -> str:
    """The letters and digits alone: case, width, space and punctuation make no difference."""
    same = unicodedata.normalize("NFKC", text).casefold()
    return "".join(filter(str.isalnum, same)) or same


def ratio(src: str, tgt: str) -> float:
    """How many times as long the longer side is, a Chinese character counted as three letters."""
    lengths = sorted((_weight(src), _weight(tgt)))
    return lengths[1] / max(lengths[0], 1.0)


def wrong_script(pair: Pair) -> bool:
    """Whether a side has letters, but none or hardly any of its language's script."""
    return _is_foreign(pair.src, pair.src_lang) or _is_foreign(pair.tgt, pair.tgt_lang)


def _weight(text: str) -> float:
    if text.isascii():
        return len(text)
    return sum(HAN_WEIGHT if is_han(character) else 1.0 for character in text)


def _is_foreign(text: str, language: str) -> bool:
    """Chinese without one Chinese character among several letters, or Latin mostly in Han."""
    letters = sum(character.isalpha() for character in text)
    han = sum(map(is_han, text))
    match language.split("-")[0].split("_")[0].lower():
        case "zh" | "cmn" | "zho" | "yue":
            return letters > 3 and han == 0
        case "en" | "de" | "fr" | "cs" | "es" | "it" | "pt" | "nl":
            return han > 0.5 * max(letters, 1)
        case _:
            return False
