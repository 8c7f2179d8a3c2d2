"""Small runs that can be killed, starved and asked to leave, and what was counted of them.

REGARD_FAULTS=long   as many kills and flips as `make faults` promises
REGARD_FAULTS_SEED   the seed that a failure has printed, to see it again
"""

import contextlib
import json
import multiprocessing
import os
import random
import secrets
import signal
import subprocess
import sys
import time

import pytest

from regard.cli.main import main
from regard.train.checkpoint import checkpoints, is_whole
from regard.train.trainer import Trainer

IS_LONG = os.environ.get("REGARD_FAULTS") == "long"
SYLLABLES = ("ba", "do", "ki", "lu", "me", "no", "ra", "si")
RECIPE = """
[model]
d_model = 16
n_layers = 1
n_heads = 2
d_ff = 16
norm = "pre"
dropout = 0.3

[data]
train = ["{folder}/corpus.src,{folder}/corpus.tgt"]
tokenizer = "char"
vocab_size = 300

[train]
tokens = 256
lr = 0.01
warmup = 2
schedule = "constant"
log_every = 1
save_every = 4
validate_every = 1000
"""
# A process of its own writes all it says into a file, and can be spoilt before it begins.
CHILD = """
import multiprocessing, os
multiprocessing.set_start_method("fork", force=True)  # as it is where nobody chose another
handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
os.dup2(handle, 1), os.dup2(handle, 2)
exec(before, {})
if arguments:
    from regard.cli.main import main
    main(arguments)
"""


def pytest_terminal_summary(terminalreporter):
    for reports in terminalreporter.stats.values():
        for report in reports:
            for name, value in getattr(report, "user_properties", ()):
                if name == "counted" and report.when == "call":
                    terminalreporter.write_line(value)


@pytest.fixture
def often():
    """How often: the first number, or in the long form the second."""
    return lambda short, long: long if IS_LONG else short


@pytest.fixture
def dice():
    """Chance of which a failure tells the seed."""
    seed = int(os.environ.get("REGARD_FAULTS_SEED") or secrets.randbits(32))
    sys.stdout.write(f"REGARD_FAULTS_SEED={seed}\n")
    return random.Random(seed)


@pytest.fixture(scope="session")
def processes():
    """Processes that start at once, because the one they are forked from has read all imports."""
    env = {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive", "REGARD_LANG": "en"}
    before = {name: os.environ.get(name) for name in env}
    os.environ.update(env)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["regard.cli.fit", "regard.cli.train", "safetensors.torch"])
    yield context
    for name, value in before.items():
        os.environ.pop(name) if value is None else os.environ.update({name: value})


@pytest.fixture
def runs(tmp_path, processes, monkeypatch):
    monkeypatch.setenv("REGARD_LANG", "en")
    made = Runs(tmp_path, processes)
    yield made
    for child in made.children:
        child.kill()


class Runs:
    """Runs of one recipe in one place, each by a name."""

    def __init__(self, place, processes):
        self.place, self.processes, self.children = place, processes, []
        self.write_corpus(200)
        self.recipe = place / "recipe.toml"
        self.recipe.write_text(RECIPE.format(folder=place))

    def write_corpus(self, n_lines):
        chance = random.Random(1)
        lines = [
            ["".join(chance.choices(SYLLABLES, k=chance.randint(1, 3))) for _ in range(length)]
            for length in chance.choices(range(1, 6), k=n_lines)
        ]
        (self.place / "corpus.src").write_text("".join(f"{' '.join(ws)}\n" for ws in lines))
        (self.place / "corpus.tgt").write_text("".join(f"{' '.join(ws[::-1])}\n" for ws in lines))

    def arguments(self, name, *settings, flags=()):
        words = [word for setting in settings for word in ("--set", setting)]
        return ["train", str(self.recipe), "-o", str(self.place / name), *words, *flags]

    def train(self, name, *settings, flags=()):
        """Train in this process; the exit code."""
        with pytest.raises(SystemExit) as left:
            main(self.arguments(name, *settings, flags=flags))
        return left.value.code or 0

    def train_and_leave(self, number, name, *settings):
        """Train in this process, asked to leave as it begins a certain update; the exit code."""
        whole, calls = Trainer.train_step, []

        def train_step(trainer):
            calls.append(trainer)
            if len(calls) == number:
                os.kill(os.getpid(), signal.SIGTERM)
            whole(trainer)

        with pytest.MonkeyPatch.context() as spoilt:
            spoilt.setattr(Trainer, "train_step", train_step)
            return self.train(name, *settings)

    def start(self, name, *settings, flags=(), before=""):
        """Train in a process forked for it, after some code has run there."""
        return self._forked(name, self.arguments(name, *settings, flags=flags), before)

    def start_code(self, name, code):
        """Run some code in a process forked for it."""
        return self._forked(name, [], code)

    def _forked(self, name, arguments, before):
        log = self.place / f"{name}.log"
        log.write_text("")
        wanted = {"log": str(log), "before": before, "arguments": arguments}
        process = self.processes.Process(target=exec, args=(CHILD, wanted))
        process.start()
        return self._watched(process, name, process.join, lambda: process.exitcode)

    def start_python(self, name, *settings, flags=(), **env):
        """Train as a person would, in a fresh Python."""
        with (self.place / f"{name}.log").open("w") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "regard", *self.arguments(name, *settings, flags=flags)],
                env={**os.environ, "OMP_NUM_THREADS": "1", "REGARD_LANG": "en", **env},
                stdout=subprocess.DEVNULL,
                stderr=log,
            )
        return self._watched(process, name, process.wait, process.poll)

    def _watched(self, process, name, wait, poll):
        self.children.append(Child(self, name, process.pid, wait, poll))
        return self.children[-1]

    def folder(self, name):
        return self.place / f"{name}.run"

    def saved(self, name):
        """The updates that were saved, the newest first; every one must be whole."""
        places = checkpoints(self.folder(name) / "checkpoints")
        assert all(map(is_whole, places))
        return [int(place.name.removeprefix("step-")) for place in places]

    def half_written(self, name):
        """What a save that failed might have left."""
        return list(self.folder(name).rglob(".step-*"))

    def measured(self, name):
        """All that was measured and does not depend on the clock."""
        lines = (self.folder(name) / "metrics.jsonl").read_text().splitlines()
        timed = ("tokens_per_s", "seconds")
        return [{k: v for k, v in json.loads(line).items() if k not in timed} for line in lines]

    def last_step(self, name):
        """The last update that was measured; 0 if none."""
        try:
            lines = (self.folder(name) / "metrics.jsonl").read_bytes().splitlines()
        except FileNotFoundError:
            return 0
        steps = [line.split(b",")[0].removeprefix(b'{"step": ') for line in lines if b"," in line]
        return int(steps[-1]) if steps else 0

    def weights(self, name):
        return (self.place / name / "model.safetensors").read_bytes()

    def assert_same(self, name, other):
        assert self.measured(name) == self.measured(other)
        assert self.weights(name) == self.weights(other)


class Child:
    """A process that trains, and what can be seen of it from outside."""

    def __init__(self, runs, name, pid, wait, poll):
        self.runs, self.name, self.pid, self.wait, self.poll = runs, name, pid, wait, poll

    def said(self):
        return (self.runs.place / f"{self.name}.log").read_text()

    def until(self, is_so, seconds=60):
        """Wait until something is so, while the process runs."""
        until = time.monotonic() + seconds
        while not is_so():
            assert self.poll() is None, f"it left with {self.poll()}: {self.said()}"
            assert time.monotonic() < until, f"waited for {seconds} s in vain: {self.said()}"
            time.sleep(0.002)

    def until_step(self, step):
        """Wait until an update was measured."""
        self.until(lambda: self.runs.last_step(self.name) >= step)

    def signal(self, number):
        os.kill(self.pid, number)

    def end(self, seconds=60):
        """The exit code; a negative one is a signal."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(seconds)
        assert self.poll() is not None, f"still there after {seconds} s: {self.said()}"
        return self.poll()

    def kill(self):
        """End it as no program can prevent."""
        if self.poll() is None:
            self.signal(signal.SIGKILL)
        return self.end()
