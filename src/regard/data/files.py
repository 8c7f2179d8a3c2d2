"""Which files the settings of a run mean, and that they are those the recipe means."""

from pathlib import Path

from regard.config import DataConfig
from regard.data.corpus import CorpusFiles, find_corpus, missing_file_error
from regard.data.splits import DEV, TEST, part_names
from regard.errors import DataError
from regard.storage import sha256


def train_files(config: DataConfig) -> list[CorpusFiles]:
    """Where each training corpus lies."""
    return [_find(place, config, "train") for place in config.train]


def held_out_files(config: DataConfig, split: str) -> list[CorpusFiles]:
    """Where a split lies: where the settings say, or beside the training files by its name."""
    if named := getattr(config, split):
        return [_find(named, config, split)]
    if not (config.src_lang and config.tgt_lang) and any("," in place for place in config.train):
        return []  # two files by name: what lies beside them may be of other languages
    places = [Path(place.split(",")[0]) for place in config.train]
    directories = dict.fromkeys(place if place.is_dir() else place.parent for place in places)
    return [
        _find(str(directory), config, name)
        for directory in directories
        if directory.is_dir()
        for name in part_names(directory, DEV if split == "dev" else TEST)
    ]


def all_files(config: DataConfig) -> list[CorpusFiles]:
    """All that a dataset depends on: what is held out too, since it is left out of training."""
    held_out = [f for split in ("dev", "test") for f in held_out_files(config, split)]
    return [*train_files(config), *held_out]


def read_files(config: DataConfig) -> list[Path]:
    """Every one of those files."""
    return [path for corpus in all_files(config) for path in _paths(corpus)]


def check_sums(config: DataConfig) -> None:
    """Files whose sha256 the recipe knows are those the recipe means."""
    for place, known in config.source.items():
        expected, path = known.get("sha256"), Path(place)
        if expected and path.is_file() and (found := sha256(path)) != expected:
            raise DataError(
                "{path} is not the file that the recipe means: its sha256 is {found}, "
                "not {expected}",
                path=path,
                found=found,
                expected=expected,
            )


def _find(place: str, config: DataConfig, split: str) -> CorpusFiles:
    try:
        return find_corpus(place, config.src_lang or None, config.tgt_lang or None, split)
    except DataError:
        if known := config.source.get(place):
            raise missing_file_error(place, known) from None
        raise


def _paths(files: CorpusFiles) -> list[Path]:
    return [path for path in (files.src, files.tgt, files.both) if path is not None]
