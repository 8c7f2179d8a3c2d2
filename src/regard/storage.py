"""Folders that are whole or not there: written beside their place, synced, and moved."""

import fcntl
import glob
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any


@contextmanager
def written_whole(place: Path) -> Iterator[Path]:
    """A new folder to write into, which takes the place of the old one when all went well.

    A kill at any moment leaves the old folder or the new one, and at worst both under names that
    start with a dot: `put_back` finds them. What else it leaves is removed when the place is next
    written. Where a link leads, and not the link, is what is replaced.
    """
    place = _led_to(place)
    place.parent.mkdir(parents=True, exist_ok=True)
    put_back(place)
    _remove_left_behind(place)
    with _draft(place) as building:
        old = building.with_name(building.name + ".old")
        try:
            yield building
            for path in (*building.rglob("*"), building):
                sync(path)
            if place.exists():
                place.rename(old)
            building.rename(place)
            sync(place.parent)
        finally:
            if old.exists() and not place.exists():  # what went wrong did so between two renames
                old.rename(place)
            shutil.rmtree(building, ignore_errors=True)
            shutil.rmtree(old, ignore_errors=True)


def put_back(place: Path) -> bool:
    """Give a folder its name again if a kill came between the two renames; whether it did.

    Where a disk has no locks it is done too: else nobody would ever find what is hidden.
    """
    place = _led_to(place)
    if place.exists():
        return False
    with suppress(OSError):  # its maker was quicker, or the disk is for reading only
        left = [old for old in _hidden(place, ".old") if _is_abandoned(old.with_suffix(""))]
        if left:
            max(left, key=lambda old: old.stat().st_mtime).rename(place)
            return True
    return False


def hidden_in(directory: Path) -> list[Path]:
    """The places in a folder whose old ones a kill may have hidden; `put_back` knows if it did."""
    hidden = directory.glob(".*.????????.draft.old")
    return sorted({old.with_name(old.name[1 : -len(".????????.draft.old")]) for old in hidden})


def is_mounted(place: Path) -> bool:
    """Whether a file system begins there, or is bound there: such a place cannot be replaced."""
    place = Path(os.path.realpath(place))
    if place.is_mount():
        return True
    try:
        lines = Path("/proc/self/mountinfo").read_bytes().splitlines()
    except OSError:
        return False  # no Linux, where most of what is bound is a file system of its own
    escaped = os.fsencode(place).replace(b"\\", b"\\134").replace(b" ", b"\\040")
    return any(line.split()[4] == escaped for line in lines)


def _led_to(place: Path) -> Path:
    """Where a link leads; `Path.resolve` would fail where it leads in a circle."""
    return Path(os.path.realpath(place)) if place.is_symlink() else place


@contextmanager
def _draft(place: Path) -> Iterator[Path]:
    """A new hidden folder, locked for as long as this process makes it."""
    made = Path(tempfile.mkdtemp(prefix=f".{place.name}.", dir=place.parent))
    made.chmod(0o777 & ~_umask())  # mkdtemp's own are for nobody else to read
    with _locked(made):  # before it has the name by which what was left behind is found
        yield made.rename(made.with_name(made.name + ".draft"))


def _remove_left_behind(place: Path) -> None:
    """Remove the drafts that nobody is making any more."""
    if not place.exists() and _hidden(place, ".old"):
        return  # nobody could put it back, and it is all there is
    for draft in _hidden(place, "*"):
        with suppress(OSError), _locked(draft) as is_ours:
            if is_ours:
                shutil.rmtree(draft, ignore_errors=True)


def _hidden(place: Path, ending: str) -> list[Path]:
    return list(place.parent.glob(f".{glob.escape(place.name)}.????????.draft{ending}"))


def _is_abandoned(draft: Path) -> bool:
    """Whether a draft is there, not moved to its place, and no process is at work on it."""
    try:
        handle = os.open(draft, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # no locks on this disk
        return True
    finally:
        os.close(handle)
    return True


@contextmanager
def _locked(folder: Path) -> Iterator[bool]:
    """Hold a folder; False if another does, or its disk has no locks. It ends with the process.

    With `flock` and not `lockf`, which knows no folders and no threads.
    """
    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield False
        else:
            yield True
    finally:
        os.close(handle)


def write_json(path: Path, table: Mapping[str, Any]) -> None:
    """A table as JSON a person can read."""
    path.write_text(json.dumps(table, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def sha256(path: Path) -> str:
    """What the bytes of a file are, in 64 digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sync(path: Path) -> None:
    """Until it is on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _umask() -> int:
    umask = os.umask(0)
    os.umask(umask)
    return umask
