"""Two tasks that are not translation, from the English side of the documentation corpora.

    python benchmarks/make_tasks.py data

reads data/{k8s-docs,python-docs,libreoffice-help,d2l}-zh-en and writes, by the corpora's own splits
(by document, so no page is in two of them),

    data/headings/    .en-text: the sentences after a heading, at most three; .en-heading: it.
                      The corpora keep the order of a page but not its markup, so it is a short
                      line with a capital and without an end, before a whole sentence.
    data/restored/    .en-bare: a sentence in lower case without punctuation; .en-written: it
"""

import argparse
import gzip
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import takewhile
from pathlib import Path

CORPORA = ("k8s-docs-zh-en", "python-docs-zh-en", "libreoffice-help-zh-en", "d2l-zh-en")
SPLITS = ("train", "dev", "test")
MOST_HEADING_WORDS, LEAST_SENTENCE_WORDS, MOST_SENTENCE_WORDS = 8, 6, 40
MOST_SENTENCES = 3  # of a paragraph
MOST_TESTED = 2000  # lines of dev and of test
CODE = re.compile(r"[=`{}<>$\\|_@#*/]|--|\bREF\b|\w\(")  # no prose, so nothing to be said of it

Pair = tuple[str, str]


def is_heading(line: str) -> bool:
    """A short line that begins like one and does not end like a sentence or a list."""
    n_words = len(line.split())
    begins = line[:1].isupper() and not line.endswith((".", ":", ";", ",", "!", "?"))
    return begins and n_words <= MOST_HEADING_WORDS and not CODE.search(line)


def is_sentence(line: str) -> bool:
    """A line of prose with a beginning, an end, and something between."""
    is_whole = line[:1].isupper() and line.endswith((".", "?", "!"))
    n_words = len(line.split())
    return is_whole and LEAST_SENTENCE_WORDS <= n_words <= MOST_SENTENCE_WORDS


def headings(lines: list[str]) -> Iterator[Pair]:
    """The first sentences below a heading, and the heading."""
    for place, heading in enumerate(lines):
        below = list(takewhile(is_sentence, lines[place + 1 : place + 1 + MOST_SENTENCES]))
        if is_heading(heading) and below:
            yield " ".join(below), heading


def restored(lines: list[str]) -> Iterator[Pair]:
    """A sentence without capitals and punctuation, and as it was written."""
    for line in lines:
        if is_sentence(line) and not CODE.search(line) and line.isascii():
            yield " ".join(re.sub(r"[^\w\s'-]", " ", line.lower()).split()), line


def lines_of(file: Path) -> list[str]:
    return gzip.decompress(file.read_bytes()).decode().split("\n")[:-1]


def write(place: Path, split: str, sides: tuple[str, str], pairs: Iterable[Pair]) -> None:
    """SPLIT.SIDE.gz for both sides, each source once."""
    place.mkdir(parents=True, exist_ok=True)
    rows = list({source: (source, target) for source, target in pairs}.values())
    if split != "train":
        rows = rows[:: max(1, len(rows) // MOST_TESTED)][:MOST_TESTED]
    for side, texts in zip(sides, zip(*rows, strict=True), strict=True):
        text = "".join(f"{line}\n" for line in texts)
        (place / f"{split}.{side}.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
    print(f"{place / split}: {len(rows):,} pairs")


def main() -> None:
    """Each task, each split."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    data = parser.parse_args().data
    tasks: dict[str, tuple[tuple[str, str], Callable[[list[str]], Iterator[Pair]]]] = {
        "headings": (("en-text", "en-heading"), headings),
        "restored": (("en-bare", "en-written"), restored),
    }
    for name, (sides, pairs_of) in tasks.items():
        for split in SPLITS:
            parts = [lines_of(data / corpus / f"{split}.en.gz") for corpus in CORPORA]
            write(data / name, split, sides, (pair for part in parts for pair in pairs_of(part)))


if __name__ == "__main__":
    main()
