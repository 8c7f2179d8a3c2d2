"""Where a planted tag lands: <b> around one word of a source, looked for around its translation.

    python benchmarks/bench_tags.py --data DIRECTORY --model DIRECTORY [--engine E] [--strings 500]

The gold is made by construction, and no alignment is asked for it. A word is planted that stands
once in the source, and whose translation is known without doubt:

    copied    a word of Latin letters, which stands once in the translation as well
    known     a Chinese word of a lexicon, found in the training pairs by how often two words meet
              (Dice's coefficient, at least 0.6), whose English stands once in the translation

Sentences of which the model says neither are passed over: they say nothing about tags. A tag has
landed if it holds the word and no more; articles and plurals do not count.
"""

import argparse
import json
import re
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random

from regard.data.streams import read_lines
from regard.decode.translator import load
from regard.document.markup import aligned_by, translate_marked
from regard.document.parts import HTML

HAN = re.compile(r"[\u4e00-\u9fff]+")
LATIN = re.compile(r"(?<![A-Za-z0-9])[A-Za-z][A-Za-z0-9]{2,}(?![A-Za-z0-9])")
FEWEST, DICE, LONGEST = 20, 0.6, 150
ARTICLES = r"(?:(?:an?|the|this|these|that|your|its)\s+)?"


def main() -> None:
    """Measure and print one JSON object."""
    arguments = parse()
    pairs = list(pairs_of(arguments.data, "test")) + list(pairs_of(arguments.data, "dev"))
    known = lexicon(pairs_of(arguments.data, "train"))
    chance = Random(1)
    planted = [one for zh, _ in pairs for one in plant(zh, known, chance)]
    translator = load(arguments.model, engine=arguments.engine)
    translate = aligned_by(translator, beam=arguments.beam)
    start, results, left, seen = time.monotonic(), [], 0, 0
    for at in range(0, len(planted), 64):
        if len(results) >= arguments.strings:
            break
        some = planted[at : at + 64]
        said = translate_marked([marked for marked, _, _ in some], translate, HTML)
        seen += len(some)
        left += sum(one.text is None for one in said)
        for (_, word, kind), one in zip(some, said, strict=True):
            if one.text is not None and (result := judged(one.text, word, kind)):
                results.append((kind, word, *result))
    results = results[: arguments.strings]
    print(json.dumps(summary(results) | {
        "engine": arguments.engine, "model": arguments.model.name, "sentences": seen,
        "left_untranslated": left, "seconds": round(time.monotonic() - start, 1),
        "lexicon": len(known), "misses": [r[3] for r in results if not r[2]][: arguments.show],
    }, ensure_ascii=False, indent=1))  # fmt: skip


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--engine", default="auto")
    parser.add_argument("--beam", type=int)
    parser.add_argument("--strings", type=int, default=500)
    parser.add_argument("--show", type=int, default=10, help="misses that are shown")
    return parser.parse_args()


def pairs_of(data: Path, split: str) -> Iterator[tuple[str, str]]:
    """Chinese and English sentences that are not too long."""
    sides = (read_lines(data / f"{split}.{side}.gz") for side in ("zh", "en"))
    for zh, en in zip(*sides, strict=True):
        if isinstance(zh, str) and isinstance(en, str) and 6 <= len(zh) <= LONGEST:
            yield zh, en


def lexicon(pairs: Iterator[tuple[str, str]]) -> dict[str, str]:
    """Chinese words and the English word each is nearly always met with."""
    chinese, english, both = Counter[str](), Counter[str](), Counter[tuple[str, str]]()
    for zh, en in list(pairs)[:20_000]:
        grams = dict.fromkeys(  # not a set: its order, and so the draw, would be another each time
            run[at : at + size]
            for run in HAN.findall(zh)
            for size in (2, 3, 4)
            for at in range(len(run) - size + 1)
        )
        words = dict.fromkeys(stem(word) for word in re.findall(r"[A-Za-z]{3,}", en))
        chinese.update(grams.keys())
        english.update(words.keys())
        both.update((gram, word) for gram in grams for word in words)
    dice = {
        (gram, word): 2 * n / (chinese[gram] + english[word])
        for (gram, word), n in both.items()
        if n >= FEWEST
    }
    best: dict[str, tuple[float, str]] = {}
    for (gram, word), value in dice.items():
        if value >= DICE and value > best.get(word, (0.0, ""))[0]:
            best[word] = (value, gram)
    return {gram: word for word, (_, gram) in best.items()}


def stem(word: str) -> str:
    """A word in small letters, without the ending of a plural."""
    word = word.lower()
    return word[:-1] if word.endswith("s") and not word.endswith(("ss", "us", "is")) else word


def plant(zh: str, known: dict[str, str], chance: Random) -> list[tuple[str, str, str]]:
    """The sentence with a tag around one word, what the tag must hold, and how that is known."""
    latin = [found for found in LATIN.findall(zh) if zh.count(found) == 1]
    chinese = [word for word in known if zh.count(word) == 1]
    found = [(word, word, "copied") for word in latin]
    found += [(word, known[word], "known") for word in chinese]
    if not found or "<" in zh or "&" in zh:
        return []
    word, holds, kind = chance.choice(found)
    return [(zh.replace(word, f"<b>{word}</b>"), holds, kind)]


def judged(text: str, word: str, kind: str) -> tuple[bool, str] | None:
    """Whether the tag holds the word; None if the translation does not say it once."""
    plain = re.sub(r"</?b>", "", text)
    words = re.findall(r"[A-Za-z0-9]+", plain)
    times = words.count(word) if kind == "copied" else [stem(one) for one in words].count(word)
    inner = re.search("<b>(.*?)</b>", text)
    if times != 1 or inner is None:
        return None
    form = re.escape(word) + (r"(?:e?s)?(?:'s?)?" if kind == "known" else r"(?:'s)?")
    return re.fullmatch(rf"\W*{ARTICLES}{form}\W*", inner[1], re.IGNORECASE) is not None, text


def summary(results: list[tuple[str, str, bool, str]]) -> dict[str, object]:
    """How many tags landed, in all and by how it is known."""
    kinds = {kind: [r[2] for r in results if r[0] == kind] for kind in ("copied", "known")}
    kinds["all"] = [r[2] for r in results]
    return {
        kind: {"strings": len(hits), "landed": round(sum(hits) / len(hits), 4) if hits else None}
        for kind, hits in kinds.items()
    }


if __name__ == "__main__":
    main()
