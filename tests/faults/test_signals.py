"""Asked to leave, or left alone by a helper: saved within the update, said in a line, no hang."""

import os
import pty
import re
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from regard.cli import judge
from regard.data.workers import helped
from regard.errors import ResourceError
from regard.train import checkpoint
from regard.train.leaving import SAID
from regard.train.trainer import Trainer

FOREVER = "train.steps=100000"
DIED = (
    "a process that makes batches has died, perhaps for want of memory; choose fewer "
    "train.workers, or 0"
)
SLOW_SAVE = """
import time
from regard.train import checkpoint
whole = checkpoint.write_json
def slow(path, table):
    if "step-00000008" in path.parent.name:
        print("saving", flush=True)
        time.sleep({seconds})
    whole(path, table)
checkpoint.write_json = slow
"""
SLOW_UPDATE = """
import time
from regard.train.trainer import Trainer
step = Trainer.train_step
def slow(self):
    if self.state.step == 5:
        print("slow", flush=True)
        time.sleep(60)
    return step(self)
Trainer.train_step = slow
"""

TERMINAL = """
import os
os.environ.update(TERM="xterm", COLUMNS="120")
os.dup2(os.open("{name}", os.O_WRONLY | os.O_NOCTTY), 2)
"""
HIDDEN, SHOWN = "\x1b[?25l", "\x1b[?25h"


class Terminal:
    """The standard error of a process, and what it has shown."""

    def __init__(self):
        self.master, slave = pty.openpty()
        self.slave = open(slave, "wb")  # noqa: SIM115
        self.before = TERMINAL.format(name=os.ttyname(slave))
        self.said = ""
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        with suppress(OSError):  # nobody has it open any more
            while shown := os.read(self.master, 65536):
                self.said += shown.decode()

    def until(self, words, seconds=30):
        """Wait until it has shown some words."""
        until = time.monotonic() + seconds
        while words not in self.said:
            assert time.monotonic() < until, self.said
            time.sleep(0.01)

    def close(self):
        """Nobody writes there any more: all has been shown."""
        self.slave.close()
        self.reader.join(5)
        assert not self.reader.is_alive()


@pytest.fixture
def terminal(runs):
    made = Terminal()
    yield made
    for child in runs.children:
        child.kill()
    made.close()
    os.close(made.master)


def at_update(monkeypatch, number, action):
    """Do something in the middle of an update."""
    step = Trainer.train_step

    def spoilt(self):
        if self.state.step + 1 == number:
            action()
        return step(self)

    monkeypatch.setattr(Trainer, "train_step", spoilt)


def once(monkeypatch, owner, name, action, at_call=1):
    """Do something before one call of a function, and never again."""
    whole, calls = getattr(owner, name), []

    def spoilt(*arguments, **named):
        calls.append(name)
        if len(calls) == at_call:
            action()
        return whole(*arguments, **named)

    monkeypatch.setattr(owner, name, spoilt)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_signal_saves_the_update_at_hand_and_leaves(runs, monkeypatch, capsys, number, code):
    assert runs.train("whole", "train.steps=12") == 0
    with monkeypatch.context() as spoilt:
        at_update(spoilt, 7, lambda: os.kill(os.getpid(), number))
        assert runs.train("parts", "train.steps=12") == code
    assert runs.saved("parts")[0] == runs.last_step("parts") == 7
    assert (
        "saved at update 7; to go on: the same command with --resume\n" in capsys.readouterr().err
    )
    assert runs.train("parts", "train.steps=12", flags=["--resume"]) == 0
    runs.assert_same("parts", "whole")


@pytest.mark.parametrize("kind", ["last", "best"])
@pytest.mark.parametrize("at", ["update", "validation", "save"])
def test_a_run_that_left_and_came_back_averages_the_same(runs, monkeypatch, kind, at):
    """What is saved on leaving was never meant to be averaged, and what was judged must be."""
    settings = (
        "train.steps=12", "train.average=3", f"train.average_of={kind}", "train.validate_every=3",
    )  # fmt: skip
    assert runs.train("whole", *settings) == 0
    with monkeypatch.context() as spoilt:
        leave = lambda: os.kill(os.getpid(), signal.SIGTERM)  # noqa: E731
        if at == "update":
            at_update(spoilt, 11, leave)
        elif at == "validation":
            once(spoilt, judge, "dev_loss", leave, at_call=3)
        else:
            once(spoilt, checkpoint, "save_tensors", leave, at_call=7)
        assert runs.train("parts", *settings) == 0
        # a save goes on beside the training, so some updates may follow it
        assert (
            runs.saved("parts")[0] in {"update": [11], "validation": [9], "save": [9, 10, 11]}[at]
        )
    assert runs.train("parts", *settings, flags=["--resume"]) == 0
    runs.assert_same("parts", "whole")


def test_a_signal_while_it_validates_after_coming_back_loses_no_validation(runs, monkeypatch):
    settings = ("train.steps=12", "train.validate_every=5", "train.patience=2")
    assert runs.train("whole", *settings) == 0
    leave = lambda: os.kill(os.getpid(), signal.SIGTERM)  # noqa: E731
    for flags in ([], ["--resume"]):
        with monkeypatch.context() as spoilt:
            once(spoilt, judge, "dev_loss", leave)
            assert runs.train("parts", *settings, flags=flags) == 0
        assert runs.saved("parts")[0] == 5
    assert runs.train("parts", *settings, flags=["--resume"]) == 0
    runs.assert_same("parts", "whole")


def test_a_signal_while_it_validates_for_the_last_time_loses_no_validation(runs, monkeypatch):
    """The last update is validated whatever its number, and so it is after coming back."""
    settings = ("train.steps=12", "train.validate_every=5", "train.patience=5",
                "train.average=2", "train.average_of=best")  # fmt: skip
    assert runs.train("whole", *settings) == 0
    with monkeypatch.context() as spoilt:
        leave = lambda: os.kill(os.getpid(), signal.SIGTERM)  # noqa: E731
        once(spoilt, judge, "dev_loss", leave, at_call=3)
        assert runs.train("parts", *settings) == 0
    assert runs.saved("parts")[0] == 12
    assert runs.train("parts", *settings, flags=["--resume"]) == 0
    runs.assert_same("parts", "whole")


def test_a_signal_during_a_save_lets_it_end(runs):
    child = runs.start("one", FOREVER, before=SLOW_SAVE.format(seconds=0.5))
    child.until(lambda: "saving\n" in child.said())
    child.signal(signal.SIGINT)
    assert child.end() == 130
    assert runs.saved("one")[0] == runs.last_step("one") >= 8
    assert not runs.half_written("one")


def test_a_second_signal_leaves_at_once_and_the_last_checkpoint_stays(runs):
    child = runs.start("one", FOREVER, before=SLOW_UPDATE)
    child.until(lambda: "slow\n" in child.said())
    child.signal(signal.SIGINT)
    time.sleep(0.2)
    started = time.monotonic()
    child.signal(signal.SIGINT)
    assert child.end(5) == -signal.SIGINT
    assert time.monotonic() - started < 1.0
    assert runs.saved("one") == [4]


def test_on_a_terminal_who_asks_is_told_at_once_and_gets_the_cursor_back(runs, terminal):
    child = runs.start("one", FOREVER, before=terminal.before + SLOW_UPDATE)
    terminal.until("slow")  # the live line shows what is printed too
    assert HIDDEN in terminal.said
    child.signal(signal.SIGINT)
    terminal.until(SAID[0])
    before, after = terminal.said.split(SAID[0])
    assert before.endswith("\r\x1b[2K" + SHOWN)  # the live line made room
    assert after.startswith("\r\n")
    assert child.poll() is None
    started = time.monotonic()
    child.signal(signal.SIGINT)
    assert child.end(5) == -signal.SIGINT
    assert time.monotonic() - started < 1.0
    terminal.close()
    assert terminal.said.rfind(SHOWN) > terminal.said.rfind(HIDDEN)


def test_a_second_signal_during_a_save_leaves_what_was_saved_before(runs):
    assert runs.train("whole", "train.steps=12") == 0
    child = runs.start("one", "train.steps=12", before=SLOW_SAVE.format(seconds=60))
    child.until(lambda: "saving\n" in child.said())
    for number in (signal.SIGINT, signal.SIGTERM):
        child.signal(number)
        time.sleep(0.1)
    assert child.end(1) == -signal.SIGTERM
    assert runs.saved("one") == [4]
    assert runs.train("one", "train.steps=12", flags=["--resume"]) == 0
    assert not runs.half_written("one")
    runs.assert_same("one", "whole")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_signal_to_all_processes_of_a_run_saves_too(runs, number, code):
    """Terminals, job schedulers and service managers send it to the whole group."""
    child = runs.start("one", FOREVER, "train.workers=2", before="import os; os.setpgrp()")
    child.until_step(6)
    os.killpg(child.pid, number)
    assert child.end(20) == code, child.said()
    assert runs.saved("one")[0] == runs.last_step("one")


def helpers_of(pid):
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc")
@pytest.mark.timeout(600)
def test_a_killed_helper_ends_the_run_with_a_sentence(runs, dice, often, record_property):
    kills = often(3, 20)
    runs.write_corpus(3000)  # so many that a helper has work left when it dies
    for number in range(kills):
        name = f"run{number}"
        child = runs.start(name, FOREVER, "train.workers=2")
        child.until_step(dice.randrange(2, 20))
        time.sleep(dice.uniform(0.0, 0.02))
        os.kill(dice.choice(helpers_of(child.pid)[-2:]), signal.SIGKILL)
        assert child.end(10) == 5, child.said()
        assert f"\nerror: {DIED}\n" in child.said()
        assert runs.saved(name)[:1] <= [runs.last_step(name)]
    record_property("counted", f"{kills} helpers killed, {kills} sentences, no hang")


@pytest.mark.parametrize(
    ("error", "kind", "sentence"),
    [
        (RuntimeError("DataLoader worker (pid 7) is killed by signal: Killed. "),
         ResourceError, DIED),
        (RuntimeError("DataLoader worker (pid(s) 7, 8) exited unexpectedly"), ResourceError, DIED),
        (RuntimeError("Caught RuntimeError in DataLoader worker process 0."), RuntimeError,
         "Caught RuntimeError in DataLoader worker process 0."),
        (RuntimeError("a fault of ours"), RuntimeError, "a fault of ours"),
    ],
)  # fmt: skip
def test_the_death_of_a_helper_is_told_from_other_errors(error, kind, sentence):
    """And whoever listened for the deaths of processes before does so again afterwards."""
    before = signal.getsignal(signal.SIGCHLD)
    with pytest.raises(kind, match=f"^{re.escape(sentence)}$") as caught, helped():
        raise error
    assert type(caught.value) is kind
    with helped():
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
    assert signal.getsignal(signal.SIGCHLD) == before


def test_a_second_trainer_is_refused_with_the_number_of_the_first(runs, capsys):
    child = runs.start("one", FOREVER)
    child.until_step(3)
    assert runs.train("one", flags=["--resume"]) == 5
    assert capsys.readouterr().err == (
        f"error: {runs.folder('one')} is being written by process {child.pid}; wait for it, or "
        "name another place with -o\n"
    )
    assert child.poll() is None
