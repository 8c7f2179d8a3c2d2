"""What training runs wrote down in their `metrics.jsonl`, one object of JSON a line."""

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.errors import DataError
from regard.view.axes import is_drawable

METRICS = "metrics.jsonl"
UPDATES = ("loss", "lr", "tokens_per_s")  # what an update says; validation says dev_…

Series = tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Run:
    """One run: for each quantity its (step, value), in the order of the steps, NaN for a gap."""

    name: str
    path: Path
    series: Mapping[str, Series]


def read_run(path: Path) -> Run:
    """The run of a `metrics.jsonl`, of the folder that holds it, or of the model beside that.

    A resumed run starts again from its checkpoint, so a step that goes back makes void what was
    said of it and of later ones. Lines that are no metrics, such as the one that was being written
    when the run was killed, are passed over.
    """
    file = _metrics_file(path)
    values: dict[str, dict[float, float]] = {}
    newest = 0.0
    with file.open(encoding="utf-8", errors="replace") as lines:
        for step, metrics in filter(None, map(_metrics, lines)):
            if step < newest:
                values = {key: _before(step, series) for key, series in values.items()}
            newest = step
            for key, value in metrics.items():
                values.setdefault(key, {})[step] = value
    if not any(is_drawable(value) for series in values.values() for value in series.values()):
        raise DataError(
            "{path} has no line to draw; a line is {example}, as regard train writes it",
            path=file,
            example='{"step": 50, "loss": 3.2}',
        )
    return Run(_name(file), file, {key: tuple(series.items()) for key, series in values.items()})


def names_apart(runs: Sequence[Run]) -> list[str]:
    """The names of the runs, each with as many of its folders as tell it from the others."""
    names = [run.name for run in runs]
    folders = [_named(run.path).parent.parts[1:] for run in runs]
    for depth in range(1, max(map(len, folders), default=0) + 1):
        names = [
            "/".join((*inside[-depth:], run.name)) if names.count(name) > 1 else name
            for run, name, inside in zip(runs, names, folders, strict=True)
        ]
    return names if len(set(names)) == len(names) else [str(run.path) for run in runs]


def _metrics_file(path: Path) -> Path:
    beside = Path(f"{os.path.abspath(path)}.run")  # even without the model, which comes last
    for file in (path, path / METRICS, beside / METRICS):
        if file.is_file():
            return Path(os.path.abspath(file))
    raise DataError(
        "there is no training run at {path}; name a metrics.jsonl, the folder that holds one, or "
        "the model beside that folder",
        path=path,
    )


def _metrics(line: str) -> tuple[float, dict[str, float]] | None:
    """The step of a line and the quantities that can be drawn, if it is a line of metrics."""
    try:
        table = json.loads(line)
    except (ValueError, RecursionError):
        return None
    step = _number(table.get("step")) if isinstance(table, dict) else math.nan
    if not (is_drawable(step) and step >= 0):
        return None
    keys = [key for key in table if key in UPDATES or key.startswith("dev_")]
    return step, {key: _number(table[key]) for key in keys}


def _number(value: Any) -> float:
    """A number of the file; whatever is none is a gap."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return math.nan
    try:
        return float(value)
    except OverflowError:  # an integer of hundreds of digits
        return math.inf


def _before(step: float, series: dict[float, float]) -> dict[float, float]:
    return {other: value for other, value in series.items() if other < step}


def _name(file: Path) -> str:
    return _named(file).name.removesuffix(".run" if file.name == METRICS else file.suffix)


def _named(file: Path) -> Path:
    """What the run is known by: its folder, or the file when that has a name of its own."""
    return file.parent if file.name == METRICS else file
