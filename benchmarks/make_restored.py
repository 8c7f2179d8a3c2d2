"""A task that is not translation, from the English side of the documentation corpora.

    python benchmarks/make_restored.py data

reads data/{k8s-docs,python-docs,libreoffice-help,d2l}-zh-en and writes data/restored by the
corpora's own splits (by document, so no page is in two of them): .en-bare, a sentence in lower case
without punctuation; .en-written, it as it was.
"""

import argparse
import gzip
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

CORPORA = ("k8s-docs-zh-en", "python-docs-zh-en", "libreoffice-help-zh-en", "d2l-zh-en")
SPLITS = ("train", "dev", "test")
SIDES = ("en-bare", "en-written")
LEAST_WORDS, MOST_WORDS = 6, 40  # of a sentence
MOST_TESTED = 2000  # lines of dev and of test
CODE = re.compile(r"[=`{}<>$\\|_@#*/]|--|\bREF\b|\w\(")  # no prose, so nothing to be said of it

Pair = tuple[str, str]


def is_sentence(line: str) -> bool:
    """A line of prose with a beginning, an end, and something between."""
    is_whole = line[:1].isupper() and line.endswith((".", "?", "!"))
    return is_whole and LEAST_WORDS <= len(line.split()) <= MOST_WORDS


def restored(lines: list[str]) -> Iterator[Pair]:
    """A sentence without capitals and punctuation, and as it was written."""
    for line in lines:
        if is_sentence(line) and not CODE.search(line) and line.isascii():
            yield " ".join(re.sub(r"[^\w\s'-]", " ", line.lower()).split()), line


def lines_of(file: Path) -> list[str]:
    return gzip.decompress(file.read_bytes()).decode().split("\n")[:-1]


def write(place: Path, split: str, pairs: Iterable[Pair]) -> None:
    """SPLIT.SIDE.gz for both sides, each source once."""
    place.mkdir(parents=True, exist_ok=True)
    rows = list({source: (source, target) for source, target in pairs}.values())
    if split != "train":
        rows = rows[:: max(1, len(rows) // MOST_TESTED)][:MOST_TESTED]
    for side, texts in zip(SIDES, zip(*rows, strict=True), strict=True):
        text = "".join(f"{line}\n" for line in texts)
        (place / f"{split}.{side}.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
    print(f"{place / split}: {len(rows):,} pairs")


def main() -> None:
    """Each split."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    data = parser.parse_args().data
    for split in SPLITS:
        parts = [lines_of(data / corpus / f"{split}.en.gz") for corpus in CORPORA]
        write(data / "restored", split, (pair for part in parts for pair in restored(part)))


if __name__ == "__main__":
    main()
