"""The ablations of e15 on real text: Multi30k, English to German, on a GPU.

    python tools/ablations.py --data ../shared/data/multi30k -o ablations [--seeds 3] [--steps 4000]

One part of recipes/multi30k-en-de.toml is changed at a time, and each variant is trained from the
same seeds; about 2 minutes a run on one H200, 13 variants. Runs that are done already are not done
again. The table has BLEU on test_2016_flickr, beam 5, with the mean and its 95 % interval.
"""

import argparse
import gzip
import json
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VARIANTS: dict[str, tuple[str, ...]] = {
    "base": (),
    "no √d": ("model.score=dot",),
    "additive scores": ("model.score=additive",),
    "Gaussian scores": ("model.score=gaussian",),
    "1 head": ("model.n_heads=1",),
    "8 heads": ("model.n_heads=8",),
    "no positions": ("model.positions=none",),
    "learned positions": ("model.positions=learned",),
    "rotary positions": ("model.positions=rotary",),
    "pre-norm": ("model.norm=pre",),
    "no label smoothing": ("train.label_smoothing=0.0",),
    "no warm-up": ("train.warmup=0",),
    "no averaging": ("train.average=0",),
}
STUDENT = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776}  # the 97.5 % point, by the number of seeds


def command(data: Path, model: Path, settings: tuple[str, ...], seed: int, steps: int) -> list[str]:
    """The training of one variant from one seed."""
    overrides = (
        f'data.train=["{data}"]',
        f"train.seed={seed}",
        f"train.steps={steps}",
        *settings,
    )
    return [
        *(sys.executable, "-m", "regard", "train", str(ROOT / "recipes/multi30k-en-de.toml")),
        *("-o", str(model)),
        *(word for one in overrides for word in ("--set", one)),
    ]


def score(model: Path, data: Path, folder: Path, beam: int, device: str) -> float:
    """BLEU of a model on the test text."""
    sides = []
    for side in ("en", "de"):
        text = gzip.decompress((data / f"test_2016_flickr.{side}.gz").read_bytes())
        sides.append(folder / f"test.{side}")
        sides[-1].write_bytes(text)
    words = ["evaluate", "--model", model, "--src", sides[0], "--ref", sides[1], "--beam", beam]
    done = subprocess.run(
        [sys.executable, "-m", "regard", *map(str, words), "--device", device, "--json"],
        capture_output=True,
        text=True,
        check=True,
    )
    (system,) = json.loads(done.stdout)["systems"].values()
    return float(system["scores"]["bleu"]["value"])


def row(name: str, found: list[float]) -> str:
    """One line of the table; with one seed there is no interval."""
    if len(found) < 2:
        return f"| {name} | {found[0]:.1f} | |"
    reach = STUDENT[len(found)] * statistics.stdev(found) / len(found) ** 0.5
    each = ", ".join(f"{one:.1f}" for one in found)
    return f"| {name} | {statistics.mean(found):.1f} ± {reach:.1f} | {each} |"


def main() -> int:
    """Train and score every variant, and print a line as soon as it is known."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="the folder of Multi30k")
    parser.add_argument("-o", "--output", type=Path, required=True, help="where models are kept")
    parser.add_argument("--seeds", type=int, default=3, choices=range(1, 6))
    parser.add_argument("--steps", type=int, default=4000)
    parser.add_argument("--device", default="cuda", help="where test text is translated")
    parser.add_argument("variants", nargs="*", help="some of the variants; without any, all")
    options = parser.parse_args()
    if unknown := [name for name in options.variants if name not in VARIANTS]:
        parser.error(f"unknown variants: {', '.join(unknown)}; they are {', '.join(VARIANTS)}")
    options.output.mkdir(parents=True, exist_ok=True)
    print("| variant | BLEU | seeds |\n|---|--:|---|", flush=True)
    for name in options.variants or VARIANTS:
        models = []
        for seed in range(1, options.seeds + 1):
            model = options.output / f"{name.replace(' ', '-')}-{seed}"
            if not (model / "MANIFEST.json").exists():
                settings = VARIANTS[name]
                subprocess.run(
                    command(options.data, model, settings, seed, options.steps), check=True
                )
            models.append(model)
        by_beam = {
            beam: [score(one, options.data, options.output, beam, options.device) for one in models]
            for beam in ((5, 1) if name == "base" else (5,))
        }
        print(row(name, by_beam[5]), flush=True)
        if name == "base":
            print(row("base, greedy", by_beam[1]), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
