"""A corpus as pairs: found by its name, read as a stream, mixed with others.

What cannot be a pair is dropped on both sides and counted in a `Tally`, so that the pairs and the
counts together are the lines of the file; or reading stops at it, as the caller chooses.
"""

import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from regard.data.formats import (
    FORMATS,
    bare_path,
    languages_in,
    read_both,
    read_plain,
)
from regard.data.streams import MAX_LINE_BYTES, BadText
from regard.data.xml import best_language
from regard.errors import ConfigError, DataError

EXAMPLES = 20  # of each kind of fault
HARMLESS = ("empty-source", "empty-target", "empty-both", "fuzzy", "untranslated", "obsolete")
LANGUAGE = re.compile(r"[A-Za-z]{2,3}([-_][A-Za-z0-9]{2,8})*")


@dataclass(frozen=True, slots=True)
class Pair:
    """One sentence and its translation, and where they stand."""

    src: str
    tgt: str
    line: int  # 1-based line or unit number in its file
    corpus: int = 0  # which corpus of a mix
    src_lang: str = ""
    tgt_lang: str = ""


@dataclass(frozen=True, slots=True)
class Fault:
    """One bad line or unit."""

    kind: str
    file: str
    line: int
    detail: str


@dataclass
class Tally:
    """What reading dropped: how many of each kind, and the first of each, or all."""

    keep_all: bool = False
    counts: dict[str, int] = field(default_factory=dict)
    examples: dict[str, list[Fault]] = field(default_factory=dict)
    carriage_returns: Counter[str] = field(default_factory=Counter)  # taken off, for each file

    def add(self, fault: Fault) -> None:
        """Count one dropped pair."""
        self.counts[fault.kind] = self.counts.get(fault.kind, 0) + 1
        kept = self.examples.setdefault(fault.kind, [])
        if self.keep_all or len(kept) < EXAMPLES:
            kept.append(fault)


@dataclass(frozen=True, slots=True)
class CorpusFiles:
    """Where one corpus lies: a file for each side, or one with both."""

    src: Path | None
    tgt: Path | None
    both: Path | None
    src_lang: str
    tgt_lang: str
    weight: float = 1.0


def read_pairs(
    files: CorpusFiles,
    *,
    on_bad: Literal["stop", "drop"] = "drop",
    tally: Tally | None = None,
    max_line_bytes: int = MAX_LINE_BYTES,
) -> Iterator[Pair]:
    """Every good pair, in order. Empty and unfinished pairs are dropped whatever `on_bad` says."""
    tally = Tally() if tally is None else tally
    returns = tally.carriage_returns
    if files.src is not None and files.tgt is not None:
        src_file, tgt_file = str(files.src), str(files.tgt)
        units = read_plain(files.src, files.tgt, max_line_bytes, returns)
    else:
        assert files.both is not None
        src_file = tgt_file = str(files.both)
        units = read_both(files.both, files.src_lang, files.tgt_lang, max_line_bytes, returns)
    src_lang, tgt_lang = files.src_lang, files.tgt_lang
    for number, src, tgt in units:
        if isinstance(src, BadText):
            fault = Fault(src.kind, src_file, number, src.detail)
        elif isinstance(tgt, BadText):
            fault = Fault(tgt.kind, tgt_file, number, tgt.detail)
        elif src and tgt and not src.isspace() and not tgt.isspace():
            yield Pair(src, tgt, number, 0, src_lang, tgt_lang)
            continue
        elif src.strip():
            fault = Fault("empty-target", tgt_file, number, "")
        else:
            fault = Fault("empty-source" if tgt.strip() else "empty-both", src_file, number, "")
        if on_bad == "stop" and fault.kind not in HARMLESS:
            raise fault_error(fault)
        tally.add(fault)


def fault_error(fault: Fault) -> DataError:
    """The error with which reading stops at a bad line."""
    file, line, detail = fault.file, fault.line, fault.detail
    match fault.kind:
        case "invalid-utf8":
            return DataError(
                "{file}, line {line} is not UTF-8: {detail}; correct it, or let bad pairs be "
                "dropped",
                file=file,
                line=line,
                detail=detail,
            )
        case "nul":
            return DataError(
                "{file}, line {line} has a NUL: {detail}; remove it, or let bad pairs be dropped",
                file=file,
                line=line,
                detail=detail,
            )
        case "too-long":
            return DataError(
                "{file}, line {line} is too long: {detail}; split it, or let bad pairs be dropped",
                file=file,
                line=line,
                detail=detail,
            )
        case "missing-language":
            return DataError(
                "{file}, unit {line} lacks a language that was asked for: it has {detail}",
                file=file,
                line=line,
                detail=detail or "-",
            )
        case "missing-segment":
            return DataError(
                "{file}, unit {line} has no <seg> for {detail}",
                file=file,
                line=line,
                detail=detail or "-",
            )
        case _:
            return DataError(
                "{file}, line {line} does not have two sides: {detail}",
                file=file,
                line=line,
                detail=detail,
            )


def mix(corpora: Sequence[tuple[float, Callable[[], Iterator[Pair]]]], seed: int) -> Iterator[Pair]:
    """Several corpora as one, drawn in turn in proportion to their weights.

    A weight is how often a corpus is read: 2 is twice, 0.5 is every other pair, drawn by chance.
    """
    for place, (weight, _) in enumerate(corpora):
        if not 0.0 < weight < float("inf"):
            raise ConfigError(
                "the weight of corpus {place} is {weight} but must be a number above 0",
                place=place + 1,
                weight=weight,
            )
    chance = random.Random(f"{seed} mix")
    live = {
        place: (weight, _repeated(open_pairs, weight, random.Random(f"{seed} {place}")))
        for place, (weight, open_pairs) in enumerate(corpora)
    }
    while live:
        place = chance.choices(list(live), [weight for weight, _ in live.values()])[0]
        pair = next(live[place][1], None)
        if pair is None:
            del live[place]
        else:
            yield Pair(pair.src, pair.tgt, pair.line, place, pair.src_lang, pair.tgt_lang)


def find_corpus(
    place: str | Path, src_lang: str | None, tgt_lang: str | None, split: str = "train"
) -> CorpusFiles:
    """The files of a corpus: in a directory, under a prefix, in one file, or in two: "a.zh,b.en".

    Languages that are not given are those of the file names, in the order of the alphabet, or
    those that the file itself names, in its order.
    """
    path = Path(place)
    if str(place) == "-":
        return CorpusFiles(None, None, path, src_lang or "", tgt_lang or "")
    if path.is_file():
        return _one_file(path, src_lang, tgt_lang)
    if len(two := [Path(part) for part in str(place).split(",")]) == 2:
        return _two_files(two[0], two[1], src_lang, tgt_lang)
    prefix = path / split if path.is_dir() else path
    sides = _sides(prefix)
    if not sides:
        singles = [file for file in _beside(prefix) if bare_path(file).suffix.lower() in FORMATS]
        if len(singles) == 1:
            return _one_file(singles[0], src_lang, tgt_lang)
        raise _nothing_found(path, prefix, singles)
    found = sorted(sides)
    src, tgt = (found[at] for at in _two_languages(place, found, src_lang, tgt_lang))
    return CorpusFiles(sides[src], sides[tgt], None, src_lang or src, tgt_lang or tgt)


def missing_file_error(path: str | Path, source: Mapping[str, str] | None) -> DataError:
    """The error of a file that is not there, with what a recipe's `[data.source]` says of it."""
    known = [f"{name} {source[name]}" for name in _SOURCE if source and source.get(name)]
    if not known:
        return DataError("there is no file {path}", path=path)
    return DataError(
        "there is no file {path}; the recipe says where it comes from: {known}",
        path=path,
        known=", ".join(known),
    )


_SOURCE = ("address", "sha256", "licence")


def _repeated(
    open_pairs: Callable[[], Iterator[Pair]], weight: float, chance: random.Random
) -> Iterator[Pair]:
    for _ in range(int(weight)):
        yield from open_pairs()
    if rest := weight - int(weight):
        yield from (pair for pair in open_pairs() if chance.random() < rest)


def _one_file(path: Path, src_lang: str | None, tgt_lang: str | None) -> CorpusFiles:
    found = [] if src_lang and tgt_lang else languages_in(path)
    if not found:
        return CorpusFiles(None, None, path, src_lang or "", tgt_lang or "")
    src, tgt = (found[at] for at in _two_languages(path, found, src_lang, tgt_lang))
    return CorpusFiles(None, None, path, src_lang or src, tgt_lang or tgt)


def _two_files(src: Path, tgt: Path, src_lang: str | None, tgt_lang: str | None) -> CorpusFiles:
    for path in (src, tgt):
        if path.is_dir():
            raise DataError(
                "{path} is a directory, but --src and --tgt take files; a directory with both "
                'sides goes by data.train = ["{path}"]',
                path=path,
            )
        if not path.is_file():
            raise missing_file_error(path, None)
    names = [bare_path(path).suffix.lstrip(".") for path in (src, tgt)]
    own = [name if LANGUAGE.fullmatch(name) and name != "txt" else "" for name in names]
    return CorpusFiles(src, tgt, None, src_lang or own[0], tgt_lang or own[1])


def _two_languages(
    place: str | Path, found: list[str], src_lang: str | None, tgt_lang: str | None
) -> tuple[int, int]:
    """Which of the languages found are source and target; two need no word from the caller."""
    src = best_language(found, src_lang) if src_lang else None
    tgt = best_language(found, tgt_lang, without=src) if tgt_lang else None
    asked = ((src_lang, src), (tgt_lang, tgt))
    if absent := [name for name, at in asked if name and at is None]:
        raise DataError(
            "{place} has no {absent}; its languages are {found}",
            place=place,
            absent=", ".join(absent),
            found=", ".join(found),
        )
    if src is not None and tgt is not None:
        return src, tgt
    if len(found) != 2:
        raise DataError(
            "{place} has {found}; say which language is the source and which the target",
            place=place,
            found=", ".join(found),
        )
    rest = [at for at in (0, 1) if at not in (src, tgt)]
    return rest[0] if src is None else src, rest[-1] if tgt is None else tgt


def _sides(prefix: Path) -> dict[str, Path]:
    """The files prefix.LANGUAGE, packed or not, by their languages; unpacked ones first."""
    sides: dict[str, Path] = {}
    for file in _beside(prefix):
        bare = bare_path(file)
        language = bare.name[len(prefix.name) + 1 :]
        if LANGUAGE.fullmatch(language) and bare.suffix.lower() not in (*FORMATS, ".txt", ".csv"):
            sides.setdefault(language, file)
    return sides


def _beside(prefix: Path) -> list[Path]:
    """The files whose names continue the prefix with a dot, the shorter names first."""
    if not prefix.parent.is_dir():
        return []
    start = prefix.name + "."
    files = (file for file in prefix.parent.iterdir() if file.name.startswith(start))
    return sorted((file for file in files if file.is_file()), key=lambda f: (len(f.name), f.name))


def _nothing_found(path: Path, prefix: Path, singles: list[Path]) -> DataError:
    if singles:
        return DataError(
            "{place} has several files with both sides ({files}); name the one you mean",
            place=path,
            files=", ".join(file.name for file in singles),
        )
    if path.is_dir():
        names = sorted(file.name for file in path.iterdir())
        return DataError(
            "{place} has no {split}.LANGUAGE files; it has {files}",
            place=path,
            split=prefix.name,
            files=", ".join(names[:20]) or "-",
        )
    return DataError(
        "there is no corpus {place}: no file, no directory, and no file {place}.LANGUAGE",
        place=path,
    )
