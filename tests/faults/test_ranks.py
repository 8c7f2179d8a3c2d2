"""Ranks of one run that are killed: all are started anew, and the weights are the same to the bit.

In the long form by torchrun: ten kills among four ranks.
"""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from regard.train.folder import locked

SETTINGS = (
    "model.d_model=32", "model.d_ff=48", "train.save_every=3", "train.validate_every=5",
    "train.ema=0.9", "data.sampled=true", "data.tokenizer=unigram", "data.vocab_size=330",
)  # fmt: skip
pytestmark = pytest.mark.dist


class Ranks:
    """A run by torchrun."""

    def __init__(self, runs, name, n_ranks, restarts, settings):
        self.runs, self.name, self.n_ranks = runs, name, n_ranks
        self.log = runs.place / f"{name}.log"
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [
                    sys.executable, "-m", "torch.distributed.run", "--standalone",
                    f"--nproc-per-node={n_ranks}", f"--max-restarts={restarts}",
                    "-m", "regard", *runs.arguments(name, *settings, flags=["--resume"]),
                ],
                env={
                    **os.environ, "OMP_NUM_THREADS": "1", "REGARD_LANG": "en",
                    "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",
                },
                stdout=log,
                stderr=log,
                start_new_session=True,
            )  # fmt: skip

    def pids(self):
        """The ranks that run."""
        try:
            children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
            return [int(pid) for pid in children.read_text().split()]
        except OSError:
            return []

    def until(self, is_so, seconds=120):
        until = time.monotonic() + seconds
        while not is_so():
            assert self.process.poll() is None, self.log.read_text()[-3000:]
            assert time.monotonic() < until, self.log.read_text()[-3000:]
            time.sleep(0.005)

    def end(self):
        assert self.process.wait(180) == 0, self.log.read_text()[-3000:]

    def kill(self):
        """Torchrun and all its ranks, whatever they are at."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        for pid in self.pids():  # torchrun gives its ranks sessions of their own
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()


@pytest.fixture
def ranks(runs):
    started = []

    def start(name, *settings, n_ranks, restarts=0):
        started.append(Ranks(runs, name, n_ranks, restarts, settings))
        return started[-1]

    yield start
    for one in started:
        pids = one.pids()
        one.kill()
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def forked(runs, name, *settings, n_ranks):
    """The same without torchrun and its imports: the ranks, started by hand."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    group = {"WORLD_SIZE": str(n_ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    return [
        runs.start(
            name,
            *settings,
            flags=["--resume"],
            before=f"import os; os.environ.update({ {**group, 'RANK': str(rank)} })",
        )
        for rank in range(n_ranks)
    ]


@pytest.mark.timeout(400)
@pytest.mark.parametrize("kind", ["ddp", "fsdp"])
def test_three_ranks_of_which_one_was_killed_go_on_to_the_bit(runs, dice, often, kind):
    if kind == "fsdp" and not often(False, True):
        pytest.skip("in the long form: REGARD_FAULTS=long")
    settings = (*SETTINGS, f"train.parallel={kind}", "train.steps=24")
    for rank in forked(runs, "whole", *settings, n_ranks=3):
        assert rank.end(100) == 0, rank.said()
    group = forked(runs, "killed", *settings, n_ranks=3)
    group[0].until_step(dice.randrange(3, 14))
    dice.choice(group).kill()
    assert sorted(rank.end(100) for rank in group) == [-9, 5, 5]  # the others say that one has died
    for rank in forked(runs, "killed", *settings, n_ranks=3):
        assert rank.end(100) == 0, rank.said()
    runs.assert_same("killed", "whole")


@pytest.mark.timeout(400)
@pytest.mark.parametrize("n_ranks", [1, 3])
def test_a_sharded_run_of_two_ranks_goes_on_with_another_number(runs, n_ranks):
    """Without dropout, which is drawn by each rank: the same updates but for rounding."""
    settings = (
        "train.parallel=fsdp", "train.accumulate=3", "model.dropout=0.0", "train.tokens=64",
        "train.steps=24", "train.save_every=6", "train.lr=0.003",
    )  # fmt: skip
    for rank in forked(runs, "whole", *settings, n_ranks=2):
        assert rank.end(100) == 0, rank.said()
    group = forked(runs, "other", *settings, n_ranks=2)
    group[0].until_step(7)
    group[1].kill()
    group[0].end(100)
    assert runs.last_step("other") < 24
    for _ in range(2):  # and once more from where it ended, which changes nothing
        for rank in forked(runs, "other", *settings, n_ranks=n_ranks):
            assert rank.end(100) == 0, rank.said()
    assert f"this will not repeat to the bit: processes 2 → {n_ranks}" in rank.said()
    losses = [
        [one["loss"] for one in runs.measured(name) if "loss" in one] for name in ("whole", "other")
    ]
    assert len(losses[1]) == 24
    assert losses[1] == pytest.approx(losses[0], abs=2e-3)
    assert losses[0][0] - losses[0][-1] > 0.1  # or it would prove little


@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", ["ddp", "fsdp"])
def test_ranks_of_which_one_is_asked_to_leave_leave_together_and_go_on_to_the_bit(
    runs, dice, often, kind, record_property
):
    if kind == "fsdp" and not often(False, True):
        pytest.skip("in the long form: REGARD_FAULTS=long")
    times, steps = often((2, 100), (15, 600))
    settings = (*SETTINGS, f"train.parallel={kind}", f"train.steps={steps}")
    for rank in forked(runs, "whole", *settings, n_ranks=2):
        assert rank.end(100) == 0, rank.said()
    reached = 0
    for number in range(times):
        group = forked(runs, "asked", *settings, n_ranks=2)
        last = max(reached + 1, steps * (number + 1) // (times + 2))
        group[0].until_step(dice.randint(reached + 1, last))
        time.sleep(dice.uniform(0.0, 0.005))
        dice.choice(group).signal(signal.SIGTERM)
        assert [rank.end(100) for rank in group] == [0, 0], group[0].said()
        reached = runs.saved("asked")[0]
        assert f"saved at update {reached}; to go on" in group[0].said()
    for rank in forked(runs, "asked", *settings, n_ranks=2):
        assert rank.end(100) == 0, rank.said()
    runs.assert_same("asked", "whole")
    record_property("counted", f"{times} times one of two ranks was asked to leave, with {kind}")


def test_a_refusal_is_said_once_and_no_rank_speaks_of_the_dead(runs):
    assert runs.train("one", "train.steps=4") == 0
    for code, setting, sentence in (
        (2, "train.seed=2", "train.seed was 1 when this run began and is 2 now"),
        (5, "train.seed=1", "is being written by process"),
    ):
        with locked(runs.folder("one")) if code == 5 else contextlib.nullcontext():
            group = forked(runs, "one", "train.steps=8", setting, n_ranks=2)
            assert [rank.end(100) for rank in group] == [code, code]
        said = group[0].said()  # of both
        assert said.count("error: ") == 1
        assert sentence in said


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kind", ["ddp", "fsdp"])
def test_ranks_that_torchrun_starts_anew_end_with_the_weights_of_those_never_killed(
    runs, ranks, dice, often, kind, record_property
):
    if not often(False, True):
        pytest.skip("in the long form: REGARD_FAULTS=long")
    n_ranks, kills, steps = 4, 10, 60
    settings = (*SETTINGS, f"train.parallel={kind}", f"train.steps={steps}")
    ranks("whole", *settings, n_ranks=n_ranks).end()
    run = ranks("killed", *settings, n_ranks=n_ranks, restarts=kills)
    for step in sorted(dice.sample(range(1, steps - 2), kills)):
        run.until(lambda step=step: runs.last_step("killed") >= step and len(run.pids()) == n_ranks)
        time.sleep(dice.uniform(0.0, 0.05))
        before = run.pids()
        os.kill(dice.choice(before), signal.SIGKILL)
        run.until(lambda before=before: not set(run.pids()) & set(before))
    run.end()
    runs.assert_same("killed", "whole")
    record_property("counted", f"{kills} kills among {n_ranks} ranks with {kind}: the same weights")
