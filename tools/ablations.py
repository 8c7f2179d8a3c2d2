"""The ablations of e15 on real text: Multi30k, English to German, on a GPU.

    python tools/ablations.py --data ../shared/data/multi30k -o ablations [--at-once 12] [--write]
    python tools/ablations.py -o ablations --table [--write]

One part of recipes/multi30k-en-de.toml is changed at a time, and each variant is trained from the
same seeds, many at once, each in a process of its own that translates test_2016_flickr when it has
learned. Runs go by seeds: all variants of the first, then of the next. What each ends with is a
line of runs.jsonl, in the folder that -o names and in the one that OUT names; what has its lines
there is not done again. The table is made from these lines alone.
"""

import argparse
import fcntl
import gc
import gzip
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RECIPE = ROOT / "recipes" / "multi30k-en-de.toml"
RESULTS = ROOT / "benchmarks" / "results" / "ablations_h200_202611.md"
BASE, GREEDY, LAST = "base", "base, greedy", "base, not averaged"
VARIANTS: dict[str, tuple[str, ...]] = {
    BASE: (),
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
    # the usual schedule without a warm-up would have another rate ever after, so these are a pair
    "constant rate": ("train.schedule=constant",),
    "constant rate, no warm-up": ("train.schedule=constant", "train.warmup=0"),
}
ROWS = (BASE, GREEDY, LAST, *(name for name in VARIANTS if name != BASE))
TEST, SOURCE, TARGET = "test_2016_flickr", "en", "de"
BEAM = 5
JUDGED = 20  # development pairs that are translated, as they decide nothing here
STUDENT = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776}  # the 97.5 % point, by the number of seeds
Runs = Mapping[tuple[str, int], dict[str, Any]]  # by row of the table and seed


# --- one run


def overrides(
    data: Path, name: str, seed: int, steps: int, more: Sequence[str] = ()
) -> tuple[str, ...]:
    """What a variant sets otherwise than the recipe; `more` is for all variants.

    Checkpoints keep their share of the updates. The warm-up has half of them, and not a quarter as
    in the recipe, so that the rate does not rise too steeply in a shorter run.
    """
    return (
        f'data.train=["{data}"]',
        f"train.seed={seed}",
        f"train.steps={steps}",
        f"train.warmup={max(steps // 2, 1)}",
        f"train.save_every={max(steps // 16, 1)}",
        f"train.validate_every={steps}",
        f"train.log_every={max(steps // 20, 1)}",
        *((f"train.snapshots=[{steps}]",) if name == BASE else ()),  # what is not averaged
        *more,
        *VARIANTS[name],
    )


def rows_of(name: str) -> tuple[str, ...]:
    """The rows of the table that one training is good for."""
    return (BASE, GREEDY, LAST) if name == BASE else (name,)


def one_run(options: argparse.Namespace, name: str, seed: int) -> int:
    """Train, unless that was done before; translate, score, and leave a line for each row."""
    from regard.cli import judge
    from regard.cli.fit import run
    from regard.cli.train import settings

    start = time.perf_counter()
    judge.JUDGED = JUDGED
    words = overrides(options.data, name, seed, options.steps, options.set)
    config = settings(RECIPE, words, None, None, None, None)
    place = options.work / f"{slug(name, seed)}-{options.steps}"
    folder = place.with_name(place.name + ".run")
    if not (place / "MANIFEST.json").exists():
        shutil.rmtree(folder, ignore_errors=True)  # of one that was stopped
        copy_data(config, options.work / f"data-{seed}", folder / "data")
        if code := run(config, place):
            return code
    trained = round(time.perf_counter() - start, 1)
    models = {BASE: (place, BEAM), GREEDY: (place, 1)}
    models[LAST] = folder / "snapshots" / f"step-{options.steps:08d}", BEAM
    for row in rows_of(name):
        facts = scored(*models.get(row, (place, BEAM)), options.data, config.train.device)
        facts |= {"updates": options.steps, "seconds": trained, "set": options.set}
        tell(options.output, {"variant": row, "seed": seed, **facts})
    for done in (place, folder):
        shutil.rmtree(done, ignore_errors=True)
    return 0


def copy_data(config: Any, shared: Path, place: Path) -> None:
    """The data of a seed, which whoever comes first prepares for all."""
    from regard.data.prepare import prepare

    shared.mkdir(parents=True, exist_ok=True)
    with shared.with_name(shared.name + ".lock").open("a") as lock:
        fcntl.lockf(lock, fcntl.LOCK_EX)
        prepare(config.data, shared, seed=config.train.seed, workers=1)
    shutil.copytree(shared, place)


def scored(model: Path, beam: int, data: Path, device: str) -> dict[str, Any]:
    """BLEU of a model on the test text, and where and by what it was found."""
    import torch

    from regard import __version__
    from regard.attention import kernels
    from regard.decode.translator import load
    from regard.evaluate.metrics import bleu

    gc.collect()  # the training's memory is for others
    on_gpu = device != "cpu" and torch.cuda.is_available()
    if on_gpu:
        torch.cuda.empty_cache()
    src, wanted = (
        gzip.decompress((data / f"{TEST}.{side}.gz").read_bytes()).decode().split("\n")[:-1]
        for side in (SOURCE, TARGET)
    )
    translator = load(model, engine="torch", device="cuda" if on_gpu else "cpu")
    found = bleu([one.text for one in translator.translate(src, beam=beam)], wanted, TARGET)
    return {
        "bleu": round(found.value, 3),
        "signature": found.signature,
        "network": translator.bundle.model.in_words,
        "hardware": f"one {torch.cuda.get_device_name()}" if on_gpu else "a CPU",
        "kernels": "on" if kernels.ARE_HERE else "off",
        "torch": torch.__version__,
        "regard": __version__,
    }


def tell(output: Path, line: dict[str, Any]) -> None:
    """One line more in runs.jsonl, here and where somebody collects it; written at once."""
    text = (json.dumps(line, ensure_ascii=False) + "\n").encode()
    for folder in {output, Path(os.environ.get("OUT") or output)}:
        with (folder / "runs.jsonl").open("ab", buffering=0) as file:
            file.write(text)


def slug(name: str, seed: int) -> str:
    """A file name."""
    return f"{name.replace(' ', '-').replace(',', '')}-{seed}"


def end_without(parent: int) -> None:
    """Nobody waits for a run whose parent is gone, and others want the GPU."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


# --- many at once


def known_runs(output: Path, steps: int) -> Runs:
    """What runs of so many updates ended with."""
    file = output / "runs.jsonl"
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    found = [json.loads(line) for line in text.split("\n")[:-1]]  # the last may be in the making
    return {(one["variant"], one["seed"]): one for one in found if one["updates"] == steps}


def run_all(options: argparse.Namespace, started: float) -> bool:
    """Every run that has not been done; whether none went wrong and there was time for all."""
    known = known_runs(options.output, options.steps)
    wanted = [
        (name, seed)
        for seed in range(1, options.seeds + 1)
        for name in options.variants or VARIANTS
        if not all((row, seed) in known for row in rows_of(name))
    ]

    def begin(name: str, seed: int) -> bool:
        if time.monotonic() - started > options.limit:
            return False
        return run_apart(options, name, seed)

    with ThreadPoolExecutor(options.at_once) as pool:
        return all(list(pool.map(lambda one: begin(*one), wanted)))


def run_apart(options: argparse.Namespace, name: str, seed: int) -> bool:
    """One run in a process of its own; if that dies, once more without regard's own kernels.

    What was trained by then is not trained again.
    """
    log = options.output / f"{slug(name, seed)}.log"
    start = time.monotonic()
    for changed in ({}, {"REGARD_KERNELS": "off"}):
        with log.open("ab") as file:
            ended = subprocess.run(
                [sys.executable, __file__, *sys.argv[1:], "--only", f"{seed}:{name}"],
                env={**environment(options.at_once), **changed},
                stdout=file,
                stderr=file,
            )
        if ended.returncode == 0:
            known = known_runs(options.output, options.steps)
            scores = ", ".join(f"{row} {known[row, seed]['bleu']:.2f}" for row in rows_of(name))
            print(f"seed {seed}: {scores}; {time.monotonic() - start:.0f} s", flush=True)
            write_table(options, known, is_last=False)
            return True
    said = log.read_text(encoding="utf-8", errors="replace").splitlines()[-15:]
    print(f"seed {seed}, {name}: exit code {ended.returncode}", *said, sep="\n", flush=True)
    return False


def environment(at_once: int) -> dict[str, str]:
    """The package beside this file; all share the cores."""
    path = os.environ.get("PYTHONPATH", "")
    threads = str(max((os.cpu_count() or 1) // at_once, 1))
    return {
        "TORCHINDUCTOR_COMPILE_THREADS": threads,
        "OMP_NUM_THREADS": threads,
        **os.environ,
        "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{path}" if path else str(ROOT / "src"),
        "PYTHONUNBUFFERED": "1",
    }


# --- the table


def mean_in_words(found: Sequence[float], form: str = ".1f") -> str:
    """The mean and its 95 % interval; with one seed there is none."""
    if len(found) < 2:
        return format(found[0], form)
    reach = STUDENT[len(found)] * statistics.stdev(found) / len(found) ** 0.5
    return f"{statistics.mean(found):{form}} ± {reach:.1f}"


def row(name: str, runs: Runs) -> str:
    """One line of the table; differences from the base are taken seed by seed."""
    found = {seed: run["bleu"] for (variant, seed), run in sorted(runs.items()) if variant == name}
    less = [
        value - runs[BASE, seed]["bleu"] for seed, value in found.items() if (BASE, seed) in runs
    ]
    difference = mean_in_words(less, "+.1f") if less and name != BASE else ""
    each = ", ".join(f"{value:.1f}" for value in found.values())
    return f"| {name} | {mean_in_words(list(found.values()))} | {difference} | {each} |"


def page(runs: Runs) -> str:
    """The page of results."""
    first = next(iter(runs.values()))
    base = next((run for (variant, _), run in runs.items() if variant == BASE), first)
    names = [name for name in ROWS if any(variant == name for variant, _ in runs)]
    n_seeds = max(sum(variant == name for variant, _ in runs) for name in names)
    more = "".join(f" --set {word}" for word in first["set"])
    kernels = " and ".join(sorted({run["kernels"] for run in runs.values()}, reverse=True))
    lines = [
        f"# Ablations on Multi30k, English to German, {first['hardware']}, November 2026",
        "",
        f"`python tools/ablations.py --seeds {n_seeds} --steps {first['updates']}{more}`: "
        f"recipes/multi30k-en-de.toml ({base['network']}) with {first['updates']:,} "
        "updates, half of them warm-up, ten checkpoints averaged, and one part changed at "
        f"a time. BLEU on {TEST}, beam {BEAM} where it does not say greedy: mean over the seeds "
        "and its 95 % interval (Student's t). Differences from the base are taken seed by seed. "
        '"No warm-up" goes with "constant rate": the usual schedule without a warm-up would be '
        f"another one afterwards. Kernels {kernels}; torch {first['torch']}, regard "
        f"{first['regard']}.",
        "",
        "| variant | BLEU | less the base | by seed |",
        "|---|--:|--:|---|",
        *(row(name, runs) for name in names),
        "",
        f"BLEU: `{first['signature']}`. A run took "
        f"{statistics.median(run['seconds'] for run in runs.values()):.0f} s (median), many at "
        "once.",
        "",
    ]
    return "\n".join(lines)


def write_table(options: argparse.Namespace, runs: Runs, *, is_last: bool) -> None:
    """Where somebody collects it; at the end also where --write says, and on the screen."""
    if not runs:
        return
    text = page(runs)
    if "OUT" in os.environ:
        (Path(os.environ["OUT"]) / RESULTS.name).write_text(text, encoding="utf-8")
    if is_last:
        print(text)
        if options.write:
            RESULTS.write_text(text, encoding="utf-8")


def parsed() -> argparse.Namespace:
    """What is asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, help="the folder of Multi30k")
    parser.add_argument("-o", "--output", type=Path, required=True, help="of runs.jsonl and logs")
    parser.add_argument("--work", type=Path, help="where models and checkpoints are until scored")
    parser.add_argument("--seeds", type=int, default=3, choices=range(1, 6))
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--at-once", type=int, default=12)
    parser.add_argument("--limit", type=float, default=float("inf"), help="s; then none is begun")
    parser.add_argument("--set", action="append", default=[], metavar="A.B=C", help="for all runs")
    parser.add_argument("--table", action="store_true", help="of what there is; trains nothing")
    parser.add_argument("--write", action="store_true", help=f"the table to {RESULTS.name}")
    parser.add_argument("--only", help=argparse.SUPPRESS)  # one run, in its own process
    parser.add_argument("variants", nargs="*", help="some of the variants; without any, all")
    options = parser.parse_args()
    if unknown := [name for name in options.variants if name not in VARIANTS]:
        parser.error(f"unknown variants: {', '.join(unknown)}; they are {', '.join(VARIANTS)}")
    if not (options.table or (options.data and (options.data / f"{TEST}.en.gz").exists())):
        parser.error(f"--data must name a folder with {TEST}.en.gz")
    options.work = options.work or Path(tempfile.gettempdir()) / "regard-ablations"
    if options.data:
        options.data = options.data.resolve()
    return options


def main() -> int:
    """Train and score what is missing, many at once, and make the table."""
    started = time.monotonic()
    options = parsed()
    for folder in (options.output, options.work):
        folder.mkdir(parents=True, exist_ok=True)
    if options.only:
        threading.Thread(target=end_without, args=(os.getppid(),), daemon=True).start()
        seed, name = options.only.split(":", 1)
        return one_run(options, name, int(seed))
    is_whole = options.table or run_all(options, started)
    write_table(options, known_runs(options.output, options.steps), is_last=True)
    return 0 if is_whole else 1


if __name__ == "__main__":
    sys.exit(main())
