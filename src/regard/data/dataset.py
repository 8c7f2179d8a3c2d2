"""A corpus as ids on disk: built once, memory-mapped ever after, and known by its content.

A dataset is a folder. Each side has its ids and its text end to end, and where each sentence ends;
the text is kept because a sampled segmentation is made anew in every epoch. `dataset.json` is
written last and holds the fingerprint of all that went in, so a half-built folder is no dataset and
a changed corpus, tokenizer or setting is noticed. It vouches for itself and for every byte beside
it: who trains for days on ids that a disk has spoilt is never told by the loss.
"""

import gc
import hashlib
import json
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.data.corpus import Pair
from regard.data.encoded import encode_all
from regard.errors import DataError
from regard.storage import sha256, write_json, written_whole
from regard.text.tokenizer import Tokenizer

FORMAT = 3
READING = 1  # how files become pairs: part of what runs remember of their text
SIDES = ("src", "tgt")
ARRAYS = [f"{side}.{kind}.npy" for side in SIDES for kind in ("ends", "text_ends")]
ARRAYS += ["lines.npy", "langs.npy"]
MARKS = ("dataset.json", *ARRAYS, *(f"{side}.ids" for side in SIDES))  # what nothing else has
STORED = (*ARRAYS, *(f"{side}.{kind}" for side in SIDES for kind in ("ids", "text")))


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
    digest.update(json.dumps([READING, settings], sort_keys=True, default=str).encode())
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
    for name, found in _sums(directory).items():
        if found != facts["sums"][name]:
            raise DataError(
                "{path} is not the file it was when the dataset was built; build it again",
                path=directory / name,
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
    except (OSError, ValueError, RecursionError):
        facts = None
    if (
        not isinstance(facts, dict)
        or facts.pop("sum", None) != _sum(facts)
        or facts["format"] != FORMAT
    ):
        raise DataError("{directory} holds no dataset", directory=directory)
    return facts


def _sum(facts: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def _sums(directory: Path) -> dict[str, str | None]:
    """What every stored file holds, in 64 digits; of one that is missing, nothing."""
    paths = [directory / name for name in STORED]
    with ThreadPoolExecutor() as pool:
        sums = pool.map(lambda path: sha256(path) if path.is_file() else None, paths)
        return dict(zip(STORED, sums, strict=True))


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
    if directory.exists() and not _may_be_replaced(directory):
        raise DataError(
            "{directory} is there already and is no dataset; move it away, or name another place",
            directory=directory,
        )
    with written_whole(directory) as building:
        for side, tokenizer in zip(SIDES, (src_tokenizer, tgt_tokenizer), strict=True):
            tokenizer.save(building / f"{side}_tokenizer")
        facts = _write(building, pairs, (src_tokenizer, tgt_tokenizer), max_len, workers, progress)
        facts["dropped"] = dict(facts["dropped"] + (dropped or Counter()))
        facts["fingerprint"] = fingerprint
        write_json(building / "dataset.json", {**facts, "sum": _sum(facts)})
    return open_dataset(directory, fingerprint)


def _may_be_replaced(directory: Path) -> bool:
    """Whether it is empty, or a dataset, or was one before something in it was spoilt."""
    if not directory.is_dir():
        return False
    return not any(directory.iterdir()) or any((directory / name).exists() for name in MARKS)


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
        encoded = encode_all(building, pairs, tokenizers, dtypes, max_len, workers)
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
    return {
        "format": FORMAT,
        "pairs": len(lines),
        "dropped": dropped,
        "languages": list(languages),
        "dtypes": dict(zip(SIDES, dtypes, strict=True)),
        "sums": _sums(building),
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
