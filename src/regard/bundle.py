"""A saved model is a directory: settings, weights, tokenizers, and a manifest of them all.

    config.json          what the network is
    model.safetensors    its weights, in float32, float16 or int8 (tensors.py)
    src_tokenizer/ tgt_tokenizer/
    README.md            what it was trained on and how good it is
    MANIFEST.json        format version, and size and sha256 of every file; written last

No torch here: a translator on another engine reads the same directory.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from regard.config import ModelConfig
from regard.errors import ModelError
from regard.recipe import config_from_table
from regard.storage import is_mounted, put_back, sha256, write_json, written_whole
from regard.text.tokenizer import Tokenizer, load_tokenizer

FORMAT = 1
WEIGHTS = "model.safetensors"


@dataclass(frozen=True, slots=True)
class Bundle:
    """A model directory that was found whole."""

    path: Path
    model: ModelConfig
    facts: Mapping[str, Any]
    src_tokenizer: Tokenizer
    tgt_tokenizer: Tokenizer

    @property
    def weights(self) -> Path:
        """The file of the weights."""
        return self.path / WEIGHTS


def open_bundle(path: Path) -> Bundle:
    """The model in a directory; every file is checked against the manifest first."""
    if not path.is_dir() and not put_back(path) and not path.is_dir():
        raise ModelError("there is no model directory {path}", path=path)
    _refuse_parts_of_runs(path)
    manifest = _read_json(path / "MANIFEST.json")
    if manifest.get("format") != FORMAT:
        raise ModelError(
            "{path} is a model of format {found}, but this regard reads format {known}",
            path=path,
            found=manifest.get("format"),
            known=FORMAT,
        )
    _check_files(path, manifest["files"])
    facts = _read_json(path / "config.json")
    model = config_from_table({"model": facts["model"]}).model
    src, tgt = (load_tokenizer(path / f"{side}_tokenizer") for side in ("src", "tgt"))
    return Bundle(path, model, facts, src, tgt)


def _refuse_parts_of_runs(path: Path) -> None:
    """What stands beside a model, or led to it, is easily taken for one."""
    if (path / "run.json").is_file():
        raise ModelError(
            "{path} is the folder of a run, not a model; the model, when the run has ended, is "
            "beside it, {model}",
            path=path,
            model=path.resolve().with_suffix(""),
        )
    if (path / "state.json").is_file():
        raise ModelError(
            "{path} is a checkpoint, not a model; the command that made it makes a model of it "
            "with --resume --set train.steps=1",
            path=path,
        )


def check_place(path: Path) -> None:
    """Refuse to put a model where something else is, before it has taken hours to make."""
    if path.is_symlink() and not path.exists() and not put_back(path) and not path.exists():
        raise ModelError(
            "{path} is a link to {target}, which is not there; make that directory, remove the "
            "link, or name another place with -o",
            path=path,
            target=path.readlink(),
        )
    if path.exists() and not (path / "MANIFEST.json").exists() and not _is_empty(path):
        raise ModelError(
            "{path} is there already and is no model; name another place with -o", path=path
        )
    if path.exists() and _is_around_here(path):
        raise ModelError(
            "{path} is the directory you are in, whose place a model cannot take; name a folder "
            "in it with -o, such as {inside}",
            path=path,
            inside=path / "model",
        )
    if is_mounted(path):
        raise ModelError(
            "{path} is a mounted volume, whose place a model cannot take; name a folder in it "
            "with -o, such as {inside}",
            path=path,
            inside=path / "model",
        )


def write_bundle(
    path: Path,
    model: ModelConfig,
    tokenizers: tuple[Tokenizer, Tokenizer],
    write_weights: Callable[[Path], None],
    *,
    facts: Mapping[str, Any],
    card: str,
) -> None:
    """Write a model directory beside its place and move it there whole."""
    check_place(path)
    with written_whole(path) as building:
        for side, tokenizer in zip(("src", "tgt"), tokenizers, strict=True):
            tokenizer.save(building / f"{side}_tokenizer")
        write_weights(building / WEIGHTS)
        (building / WEIGHTS).chmod(0o666 & ~0o022)  # safetensors' own are for nobody else to read
        write_json(building / "config.json", {"model": asdict(model), **facts})
        (building / "README.md").write_text(card, encoding="utf-8")
        write_json(building / "MANIFEST.json", {"format": FORMAT, "files": _sums(building)})


def _is_around_here(path: Path) -> bool:
    try:
        return Path.cwd().is_relative_to(path.resolve())
    except FileNotFoundError:  # taken away since: a model that is ready still has its place
        return False


def _is_empty(path: Path) -> bool:
    return path.is_dir() and not any(path.iterdir())


def _sums(directory: Path) -> dict[str, dict[str, Any]]:
    files = sorted(file for file in directory.rglob("*") if file.is_file())
    return {
        file.relative_to(directory).as_posix(): {
            "size": file.stat().st_size,
            "sha256": sha256(file),
        }
        for file in files
    }


def _check_files(path: Path, files: Mapping[str, Mapping[str, Any]]) -> None:
    """Every file is there and as it was written; all that are not are named at once."""
    bad = [name for name, sums in files.items() if not _is_whole(path / name, sums)]
    if bad:
        raise ModelError(
            "{path} is damaged: {files} is missing or not as it was written; copy the model again",
            path=path,
            files=", ".join(bad),
        )


def _is_whole(file: Path, sums: Mapping[str, Any]) -> bool:
    if not file.is_file() or file.stat().st_size != sums["size"]:
        return False
    return sha256(file) == sums["sha256"]


def _read_json(path: Path) -> dict[str, Any]:
    try:
        table = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ModelError(
            "{path} is no model directory: it has no {name}", path=path.parent, name=path.name
        ) from None
    except ValueError:
        table = None
    if not isinstance(table, dict):
        raise ModelError("{path} is no valid JSON", path=path)
    return table
