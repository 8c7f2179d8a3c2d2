"""A run's state on disk, so that nothing is lost: written beside, verified, moved into place.

    step-00000500/   model.safetensors  optimizer.safetensors  [average.safetensors]  state.json
                     MANIFEST.json

The manifest is written last and holds the sha256 of the others. The newest checkpoint that verifies
is the one to go on from; a half-written or damaged one is passed over. No pickle anywhere, and no
state of a random generator: what an update draws depends on seed and number of the update alone.
"""

import json
import math
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from safetensors.torch import load_file
from torch import Tensor

from regard.errors import ModelError
from regard.model.weights import MOST_NAMED, save_tensors
from regard.storage import hidden_in, put_back, sha256, write_json, written_whole
from regard.train.state import TrainState

Tensors = Mapping[str, Tensor]


@dataclass(frozen=True)
class Checkpoint:
    """All of a run, on the CPU and whole, whatever machines it ran on."""

    state: TrainState
    weights: Tensors
    moments: Tensors  # the optimizer's, by moment and weight
    running_average: Tensors = field(default_factory=dict)


def write_checkpoint(directory: Path, checkpoint: Checkpoint) -> Path:
    """Write a checkpoint under the number of its update."""
    place = directory / f"step-{checkpoint.state.step:08d}"
    for tensors in (checkpoint.weights, checkpoint.moments, checkpoint.running_average):
        _check_finite(tensors)
    with written_whole(place) as building:
        save_tensors(checkpoint.weights, building / "model.safetensors")
        save_tensors(checkpoint.moments, building / "optimizer.safetensors")
        if checkpoint.running_average:
            save_tensors(checkpoint.running_average, building / "average.safetensors")
        write_json(building / "state.json", checkpoint.state.table())
        sums = {file.name: sha256(file) for file in sorted(building.iterdir())}
        write_json(building / "MANIFEST.json", sums)
    return place


def newest_checkpoint(
    directory: Path, pass_over: Callable[[Path], None] = lambda place: None
) -> Checkpoint | None:
    """The newest checkpoint that is whole; None if there is none. Damaged ones are told of."""
    for place in checkpoints(directory):
        if is_whole(place):
            return _read(place)
        pass_over(place)
    return None


def checkpoints(directory: Path) -> list[Path]:
    """The newest first, by their steps: clocks can jump."""
    return sorted(directory.glob("step-" + "[0-9]" * 8), reverse=True)


def finish_interrupted(directory: Path) -> list[Path]:
    """Bring back the checkpoints that a kill hid while they were written once more.

    For whoever holds the run: a checkpoint that is being written is not to be looked for.
    """
    return [place for place in hidden_in(directory) if put_back(place)]


def has_any(directory: Path) -> bool:
    """Whether there is a checkpoint, be it one that a kill hid."""
    return bool(checkpoints(directory) or hidden_in(directory))


def is_whole(place: Path) -> bool:
    """Whether every file of a checkpoint is as its manifest says."""
    try:
        sums = json.loads((place / "MANIFEST.json").read_text())
        return bool(sums) and all(sha256(place / name) == digest for name, digest in sums.items())
    except (OSError, ValueError, AttributeError):
        return False


def state_of(place: Path) -> TrainState:
    """The numbers of a checkpoint without its tensors."""
    return TrainState.from_table(json.loads((place / "state.json").read_text()))


def weights_in(place: Path) -> dict[str, Tensor]:
    """The weights of a checkpoint alone."""
    weights: dict[str, Tensor] = load_file(place / "model.safetensors")
    return weights


def best_checkpoints(
    directory: Path,
    n: int,
    *,
    lower_is_better: bool,
    verify: Callable[[Path], bool] = is_whole,
) -> list[Path]:
    """The whole checkpoints that were validated and came out best, the best first.

    Hashing takes as long as writing, so only those are verified that come into question.
    """
    scored = [
        (score if lower_is_better else -score, -number, place)
        for number, place in enumerate(reversed(checkpoints(directory)))
        if (score := _score_of(place)) is not None
    ]
    return list(islice((place for *_, place in sorted(scored) if verify(place)), n))


def _score_of(place: Path) -> float | None:
    """What a checkpoint scored when it was written; None if that is no number, or it is damaged."""
    try:
        state = state_of(place)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if state.score is None or math.isnan(state.score) or state.score_step != state.step:
        return None
    return state.score


def remove_all_but(directory: Path, kept: Iterable[Path]) -> None:
    """Drop the checkpoints that nobody will ask for, and what a kill left half-written."""
    keep = {*kept, *finish_interrupted(directory)}  # hidden ones too may be all there is
    for place in checkpoints(directory):
        if place not in keep:
            with suppress(OSError):  # hidden first, so that a kill leaves no half of one in sight
                place.rename(place.with_name(f".{place.name}"))
    for place in directory.glob(".step-*"):
        shutil.rmtree(place, ignore_errors=True)


def _read(place: Path) -> Checkpoint:
    average = place / "average.safetensors"
    return Checkpoint(
        state_of(place),
        weights_in(place),
        load_file(place / "optimizer.safetensors"),
        load_file(average) if average.exists() else {},
    )


def _check_finite(tensors: Tensors) -> None:
    bad = [name for name, tensor in tensors.items() if not tensor.isfinite().all()]
    if bad:
        raise _not_finite(bad)


def _not_finite(bad: Sequence[str]) -> ModelError:
    names = ", ".join(bad[:MOST_NAMED])
    if len(bad) <= MOST_NAMED:
        return ModelError(
            "{names} holds numbers that are not finite, so it is not saved", names=names
        )
    return ModelError(
        "{names} and {n} more hold numbers that are not finite, so nothing is saved",
        names=names,
        n=len(bad) - MOST_NAMED,
    )
