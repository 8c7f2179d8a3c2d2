"""The weights of a network by name: out of it, and into it if they are exactly those it has."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor, nn

from regard.errors import ModelError, ResourceError, Word

MOST_NAMED = 3  # of hundreds that are wrong in the same way


def weights_of(model: nn.Module) -> dict[str, Tensor]:
    """Every parameter once, by its first name: what is shared is stored once."""
    return {name: p.detach().cpu().contiguous() for name, p in model.named_parameters()}


def save_tensors(tensors: Mapping[str, Tensor], path: Path) -> None:
    """Write tensors as safetensors; a full disk says so in a sentence."""
    try:
        save_file(dict(tensors), path)
    except SafetensorError as error:  # its way of saying what the system said
        raise ResourceError(
            "{path} could not be written: {reason}", path=path, reason=error
        ) from None


def with_fewer_layers(
    weights: Mapping[str, Tensor], side: str, had: int, wanted: int
) -> dict[str, Tensor]:
    """The weights of a model with so many of a side's layers: the first, the last, evenly between.

    A smaller model that begins so has most of its teacher's knowledge, and learns the rest soon.
    """
    if wanted > had:
        raise ModelError(
            "a model made of one with {had} {side} layers cannot have {wanted} of them",
            had=had,
            side=Word("encoder") if side == "encoder" else Word("decoder"),
            wanted=wanted,
        )
    chosen = [round(i * (had - 1) / max(wanted - 1, 1)) for i in range(wanted)]
    head = f"{side}.layers."
    kept = {name: w for name, w in weights.items() if not name.startswith(head)}
    for to, place in enumerate(chosen):
        own = f"{head}{place}."
        kept |= {
            f"{head}{to}.{name.removeprefix(own)}": w
            for name, w in weights.items()
            if name.startswith(own)
        }
    return kept


def load_weights(model: nn.Module, weights: Mapping[str, Tensor]) -> None:
    """Put weights into a model; what is missing, unexpected or of another shape is named."""
    own = dict(model.named_parameters())
    wrong = [
        *(f"{name} is missing" for name in own.keys() - weights.keys()),
        *(f"{name} is unexpected" for name in weights.keys() - own.keys()),
        *(
            f"{name} has shape {tuple(weights[name].shape)} instead of {tuple(own[name].shape)}"
            for name in own.keys() & weights.keys()
            if weights[name].shape != own[name].shape
        ),
    ]
    if wrong:
        raise _misfit(sorted(wrong))
    with torch.no_grad():
        for name, parameter in own.items():
            parameter.copy_(weights[name])


def _misfit(wrong: Sequence[str]) -> ModelError:
    named = ", ".join(wrong[:MOST_NAMED])
    if len(wrong) <= MOST_NAMED:
        return ModelError("the weights do not fit the model: {wrong}", wrong=named)
    return ModelError(
        "the weights do not fit the model: {wrong}, and {n} more",
        wrong=named,
        n=len(wrong) - MOST_NAMED,
    )
