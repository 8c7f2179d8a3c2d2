"""A file translated into another: in sight, and after a kill from where it was.

    out.part        whole chunks of lines, in order, synced one by one
    out.part.json   what was asked: a translation goes on only as it began
    out             the same as out.part, once all is there

A chunk is cut at the same lines whether or not the work was stopped, so the output is the same.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from rich import progress as bars
from rich.console import Console

from regard.cli.language import language
from regard.cli.lines import chunks, readable, written
from regard.data.formats import FORMATS, bare_path
from regard.data.streams import BadText
from regard.errors import ConfigError, DataError
from regard.storage import sha256, write_json

if TYPE_CHECKING:
    from regard.cli.translate import Options
    from regard.decode.results import Translation

T = TypeVar("T")

CHUNK = 512  # lines translated and written together ...
GPU = 32  # ... and so many times as many there, to have sentences of like lengths for its batches
SECONDS = 20.0  # between lines that tell how far it is, where there is no terminal
ARCHIVES = (".gz", ".bz2", ".xz", ".zst")
OTHERS = (".docx", ".xlsx", ".pptx", ".odt", ".pdf", ".epub", ".json", ".yaml", ".yml")


def check_places(source: Path | None, target: Path | None, *, is_document: bool = False) -> None:
    """Refuse before the work what cannot be read or written."""
    if target is not None:
        _check_target(target)
    if source is not None:
        _check_source(source, is_document)
    if target is not None and _is_read(target, source):
        raise ConfigError(
            "{path} would be written over itself; name another place with -o", path=target
        )


def _is_read(target: Path, source: Path | None) -> bool:
    """Whether the output is the file that is read, by whatever name, or as standard input."""
    if not target.is_file():
        return False
    if source is not None:
        return target.samefile(source)
    with suppress(OSError, ValueError):  # standard input may be closed, or no file at all
        return os.path.samestat(os.fstat(sys.stdin.fileno()), target.stat())
    return False


def _check_source(source: Path, is_document: bool) -> None:
    """Refuse what is there not, and what is no text."""
    if not source.is_file():
        raise DataError("there is no file {path}", path=source)
    check_kind(source, is_document)


def check_kind(source: Path, is_document: bool = False) -> None:
    """Refuse what would be spoiled if it were read as lines."""
    kind = bare_path(source).suffix.lower()
    if not is_document and (kind in OTHERS or (kind in FORMATS and kind != ".tsv")):
        raise ConfigError(
            "{file} is no text that can be translated: plain text, TSV, TMX, XLIFF, PO, SRT, VTT "
            "and HTML can, {kind} cannot; --format says what a file is",
            file=source,
            kind=kind,
        )


def _check_target(target: Path) -> None:
    """Refuse a place that cannot be written, before the work."""
    if target.is_dir():
        raise ConfigError("the output {path} is a directory; name a file in it", path=target)
    if target.suffix in ARCHIVES:
        raise ConfigError(
            "the output {path} would be plain text; name it without {suffix}",
            path=target,
            suffix=target.suffix,
        )
    if not target.parent.is_dir():
        raise ConfigError("there is no directory {path} to write to", path=target.parent)


def translate_file(
    source: Path,
    target: Path,
    translate: "Callable[[list[str]], list[Translation]]",
    asked: "Options",
    models: Sequence[Path],
) -> None:
    """Translate a file, chunk by chunk; what is there already is kept if asked to resume."""
    size = chunk_size(asked.device)
    n_lines = sum(map(len, chunks(source, size)))
    facts = {
        "input": sha256(source),
        "lines": n_lines,
        "models": [sha256(model / "MANIFEST.json") for model in models],
        **asked.facts(),
    }

    def said(chunk: Sequence[str | BadText], first: int) -> Iterable[str]:
        lines = [readable(line, first + n, asked.on_bad) for n, line in enumerate(chunk, 1)]
        return written(lines, first, translate, asked)

    part = target.with_name(target.name + ".part")
    write_chunks(part, facts, chunks(source, size), said, resume=asked.resume)
    os.replace(part, target)
    clear(part)


def chunk_size(device: str) -> int:
    """How many lines are translated and written together."""
    return CHUNK if device == "cpu" else CHUNK * GPU


def write_chunks(
    part: Path,
    facts: Mapping[str, Any],
    work: Iterable[Sequence[T]],
    said: Callable[[Sequence[T], int], Iterable[str]],
    *,
    resume: bool,
) -> None:
    """The lines that are said of each chunk, and of how many before it, from where it was left."""
    done = begin(part, facts, resume=resume)
    words = "lines" if "lines" in facts else "units"
    total, pace, first = facts[words], _PACE[words][language()], 0

    def told(done: int, speed: float) -> str:
        return pace.format(done=done, total=total, speed=speed)

    with part.open("ab") as out, Progress(total, told) as progress:
        for number, chunk in enumerate(work):
            if number >= done["chunks"]:
                for line in said(chunk, first):
                    out.write(f"{line}\n".encode())
                out.flush()
                os.fsync(out.fileno())
                done = {"chunks": number + 1, "bytes": out.tell()}
                note(part, facts, done)
            first += len(chunk)
            progress.reached(first)


def clear(part: Path) -> None:
    """Remove what a finished translation leaves behind."""
    part.unlink(missing_ok=True)
    _sidecar(part).unlink(missing_ok=True)


def begin(part: Path, facts: Mapping[str, Any], *, resume: bool) -> dict[str, int]:
    """How much is done already; what was begun otherwise is refused by name."""
    nothing = {"chunks": 0, "bytes": 0}
    if part.exists() and not resume:
        raise ConfigError(
            "{part} is a translation that was not finished; go on with --resume, or remove it",
            part=part,
        )
    before = _noted(part)
    if not part.exists() or before is None:
        part.unlink(missing_ok=True)
        note(part, facts, nothing)
        return nothing
    if changed := [name for name, value in facts.items() if before["asked"].get(name) != value]:
        raise ConfigError(
            "{part} was begun with another {names}; ask for the same again, or remove it",
            part=part,
            names=", ".join(changed),
        )
    done: dict[str, int] = before["done"]
    if part.stat().st_size < done["bytes"]:
        raise DataError("{part} is shorter than it was; remove it and begin again", part=part)
    os.truncate(part, done["bytes"])  # a chunk that was being written is written again
    return done


def note(part: Path, facts: Mapping[str, Any], done: Mapping[str, int]) -> None:
    """Write down beside a part what was asked, and how much of it is done."""
    draft = part.with_name(part.name + ".json.draft")
    write_json(draft, {"asked": facts, "done": done})
    os.replace(draft, _sidecar(part))


def _noted(part: Path) -> dict[str, Any] | None:
    try:
        table: dict[str, Any] = json.loads(_sidecar(part).read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None
    return table


def _sidecar(part: Path) -> Path:
    return part.with_name(part.name + ".json")


_PACE = {
    "lines": {
        "en": "{done:,} of {total:,} lines, {speed:,.0f} a second",
        "zh": "{total:,}行中的{done:,}行，每秒{speed:,.0f}行",
    },
    "units": {
        "en": "{done:,} of {total:,} units, {speed:,.0f} a second",
        "zh": "{total:,}个单元中的{done:,}个，每秒{speed:,.0f}个",
    },
}


class Progress:
    """How far it is: a bar on a terminal, else a line now and then."""

    def __init__(self, total: int | None, told: Callable[[int, float], str]) -> None:
        """`told` is the line for so many that are done, at so many a second."""
        self.told = told
        self.console = Console(stderr=True, highlight=False)
        columns = (
            bars.BarColumn(30),
            bars.MofNCompleteColumn(),
            bars.TextColumn("{task.description}"),
            bars.TimeRemainingColumn(),
        )
        self.bar = bars.Progress(*columns, console=self.console, transient=True)
        self.task = self.bar.add_task("", total=total)
        self.started = self.told_at = time.monotonic()
        self.first: int | None = None

    def __enter__(self) -> "Progress":
        if self.console.is_terminal:
            self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.console.is_terminal:
            self.bar.stop()

    def reached(self, n_lines: int) -> None:
        """So many lines are done."""
        now = time.monotonic()
        self.first = n_lines if self.first is None else self.first
        line = self.told(n_lines, (n_lines - self.first) / max(now - self.started, 1e-9))
        if self.console.is_terminal:
            self.bar.update(self.task, completed=n_lines, description=line)
        elif now - self.told_at > SECONDS:
            self.told_at = now
            click.echo(line, err=True)
