"""What is to be translated and where to: files by a pattern or an address, into a folder."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fsspec
from fsspec.core import OpenFile
from fsspec.implementations.local import LocalFileSystem

from regard.cli import bulk
from regard.errors import ConfigError, DataError
from regard.storage import sha256

if TYPE_CHECKING:
    from regard.cli.translate import Options
    from regard.decode.translator import Translator

FACTS = "translation.json"


@dataclass(frozen=True)
class Shard:
    """A file to translate, under its name for people, and what its translation is called."""

    source: OpenFile
    name: str
    target: str
    n_bytes: int | None
    done: int = 0  # chunks


def find_shards(source: str, target: str, asked: "Options", translator: "Translator") -> "Job":
    """Every file that is meant, and where its translation goes; what cannot be is refused."""
    with _opening(source):
        files = sorted(fsspec.open_files(source, "rb"), key=lambda file: file.path)
        found = [(file, file.fs.size(file.path)) for file in files if file.fs.exists(file.path)]
    if not found or len(found) < len(files):
        raise DataError("there is no file {path}", path=source)
    with _opening(target):
        filesystem, place = fsspec.url_to_fs(target)
        is_one = len(found) == 1 and not any(sign in source for sign in "*?[")
        is_file = is_one and not target.endswith("/") and not filesystem.isdir(place)
    folder, _, name = place.rpartition("/") if is_file else (place.rstrip("/"), "", "")
    shards = [
        Shard(file, file.path, name or _said_name(file.path, asked, translator), n_bytes)
        for file, n_bytes in found
    ]
    for shard in shards:
        _check_kind(shard, asked)
    job = Job(shards, filesystem, folder or "/", is_file)
    _check_targets(job)
    return job


@dataclass(frozen=True)
class Job:
    """The shards of one translation, and the folder that theirs go to."""

    shards: Sequence[Shard]
    filesystem: fsspec.AbstractFileSystem
    folder: str
    is_file: bool  # one input has one output, which was named

    @property
    def is_local(self) -> bool:
        """Whether the folder is on a disk, where files can grow and be renamed."""
        return isinstance(self.filesystem, LocalFileSystem)

    def place(self, name: str) -> str:
        """Where a file of this name lies."""
        return f"{self.folder}/{name}"

    def facts(self, models: Sequence[Path], asked: "Options") -> dict[str, Any]:
        """All that the output depends on."""
        return {
            "models": [sha256(model / "MANIFEST.json") for model in models],
            **asked.facts(),
            "files": {
                shard.target: [shard.source.full_name, shard.n_bytes] for shard in self.shards
            },
        }

    def begin(self, facts: Mapping[str, Any], *, resume: bool) -> list[Shard]:
        """The shards that are left to do; what was begun otherwise is refused by name."""
        before = self._before()
        self.filesystem.makedirs(self.folder, exist_ok=True)
        if self.is_file:
            return list(self.shards)
        if before is not None:
            if not resume:
                raise ConfigError(
                    "{folder} holds a translation; go on with --resume, or name another place "
                    "with -o",
                    folder=self.folder,
                )
            if changed := [name for name, value in facts.items() if before.get(name) != value]:
                raise ConfigError(
                    "{part} was begun with another {names}; ask for the same again, or remove it",
                    part=self.folder,
                    names=", ".join(changed),
                )
            return [one for one in self.shards if not self._is_there(one)]
        for shard in filter(self._is_there, self.shards):
            raise ConfigError(
                "{path} is there already; name another folder with -o, or remove it",
                path=self.place(shard.target),
            )
        with self.filesystem.open(self.place(FACTS), "w", encoding="utf-8") as file:
            file.write(json.dumps(facts, ensure_ascii=False, indent=1) + "\n")
        return list(self.shards)

    def _is_there(self, shard: Shard) -> bool:
        there: bool = self.filesystem.exists(self.place(shard.target))
        return there

    def _before(self) -> dict[str, Any] | None:
        place = self.place(FACTS)
        if self.is_file or not self.filesystem.exists(place):
            return None
        with self.filesystem.open(place, "r", encoding="utf-8") as file:
            try:
                table: dict[str, Any] = json.loads(file.read())
            except ValueError:  # it was being written
                return None
        return table


@contextmanager
def _opening(place: str) -> Iterator[None]:
    """Where fsspec opens an address; one that it cannot open is named."""
    try:
        yield
    except Exception as error:  # every kind of storage has its own class
        raise ConfigError(
            "{place} cannot be opened: {reason}", place=place, reason=str(error)
        ) from error


def _said_name(path: str, asked: "Options", translator: "Translator") -> str:
    """a.zh.gz becomes a.en: no archive's ending, and the language that it is in now."""
    name = path.rsplit("/", 1)[-1]
    for ending in bulk.ARCHIVES:
        name = name.removesuffix(ending)
    stem, _, end = name.rpartition(".")
    ways = {(asked.src_lang or src, asked.tgt_lang or tgt) for src, tgt in translator.directions}
    targets = {tgt for src, tgt in ways if src == end and tgt not in ("", src)}
    return f"{stem}.{targets.pop()}" if stem and len(targets) == 1 else name


def _check_kind(shard: Shard, asked: "Options") -> None:
    from regard.cli.documents import document_format

    path = Path(shard.name)
    if document_format(path, asked.format) is not None:
        raise ConfigError("{file} is a document; translate documents one by one", file=path)
    bulk.check_kind(path, is_document=asked.format is not None)


def _check_targets(job: Job) -> None:
    """No two shards have one output, and none is written over itself."""
    for target, times in Counter(shard.target for shard in job.shards).items():
        if times > 1:
            raise ConfigError(
                "{times} of the files would be written to {path}; translate them into different "
                "folders",
                times=times,
                path=job.place(target),
            )
    for shard in job.shards:
        if shard.source.fs == job.filesystem and _is_same(job, shard.name, shard.target):
            raise ConfigError(
                "{path} would be written over itself; name another place with -o", path=shard.name
            )


def _is_same(job: Job, name: str, target: str) -> bool:
    """Whether both are one file, on a disk by whatever name."""
    place = job.place(target)
    if job.is_local and Path(place).is_file():
        return Path(place).samefile(name)
    return name == place
