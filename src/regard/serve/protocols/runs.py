"""The server's own API for watching runs: what the folders it was given have written so far."""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool

from regard.errors import DataError
from regard.serve.asking import owner_of
from regard.serve.fields import Fields
from regard.serve.schema import REFUSALS
from regard.serve.service import Service
from regard.view.runs import Run, Series, names_apart, read_run

POINTS = 400  # of one curve: more cannot be seen
SAMPLES = "samples.jsonl"
FEW = 5  # sentences of a validation


def router(service: Service) -> APIRouter:
    """Its address."""
    routes = APIRouter(prefix="/api/v1", tags=["native"], responses=REFUSALS)

    @routes.get("/runs")
    async def runs(request: Request) -> dict[str, Any]:
        """The curves and samples of the runs that this server was started with."""
        owner_of(service, request, Fields({}))
        return {"runs": await run_in_threadpool(tables_of, service.runs)}

    return routes


def tables_of(paths: Sequence[Path]) -> list[dict[str, Any]]:
    """The runs for JSON; one that has written nothing yet has no curves."""
    found = [_read(path) for path in paths]
    return [
        {
            "name": name,
            "series": {key: thinned(series) for key, series in run.series.items()},
            "samples": samples_of(run.path.parent / SAMPLES),
        }
        for run, name in zip(found, names_apart(found), strict=True)
    ]


def thinned(series: Series) -> list[tuple[float, float | None]]:
    """At most POINTS of them, evenly taken, with the first and the last; a gap is null."""
    step = max(1, math.ceil((len(series) - 1) / (POINTS - 1)))
    places = sorted({*range(0, len(series), step), len(series) - 1})
    return [
        (series[at][0], series[at][1] if math.isfinite(series[at][1]) else None) for at in places
    ]


def samples_of(file: Path) -> list[dict[str, Any]]:
    """What was said at each validation, by its update; a resumed run says it again."""
    said: dict[float, list[dict[str, str]]] = {}
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    newest = -1.0
    for line in lines:
        try:
            row = json.loads(line)
            step, pair = float(row["step"]), {"source": row["src"], "translation": row["said"]}
        except (ValueError, KeyError, TypeError):
            continue  # the line that was being written when the run was killed
        if step < newest:
            said = {other: texts for other, texts in said.items() if other < step}
        newest = step
        said.setdefault(step, []).append(pair)
    return [{"step": step, "texts": texts[:FEW]} for step, texts in sorted(said.items())]


def snapshots_of(path: Path) -> list[Path]:
    """The models that a run kept on its way, the first first; they are models like any other."""
    return sorted(path for path in (_read(path).path.parent / "snapshots").glob("step-*"))


def _read(path: Path) -> Run:
    try:
        return read_run(path)
    except DataError:
        return Run(path.name, path / "metrics.jsonl", {})
