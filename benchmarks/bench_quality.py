"""How good the model that comes with regard is, on every corpus it was trained on, and how fast.

    python benchmarks/bench_quality.py --data DIR [--model DIR] [--beam 5] [--write]

DIR holds the six corpora of recipes/zh-en.toml. Of each development and test text the first 1,000
lines (of Tatoeba's test those in simplified script); both ways; raw text in and out, sacreBLEU with
the tokenizer of the target language. Speed: the Tatoeba sentences, greedily, on all cores.
"""

import argparse
import gzip
import os
import statistics
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from regard import __version__
from regard.decode.translator import BUNDLED, Translator, load
from regard.evaluate.metrics import Score, bleu, chrf

RESULTS = Path(__file__).parent / "results" / "bundled_2-core-cpu_202611.md"
CORPORA = {
    "Tatoeba": ("tatoeba-challenge-zh-en", "test_hans"),
    "3AM": ("3am-zh-en", "test"),
    "Kubernetes": ("k8s-docs-zh-en", "test"),
    "Python": ("python-docs-zh-en", "test"),
    "LibreOffice": ("libreoffice-help-zh-en", "test"),
    "d2l": ("d2l-zh-en", "test"),
}
WAYS = (("zh", "en"), ("en", "zh"))
LINES = 1000
ROUNDS = 7


def lines_of(place: Path, split: str, lang: str) -> list[str]:
    with gzip.open(place / f"{split}.{lang}.gz", "rt", encoding="utf-8", newline="\n") as file:
        return file.read().split("\n")[:-1][:LINES]


def scored(translator: Translator, place: Path, split: str, beam: int) -> list[Score]:
    """BLEU and chrF from Chinese, then from English."""
    found = []
    for src, tgt in WAYS:
        said = translator.translate(
            lines_of(place, split, src), src_lang=src, tgt_lang=tgt, beam=beam
        )
        texts, references = [one.text for one in said], lines_of(place, split, tgt)
        found += [metric(texts, references, tgt) for metric in (bleu, chrf)]
    return found


def quality(translator: Translator, data: Path, beam: int) -> list[str]:
    """A table of development text, one of test text, with means and signatures."""
    lines = []
    for part in ("dev", "test"):
        lines += [
            f"## {part}",
            "",
            "| corpus | zh→en BLEU | zh→en chrF | en→zh BLEU | en→zh chrF |",
            "|---|--:|--:|--:|--:|",
        ]
        rows = []
        for name, (folder, test) in CORPORA.items():
            scores = scored(translator, data / folder, "dev" if part == "dev" else test, beam)
            rows.append([score.value for score in scores])
            lines.append(row(name, rows[-1]))
        lines.append(row("mean", [statistics.mean(column) for column in zip(*rows, strict=True)]))
        lines += ["", *(f"- {s.name}: `{s.signature}`" for s in scores), ""]
    return lines


def row(name: str, values: Sequence[float]) -> str:
    return f"| {name} | " + " | ".join(f"{value:.2f}" for value in values) + " |"


def speed(translator: Translator, data: Path) -> str:
    texts = lines_of(data / CORPORA["Tatoeba"][0], CORPORA["Tatoeba"][1], "zh")
    translator.translate(texts[:100], src_lang="zh", beam=1)
    found = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        translator.translate(texts, src_lang="zh", beam=1)
        found.append(len(texts) / (time.perf_counter() - start))
    spread = f"{min(found):,.0f}–{max(found):,.0f}"
    return f"{statistics.median(found):,.0f} sentences/s ({spread} in {ROUNDS} rounds)"


def commit() -> str:
    asked = ["git", "rev-parse", "--short", "HEAD"]
    return subprocess.run(asked, capture_output=True, text=True, cwd=RESULTS.parent).stdout.strip()


def main() -> None:
    """Score, time, print, and write with --write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--model", type=Path, default=BUNDLED)
    parser.add_argument("--beam", type=int, default=5)
    parser.add_argument("--dtype", choices=("float32", "int8"), default="int8")
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    translator = load(asked.model, dtype=asked.dtype, engine="ctranslate2")
    size = sum(file.stat().st_size for file in asked.model.rglob("*") if file.is_file())
    lines = [
        "# The model that comes with regard, November 2026",
        "",
        f"`python benchmarks/bench_quality.py`: {translator.bundle.model.in_words}, "
        f"{size / 1e6:.1f} MB; CTranslate2 in {asked.dtype}, beam {asked.beam}, length penalty "
        f"{translator.search.length_penalty}; development text and test sets each the first "
        f"{LINES:,} lines; regard {__version__} at commit {commit()}.",
        "",
        *quality(translator, asked.data, asked.beam),
        "## Speed",
        "",
        f"Tatoeba's test sentences, Chinese to English, greedy, {asked.dtype}, "
        f"{os.cpu_count()} cores: {speed(translator, asked.data)}.",
    ]
    text = "\n".join(lines) + "\n"
    print(text)
    if asked.write:
        RESULTS.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
