"""Train a recipe, translate its development and test text, and keep what a table needs.

    python benchmarks/train_and_translate.py OUT NAME RECIPE [--set a.b=c]... [--beam 5]

OUT/NAME.SPLIT.LANGUAGE has what the model says to each line of dev and test, OUT/NAME.json how long
it took, OUT/NAME.metrics.jsonl how it went; the model itself stays in --work. Scores are made of
these elsewhere, by benchmarks/bench_runs.py: a machine with a GPU needs no scorer.
"""

import argparse
import gzip
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import torch

from regard import __version__
from regard.config import Config
from regard.data.splits import DEV, TEST, part_names
from regard.decode.translator import load
from regard.recipe import read_config
from regard.tensors import n_stored


def splits_of(config: Config) -> dict[str, Path]:
    """The development and test text of a recipe that trains on one corpus: name and source file."""
    (place,) = config.data.train
    names = part_names(Path(place), (*DEV, *TEST))
    return {name: Path(place) / f"{name}.{config.data.src_lang}.gz" for name in names}


def lines_of(file: Path) -> list[str]:
    """The lines of a compressed text."""
    return gzip.decompress(file.read_bytes()).decode().split("\n")[:-1]


def write_lines(file: Path, lines: list[str]) -> None:
    """One line for each; what a model says has no line breaks of its own."""
    file.write_text("".join(" ".join(line.split("\n")) + "\n" for line in lines), encoding="utf-8")


def hardware() -> str:
    """What it ran on, in words."""
    if torch.cuda.is_available():
        return torch.cuda.get_device_name()
    return f"{torch.get_num_threads()} CPU threads"


def train(asked: argparse.Namespace, place: Path) -> dict[str, Any]:
    """The command itself, start to end, and what its log says of speed."""
    overrides = [word for setting in asked.set for word in ("--set", setting)]
    command = [sys.executable, "-m", "regard", "train", str(asked.recipe), "-o", str(place)]
    start = time.perf_counter()
    subprocess.run([*command, *overrides], check=True)
    seconds = time.perf_counter() - start
    metrics = place.with_name(place.name + ".run") / "metrics.jsonl"
    shutil.copy(metrics, asked.out / f"{asked.name}.metrics.jsonl")
    rows = [json.loads(line) for line in metrics.read_text(encoding="utf-8").splitlines()]
    speeds = sorted(row["tokens_per_s"] for row in rows if "tokens_per_s" in row)
    facts = json.loads((place / "config.json").read_text(encoding="utf-8"))
    return {
        "what": f"regard {__version__}, {load(place).bundle.model.in_words}",
        "seconds": round(seconds, 1),
        "updates": facts["updates"],
        "target_tokens_per_s": speeds[len(speeds) // 2],
        "parameters": n_stored(place / "model.safetensors"),
    }


def main() -> None:
    """Train, translate, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("name")
    parser.add_argument("recipe", type=Path)
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--beam", type=int, default=5)
    parser.add_argument("--work", type=Path, default=Path("/tmp/regard-runs"))
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    asked.work.mkdir(parents=True, exist_ok=True)
    config = read_config(asked.recipe, asked.set)
    place = asked.work / asked.name
    facts = train(asked, place)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    translator = load(place, device=device, engine="torch")
    for split, source in splits_of(config).items():
        texts = lines_of(source)
        translator.translate(texts[:64], beam=asked.beam)  # kernels are chosen and memory is found
        start = time.perf_counter()
        said = translator.translate(texts, beam=asked.beam)
        facts["sentences_per_s"] = round(len(texts) / (time.perf_counter() - start), 1)
        name = f"{asked.name}.{split}.{config.data.tgt_lang}"
        write_lines(asked.out / name, [one.text for one in said])
    facts |= {
        "recipe": asked.recipe.name,
        "settings": asked.set,
        "seed": config.train.seed,
        "corpus": Path(config.data.train[0]).name,
        "beam": asked.beam,
        "hardware": hardware(),
        "torch": torch.__version__,
    }
    text = json.dumps(facts, ensure_ascii=False, indent=1)
    (asked.out / f"{asked.name}.json").write_text(text + "\n", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
