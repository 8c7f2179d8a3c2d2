"""Many trainings at once, each by `regard train` in its own process, and what they ended with."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from corpora import ROOT


@dataclass(frozen=True)
class Job:
    """One training: a recipe and what is set otherwise."""

    name: str
    recipe: Path
    settings: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Done:
    """What a training ended with: the last line of metrics that has a score, and its seconds."""

    name: str
    last: dict[str, Any]
    seconds: float


def once_each(steps: int) -> tuple[str, ...]:
    """Settings of a run of so many updates that is judged and saved once, at its end."""
    return (
        f"train.steps={steps}",
        f"train.validate_every={steps}",
        f"train.save_every={steps}",
        f"train.log_every={max(steps // 20, 1)}",
    )


def run_all(jobs: Sequence[Job], data: Path, at_once: int) -> list[Done]:
    """Those that came to their end; of the others the end of the log is printed.

    Recipes find their text under data.
    """
    with tempfile.TemporaryDirectory() as directory:
        work = Path(directory)
        (work / "data").symlink_to(data.resolve())
        with ThreadPoolExecutor(at_once) as pool:
            done = pool.map(lambda job: _run(job, work, at_once), jobs)
            return [one for one in done if one is not None]


def _run(job: Job, work: Path, at_once: int) -> Done | None:
    place, log = work / job.name, work / f"{job.name}.log"
    words = [word for setting in job.settings for word in ("--set", setting)]
    command = [sys.executable, "-m", "regard", "train", str(job.recipe), "-o", str(place), *words]
    start = time.perf_counter()
    with log.open("wb") as file:
        environment = {**_environment(at_once), **job.environment}
        ended = subprocess.run(command, cwd=work, env=environment, stdout=file, stderr=file)
    seconds = time.perf_counter() - start
    if ended.returncode:
        said = log.read_text(encoding="utf-8", errors="replace").splitlines()[-15:]
        print(f"{job.name}: exit code {ended.returncode}", *said, sep="\n", flush=True)
        return None
    metrics = work / f"{job.name}.run" / "metrics.jsonl"
    rows = [json.loads(line) for line in metrics.read_text(encoding="utf-8").splitlines()]
    last = [row for row in rows if "dev_loss" in row][-1]
    print(f"{job.name}: loss {last['dev_loss']:.4f} after {seconds:.0f} s", flush=True)
    return Done(job.name, last, seconds)


def _environment(at_once: int) -> dict[str, str]:
    """The same package in another folder; whoever compiles shares the cores with the others."""
    path = os.environ.get("PYTHONPATH", "")
    threads = str(max((os.cpu_count() or 1) // at_once, 1))
    return {
        "TORCHINDUCTOR_COMPILE_THREADS": threads,
        **os.environ,
        "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{path}" if path else str(ROOT / "src"),
        "PYTHONUNBUFFERED": "1",
    }
