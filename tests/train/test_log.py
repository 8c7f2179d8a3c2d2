import json
import os
import time
from types import SimpleNamespace

import pytest

from regard.train.log import Log
from regard.train.state import TrainState


def at(step, n_tokens=0, loss=2.5, lr=0.001):
    """A trainer as far as a log looks at it."""
    optimizer = SimpleNamespace(param_groups=[{"lr": lr}])
    state = TrainState(step=step, n_tokens=n_tokens)
    return SimpleNamespace(state=state, optimizer=optimizer, last_loss=loss)


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture
def clock(monkeypatch):
    """Time that passes when it is told to."""
    now = SimpleNamespace(seconds=1000.0)
    monkeypatch.setattr(time, "monotonic", lambda: now.seconds)
    return now


def test_an_update_is_a_line_of_json_and_a_line_for_the_person(tmp_path, clock, capsys):
    log = Log(tmp_path / "run" / "metrics.jsonl", 1000)
    log.start(100, 5000)
    clock.seconds += 10
    log.progress(at(150, n_tokens=25_000))
    clock.seconds += 10
    log.progress(at(200, n_tokens=35_000, loss=1.25))
    assert lines(tmp_path / "run" / "metrics.jsonl") == [
        {"step": 150, "loss": 2.5, "lr": 0.001, "tokens_per_s": 2000, "seconds": 10.0},
        {"step": 200, "loss": 1.25, "lr": 0.001, "tokens_per_s": 1000, "seconds": 20.0},
    ]
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == (
        " 150/1000  loss 2.5000  lr 1.00e-03  2,000 tokens/s  2:50 left\n"
        " 200/1000  loss 1.2500  lr 1.00e-03  1,000 tokens/s  2:40 left\n"
    )


@pytest.fixture
def live(tmp_path, clock, monkeypatch):
    """A log on a terminal, which shows what it is told to capture."""
    monkeypatch.setenv("COLUMNS", "120")
    log = Log(tmp_path / "metrics.jsonl", 1000)
    log.is_live = True
    return log


def test_the_live_line_counts_every_update_and_its_words_stay(live):
    live.progress(at(100))
    live.count(101)
    with live.console.capture() as captured:
        live.console.print(live.bar.get_renderable())
    assert " 101/1000 loss 2.5000 " in captured.get()


def test_what_the_live_line_said_is_kept_once_if_asked(live):
    with live.console.capture() as captured:
        live.keep()
        live.progress(at(100))
        live.count(120)
        live.keep()
        live.keep()
    assert captured.get() == " 100/1000  loss 2.5000  lr 1.00e-03  0 tokens/s  0:00 left\n"


def test_what_is_no_terminal_is_told_of_no_update_between_its_lines(tmp_path, clock, capsys):
    log = Log(tmp_path / "metrics.jsonl", 1000)
    log.bar = None  # which nobody asks
    log.progress(at(100))
    said = capsys.readouterr().err
    log.count(101)
    log.keep()
    assert said.count("\n") == 1
    assert capsys.readouterr().err == ""


def test_it_speaks_chinese(tmp_path, clock, capsys):
    log = Log(tmp_path / "metrics.jsonl", 10, language="zh")
    log.start(0, 0)
    clock.seconds += 4000
    log.progress(at(5, n_tokens=8000))
    assert capsys.readouterr().err == (
        " 5/10  损失 2.5000  学习率 1.00e-03  2 词元/秒  剩余 1:06:40\n"
    )


def test_pauses_do_not_count_against_the_speed(tmp_path, clock):
    log = Log(tmp_path / "metrics.jsonl", 10)
    log.start(0, 0)
    clock.seconds += 100
    log.pause(90.0)
    log.progress(at(1, n_tokens=500))
    assert lines(tmp_path / "metrics.jsonl")[0]["tokens_per_s"] == 50


def test_lines_of_updates_that_will_be_done_again_are_dropped(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_text(
        '{"step": 1, "loss": 3}\n{"step": 2, "loss": 2}\n{"step": 2, "dev_loss": 2}\nno json\n'
        '{"loss": 7}\n{"step": 3, "loss": 1}\n{"step": 4, "lo'
    )
    Log(path, 10).start(2, 0)
    assert lines(path) == [
        {"step": 1, "loss": 3},
        {"step": 2, "loss": 2},
        {"step": 2, "dev_loss": 2},
    ]
    assert [file.name for file in tmp_path.iterdir()] == ["metrics.jsonl"]


def test_a_quiet_log_neither_says_nor_writes_nor_drops(tmp_path, capsys):
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"step": 9}\n')
    log = Log(path, 10, is_quiet=True)
    log.start(2, 0)
    log.progress(at(3))
    log.write_samples(3, [{"src": "a"}])
    log.say("a word")
    log.warn("a warning", "警告")
    log.stop()
    assert capsys.readouterr().err == ""
    assert path.read_text() == '{"step": 9}\n'
    assert [file.name for file in tmp_path.iterdir()] == ["metrics.jsonl"]


def test_samples_of_updates_that_will_be_done_again_are_dropped_with_the_metrics(tmp_path):
    first = Log(tmp_path / "metrics.jsonl", 10)
    for step in (2, 4, 6):
        first.write(step, {"dev_loss": 1.0})
        first.write_samples(step, [{"src": "猫", "said": "a dog"}, {"src": "狗", "said": "a cat"}])
    again = Log(tmp_path / "metrics.jsonl", 10)
    again.start(4, 0)
    again.write(6, {"dev_loss": 0.5})
    again.write_samples(6, [{"src": "猫", "said": "a cat"}])
    assert [row["step"] for row in lines(tmp_path / "metrics.jsonl")] == [2, 4, 6]
    rows = lines(tmp_path / "samples.jsonl")
    assert [row["step"] for row in rows] == [2, 2, 4, 4, 6]
    assert rows[-1] == {"step": 6, "src": "猫", "said": "a cat"}
    assert "猫" in (tmp_path / "samples.jsonl").read_text(encoding="utf-8")


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_a_number_that_json_does_not_know_is_null(tmp_path, capsys, number):
    log = Log(tmp_path / "metrics.jsonl", 10)
    log.progress(at(1, loss=number))
    (line,) = (tmp_path / "metrics.jsonl").read_text().splitlines()
    assert json.loads(line, parse_constant=pytest.fail)["loss"] is None
    assert f"loss {number:.4f}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("language", "lines"), [("en", "a word\nwarning: look out\n"), ("zh", "一句话\n警告：当心\n")]
)
def test_a_line_and_a_warning_are_in_the_language_of_the_person(tmp_path, capsys, language, lines):
    log = Log(tmp_path / "metrics.jsonl", 10, language=language)
    log.say("a word", "一句话")
    log.warn("look out", "当心")
    log.say("     猫 → a cat")
    assert capsys.readouterr().err == f"{lines}     猫 → a cat\n"


@pytest.mark.parametrize(("language", "line"), [("en", "a word\n"), ("zh", "一句话\n")])
def test_a_handler_of_signals_speaks_past_the_console(tmp_path, capfd, language, line):
    Log(tmp_path / "metrics.jsonl", 10, language=language).say_amid("a word", "一句话")
    Log(tmp_path / "metrics.jsonl", 10, is_quiet=True).say_amid("a word", "一句话")
    assert capfd.readouterr().err == line


def test_a_full_disk_costs_one_warning(tmp_path, capsys):
    path = tmp_path / "metrics.jsonl"
    path.symlink_to("/dev/full")
    (tmp_path / "samples.jsonl").symlink_to("/dev/full")
    log = Log(path, 10)
    log.start(0, 0)
    for step in range(1, 4):
        log.write(step, {"loss": 1.0})
        log.write_samples(step, [{"src": "a"}])
    assert capsys.readouterr().err == (
        f"warning: {path} cannot be written: No space left on device\n"
    )


def test_lines_that_cannot_be_dropped_cost_a_warning_too(tmp_path, capsys, monkeypatch):
    def full(source, target):
        raise OSError(28, "No space left on device")

    path = tmp_path / "metrics.jsonl"
    path.write_text('{"step": 1}\n{"step": 5}\n')
    monkeypatch.setattr(os, "replace", full)
    Log(path, 10).start(2, 0)
    assert capsys.readouterr().err == (
        f"warning: {path} cannot be written: No space left on device\n"
    )
    assert [file.name for file in tmp_path.iterdir()] == ["metrics.jsonl"]


def test_a_board_gets_every_number(tmp_path):
    seen = []
    board = SimpleNamespace(add_scalar=lambda *scalar: seen.append(scalar))
    Log(tmp_path / "metrics.jsonl", 10, board=board).write(3, {"loss": 1.5, "lr": 0.1})
    assert seen == [("loss", 1.5, 3), ("lr", 0.1, 3)]


def test_a_board_that_cannot_be_written_costs_one_warning(tmp_path, capsys):
    def full(*scalar):
        raise OSError(28, "No space left on device")

    path = tmp_path / "metrics.jsonl"
    for language in ("en", "zh"):
        log = Log(path, 10, board=SimpleNamespace(add_scalar=full), language=language)
        for step in (1, 2):
            log.write(step, {"loss": 1.5, "lr": 0.1})
    assert capsys.readouterr().err == (
        "warning: TensorBoard is given no more numbers: No space left on device\n"
        "警告：不再写TensorBoard：No space left on device\n"
    )
    assert [row["step"] for row in lines(path)] == [1, 2, 1, 2]


@pytest.mark.parametrize(("width", "has_bar"), [(80, False), (100, True)])
def test_the_numbers_of_updates_are_never_cut_off(tmp_path, width, has_bar, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(width))
    log = Log(tmp_path / "metrics.jsonl", 1_000_000)
    words = "loss 2.5000  lr 1.00e-03  2,000 tokens/s  11:22:50 left"
    log.bar.update(log.task, completed=123_456, description=words)
    with log.console.capture() as captured:
        log.console.print(log.bar.get_renderable())
    assert f"123456/1000000 {words}" in captured.get()
    assert ("━" in captured.get()) == has_bar


def test_names_between_colons_are_no_pictures(tmp_path, capsys):
    Log(tmp_path / "metrics.jsonl", 10).say("done: a/:cat:")
    assert capsys.readouterr().err == "done: a/:cat:\n"
