"""Lines on their way through a translator: read as they come, written as they are asked for."""

import os
import queue
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from regard.cli.language import language
from regard.data.streams import BadText, decoded_line, read_lines
from regard.errors import DataError

if TYPE_CHECKING:
    from regard.cli.translate import Options
    from regard.decode.results import Translation

AT_ONCE = 512  # lines translated together, if so many are there
MAX_LINE_BYTES = 16 << 20
UNFINISHED = {
    "en": "warning: line {line}: the translation came to no end and was stopped",
    "zh": "警告：第{line}行：译文没有结束，已被截止",
}
NO_TEXT = {
    "en": "warning: line {line} is no text ({kind}, {detail})",
    "zh": "警告：第{line}行不是文本（{kind}，{detail}）",
}


def arriving(text: Sequence[str], source: Path | None) -> Iterator[Sequence[str | BadText]]:
    """Arguments, the lines of a file, or those of stdin: as many at a time as are there."""
    if text:
        return iter([[decoded_line(os.fsencode(one)) for one in text]])
    if source is not None:
        return chunks(source, AT_ONCE)
    lines = (line.removesuffix(b"\n").removesuffix(b"\r") for line in sys.stdin.buffer)
    return _as_they_come(decoded_line(line, MAX_LINE_BYTES) for line in lines)


def chunks(source: Path, size: int) -> Iterator[list[str | BadText]]:
    """The lines of a file, so many at a time."""
    if source.stat().st_size == 0:
        return
    lines = read_lines(source, max_line_bytes=MAX_LINE_BYTES)
    while chunk := list(islice(lines, size)):
        yield chunk


def readable(line: str | BadText, number: int, on_bad: Literal["replace", "empty", "stop"]) -> str:
    """A line, or what is made of one that is no text."""
    if isinstance(line, str):
        return line
    if on_bad == "stop":
        raise DataError(
            "line {line} is no text: {detail}; correct it, or choose --on-bad",
            line=number,
            detail=f"{line.kind}, {line.detail}",
        )
    warning = NO_TEXT[language()].format(line=number, kind=line.kind, detail=line.detail)
    click.echo(warning, err=True)
    return line.text if on_bad == "replace" else ""


def written(
    lines: list[str],
    first: int,
    translate: "Callable[[list[str]], list[Translation]]",
    asked: "Options",
) -> Iterator[str]:
    """The lines of the output, for lines of the input of which `first` came before.

    Of a line with columns the first is translated, and all are kept.
    """
    texts = [line.split("\t", 1)[0] for line in lines] if asked.is_tsv else lines
    for number, (line, translation) in enumerate(zip(lines, translate(texts), strict=True), first):
        if not translation.is_finished:
            click.echo(UNFINISHED[language()].format(line=number + 1), err=True)
        for said in asked.lines(translation, number):
            yield f"{line}\t{said}" if asked.is_tsv else said


def _as_they_come(lines: Iterator[str | BadText]) -> Iterator[list[str | BadText]]:
    """All lines that have come while the last were translated: one alone is not kept waiting."""
    arrived: queue.Queue[str | BadText | BaseException | None] = queue.Queue(2 * AT_ONCE)

    def read() -> None:
        try:
            for line in lines:
                arrived.put(line)
            arrived.put(None)
        except BaseException as error:
            arrived.put(error)

    threading.Thread(target=read, daemon=True).start()
    while True:
        chunk: list[str | BadText] = []
        while (line := arrived.get()) is not None:
            if isinstance(line, BaseException):
                raise line
            chunk.append(line)
            if arrived.empty() or len(chunk) == AT_ONCE:
                break
        if chunk:
            yield chunk
        if line is None:
            return
