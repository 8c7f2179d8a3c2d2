"""Chunks of lines: cut from a shard, translated, with what went wrong beside them; anywhere."""

import io
import json
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import redirect_stderr
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard import errors
from regard.cli.bulk import chunk_size
from regard.cli.lines import MAX_LINE_BYTES, readable, written
from regard.cli.shards.job import Shard
from regard.data.streams import BLOCK, BadText, content_of, lines_in
from regard.errors import DataError, RegardError

if TYPE_CHECKING:
    from regard.cli.translate import Options
    from regard.decode.results import Translation
    from regard.decode.translator import Translator

Say = Callable[["Chunk"], "Chunk"]


@dataclass(frozen=True)
class Chunk:
    """Lines of a shard, or what was said of them; one without lines ends its shard."""

    shard: int
    number: int
    first: int = 0  # lines before it
    n_lines: int = 0
    text: str = ""
    warnings: str = ""
    fault: str = ""  # an error that travels

    @property
    def lines(self) -> list[str]:
        """The lines to translate."""
        return self.text.split("\n") if self.n_lines else []


def chunks_of(shard: Shard, index: int, size: int, on_bad: Any) -> Iterator[Chunk]:
    """The chunks of a shard that are not done yet, and the one that ends it."""
    number, first = 0, 0
    try:
        with shard.source as file:
            for number, cut in enumerate(_cut(file, shard.name, size)):
                if number >= shard.done:
                    with redirect_stderr(io.StringIO()) as warned:
                        lines = [readable(one, first + n, on_bad) for n, one in enumerate(cut, 1)]
                    yield Chunk(
                        index, number, first, len(lines), "\n".join(lines), warned.getvalue()
                    )
                first += len(cut)
    except RegardError as error:
        yield Chunk(index, number, fault=packed(error))
    except Exception as error:  # every kind of storage has its own class
        fault = DataError("{file} cannot be read: {reason}", file=shard.name, reason=error)
        yield Chunk(index, number, fault=packed(fault))
    else:
        yield Chunk(index, number + 1 if first else 0, first)


def _cut(file: Any, name: str, size: int) -> Iterator[list[str | BadText]]:
    """The lines of an open file, so many at a time."""
    raw = iter(lambda: file.read(BLOCK), b"")
    head = next(raw, b"")
    if not head:
        return
    lines = lines_in(content_of(chain((head,), raw), name), name, MAX_LINE_BYTES, Counter())
    while cut := list(islice(lines, size)):
        yield cut


def saying(
    translator: "Translator", asked: "Options", terms: Mapping[str, str], names: Sequence[str]
) -> Say:
    """What turns a chunk of lines into what is written for them; `names` are the shards'."""
    from regard.cli.translate import line_by_line

    made: dict[bool, Callable[[list[str]], list[Translation]]] = {}

    def say(chunk: Chunk) -> Chunk:
        if chunk.fault or not chunk.n_lines:
            return chunk
        own = replace(asked, source=Path(names[chunk.shard]))
        if own.is_tsv not in made:
            made[own.is_tsv] = line_by_line(translator, own, terms)
        try:
            with redirect_stderr(io.StringIO()) as warned:
                lines = list(written(chunk.lines, chunk.first, made[own.is_tsv], own))
        except RegardError as error:
            return replace(chunk, fault=packed(error))
        text = "".join(f"{line}\n" for line in lines)
        return replace(chunk, text=text, warnings=chunk.warnings + warned.getvalue())

    return say


def said_here(shards: Sequence[Shard], asked: "Options", say: Say) -> Generator[Chunk]:
    """All chunks, one after the other, by this process."""
    for index, shard in enumerate(shards):
        yield from map(say, chunks_of(shard, index, chunk_size(asked.device), asked.on_bad))


def packed(error: RegardError) -> str:
    """An error as text that can travel."""
    plain = {
        name: value if isinstance(value, int | float) else str(value)
        for name, value in error.values.items()
    }
    return json.dumps([type(error).__name__, error.sentence, plain])


def unpacked(fault: str) -> RegardError:
    """The error that has travelled."""
    kind, sentence, values = json.loads(fault)
    error: RegardError = getattr(errors, kind)(sentence, **values)
    return error
