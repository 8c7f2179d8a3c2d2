"""The parts of a corpus, training, development and test, by the names of their files."""

from collections.abc import Sequence
from pathlib import Path

from regard.data.corpus import CorpusFiles, find_corpus
from regard.data.formats import FORMATS, bare_path
from regard.errors import DataError

DEV, TEST = ("dev", "val"), ("test",)  # how the names of such parts begin
PARTS = ("train", *DEV, *TEST)


def find_splits(
    places: Sequence[Path], src_lang: str | None = None, tgt_lang: str | None = None
) -> dict[str, CorpusFiles]:
    """Each part by its name: of a directory, of plain files, or one file as the training part."""
    if len(places) > 1:
        return _of_files(places, src_lang, tgt_lang)
    names = part_names(places[0]) if places[0].is_dir() else []
    found = {
        name: find_corpus(places[0], src_lang, tgt_lang, split=name) for name in names or ["train"]
    }
    training = [name for name in found if name.startswith("train")]
    if len(training) == 1:  # train.zh-en.zh is the training part by another name
        found = {"train": found.pop(training[0]), **found}
    return found


def part_names(directory: Path, kinds: tuple[str, ...] = PARTS) -> list[str]:
    """The parts of these kinds for which there are files, training first: train, test_2016, ..."""
    suffixes: dict[str, set[str]] = {}
    for file in map(bare_path, directory.iterdir()):
        suffixes.setdefault(file.stem, set()).add(file.suffix.lower())
    found = [
        name
        for name, endings in suffixes.items()
        if name.startswith(kinds) and (len(endings) > 1 or endings & FORMATS.keys())
    ]
    return sorted(found, key=lambda name: (name != "train", name))


def _of_files(
    places: Sequence[Path], src_lang: str | None, tgt_lang: str | None
) -> dict[str, CorpusFiles]:
    """Plain files two by two: as they come, or those of one name and two languages."""
    if all(bare_path(place).suffix.lower() in FORMATS for place in places):
        return {bare_path(p).stem: find_corpus(p, src_lang, tgt_lang) for p in places}
    groups: dict[str, list[Path]] = {}
    for place in places:
        groups.setdefault(bare_path(place).stem, []).append(place)
    if len(places) == 2 and len(groups) == 2:
        groups = {"train": list(places)}
    if odd := [name for name, files in groups.items() if len(files) != 2]:
        raise DataError(
            "{names} has no partner; give the two sides of each part, such as train.zh train.en",
            names=", ".join(odd),
        )
    return {
        "train" if len(groups) == 1 else name: CorpusFiles(
            src, tgt, None, src_lang or _language(src), tgt_lang or _language(tgt)
        )
        for name, (src, tgt) in groups.items()
    }


def _language(path: Path) -> str:
    return bare_path(path).suffix.lstrip(".")
