"""Translating on Ray: two workers of one thread each against one, on the same two cores.

    python benchmarks/bench_ray.py [--lines 20000] [--rounds 5] [--write]

A Ray cluster of two CPUs is started on this machine for the time of the measurement. In a round the
same lines are translated with one worker and with two, in turns; the clock runs from the first
tenth of the lines to the last, so that neither the start of Ray nor the loading of the model is in
it. What comes out is compared with the translation by this process alone, line for line.
"""

import argparse
import contextlib
import os
import random
import secrets
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from regard import __version__
from regard.cli.bulk import chunk_size
from regard.cli.shards.cluster import said_on_cluster
from regard.cli.shards.job import Shard
from regard.cli.translate import Options, command
from regard.decode.translator import load

ROOT = Path(__file__).parents[1]
MODEL = ROOT / "tests" / "models" / "tatoeba-zh-en"
RESULTS = Path(__file__).parent / "results" / "ray_2-core-cpu_202611.md"
PIECES = ["喜欢", "今天", "苹果", "学校", "朋友", *"我你他去吃看书的了吗很不在"]
STORE = 200 << 20  # bytes of memory for what is on its way


@contextlib.contextmanager
def cluster() -> Iterator[str]:
    """A Ray cluster of this machine's two cores, with a secret of its own; its address."""
    token = secrets.token_hex(32)
    os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": token}
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    place = tempfile.mkdtemp(prefix="ray-")
    ray = subprocess.Popen(
        [
            sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--block",
            f"--port={port}", "--node-ip-address=127.0.0.1", "--num-cpus=2",
            "--include-dashboard=false", f"--object-store-memory={STORE}", f"--temp-dir={place}",
            "--disable-usage-stats",
        ],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    try:
        assert ray.stdout is not None
        assert any("Ray runtime started" in line for line in ray.stdout), "Ray did not start"
        yield f"127.0.0.1:{port}"
    finally:
        ray.kill()
        ray.wait()
        mine = f"RAY_AUTH_TOKEN={token}".encode()
        for path in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                is_mine = mine in (path / "environ").read_bytes().split(b"\0")
                if is_mine and int(path.name) != os.getpid():
                    os.kill(int(path.name), signal.SIGKILL)
        shutil.rmtree(place, ignore_errors=True)


def options(address: str, workers: int) -> Options:
    """What the command line would ask for."""
    line = ["--model", str(MODEL), "--beam", "1", "--ray", address, "--workers", str(workers)]
    asked = command.make_context("translate", line).params
    return Options(**asked)


def a_run(address: str, workers: int, source: Path, n_lines: int) -> tuple[float, list[str]]:
    """Lines a second once all workers are at work, and what they said."""
    import fsspec

    shard = Shard(fsspec.open(str(source), "rb"), str(source), "x", None)
    said: dict[int, str] = {}
    done, begun, began_at = 0, 0.0, 0
    for chunk in said_on_cluster([shard], options(address, workers), {}, [MODEL]):
        said[chunk.number] = chunk.text
        done += chunk.n_lines
        now = time.perf_counter()
        if not begun and done >= n_lines // 10:
            begun, began_at = now, done
        if done == n_lines and chunk.n_lines:
            ended = now
    text = "".join(said[number] for number in sorted(said))
    return (n_lines - began_at) / (ended - begun), text.splitlines()


def here(source: Path) -> list[str]:
    """The same by this process alone."""
    translator = load(MODEL)
    lines, size = source.read_text(encoding="utf-8").splitlines(), chunk_size("cpu")
    return [
        one.text
        for at in range(0, len(lines), size)
        for one in translator.translate(lines[at : at + size], beam=1)
    ]


def main() -> None:
    """Measure, print, and write with --write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lines", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    chance, speeds = random.Random(1), {1: [], 2: []}
    with tempfile.TemporaryDirectory() as folder, cluster() as address:
        source = Path(folder) / "a.zh"
        lines = [
            "".join(chance.choices(PIECES, k=chance.randint(1, 6))) for _ in range(asked.lines)
        ]
        source.write_text("".join(f"{line}。\n" for line in lines), encoding="utf-8")
        expected, loads = here(source), [os.getloadavg()[0]]
        for number in range(asked.rounds):
            for workers in (1, 2) if number % 2 else (2, 1):
                speed, said = a_run(address, workers, source, asked.lines)
                assert said == expected, "not what one process says"
                speeds[workers].append(speed)
                loads.append(os.getloadavg()[0])
                print(f"{workers} workers: {speed:,.0f} lines/s, load {loads[-1]:.1f}", flush=True)
    text = table(asked.lines, asked.rounds, speeds, loads)
    print(text)
    if asked.write:
        RESULTS.write_text(text, encoding="utf-8")


def table(n_lines: int, n_rounds: int, speeds: dict[int, list[float]], loads: list[float]) -> str:
    import ctranslate2
    import ray

    ratios = [two / one for one, two in zip(speeds[1], speeds[2], strict=True)]
    best = max(speeds[2]) / max(speeds[1])
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True,
        check=True,
    ).stdout.strip()  # fmt: skip
    rows = [
        f"| {workers} | {statistics.median(own):,.0f} | {min(own):,.0f} – {max(own):,.0f} |"
        for workers, own in speeds.items()
    ]
    return "\n".join(
        [
            f"# Translating on Ray, 2-core CPU, {datetime.now(UTC):%B %Y}",
            "",
            f"`python benchmarks/bench_ray.py --lines {n_lines} --rounds {n_rounds}`: {n_lines:,} "
            "lines of 1 to 6 words through `regard translate --ray` on a cluster of two CPUs, the "
            "Tatoeba model of tests/models (d 256, 3+3 layers), greedily, ctranslate2, float32, "
            "one thread a worker; the start left out; one worker and two in turns, each round. The "
            "output of every run was that of one process without Ray, line for line. Load while "
            f"measuring: {min(loads):.1f} to {max(loads):.1f}. Ray {ray.__version__}, CTranslate2 "
            f"{ctranslate2.__version__}, regard {__version__} at commit {commit}.",
            "",
            "| workers | lines/s (median) | min – max |",
            "|---|--:|--:|",
            *rows,
            "",
            f"Two workers against one: **{statistics.median(ratios):.2f}** "
            f"({min(ratios):.2f}–{max(ratios):.2f}); of the fastest {best:.2f}.",
            "",
        ]
    )


if __name__ == "__main__":
    main()
