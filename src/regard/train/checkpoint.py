"""A run's state on disk, so that nothing is lost: written beside, verified, moved into place.

    step-00000500/   model.safetensors  optimizer.safetensors  state.json  MANIFEST.json

The manifest is written last and holds the sha256 of the others. The newest checkpoint that verifies
is the one to go on from; a half-written or damaged one is passed over. No pickle anywhere.
"""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from regard.data.feed import Place
from regard.errors import ModelError
from regard.model.weights import load_weights, weights_of
from regard.storage import sha256, write_json, written_whole
from regard.train.trainer import TrainState

MOMENTS = ("exp_avg", "exp_avg_sq", "step")


def save_checkpoint(
    directory: Path,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    state: TrainState,
    *,
    keep: int,
) -> Path:
    """Write a checkpoint and drop all but the newest `keep`."""
    place = directory / f"step-{state.step:08d}"
    with written_whole(place) as building:
        weights, moments = weights_of(model), _moments_of(model, optimizer)
        _check_finite(weights)
        save_file(weights, building / "model.safetensors")
        save_file({**moments, "rng": torch.get_rng_state()}, building / "optimizer.safetensors")
        write_json(building / "state.json", _state_table(state))
        sums = {file.name: sha256(file) for file in sorted(building.iterdir())}
        write_json(building / "MANIFEST.json", sums)
    for old in _checkpoints(directory)[keep:]:
        shutil.rmtree(old, ignore_errors=True)
    return place


def load_newest(
    directory: Path, model: nn.Module, optimizer: torch.optim.Optimizer
) -> TrainState | None:
    """Put the newest whole checkpoint into model and optimizer; None if there is no such one."""
    for place in _checkpoints(directory):
        if is_whole(place):
            return _load(place, model, optimizer)
    return None


def is_whole(place: Path) -> bool:
    """Whether every file of a checkpoint is as its manifest says."""
    try:
        sums = json.loads((place / "MANIFEST.json").read_text())
        return all(sha256(place / name) == digest for name, digest in sums.items())
    except (OSError, ValueError, AttributeError):
        return False


def _load(place: Path, model: nn.Module, optimizer: torch.optim.Optimizer) -> TrainState:
    load_weights(model, load_file(place / "model.safetensors"))
    moments = load_file(place / "optimizer.safetensors")
    torch.set_rng_state(moments.pop("rng"))
    for name, parameter in model.named_parameters():
        if f"step.{name}" in moments:
            optimizer.state[parameter] = {
                moment: moments[f"{moment}.{name}"].to(
                    parameter.device if moment != "step" else "cpu"
                )
                for moment in MOMENTS
            }
    table = json.loads((place / "state.json").read_text())
    return TrainState(**{**table, "place": Place(**table["place"])})


def _moments_of(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    return {
        f"{moment}.{name}": optimizer.state[parameter][moment].detach().cpu().contiguous()
        for name, parameter in model.named_parameters()
        if parameter in optimizer.state
        for moment in MOMENTS
    }


def _check_finite(weights: Mapping[str, Tensor]) -> None:
    bad = [name for name, weight in weights.items() if not weight.isfinite().all()]
    if bad:
        raise ModelError(
            "{names} holds numbers that are not finite, so it is not saved", names=", ".join(bad)
        )


def _state_table(state: TrainState) -> dict[str, Any]:
    table = dict(vars(state))
    table["place"] = {"epoch": state.place.epoch, "step": state.place.step}
    return table


def _checkpoints(directory: Path) -> list[Path]:
    """The newest first, by their steps: clocks can jump."""
    return sorted(directory.glob("step-*"), reverse=True)
