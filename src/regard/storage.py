"""Folders that are whole or not there: written beside their place, synced, and moved."""

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def written_whole(place: Path) -> Iterator[Path]:
    """A new folder to write into, which takes the place of the old one when all went well.

    A kill at any moment leaves the old folder or the new one, and at worst one of them under a
    name that starts with a dot.
    """
    place.parent.mkdir(parents=True, exist_ok=True)
    building = Path(tempfile.mkdtemp(prefix=f".{place.name}.", dir=place.parent))
    building.chmod(0o777 & ~_umask())  # mkdtemp's own are for nobody else to read
    old = building.with_name(building.name + ".old")
    try:
        yield building
        for path in (*building.rglob("*"), building):
            _sync(path)
        if place.exists():
            place.rename(old)
        building.rename(place)
        _sync(place.parent)
    finally:
        shutil.rmtree(building, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


def write_json(path: Path, table: Mapping[str, Any]) -> None:
    """A table as JSON a person can read."""
    path.write_text(json.dumps(table, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def sha256(path: Path) -> str:
    """What the bytes of a file are, in 64 digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _umask() -> int:
    umask = os.umask(0)
    os.umask(umask)
    return umask
