"""The server under load, against the engine alone on the same core in the same run.

    python benchmarks/bench_serve.py --data DIR [--model DIR] [--seconds 60] [--rounds 6] [--write]

The server, both its processes, has the first core; clients and clock have the second. DIR holds
`test_hans.zh.gz` of the Tatoeba Challenge, whose sentences are asked for. In each round the engine
alone, `Translator.translate`, has 400 of them at once on the server's core, then 64 clients ask for
1 sentence a time, then for 10; a ratio is the median of the rounds', with its spread. Then requests
of 20 sentences come at ten times the rate that was reached, whether or not those before are
answered.
"""

import argparse
import asyncio
import gzip
import json
import os
import random
import re
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).parents[1]
SMALL = ROOT / "tests" / "models" / "tatoeba-zh-en"
RESULTS = Path(__file__).parent / "results" / "serve_2-core-cpu_202611.md"
CLIENTS, SENTENCES, ALONE = 64, 1000, 400
SERVER_CORE, CLIENT_CORE = 0, 1

ENGINE = """
import sys, time, json
from regard.decode.translator import load
texts = json.load(sys.stdin)
translator = load(sys.argv[1], engine="ctranslate2")
translator.translate(texts[:50])
started = time.perf_counter()
translator.translate(texts)
print(len(texts) / (time.perf_counter() - started))
"""


@dataclass
class Round:
    """What was asked and answered in some seconds."""

    seconds: float = 0.0
    sentences: int = 0
    times: list[float] = field(default_factory=list)  # of what was translated
    refused: list[float] = field(default_factory=list)
    late: int = 0  # 503 at the deadline
    others: list[str] = field(default_factory=list)

    @property
    def rate(self) -> float:
        """Sentences a second."""
        return self.sentences / self.seconds

    def add(self, other: "Round") -> None:
        """Count another round with this one."""
        self.seconds, self.sentences = (
            self.seconds + other.seconds,
            self.sentences + other.sentences,
        )
        self.times, self.refused = self.times + other.times, self.refused + other.refused
        self.late, self.others = self.late + other.late, self.others + other.others


class Client:
    """One connection that stays open, and as little Python as it takes to use it."""

    def __init__(self, port: int) -> None:
        self.port = port

    async def open(self) -> None:
        """Connect."""
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)

    async def ask(self, texts: list[str]) -> tuple[int, bytes]:
        """The status and the body of the answer."""
        body = json.dumps({"q": texts, "source": "zh", "target": "en"}).encode()
        self.writer.write(
            b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
        )
        head = await self.reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", head)
        assert length
        return int(head[9:12]), await self.reader.readexactly(int(length[1]))

    def close(self) -> None:
        """Hang up."""
        self.writer.close()


async def closed_loop(port: int, texts: list[str], n: int, seconds: float) -> Round:
    """As many clients, each of which asks again when it is answered."""
    found, until = Round(), time.perf_counter() + seconds

    async def client(dice: random.Random) -> None:
        talk = Client(port)
        await talk.open()
        while time.perf_counter() < until:
            started = time.perf_counter()
            status, said = await talk.ask(dice.choices(texts, k=n))
            note(found, status, said, time.perf_counter() - started, n)
            if status == 429:
                await asyncio.sleep(1.0)  # as it was told to, and less
        talk.close()

    started = time.perf_counter()
    await asyncio.gather(*(client(random.Random(number)) for number in range(CLIENTS)))
    found.seconds = time.perf_counter() - started
    return found


async def open_loop(port: int, texts: list[str], n: int, rate: float, seconds: float) -> Round:
    """Requests at a rate, whatever becomes of those before; connections are used again."""
    found, idle, dice = Round(), list[Client](), random.Random(1)
    asking: set[asyncio.Task[None]] = set()

    async def ask() -> None:
        while idle and idle[-1].reader.at_eof():  # closed by the server, as it was idle for long
            idle.pop().close()
        if idle:
            talk = idle.pop()
        else:
            talk = Client(port)
            await talk.open()
        started = time.perf_counter()
        try:
            status, said = await talk.ask(dice.choices(texts, k=n))
        except (OSError, asyncio.IncompleteReadError) as error:
            found.others.append(type(error).__name__)
            return
        note(found, status, said, time.perf_counter() - started, n)
        idle.append(talk)

    started, sent = time.perf_counter(), 0
    while (now := time.perf_counter() - started) < seconds:
        while sent < now * rate:
            task = asyncio.ensure_future(ask())
            asking.add(task)
            task.add_done_callback(asking.discard)
            sent += 1
        await asyncio.sleep(0.002)
    found.seconds = seconds
    if asking:
        await asyncio.wait(asking)
    for talk in idle:
        talk.close()
    return found


def note(found: Round, status: int, said: bytes, took: float, n: int) -> None:
    if status == 200:
        found.sentences += n
        found.times.append(took)
    elif status == 429:
        found.refused.append(took)
    elif status == 503:
        found.late += 1
    else:
        found.others.append(said[:80].decode())


def engine_alone(model: Path, texts: list[str]) -> float:
    """Sentences a second of the engine in a process of its own on the server's core."""
    done = subprocess.run(
        ["taskset", "-c", str(SERVER_CORE), sys.executable, "-c", ENGINE, str(model)],
        input=json.dumps(texts), capture_output=True, text=True, check=True, env=environment(),
    )  # fmt: skip
    return float(done.stdout)


def environment() -> dict[str, str]:
    return {**os.environ, "GOMP_SPINCOUNT": "3000", "REGARD_LANG": "en"}


def start(model: Path) -> tuple[subprocess.Popen[str], int]:
    server = subprocess.Popen(
        ["taskset", "-c", str(SERVER_CORE), sys.executable, "-m", "regard", "serve", str(model),
         "--port", "0", "--quiet", "--lean"],
        stdout=subprocess.PIPE, text=True, env=environment(),
    )  # fmt: skip
    assert server.stdout
    found = re.search(r":(\d+)$", server.stdout.readline().strip())
    assert found
    return server, int(found[1])


def resident_mb(pid: int) -> float:
    """Memory of a process and its children."""
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    pids = [pid, *(int(child) for task in tasks for child in task.read_text().split())]
    statuses = (Path(f"/proc/{one}/status").read_text() for one in pids)
    found = (re.search(r"VmRSS:\s+(\d+)", status) for status in statuses)
    return sum(int(one[1]) for one in found if one) / 1024


async def recovery(port: int, usual: float) -> float:
    """Seconds until a request takes no longer than twice what it usually does."""
    started = time.perf_counter()
    talk = Client(port)
    await talk.open()
    while True:
        before = time.perf_counter()
        status, _ = await talk.ask(["我喜欢吃苹果。"])
        if status == 200 and time.perf_counter() - before < 2 * usual + 0.05:
            talk.close()
            return time.perf_counter() - started


def shown(times: list[float], share: float) -> str:
    return f"{1000 * sorted(times)[int(share * (len(times) - 1))]:.0f}" if times else "–"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--model", type=Path, default=SMALL)
    parser.add_argument("--seconds", type=float, default=60.0, help="of each load, in all")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--write", action="store_true", help=f"write {RESULTS.name}")
    options = parser.parse_args()
    with gzip.open(options.data / "test_hans.zh.gz", "rt", encoding="utf-8") as file:
        texts = [line.strip() for line in file if line.strip()][:SENTENCES]
    os.sched_setaffinity(0, {CLIENT_CORE})
    alone, loads = list[float](), {1: list[Round](), 10: list[Round]()}
    server, port = start(options.model)
    try:
        asyncio.run(closed_loop(port, texts, 10, 3.0))  # until it is warm
        for number in range(options.rounds):
            alone.append(engine_alone(options.model, texts[number % 2 :: 2][:ALONE]))
            for n, rounds in loads.items():
                part = options.seconds / options.rounds
                rounds.append(asyncio.run(closed_loop(port, texts, n, part)))
        usual = asyncio.run(recovery(port, 0.2))
        before = resident_mb(server.pid)
        peak = max(whole(rounds).rate for rounds in loads.values())
        over = asyncio.run(open_loop(port, texts, 20, 10 * peak / 20, options.seconds))
        after = resident_mb(server.pid)
        well = asyncio.run(recovery(port, usual))
    finally:
        server.terminate()
        code = server.wait(30)
    report = "\n".join(lines(options, alone, loads, over, (before, after), well, code))
    print(report)
    if options.write:
        RESULTS.write_text(report + "\n", encoding="utf-8")


def whole(rounds: list[Round]) -> Round:
    """Several rounds as one."""
    found = Round()
    for one in rounds:
        found.add(one)
    return found


def lines(options, alone, loads, over, memory, well, code):  # type: ignore[no-untyped-def]
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, cwd=ROOT
    ).stdout.strip()
    yield f"# Serving on one of 2 cores, {datetime.now(UTC):%B %Y}\n"
    yield (
        f"`python benchmarks/bench_serve.py`: {options.model.name}, its own search, float32; "
        f"server on one core, clients on the other, {options.seconds:g} s a row in "
        f"{options.rounds} rounds, at commit {commit}. The engine alone, {ALONE} sentences at once "
        f"on that core: {statistics.median(alone):.0f} sentences a second "
        f"({min(alone):.0f}–{max(alone):.0f}).\n"
    )
    yield "| load | sentences a second | of the engine alone | p50, ms | p99, ms | refused | late |"
    yield "|---|--:|--:|--:|--:|--:|--:|"
    for n, rounds in loads.items():
        shares = [one.rate / engine for one, engine in zip(rounds, alone, strict=True)]
        share = f"**{statistics.median(shares):.2f}** ({min(shares):.2f}–{max(shares):.2f})"
        yield row(f"{CLIENTS} clients, {n} sentence{'s' * (n > 1)} a time", whole(rounds), share)
    peak = max(whole(rounds).rate for rounds in loads.values())
    yield row(f"{10 * peak / 20:.0f} requests of 20 sentences a second", over, "")
    others = sum(len(one.others) for one in (over, *map(whole, loads.values())))
    yield (
        f"\nAt ten times the load: {over.rate / peak:.2f} of the peak; refused in "
        f"{shown(over.refused, 0.5)} ms (median) and {shown(over.refused, 0.99)} ms (99 of 100); "
        f"memory {memory[0]:.0f} MB before and {memory[1]:.0f} MB after; as quick as usual again "
        f"after {well:.2f} s. Errors of any other kind: {others}. Exit code after SIGTERM: {code}."
    )


def row(name: str, found: Round, share: str) -> str:
    return (
        f"| {name} | {found.rate:.0f} | {share} | {shown(found.times, 0.5)} "
        f"| {shown(found.times, 0.99)} | {len(found.refused)} | {found.late} |"
    )


if __name__ == "__main__":
    main()
