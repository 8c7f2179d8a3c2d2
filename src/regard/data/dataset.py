"""A corpus as ids on disk: built once, memory-mapped ever after, and known by its content.

A dataset is a folder. Each side has its ids and its text end to end, and where each sentence ends;
the text is kept because a sampled segmentation is made anew in every epoch. `dataset.json` is
written last and holds the fingerprint of all that went in, so a half-built folder is no dataset and
a changed corpus, tokenizer or setting is noticed.
"""

import gc
import hashlib
import json
import multiprocessing
import signal
from array import array
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from itertools import chain, islice
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.data.corpus import Pair
from regard.errors import DataError, ResourceError
from regard.storage import write_json, written_whole
from regard.text.tokenizer import Tokenizer, load_tokenizer

FORMAT = 1
CHUNK = 4096  # pairs that a worker is given at a time
SIDES = ("src", "tgt")
FACTS = {"fingerprint", "sizes", "dtypes", "languages", "dropped"}


@dataclass(frozen=True, slots=True)
class Side:
    """One language: sentence i is `ids[ends[i] : ends[i + 1]]`, and likewise its text."""

    ids: NDArray[np.integer]
    ends: NDArray[np.int64]
    text: NDArray[np.integer]
    text_ends: NDArray[np.int64]

    def __getitem__(self, i: int) -> NDArray[np.integer]:
        return self.ids[self.ends[i] : self.ends[i + 1]]

    @property
    def lens(self) -> NDArray[np.int64]:
        """The number of ids of each sentence, special ones not counted."""
        return np.diff(self.ends)

    def sentence(self, i: int) -> str:
        """The text of a sentence, as it was read."""
        return self.text[self.text_ends[i] : self.text_ends[i + 1]].tobytes().decode()


@dataclass(frozen=True, slots=True)
class PairDataset:
    """Pairs of sentences as ids, where they came from, and what was left out on the way."""

    src: Side
    tgt: Side
    lines: NDArray[np.int64]
    target_langs: NDArray[np.uint8]
    languages: tuple[str, ...]
    dropped: Mapping[str, int]

    def __len__(self) -> int:
        return len(self.lines)

    def language(self, i: int) -> str:
        """The target language of a pair."""
        return self.languages[self.target_langs[i]]


def fingerprint(
    files: Iterable[Path], tokenizers: Iterable[Path], settings: Mapping[str, object]
) -> str:
    """What a dataset depends on, in 64 digits: every byte of its files, and how they were read."""
    digest = hashlib.blake2b(digest_size=32)
    digest.update(json.dumps([FORMAT, settings], sort_keys=True, default=str).encode())
    paths = [*files, *(path for folder in tokenizers for path in sorted(folder.iterdir()))]
    for path in paths:
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "blake2b").digest())
    return digest.hexdigest()


def open_dataset(directory: Path, expected: str | None = None) -> PairDataset:
    """The dataset in a folder; with `expected`, only if it was made of exactly that."""
    facts = _read_facts(directory)
    if expected is not None and facts["fingerprint"] != expected:
        raise DataError(
            "the dataset in {directory} was made from other files or settings; build it again",
            directory=directory,
        )
    for name, size in facts["sizes"].items():
        path = directory / name
        if not path.exists() or path.stat().st_size != size:
            raise DataError(
                "{path} is not the file it was when the dataset was built; build it again",
                path=path,
            )
    src, tgt = (_open_side(directory, side, facts["dtypes"][side]) for side in SIDES)
    return PairDataset(
        src,
        tgt,
        np.load(directory / "lines.npy", mmap_mode="r"),
        np.load(directory / "langs.npy", mmap_mode="r"),
        tuple(facts["languages"]),
        facts["dropped"],
    )


def _read_facts(directory: Path) -> dict[str, Any]:
    try:
        facts = json.loads((directory / "dataset.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        facts = None
    if not isinstance(facts, dict) or not facts.keys() >= FACTS:
        raise DataError("{directory} holds no dataset", directory=directory)
    return facts


def build_dataset(
    directory: Path,
    pairs: Iterable[Pair],
    src_tokenizer: Tokenizer,
    tgt_tokenizer: Tokenizer,
    *,
    fingerprint: str,
    max_len: int,
    workers: int = 1,
    progress: Callable[[int], None] = lambda n_pairs: None,
    dropped: Counter[str] | None = None,
) -> PairDataset:
    """Read, tokenise and store every pair; those longer than `max_len` ids are dropped, counted.

    `dropped` counts what filters on the way leave out, and is kept with the dataset.
    """
    if directory.exists() and not (directory / "dataset.json").exists():
        raise DataError(
            "{directory} is there already and is no dataset; name another place for it",
            directory=directory,
        )
    with written_whole(directory) as building:
        for side, tokenizer in zip(SIDES, (src_tokenizer, tgt_tokenizer), strict=True):
            tokenizer.save(building / f"{side}_tokenizer")
        facts = _write(building, pairs, (src_tokenizer, tgt_tokenizer), max_len, workers, progress)
        facts["dropped"] = dict(facts["dropped"] + (dropped or Counter()))
        write_json(building / "dataset.json", {**facts, "fingerprint": fingerprint})
    return open_dataset(directory, fingerprint)


@dataclass(frozen=True, slots=True)
class _EncodedSide:
    ids: bytes
    lens: "array[int]"
    text: bytes
    text_lens: "array[int]"


@dataclass(frozen=True, slots=True)
class _Encoded:
    """What a worker makes of a chunk of pairs."""

    sides: tuple[_EncodedSide, _EncodedSide]
    lines: "array[int]"
    langs: list[str]
    dropped: Counter[str]


def _write(
    building: Path,
    pairs: Iterable[Pair],
    tokenizers: tuple[Tokenizer, Tokenizer],
    max_len: int,
    workers: int,
    progress: Callable[[int], None],
) -> dict[str, Any]:
    """The files of a dataset but for its facts, which come back."""
    dtypes = tuple(_dtype(len(tokenizer.vocab)) for tokenizer in tokenizers)
    lens, text_lens = (array("q"), array("q")), (array("q"), array("q"))
    lines, langs, dropped = array("q"), array("B"), Counter[str]()
    languages: dict[str, int] = {}
    n_read = 0
    with ExitStack() as stack:
        stack.enter_context(_without_collector())
        files = {
            f"{side}.{kind}": stack.enter_context((building / f"{side}.{kind}").open("wb"))
            for side in SIDES
            for kind in ("ids", "text")
        }
        encoded = _encode_all(building, _chunks(pairs), tokenizers, dtypes, max_len, workers)
        for chunk in stack.enter_context(closing(encoded)):
            for i, side in enumerate(SIDES):
                files[f"{side}.ids"].write(chunk.sides[i].ids)
                files[f"{side}.text"].write(chunk.sides[i].text)
                lens[i].extend(chunk.sides[i].lens)
                text_lens[i].extend(chunk.sides[i].text_lens)
            lines.extend(chunk.lines)
            langs.extend(languages.setdefault(lang, len(languages)) for lang in chunk.langs)
            dropped.update(chunk.dropped)
            n_read += len(chunk.lines) + chunk.dropped.total()
            progress(n_read)
    for i, side in enumerate(SIDES):
        np.save(building / f"{side}.ends.npy", _ends(lens[i]))
        np.save(building / f"{side}.text_ends.npy", _ends(text_lens[i]))
    np.save(building / "lines.npy", np.array(lines, dtype=np.int64))
    np.save(building / "langs.npy", np.array(langs, dtype=np.uint8))
    stored = [path for path in sorted(building.iterdir()) if path.is_file()]
    return {
        "format": FORMAT,
        "pairs": len(lines),
        "dropped": dropped,
        "languages": list(languages),
        "dtypes": dict(zip(SIDES, dtypes, strict=True)),
        "sizes": {path.name: path.stat().st_size for path in stored},
    }


@contextmanager
def _without_collector() -> Iterator[None]:
    """Python looks for cycles among new lists; sentences have none, and the look costs time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _chunks(pairs: Iterable[Pair]) -> Iterator[list[Pair]]:
    pairs = iter(pairs)
    while chunk := list(islice(pairs, CHUNK)):
        yield chunk


def _encode_all(
    building: Path,
    chunks: Iterator[list[Pair]],
    tokenizers: tuple[Tokenizer, Tokenizer],
    dtypes: tuple[str, ...],
    max_len: int,
    workers: int,
) -> Generator[_Encoded]:
    """Chunks in their order, by one process or several; no more in flight than workers can hold."""
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


def _received(reader: Connection) -> _Encoded:
    with _death_told():
        done: _Encoded | Exception = reader.recv()
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
                done: _Encoded | Exception = _encode(chunk, both, dtypes, max_len)
            except Exception as error:
                done = error
            line.send(done)


def _encode(
    chunk: list[Pair], tokenizers: tuple[Tokenizer, Tokenizer], dtypes: Sequence[str], max_len: int
) -> _Encoded:
    texts = [[pair.src for pair in chunk], [pair.tgt for pair in chunk]]
    encoded = [t.encode_all(lines) for t, lines in zip(tokenizers, texts, strict=True)]
    kinds = [_drop_kind(src, tgt, max_len) for src, tgt in zip(*encoded, strict=True)]
    kept = [i for i, kind in enumerate(kinds) if kind is None]
    src, tgt = (
        _encoded_side([ids[i] for i in kept], [lines[i] for i in kept], dtype)
        for ids, lines, dtype in zip(encoded, texts, dtypes, strict=True)
    )
    return _Encoded(
        (src, tgt),
        array("q", (chunk[i].line for i in kept)),
        [chunk[i].tgt_lang for i in kept],
        Counter(kind for kind in kinds if kind is not None),
    )


def _encoded_side(sentences: list[list[int]], texts: list[str], dtype: str) -> _EncodedSide:
    raw = [text.encode() for text in texts]
    return _EncodedSide(
        np.fromiter(chain.from_iterable(sentences), dtype=dtype).tobytes(),
        array("q", map(len, sentences)),
        b"".join(raw),
        array("q", map(len, raw)),
    )


def _drop_kind(src: list[int], tgt: list[int], max_len: int) -> str | None:
    if len(src) > max_len or len(tgt) > max_len:
        return "max_len"
    return None if src and tgt else "empty"


def _ends(lens: "array[int]") -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(np.array(lens, dtype=np.int64))]).astype(np.int64)


def _dtype(n_words: int) -> str:
    return "uint16" if n_words <= 2**16 else "uint32"


def _open_side(directory: Path, side: str, dtype: str) -> Side:
    return Side(
        _map(directory / f"{side}.ids", dtype),
        np.load(directory / f"{side}.ends.npy", mmap_mode="r"),
        _map(directory / f"{side}.text", "uint8"),
        np.load(directory / f"{side}.text_ends.npy", mmap_mode="r"),
    )


def _map(path: Path, dtype: str) -> NDArray[np.integer]:
    if not path.stat().st_size:
        return np.empty(0, dtype=dtype)  # an empty file cannot be mapped
    return np.memmap(path, dtype=dtype, mode="r")
