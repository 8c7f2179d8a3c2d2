"""Where the benchmarks find text, and sentences of it that are all different."""

import gzip
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SPLITS = ("test_hans", "test", "train")  # as many of them as it takes


def place_of(corpus: str) -> Path:
    """Where a corpus lies: in data, or in a folder of that name one below."""
    places = [*ROOT.glob(f"data/{corpus}"), *ROOT.glob(f"*/data/{corpus}")]
    if not places:
        raise SystemExit(f"error: there is no data/{corpus}; say with --data where it is")
    return places[0]


def lines_of(file: Path) -> list[str]:
    """The lines of a text, compressed or not."""
    packed = file.with_name(file.name + ".gz")
    content = gzip.decompress(packed.read_bytes()) if packed.is_file() else file.read_bytes()
    return content.decode().removesuffix("\n").split("\n")


def sentences(place: Path, src_lang: str, tgt_lang: str, n: int) -> tuple[list[str], list[str]]:
    """So many different sentences, none of them blank, each with its reference."""
    found: dict[str, str] = {}
    for split in SPLITS:
        if len(found) < n and any(place.glob(f"{split}.{src_lang}*")):
            sides = (lines_of(place / f"{split}.{language}") for language in (src_lang, tgt_lang))
            for src, tgt in zip(*sides, strict=True):
                if src.strip() and tgt.strip():
                    found.setdefault(src.strip(), tgt.strip())
    if len(found) < n:
        raise SystemExit(f"error: {place} has {len(found):,} sentences, but {n:,} are wanted")
    return list(found)[:n], list(found.values())[:n]
