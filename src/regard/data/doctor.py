"""What is wrong with a corpus, before it is trained on: counted, and named with its lines.

One pass over each split. What is remembered of a pair is a key of 8 bytes, its line and its
lengths, so a corpus of any size fits.
"""

import unicodedata
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from regard.data.corpus import CorpusFiles, Fault, Pair, Tally, read_pairs
from regard.data.filters import folded, pair_key, ratio, wrong_script
from regard.errors import DataError
from regard.text.tokenizer import train_tokenizer

MAX_RATIO = 4.0  # beyond this, two sides are hardly translations of each other
SAMPLE, PIECES = 20_000, 8000  # pairs that a trial tokenizer is trained on, and its size
LISTED = 1000  # faults of one kind that are named; all are counted
BREAKS = "\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"  # what other programs take for the end of a line


@dataclass
class Split:
    """One file pair: what was counted, and what it takes to compare it with another."""

    name: str
    files: CorpusFiles
    pairs: int = 0
    lens: tuple["array[int]", "array[int]"] = field(
        default_factory=lambda: (array("l"), array("l"))
    )
    keys: "array[int]" = field(default_factory=lambda: array("Q"))
    lines: "array[int]" = field(default_factory=lambda: array("q"))
    counts: Counter[str] = field(default_factory=Counter)
    faults: list[Fault] = field(default_factory=list)
    characters: Counter[str] = field(default_factory=Counter)
    error: DataError | None = None

    def add(self, kind: str, line: int, detail: str, *, side: str = "src") -> None:
        """Count a fault, and name it while there are not too many of its kind."""
        self.counts[kind] += 1
        if self.counts[kind] <= LISTED:
            self.faults.append(Fault(kind, self._file(side), line, detail))

    def _file(self, side: str) -> str:
        place = self.files.both or (self.files.src if side == "src" else self.files.tgt)
        return str(place)


@dataclass
class Overlap:
    """Pairs of a held-out set that also stand in training: (line there, line in training)."""

    exact: dict[int, int] = field(default_factory=dict)
    folded: dict[int, int] = field(default_factory=dict)
    n_training: int = 0  # training pairs that would have to go


@dataclass(frozen=True)
class Report:
    """All that was found."""

    splits: Mapping[str, Split]
    overlap: Mapping[str, Overlap]
    tokens_per_epoch: int
    uncovered: list[tuple[str, int]]

    @property
    def errors(self) -> list[DataError]:
        """Why splits could not be read to their end."""
        return [split.error for split in self.splits.values() if split.error is not None]

    @property
    def faults(self) -> list[Fault]:
        """Every named fault of every split."""
        return [fault for split in self.splits.values() for fault in split.faults]


def examine(
    corpora: Mapping[str, CorpusFiles], progress: Callable[[str, int], None] = lambda name, n: None
) -> Report:
    """Look at every split, the held-out ones first, so that training can be compared with them.

    `progress` is told the split and the number of its pairs so far, now and then.
    """
    splits = {name: Split(name, files) for name, files in corpora.items()}
    held_out = {name: split for name, split in splits.items() if name != "train"}
    keys = {name: _Keys() for name in held_out}
    for name, split in held_out.items():
        for pair in _look_at(split, progress):
            keys[name].add(pair)
    overlap = {name: Overlap() for name in held_out if "train" in splits}
    train = splits.get("train") or next(iter(splits.values()))
    sample = _Sample()
    if train.name not in held_out:
        for pair in _look_at(train, progress):
            sample.add(pair)
            for name, found in overlap.items():
                _compare(pair, keys[name], found)
        _name_overlap(train, overlap)
    return Report(splits, overlap, *_with_tokenizer(sample.pairs, splits.values(), train))


def as_table(report: Report) -> dict[str, Any]:
    """The report as JSON knows it."""
    train = report.splits.get("train") or next(iter(report.splits.values()))
    overlap = {
        name: {
            "pairs": len(found.exact),
            "folded": len(found.folded),
            "lines": [[line, other] for line, other in sorted(found.exact.items())],
            "folded_lines": [[line, other] for line, other in sorted(found.folded.items())],
        }
        for name, found in report.overlap.items()
    }
    return {
        "pairs": train.pairs,
        "languages": _languages(train.files),
        "splits": {name: _split_table(split) for name, split in report.splits.items()},
        "faults": [_fault_table(fault) for fault in report.faults],
        "overlap": _with_test(overlap),
        "tokens_per_epoch": report.tokens_per_epoch,
        "uncovered": [{"character": c, "count": n} for c, n in report.uncovered],
        "advice": advice(report),
    }


def advice(report: Report) -> dict[str, int]:
    """The filters worth turning on, each with how many training pairs it would drop."""
    train = report.splits.get("train") or next(iter(report.splits.values()))
    drops = {
        "max_ratio": train.counts["ratio"],
        "script": train.counts["script"],
        "dedup": train.counts["duplicate"],
        "drop_overlap": sum(found.n_training for found in report.overlap.values()),
    }
    return {name: n for name, n in drops.items() if n}


class _Keys:
    """The pairs of a held-out set, as they are and folded, with their lines."""

    def __init__(self) -> None:
        self.exact: dict[int, list[int]] = {}
        self.folded: dict[int, list[int]] = {}

    def add(self, pair: Pair) -> None:
        self.exact.setdefault(pair_key(pair.src, pair.tgt), []).append(pair.line)
        self.folded.setdefault(_folded_key(pair), []).append(pair.line)


class _Sample:
    """Up to a few times `SAMPLE` pairs, spread over the corpus, the same in every run."""

    def __init__(self) -> None:
        self.pairs: list[Pair] = []
        self.stride = 1

    def add(self, pair: Pair) -> None:
        if pair.line % self.stride == 0:
            self.pairs.append(pair)
        if len(self.pairs) > 2 * SAMPLE:
            self.stride *= 2
            self.pairs = [kept for kept in self.pairs if kept.line % self.stride == 0]


def _look_at(split: Split, progress: Callable[[str, int], None]) -> Iterator[Pair]:
    """Every pair of a split, its faults noted on the way; a file that cannot be read is one too."""
    tally = Tally(keep_all=True)
    try:
        for pair in read_pairs(split.files, on_bad="drop", tally=tally):
            split.pairs += 1
            if split.pairs % 10_000 == 0:
                progress(split.name, split.pairs)
            split.lens[0].append(len(pair.src))
            split.lens[1].append(len(pair.tgt))
            split.characters.update(unicodedata.normalize("NFC", pair.src + pair.tgt))
            split.keys.append(pair_key(pair.src, pair.tgt))
            split.lines.append(pair.line)
            _note_faults(split, pair)
            yield pair
    except DataError as error:
        split.error = error
        kind, line = _kind_of(error)
        split.add(kind, line, str(error))
    _note_duplicates(split)
    for kind, faults in tally.examples.items():
        split.counts[kind] += tally.counts[kind]
        split.faults += faults[:LISTED]


def _kind_of(error: DataError) -> tuple[str, int]:
    """What kind of fault stops the reading of a file, by what its sentence speaks of; and where."""
    values = error.values
    line = values.get("line", values.get("first", 0))
    match values:
        case {"n_src": n_src, "n_tgt": n_tgt}:
            kind, line = "line-count", line or min(int(str(n_src)), int(str(n_tgt))) + 1
        case {"encoding": _} | {"bad": _}:
            kind = "encoding"
        case {"taken": _}:
            kind = "bomb"
        case {"archive": _}:
            kind = "archive"
        case _:
            kind = "unreadable"
    return kind, int(str(line))


def _note_duplicates(split: Split) -> None:
    keys, lines = np.array(split.keys), np.array(split.lines)
    order = np.argsort(keys, kind="stable")
    is_repeat = np.zeros(len(keys), dtype=bool)
    is_repeat[1:] = keys[order][1:] == keys[order][:-1]
    firsts = np.maximum.accumulate(np.where(is_repeat, 0, np.arange(len(order))))
    repeats = sorted(zip(lines[order][is_repeat], lines[order][firsts[is_repeat]], strict=True))
    for line, first in repeats:
        split.add("duplicate", int(line), f"the same pair as line {first}")


def _note_faults(split: Split, pair: Pair) -> None:
    if pair.src == pair.tgt:
        split.add("identical", pair.line, "both sides are the same")
    if (times := ratio(pair.src, pair.tgt)) > MAX_RATIO:
        split.add("ratio", pair.line, f"one side is {times:.1f} times as long as the other")
    if wrong_script(pair):
        split.add("script", pair.line, "a side is not in the script of its language")
    for side, text in (("src", pair.src), ("tgt", pair.tgt)):
        if any(character in text for character in BREAKS):
            split.add(
                "line-break", pair.line, "a character inside breaks lines elsewhere", side=side
            )
        if not unicodedata.is_normalized("NFC", text):
            split.add("not-nfc", pair.line, "not in Unicode's composed form", side=side)


def _compare(pair: Pair, keys: _Keys, overlap: Overlap) -> None:
    lines = keys.exact.get(pair_key(pair.src, pair.tgt), ())
    overlap.n_training += bool(lines)
    for line in lines:
        overlap.exact.setdefault(line, pair.line)
    for line in keys.folded.get(_folded_key(pair), ()):
        overlap.folded.setdefault(line, pair.line)


def _folded_key(pair: Pair) -> int:
    return pair_key(folded(pair.src), folded(pair.tgt))


def _name_overlap(train: Split, overlap: Mapping[str, Overlap]) -> None:
    for name, found in overlap.items():
        for line, other in found.exact.items():
            train.add("overlap", other, f"line {line} of {name} is the same pair")


def _with_tokenizer(
    sample: list[Pair], splits: Iterable[Split], train: Split
) -> tuple[int, list[tuple[str, int]]]:
    """What a trial tokenizer says: tokens an epoch, and the characters it would spell in bytes."""
    if not sample:
        return 0, []
    texts = [text for pair in sample for text in (pair.src, pair.tgt)]
    tokenizer = train_tokenizer(iter(texts), kind="unigram", size=PIECES)
    tokens, characters = sum(map(len, tokenizer.encode_all(texts))), sum(map(len, texts))
    all_characters: Counter[str] = sum((split.characters for split in splits), Counter())
    rare = [(c, n) for c, n in all_characters.most_common() if tokenizer.uncovered(c)]
    return round(tokens / max(characters, 1) * sum(map(sum, train.lens))), rare


def _fault_table(fault: Fault) -> dict[str, Any]:
    return {"kind": fault.kind, "file": fault.file, "line": fault.line, "detail": fault.detail}


def _split_table(split: Split) -> dict[str, Any]:
    return {
        "pairs": split.pairs,
        "characters": {
            language: _quantiles(lens)
            for language, lens in zip(_languages(split.files), split.lens, strict=True)
        },
        "counts": dict(split.counts),
        "faults": [_fault_table(fault) for fault in split.faults],
    }


def _languages(files: CorpusFiles) -> list[str]:
    """The names of both sides; a file may not say which languages it holds."""
    if files.src_lang == files.tgt_lang:
        return ["source", "target"]
    return [files.src_lang or "source", files.tgt_lang or "target"]


def _quantiles(lens: Iterable[int]) -> dict[str, float]:
    values = np.array(list(lens))
    if not len(values):
        return {}
    names = {"median": 50, "p95": 95, "p99": 99, "longest": 100}
    return {"mean": round(float(values.mean()), 1)} | {
        name: int(np.percentile(values, q)) for name, q in names.items()
    }


def _with_test(overlap: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Where a corpus names its test sets by year or kind, `test` is all of them."""
    tests = [found for name, found in overlap.items() if name.startswith("test")]
    if not tests or "test" in overlap:
        return overlap
    total = {
        key: sum((found[key] for found in tests), start=type(tests[0][key])())
        for key in ("pairs", "folded", "lines", "folded_lines")
    }
    return overlap | {"test": total}
