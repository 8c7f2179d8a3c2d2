"""What was said of the shards, written: each chunk once, in its place, and files whole or not."""

import io
import os
import tempfile
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from regard.cli import bulk
from regard.cli.language import language
from regard.cli.shards.chunks import Chunk, unpacked
from regard.cli.shards.job import Job, Shard

SYNCED = 1.0  # seconds of a shard's output that a kill may cost
_PACE = {
    "en": "{done:,} lines, {files:,} of {total:,} files, {speed:,.0f} lines a second",
    "zh": "{done:,}行，{total:,}个文件中的{files:,}个，每秒{speed:,.0f}行",
}


def write_shards(
    job: Job,
    facts: Mapping[str, Any],
    said: Callable[[Sequence[Shard]], Generator[Chunk]],
    *,
    resume: bool,
) -> None:
    """Write what is said of every shard, in order, from where each was left."""
    left = job.begin(facts, resume=resume)
    own = {name: value for name, value in facts.items() if name != "files"}
    with ExitStack() as stack:
        parts = Path(job.folder)
        if not job.is_local:
            parts = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="regard-")))
        outputs = [
            Output(
                job,
                shard,
                parts / f"{shard.target}.part",
                {**own, "input": facts["files"][shard.target]},
                resume=resume or not job.is_file,
            )
            for shard in left
        ]
        for output in outputs:
            stack.callback(output.stop)
        left = [
            replace(shard, done=output.next) for shard, output in zip(left, outputs, strict=True)
        ]
        if left:
            chunks = stack.enter_context(closing(said(left)))
            _write(job, outputs, chunks)


def _write(job: Job, outputs: Sequence["Output"], said: Iterator[Chunk]) -> None:
    n_lines, n_files = 0, len(job.shards) - len(outputs)

    def told(done: int, speed: float) -> str:
        return _PACE[language()].format(
            done=done, speed=speed, files=n_files, total=len(job.shards)
        )

    with bulk.Progress(None, told) as progress:
        for chunk in said:
            if chunk.fault:
                raise unpacked(chunk.fault)
            output = outputs[chunk.shard]
            for line in chunk.warnings.splitlines():
                click.echo(f"{output.shard.name}: {line}", err=True)
            n_files += output.take(chunk)
            n_lines += chunk.n_lines
            progress.reached(n_lines)
    assert all(output.is_finished for output in outputs), "a chunk was lost"


class Output:
    """A shard's translation as it grows: chunks that come early wait for those before them."""

    def __init__(
        self, job: Job, shard: Shard, part: Path, facts: Mapping[str, Any], *, resume: bool
    ) -> None:
        self.job, self.shard, self.part, self.facts = job, shard, part, facts
        done = bulk.begin(part, facts, resume=resume) if part.exists() else {"chunks": 0}
        self.next = done["chunks"]
        self.early: dict[int, Chunk] = {}
        self.file: io.BufferedWriter | None = None
        self.synced = 0.0
        self.is_finished = False

    def take(self, chunk: Chunk) -> bool:
        """Write it if it is its turn; whether the shard is finished by it."""
        if chunk.number < self.next or self.is_finished:
            return False  # it came before: who said it was thought lost
        self.early[chunk.number] = chunk
        while (turn := self.early.pop(self.next, None)) is not None:
            if not turn.n_lines:
                self._finish()
                return True
            self._open().write(turn.text.encode())
            self.next += 1
        if time.monotonic() - self.synced > SYNCED:
            self._sync()
        return False

    def stop(self) -> None:
        """Keep what is there; it can be gone on with."""
        if self.file is not None:
            self._sync()
            self.file.close()
            self.file = None

    def _open(self) -> io.BufferedWriter:
        if self.file is None:
            bulk.begin(self.part, self.facts, resume=True)
            self.file = self.part.open("ab")
            self.synced = time.monotonic()
        return self.file

    def _sync(self) -> None:
        if self.file is not None:
            self.file.flush()
            os.fsync(self.file.fileno())
            bulk.note(self.part, self.facts, {"chunks": self.next, "bytes": self.file.tell()})
            self.synced = time.monotonic()

    def _finish(self) -> None:
        self._open()
        self.stop()
        target = self.job.place(self.shard.target)
        if self.job.is_local:
            os.replace(self.part, target)
        else:
            self.job.filesystem.put_file(str(self.part), f"{target}.part")
            self.job.filesystem.mv(f"{target}.part", target)
        bulk.clear(self.part)
        self.is_finished = True
