"""Whether training learns the same with the fused paths on and off: losses by seed.

    python benchmarks/bench_fused_losses.py [--data DIR] [--updates 2000] [--seeds 3] [--write]

`regard train recipes/tatoeba-fra.toml` with REGARD_KERNELS=on and =off for every seed, all at the
same time, each in a process of its own; one validation, at the end. DIR holds fra-split, which
benchmarks/make_french.py makes; without it, data. The loss is that of the development text:
cross-entropy per token, unsmoothed. Two runs of a seed begin with the same weights and see the same
batches; their dropout is not the same.

Where OUT names a folder, the table and every run's numbers go there as well. At toy size:

    python benchmarks/bench_fused_losses.py --data TOY --updates 10 --set model.d_model=16 ...
"""

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

import torch
from at_once import Done, Job, once_each, run_all
from corpora import ROOT, place_of
from train_and_translate import hardware

from regard import __version__

RECIPE = ROOT / "recipes" / "tatoeba-fra.toml"
CORPUS = "fra-split"
RESULTS = Path(__file__).parent / "results" / "fused_h200_202611.md"
KERNELS = ("on", "off")
BOUND = 0.003  # of the mean loss: what the means may differ by


def all_losses(asked: argparse.Namespace, data: Path) -> dict[tuple[str, int], Done]:
    """Every seed with and without."""
    keys = [(kernels, seed) for seed in range(1, asked.seeds + 1) for kernels in KERNELS]
    jobs = [
        Job(
            f"{kernels}.{seed}",
            RECIPE,
            (f"train.seed={seed}", *once_each(asked.updates), "train.metric=loss", *asked.set),
            {"REGARD_KERNELS": kernels},
        )
        for kernels, seed in keys
    ]
    done = {one.name: one for one in run_all(jobs, data, asked.at_once)}
    return {key: done[job.name] for key, job in zip(keys, jobs, strict=True) if job.name in done}


def table(runs: dict[tuple[str, int], Done], seeds: Sequence[int]) -> list[str]:
    """By seed, then mean and spread, and whether the difference is small enough."""
    on, off = ([runs[kernels, seed].last["dev_loss"] for seed in seeds] for kernels in KERNELS)
    differences = [a - b for a, b in zip(on, off, strict=True)]
    lines = ["| seed | fused on | off | on − off |", "|---|--:|--:|--:|"]
    for seed, *values in zip(seeds, on, off, differences, strict=True):
        lines.append(row(str(seed), values))
    means = statistics.mean(on), statistics.mean(off)
    spreads = [max(losses) - min(losses) for losses in (on, off)]
    lines.append(row("mean", [*means, means[0] - means[1]]))
    lines.append(f"| spread, max − min | {spreads[0]:.4f} | {spreads[1]:.4f} | |")
    if len(seeds) > 1:
        deviations = [statistics.stdev(losses) for losses in (on, off)]
        lines.append(f"| standard deviation | {deviations[0]:.4f} | {deviations[1]:.4f} | |")
    difference = abs(means[0] - means[1])
    share = difference / means[1]
    lines += [
        "",
        f"The means differ by {difference:.4f}, {100 * share:.2f} %: "
        f"{is_below(difference < min(spreads))} the smaller spread over seeds, {min(spreads):.4f}, "
        f"and {is_below(share < BOUND)} {100 * BOUND:.1f} %.",
    ]
    if torch.cuda.is_available() and not any(differences):
        lines += ["", "WRONG: every loss is the same, so the kernels cannot have been in use."]
    return lines


def row(name: str, values: Sequence[float]) -> str:
    on, off, difference = values
    return f"| {name} | {on:.4f} | {off:.4f} | {difference:+.4f} |"


def is_below(truth: bool) -> str:
    return "below" if truth else "NOT below"


def main() -> None:
    """Train, print, and write with --write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--updates", type=int, default=2000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--at-once", type=int, default=6)
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    start = time.perf_counter()
    runs = all_losses(asked, asked.data or place_of(CORPUS).parent)
    seeds = [n for n in range(1, asked.seeds + 1) if all((k, n) in runs for k in KERNELS)]
    if not seeds:
        raise SystemExit("error: no seed came to its end both ways")
    minutes = (time.perf_counter() - start) / 60
    more = "".join(f" --set {setting}" for setting in asked.set)
    lines = [
        f"# Fused paths on and off, {hardware()}, {datetime.now(UTC):%B %Y}",
        "",
        f"`python benchmarks/bench_fused_losses.py`: `regard train recipes/tatoeba-fra.toml{more}` "
        f"with REGARD_KERNELS=on and =off, {asked.updates:,} updates, one validation at the end: "
        f"cross-entropy per token of the development text. {len(runs)} runs, {asked.at_once} at "
        f"once, {minutes:.1f} minutes; torch {torch.__version__}, regard {__version__}.",
        "",
        *table(runs, seeds),
        "",
    ]
    text = "\n".join(lines)
    print(text)
    if "OUT" in os.environ:
        folder = Path(os.environ["OUT"])
        (folder / RESULTS.name).write_text(text, encoding="utf-8")
        rows = json.dumps([asdict(run) for run in runs.values()], indent=1)
        (folder / "fused_runs.json").write_text(rows + "\n", encoding="utf-8")
    if asked.write:
        RESULTS.write_text(text, encoding="utf-8")
    sys.exit("WRONG" in text or len(seeds) < asked.seeds)


if __name__ == "__main__":
    main()
