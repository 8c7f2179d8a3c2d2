"""The parts of a corpus, training, development and test, by the names of their files."""

from collections.abc import Sequence
from pathlib import Path

from regard.data.corpus import CorpusFiles, find_corpus
from regard.data.formats import bare_path
from regard.errors import DataError

PARTS = ("train", "dev", "valid", "val", "test")


def find_splits(
    places: Sequence[Path], src_lang: str | None = None, tgt_lang: str | None = None
) -> dict[str, CorpusFiles]:
    """Each part by its name: of a directory, of plain files, or one file as the training part."""
    if len(places) > 1:
        return _of_files(places, src_lang, tgt_lang)
    names = _part_names(places[0]) if places[0].is_dir() else []
    return {
        name: find_corpus(places[0], src_lang, tgt_lang, split=name) for name in names or ["train"]
    }


def _part_names(directory: Path) -> list[str]:
    """The parts for which there are files, training first."""
    names = {bare_path(file).stem for file in directory.iterdir() if file.is_file()}
    found = [name for name in names if name.startswith(PARTS) and _has_two(directory, name)]
    return sorted(found, key=lambda name: (name != "train", name))


def _has_two(directory: Path, name: str) -> bool:
    files = [bare_path(file) for file in directory.glob(f"{name}.*")]
    return len({file.suffix for file in files if file.stem == name}) > 1


def _of_files(
    places: Sequence[Path], src_lang: str | None, tgt_lang: str | None
) -> dict[str, CorpusFiles]:
    """Plain files two by two: as they come, or those of one name and two languages."""
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
