"""Does it learn? Copy, reverse and sort by every kind of attention, from seeds of the day.

    make learn        (20 to 30 minutes on 2 cores)

Sequences of 1 to 20 digits, networks of 2+2 layers and d 64, at most 3,000 updates, by the
Transformer with each of its four scores; and by Bahdanau's recurrent network, whose own budget is
one layer of d 128 and the same 3,000 updates. Each must get 99 % of 2,000 unseen sequences exactly
right. Two runs at a time, one thread each.
"""

import os
import random
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path

from regard.data.tasks import examples
from regard.decode.translator import load

ROOT = Path(__file__).parents[1]
TASKS = ("copy", "reverse", "sort")
RECURRENT = ("model.kind=recurrent", "model.norm=post", "model.n_layers=1", "model.d_model=128")
NETWORKS = {
    **{score: (f"model.score={score}",) for score in ("scaled_dot", "dot", "additive", "gaussian")},
    "recurrent": RECURRENT,
}
UNSEEN, BAR = 2000, 0.99


def learn(task: str, network: str, seed: int, folder: Path) -> tuple[float, float]:
    """Train one network on one task; the share it gets exactly right, and the seconds it took."""
    model = folder / f"{task}-{network}"
    settings = (*NETWORKS[network], f"data.task={task}", f"train.seed={seed}")
    start = time.monotonic()
    done = subprocess.run(
        [
            *(sys.executable, "-m", "regard", "train", str(ROOT / "recipes" / "learn.toml")),
            *("-o", str(model)),
            *(word for setting in settings for word in ("--set", setting)),
        ],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    if done.returncode:
        sys.exit(f"{task}, {network}, seed {seed}: {done.stderr[-2000:]}")
    unseen = list(islice(examples(task, seed, "test"), UNSEEN))  # type: ignore[arg-type]
    said = [str(one) for one in load(model).translate([e.src for e in unseen], beam=1)]
    right = sum(a == b.tgt for a, b in zip(said, unseen, strict=True))
    return right / UNSEEN, time.monotonic() - start


def main() -> int:
    """Train them all, print a table, and say whether all have learned."""
    asked = [word for word in sys.argv[1:] if re.fullmatch(r"[a-z_]+", word)]
    jobs = [
        (task, network, random.SystemRandom().randrange(1, 10**6))
        for network in NETWORKS
        for task in TASKS
        if not asked or task in asked or network in asked
    ]
    print("| task | network | seed | exact | seconds |\n|---|---|--:|--:|--:|", flush=True)
    failed = 0
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as pool:

        def work(job: tuple[str, str, int]) -> tuple[float, float]:
            return learn(*job, Path(folder))

        for job, (exact, seconds) in zip(jobs, pool.map(work, jobs), strict=True):
            task, network, seed = job
            print(f"| {task} | {network} | {seed} | {exact:.2%} | {seconds:.0f} |", flush=True)
            failed += exact < BAR
    print(f"{len(jobs) - failed} of {len(jobs)} learned")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
