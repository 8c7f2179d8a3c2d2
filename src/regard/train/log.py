"""What a run says: a live line for the person, and `metrics.jsonl`, which is the truth.

`samples.jsonl` beside it has what the model said to the same sentences, validation by validation.
"""

import json
import math
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, TextColumn
from rich.table import Column

from regard.train.trainer import Trainer


class Board(Protocol):
    """A TensorBoard writer, or whatever takes named numbers."""

    step: int  # that a run goes on from

    def add_scalar(self, tag: str, scalar_value: float, global_step: int) -> None:
        """One number of one update."""

    def close(self) -> None:
        """All that was given is on the disk."""


WORDS = {
    "en": "loss {loss:.4f}  lr {lr:.2e}  {speed:,.0f} tokens/s  {left} left",
    "zh": "损失 {loss:.4f}  学习率 {lr:.2e}  {speed:,.0f} 词元/秒  剩余 {left}",
}


# The live line goes, and the cursor comes back: nobody can show it once the process has fallen.
ALONE = "\r\x1b[2K\x1b[?25h"
MOST_WORDS = 60  # places on the screen for these, in either language


class Log:
    """Writes metrics as they come; a full disk costs the log, never the run."""

    def __init__(
        self,
        path: Path,
        steps: int,
        *,
        language: str = "en",
        board: Board | None = None,
        is_quiet: bool = False,
    ) -> None:
        self.path = path
        self.samples = path.with_name("samples.jsonl")
        self.steps = steps
        self.language = language
        self.words = WORDS[language]
        self.board = board
        self.is_quiet = is_quiet  # a rank that is not the first
        self.console = Console(
            stderr=True, soft_wrap=True, highlight=False, markup=False, emoji=False
        )
        self.bar = Progress(*_columns(self.console, steps), console=self.console, transient=True)
        self.task = self.bar.add_task("", total=steps)
        self.is_live = self.console.is_terminal and not is_quiet
        self.passing = ""  # what the live line says of an update
        self.is_warned = False
        self.started = self.last_time = time.monotonic()
        self.first_step = self.last_tokens = 0

    def start(self, step: int, n_tokens: int) -> None:
        """Forget what was measured after this update, if the run went back; time runs from here."""
        for path in (self.path, self.samples):
            self._rewind(path, step)
        self.started = self.last_time = time.monotonic()
        self.first_step, self.last_tokens = step, n_tokens
        if self.board is not None:
            self.board.step = step
        if self.is_live:
            self.bar.update(self.task, completed=step)
            self.bar.start()

    def stop(self) -> None:
        """The live line goes; what was said stays."""
        if self.is_live:
            self.bar.stop()
        if self.board is not None:
            with self._no_board_without_room():
                self.board.close()

    def progress(self, trainer: Trainer) -> None:
        """The line of an update; speed is that since the last line."""
        state, now = trainer.state, time.monotonic()
        speed = (state.n_tokens - self.last_tokens) / max(now - self.last_time, 1e-9)
        self.last_time, self.last_tokens = now, state.n_tokens
        per_step = (now - self.started) / max(state.step - self.first_step, 1)
        lr = trainer.optimizer.param_groups[0]["lr"]
        numbers = {"loss": trainer.last_loss, "lr": lr, "tokens_per_s": round(speed)}
        self.write(state.step, {**numbers, "seconds": round(now - self.started, 3)})
        left = _duration(per_step * (self.steps - state.step))
        line = self.words.format(loss=trainer.last_loss, lr=lr, speed=speed, left=left)
        whole = f"{state.step:>{len(str(self.steps))}}/{self.steps}  {line}"
        if self.is_live:
            self.bar.update(self.task, completed=state.step, description=line)
            self.passing = whole
        else:
            self.say(whole)

    def count(self, step: int) -> None:
        """Where the live line is, between its words: nothing has to be waited for to know it."""
        if self.is_live:
            self.bar.update(self.task, completed=step)

    def keep(self) -> None:
        """What the live line says stays to be read, above what is said next."""
        if self.passing:
            self.say(self.passing)
        self.passing = ""

    def pause(self, seconds: float) -> None:
        """Time that was not spent on updates does not count against their speed."""
        self.last_time += seconds

    def write(self, step: int, numbers: Mapping[str, Any]) -> None:
        """One line of JSON, and the same to the board."""
        self._append(self.path, [{"step": step, **numbers}])
        if self.board is None or self.is_quiet:
            return
        with self._no_board_without_room():
            for name, value in numbers.items():
                self.board.add_scalar(name, value, step)

    @contextmanager
    def _no_board_without_room(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self.board, reason = None, error.strerror or error
            self.warn(
                f"TensorBoard is given no more numbers: {reason}", f"不再写TensorBoard：{reason}"
            )

    def write_samples(self, step: int, rows: Iterable[Mapping[str, str]]) -> None:
        """A line of JSON for each sentence."""
        self._append(self.samples, [{"step": step, **row} for row in rows])

    def say(self, line: str, chinese: str = "") -> None:
        """To the person, not into the results; in Chinese to those who read it."""
        if not self.is_quiet:
            self.console.print(chinese if chinese and self.language == "zh" else line)

    def warn(self, line: str, chinese: str) -> None:
        """The same, of what the person may want to do something about."""
        self.say(f"warning: {line}", f"警告：{chinese}")

    def say_amid(self, line: str, chinese: str) -> None:
        """The same from a handler of signals, which may have come in the middle of a line."""
        if self.is_quiet:
            return
        is_drawn = self.is_live and not self.console.is_dumb_terminal
        words = chinese if self.language == "zh" else line
        with suppress(OSError):  # past the console, whose file cannot be entered twice
            os.write(2, f"{ALONE if is_drawn else ''}{words}\n".encode())

    def _append(self, path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
        if self.is_quiet:
            return
        lines = [json.dumps(_without_nan(row), ensure_ascii=False, allow_nan=False) for row in rows]
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("a", encoding="utf-8") as file:
                file.write("".join(f"{line}\n" for line in lines))
        except OSError as error:
            self._warn_once(path, error)

    def _warn_once(self, path: Path, error: OSError) -> None:
        if not self.is_warned:
            reason = error.strerror
            self.warn(f"{path} cannot be written: {reason}", f"{path}无法写入：{reason}")
        self.is_warned = True

    def _rewind(self, path: Path, step: int) -> None:
        """Drop the lines of later updates, which will be done again, and one that was cut off."""
        if self.is_quiet or not path.is_file():
            return
        draft = path.with_name(path.name + ".draft")
        try:
            kept = [line for line in path.read_bytes().splitlines() if _step(line) <= step]
            draft.write_bytes(b"".join(line + b"\n" for line in kept))
            os.replace(draft, path)
        except OSError as error:
            self._warn_once(path, error)
            draft.unlink(missing_ok=True)


def _columns(console: Console, steps: int) -> list[ProgressColumn]:
    """How far, in numbers that are never cut off, and before them a bar if there is room."""
    numbers = 2 * len(str(steps)) + 1
    count = MofNCompleteColumn(table_column=Column(no_wrap=True, min_width=numbers))
    room = console.width - numbers - MOST_WORDS - 2
    bar = [BarColumn(min(room, 30))] if room >= 5 else []
    return [*bar, count, TextColumn("{task.description}")]


def _without_nan(row: Mapping[str, Any]) -> dict[str, Any]:
    """JSON knows no NaN: the loss of an update that was skipped is null."""
    is_none = {name: isinstance(v, float) and not math.isfinite(v) for name, v in row.items()}
    return {name: None if is_none[name] else value for name, value in row.items()}


def _step(line: bytes) -> float:
    try:
        return float(json.loads(line)["step"])
    except (ValueError, KeyError, TypeError):
        return float("inf")


def _duration(seconds: float) -> str:
    minutes, seconds = divmod(round(max(seconds, 0.0)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
