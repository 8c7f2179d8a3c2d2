"""English and French from Tatoeba: the toy that d2l trains on, and a corpus with a held-out test.

    python benchmarks/make_french.py data

reads data/tatoeba-fra/fra.tsv.gz (167,130 pairs, CC-BY 2.0, the shortest first) and writes

    data/d2l-fra-toy/     train: the first 600 pairs as d2l prepares them, in lower case with spaces
                          about punctuation; dev: the four sentences that d2l asks for
    data/fra-split/       train, dev (1,000), test (2,000): drawn by chance, each source once; no
                          training pair has the source or the target of a held-out one
"""

import argparse
import gzip
import random
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

Pair = tuple[str, str]
TOY_PAIRS, DEV_PAIRS, TEST_PAIRS = 600, 1000, 2000
ASKED = [
    ("go .", "va !"),
    ("i lost .", "j'ai perdu ."),
    ("he's calm .", "il est calme ."),
    ("i'm home .", "je suis chez moi ."),
]


def as_d2l(text: str) -> str:
    """Lower case, every kind of space one space, and a space before , . ! ?"""
    text = " ".join(text.lower().split())  # the narrow and no-break spaces of French too
    return re.sub(r"(?<=\S)(?<! )([,.!?])", r" \1", text)


def bare(text: str) -> str:
    """What makes two sentences the same sentence: letters and digits, in lower case."""
    return " ".join(re.findall(r"\w+", text.lower()))


def split(pairs: Sequence[Pair]) -> tuple[list[Pair], list[Pair], list[Pair]]:
    """Training, development and test pairs."""
    shuffled = sorted(set(pairs))
    random.Random(1).shuffle(shuffled)
    held_out: list[Pair] = []
    sources, targets = set[str](), set[str]()
    for src, tgt in shuffled:
        if bare(src) in sources or bare(tgt) in targets:
            continue
        held_out.append((src, tgt))
        sources.add(bare(src))
        targets.add(bare(tgt))
        if len(held_out) == DEV_PAIRS + TEST_PAIRS:
            break
    train = [(s, t) for s, t in shuffled if bare(s) not in sources and bare(t) not in targets]
    return train, held_out[:DEV_PAIRS], held_out[DEV_PAIRS:]


def write(place: Path, name: str, pairs: Iterable[Pair]) -> None:
    """NAME.en.gz and NAME.fr.gz, line by line."""
    place.mkdir(parents=True, exist_ok=True)
    for language, lines in zip(("en", "fr"), zip(*pairs, strict=True), strict=True):
        with (place / f"{name}.{language}.gz").open("wb") as file:
            text = "".join(f"{line}\n" for line in lines)
            file.write(gzip.compress(text.encode(), mtime=0))
    print(f"{place / name}: {len(lines):,} pairs")


def main() -> None:
    """Read once, write both."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    data = parser.parse_args().data
    text = gzip.decompress((data / "tatoeba-fra" / "fra.tsv.gz").read_bytes()).decode()
    pairs = [(src, tgt) for src, tgt in (line.split("\t") for line in text.split("\n")[:-1])]
    toy = [(as_d2l(src), as_d2l(tgt)) for src, tgt in pairs[:TOY_PAIRS]]
    write(data / "d2l-fra-toy", "train", toy)
    write(data / "d2l-fra-toy", "dev", ASKED)
    for name, part in zip(("train", "dev", "test"), split(pairs), strict=True):
        write(data / "fra-split", name, part)


if __name__ == "__main__":
    main()
