"""Pairs as ids, chunk by chunk, by one process or several."""

import multiprocessing
import signal
from array import array
from collections import Counter, deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from itertools import chain, islice
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np

from regard.data.corpus import Pair
from regard.errors import ResourceError
from regard.text.tokenizer import Tokenizer, load_tokenizer

CHUNK = 4096  # pairs that a worker is given at a time


@dataclass(frozen=True, slots=True)
class EncodedSide:
    """One language of a chunk: its ids and its text end to end, and how long each sentence is."""

    ids: bytes
    lens: "array[int]"
    text: bytes
    text_lens: "array[int]"


@dataclass(frozen=True, slots=True)
class Encoded:
    """What a worker makes of a chunk of pairs."""

    sides: tuple[EncodedSide, EncodedSide]
    lines: "array[int]"
    langs: list[str]
    dropped: Counter[str]


def encode_all(
    building: Path,
    pairs: Iterable[Pair],
    tokenizers: tuple[Tokenizer, Tokenizer],
    dtypes: tuple[str, ...],
    max_len: int,
    workers: int,
) -> Generator[Encoded]:
    """Chunks in their order, by one process or several; no more in flight than workers can hold."""
    chunks = _chunks(pairs)
    if workers <= 1:
        yield from (_encode(chunk, tokenizers, dtypes, max_len) for chunk in chunks)
        return

    readers: deque[Connection] = deque()  # in the order of their chunks
    with ExitStack() as stack:
        first = list(islice(chunks, workers))
        readers.extend(stack.enter_context(_reader(building, dtypes, max_len)) for _ in first)
        for reader, chunk in zip(readers, first, strict=True):  # all have begun: one waits for none
            _send(reader, chunk)
        while readers:
            reader, following = readers.popleft(), next(chunks, None)
            done = _received(reader)
            if following is not None:
                _send(reader, following)
                readers.append(reader)
            yield done


def _chunks(pairs: Iterable[Pair]) -> Iterator[list[Pair]]:
    pairs = iter(pairs)
    while chunk := list(islice(pairs, CHUNK)):
        yield chunk


@contextmanager
def _reader(building: Path, dtypes: tuple[str, ...], max_len: int) -> Iterator[Connection]:
    """The line to a new process that reads; it ends when nobody is at our end any more.

    Each has a line of its own. In a pool they share one, and a process that is killed while it
    sends leaves half a message there, for the rest of which the pool waits for ever.
    """
    fresh = multiprocessing.get_context("spawn")  # a fork of a process with threads may hang
    own, other = fresh.Pipe()
    process = fresh.Process(target=_read, args=(other, building, dtypes, max_len), daemon=True)
    with own:
        with other, _deaf_thread() as starter:
            starter.submit(process.start).result()
        try:
            yield own
        finally:
            process.terminate()
            process.join()


def _deaf_thread() -> ThreadPoolExecutor:
    """A thread whose processes never hear Ctrl-C: what it blocks they inherit, even as they start.

    The main thread hears it, ends them, and cannot be interrupted while one is half begun.
    """
    resource_tracker.ensure_running()  # else it starts with the first, and unblocks the signal
    return ThreadPoolExecutor(
        1, "deaf", signal.pthread_sigmask, (signal.SIG_BLOCK, {signal.SIGINT})
    )


def _send(reader: Connection, chunk: list[Pair]) -> None:
    with _death_told():
        reader.send(chunk)


def _received(reader: Connection) -> Encoded:
    with _death_told():
        done: Encoded | Exception = reader.recv()
    if isinstance(done, Exception):
        raise done
    return done


@contextmanager
def _death_told() -> Iterator[None]:
    try:
        yield
    except (EOFError, OSError) as error:  # there is nobody at the other end
        raise ResourceError(
            "a process that reads the text has died, perhaps for want of memory; free some of it, "
            "or let the run have fewer processors, as with taskset"
        ) from error


def _read(line: Connection, building: Path, dtypes: tuple[str, ...], max_len: int) -> None:
    both: tuple[Tokenizer, Tokenizer] | None = None  # loaded once: large to send with every chunk
    with suppress(EOFError, OSError):  # whoever asked is gone
        while True:
            chunk = line.recv()
            try:
                both = both or (
                    load_tokenizer(building / "src_tokenizer"),
                    load_tokenizer(building / "tgt_tokenizer"),
                )
                done: Encoded | Exception = _encode(chunk, both, dtypes, max_len)
            except Exception as error:
                done = error
            line.send(done)


def _encode(
    chunk: list[Pair], tokenizers: tuple[Tokenizer, Tokenizer], dtypes: Sequence[str], max_len: int
) -> Encoded:
    texts = [[pair.src for pair in chunk], [pair.tgt for pair in chunk]]
    encoded = [t.encode_all(lines) for t, lines in zip(tokenizers, texts, strict=True)]
    kinds = [_drop_kind(src, tgt, max_len) for src, tgt in zip(*encoded, strict=True)]
    kept = [i for i, kind in enumerate(kinds) if kind is None]
    src, tgt = (
        _encoded_side([ids[i] for i in kept], [lines[i] for i in kept], dtype)
        for ids, lines, dtype in zip(encoded, texts, dtypes, strict=True)
    )
    return Encoded(
        (src, tgt),
        array("q", (chunk[i].line for i in kept)),
        [chunk[i].tgt_lang for i in kept],
        Counter(kind for kind in kinds if kind is not None),
    )


def _encoded_side(sentences: list[list[int]], texts: list[str], dtype: str) -> EncodedSide:
    raw = [text.encode() for text in texts]
    return EncodedSide(
        np.fromiter(chain.from_iterable(sentences), dtype=dtype).tobytes(),
        array("q", map(len, sentences)),
        b"".join(raw),
        array("q", map(len, raw)),
    )


def _drop_kind(src: list[int], tgt: list[int], max_len: int) -> str | None:
    if len(src) > max_len or len(tgt) > max_len:
        return "max_len"
    return None if src and tgt else "empty"
