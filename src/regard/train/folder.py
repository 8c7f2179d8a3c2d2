"""The folder of a run: what it was made of, and that only one process writes it.

run.json        settings, versions, seed, command, fingerprint of the text
metrics.jsonl   every number it measured
checkpoints/    what it goes on from
snapshots/      models kept to look at
data/           tokenizers and dataset
lock            held while it runs
"""

import fcntl
import json
import os
import platform
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from regard import __version__
from regard.config import Config
from regard.errors import ConfigError, ResourceError
from regard.processors import processor_name
from regard.recipe import config_from_table
from regard.settings import shown
from regard.storage import sync, write_json

_KINDS = {"command": list, "text": str, "ranks": int, "device": str, "threads": int}
_MAY_LACK = {"vocabulary": str, "from": str, "decode": dict, "resumed": list}
_TABLES = {"config": {"model", "data", "train"}, "versions": {"regard", "torch"}}
# Of settings that are newer than a run the default is what it began with; these were always there.
_SETTINGS = {"data": {"train", "task"}, "train": {"steps", "tokens"}}
# A run may go on with other settings than these, though not as if it had never stopped.
FIXED = ("train.tokens", "train.batching", "train.accumulate", "train.seed", "train.metric")
# What a vocabulary was made by; weights that were taken over keep theirs.
WORDS = ("tokenizer", "vocab_size", "joint", "form", "han")
LOOSE = ("model.dropout", "model.attention_dropout", "model.activation_dropout")


def folder_of(output: Path) -> Path:
    """Where the run lies whose model goes there."""
    return output.with_name(output.name + ".run")


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold a run folder; the kernel lets go of it when this process ends, however it ends.

    With `lockf` and not `flock`, whose locks live on in the processes that make batches.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("a+") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):  # systems differ
            file.seek(0)
            raise ResourceError(
                "{folder} is being written by process {pid}; wait for it, or name another place "
                "with -o",
                folder=folder,
                pid=file.read().strip() or "?",
            ) from None
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield


def facts(config: Config, text: str, ranks: int, device: torch.device) -> dict[str, Any]:
    """All that a run's numbers depend on."""
    return {
        "command": sys.argv,
        "config": config.as_table(),
        "text": text,
        "ranks": ranks,
        "device": processor_name() if device.type == "cpu" else torch.cuda.get_device_name(device),
        "threads": torch.get_num_threads(),
        "versions": {
            "regard": __version__,
            "torch": torch.__version__,
            "python": platform.python_version(),
        },
    }


def record(folder: Path, table: Mapping[str, Any]) -> None:
    """Write the facts of a run, whole or not at all."""
    draft = folder / "run.json.draft"
    try:
        write_json(draft, table)
        sync(draft)
        draft.replace(folder / "run.json")
    finally:
        draft.unlink(missing_ok=True)


def recorded(folder: Path) -> dict[str, Any] | None:
    """The facts of the run that began here, if one did."""
    try:
        table = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None
    return table if _is_whole(table) else None


def _is_whole(table: Any) -> bool:
    """Whether all is there that is asked of it: people edit files, and disks spoil them."""
    return (
        isinstance(table, dict)
        and all(isinstance(table.get(name), kind) for name, kind in _KINDS.items())
        and all(isinstance(table.get(name, kind()), kind) for name, kind in _MAY_LACK.items())
        and all(
            isinstance(table.get(name), dict) and table[name].keys() >= names
            for name, names in _TABLES.items()
        )
        and _can_be(table["config"])
    )


def _can_be(config: dict[str, Any]) -> bool:
    """Whether a run can have been set so."""
    try:
        config_from_table(config)
    except ConfigError:
        return False
    return all(config[section].keys() >= names for section, names in _SETTINGS.items())


def check_same(before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Refuse to go on with another corpus, vocabulary, network or batch size, each by its name."""
    faults = [_changed(*setting) for setting in _changed_settings(before["config"], now["config"])]
    if not faults and before["text"] != now["text"]:
        faults = [ConfigError("the training text is not what it was when this run began")]
    if faults:
        raise _another_run(faults)


def check_network(before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Refuse to put weights into another network than the one they were trained in."""
    faults = [
        _changed(*setting)
        for setting in _changed_settings(before["config"], now["config"])
        if setting[0].startswith("model.")
    ]
    if faults:
        raise ConfigError(
            "{faults}; weights are of no use to another network", faults=tuple(faults)
        )


def ignored_words(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Settings of the vocabulary that differ, and do nothing where weights keep theirs."""
    old, new = before["config"]["data"], now["config"]["data"]
    return [f"data.{name}" for name in WORDS if old.get(name, new[name]) != new[name]]


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Why a run that goes on here will not repeat to the bit."""
    pairs = [
        ("processes", before["ranks"], now["ranks"]),
        ("threads", before["threads"], now["threads"]),
        ("regard", before["versions"]["regard"], now["versions"]["regard"]),
        ("torch", before["versions"]["torch"], now["versions"]["torch"]),
        ("device", before["device"], now["device"]),
    ]
    return [f"{name} {then} → {new}" for name, then, new in pairs if then != new]


def spread(accumulate: int, began: int, ranks: int) -> int:
    """Batches that each rank takes for an update, so that all take what they did at the start."""
    return max(1, round(accumulate * began / ranks))


def _another_run(faults: list[ConfigError]) -> ConfigError:
    return ConfigError(
        "{faults}; resume with what it began with, or take its weights alone with "
        "--resume-weights-only",
        faults=tuple(faults),
    )


def _changed(name: str, before: str, now: str) -> ConfigError:
    return ConfigError(
        "{name} was {before} when this run began and is {now} now",
        name=name,
        before=before,
        now=now,
    )


def _changed_settings(
    before: Mapping[str, Any], now: Mapping[str, Any]
) -> list[tuple[str, str, str]]:
    defaults = json.loads(json.dumps(Config().as_table()))  # of settings that are newer than a run
    return [
        (name, shown(then), shown(value))
        for section in ("model", "data", "train")
        for key, value in json.loads(json.dumps(now[section])).items()
        if (name := f"{section}.{key}") not in LOOSE
        and (section != "train" or name in FIXED)
        and (then := before[section].get(key, defaults[section].get(key))) != value
    ]
