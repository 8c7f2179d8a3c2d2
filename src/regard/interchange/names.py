"""What other programs call our weights: one table, and nobody else spells a foreign name.

Marian (in Hugging Face's transformers) and fairseq name their layers alike. Where we keep several
of their matrices as one, they lie one below the other: queries, keys and values.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from regard.config import ModelConfig
from regard.interchange.taken import Floats, Weights

Foreign = Literal["marian", "fairseq"]

# Ours, theirs, and on which side of it the vectors between the layers come: in, out, or both.
ENCODER_LAYER: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("attention.qkv", ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"), "in"),
    ("attention.out", ("self_attn.out_proj",), "out"),
    ("attention_residual.norm", ("self_attn_layer_norm",), "both"),
    ("feed_forward.inner", ("fc1",), "in"),
    ("feed_forward.outer", ("fc2",), "out"),
    ("feed_forward_residual.norm", ("final_layer_norm",), "both"),
)
DECODER_LAYER: tuple[tuple[str, tuple[str, ...], str], ...] = (
    *ENCODER_LAYER,
    ("cross_attention.query", ("encoder_attn.q_proj",), "in"),
    ("cross_attention.key_value", ("encoder_attn.k_proj", "encoder_attn.v_proj"), "in"),
    ("cross_attention.out", ("encoder_attn.out_proj",), "out"),
    ("cross_residual.norm", ("encoder_attn_layer_norm",), "both"),
)
FINAL_NORM: tuple[str, tuple[str, ...], str] = ("norm", ("layer_norm",), "both")  # of pre-norm
LEARNED_POSITIONS = "{stack}.embed_positions.weight"  # of fairseq's; Marian learns none
DOORS: dict[Foreign, dict[str, str]] = {
    "marian": {
        "stacks": "model.",
        "shared": "model.shared.weight",
        "source": "model.encoder.embed_tokens.weight",
        "target": "model.decoder.embed_tokens.weight",
        "output": "lm_head.weight",
        "bias": "final_logits_bias",
    },
    "fairseq": {
        "stacks": "",
        "shared": "encoder.embed_tokens.weight",
        "source": "encoder.embed_tokens.weight",
        "target": "decoder.embed_tokens.weight",
        "output": "decoder.output_projection.weight",
        "bias": "decoder.output_projection.bias",
    },
}
COPIES: dict[Foreign, dict[str, tuple[str, ...]]] = {
    "marian": {
        "all": (
            "model.encoder.embed_tokens.weight",
            "model.decoder.embed_tokens.weight",
            "lm_head.weight",
        ),
        "target": ("lm_head.weight",),
        "none": (),
    },
    "fairseq": {
        "all": ("decoder.embed_tokens.weight", "decoder.output_projection.weight"),
        "target": ("decoder.output_projection.weight",),
        "none": (),
    },
}
"""Other names of a matrix that is shared, which some files have and some have not."""
OLD_FAIRSEQ = {
    "decoder.embed_out": "decoder.output_projection.weight",
    "encoder layer_norms.0": "self_attn_layer_norm",
    "encoder layer_norms.1": "final_layer_norm",
    "decoder layer_norms.0": "self_attn_layer_norm",
    "decoder layer_norms.1": "encoder_attn_layer_norm",
    "decoder layer_norms.2": "final_layer_norm",
}
"""What weights were called in older checkpoints; those of a layer behind the name of its side."""
NO_WEIGHTS = {
    "marian": ("model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight"),
    "fairseq": (
        "encoder.version", "encoder.embed_positions._float_tensor",
        "decoder.version", "decoder.embed_positions._float_tensor",
    ),
}  # fmt: skip
"""What lies among the weights and is computed anyway."""


@dataclass(frozen=True, slots=True)
class Place:
    """A weight of ours: its name, what theirs are called, its shape.

    `widths` are the axes along the width of the model: where its coordinates come in another
    order, these are the axes to permute.
    """

    own: str
    theirs: tuple[str, ...]
    shape: tuple[int, ...]
    widths: tuple[int, ...]

    @property
    def their_shape(self) -> tuple[int, ...]:
        """Of each of theirs, as many rows as there are."""
        return (self.shape[0] // len(self.theirs), *self.shape[1:])


def places(model: ModelConfig, n_src: int, n_tgt: int, foreign: Foreign) -> list[Place]:
    """Every weight of a transformer with fixed positions, and what it is called over there."""
    found = list(_doors(model, n_src, n_tgt, DOORS[foreign]))
    prefix = DOORS[foreign]["stacks"]
    for stack, rows, (n_layers, _, d_ff) in (
        ("encoder", ENCODER_LAYER, model.encoder),
        ("decoder", DECODER_LAYER, model.decoder),
    ):
        for number in range(n_layers):
            layer = f"{stack}.layers.{number}"
            for own, theirs, side in rows:
                names = tuple(f"{prefix}{layer}.{name}" for name in theirs)
                found += _pair(f"{layer}.{own}", names, side, model.d_model, d_ff)
        if model.norm == "pre":
            own, theirs, side = FINAL_NORM
            names = tuple(f"{prefix}{stack}.{name}" for name in theirs)
            found += _pair(f"{stack}.{own}", names, side, model.d_model, d_ff)
    return found


def gathered(places: list[Place], weights: Weights) -> dict[str, Floats]:
    """Our weights from theirs; who calls this asks `weights` afterwards what was wrong."""
    return {
        place.own: np.concatenate(
            [weights.take(name, *place.their_shape) for name in place.theirs], axis=0
        )
        for place in places
    }


def scattered(places: list[Place], weights: Mapping[str, Floats]) -> dict[str, Floats]:
    """Their weights from ours."""
    found: dict[str, Floats] = {}
    for place in places:
        parts = np.split(weights[place.own], len(place.theirs))
        found |= dict(zip(place.theirs, parts, strict=True))
    return found


def permuted(
    places: list[Place], weights: Mapping[str, Floats], order: NDArray[np.int64]
) -> dict[str, Floats]:
    """Our weights with the coordinates of the model's width in another order.

    Every vector between the layers is permuted, and whatever reads or writes one is with it, so
    that the network computes the same.
    """
    found = dict(weights)
    for place in places:
        for axis in place.widths:
            found[place.own] = np.take(found[place.own], order, axis=axis)
    return found


def without_copies(
    model: ModelConfig, weights: Mapping[str, NDArray[Any]], foreign: Foreign
) -> dict[str, NDArray[Any]]:
    """Their weights without the other names of a matrix that is shared, where they are the same.

    A copy that is not the same stays, and is then unexpected: it would not be shared.
    """
    doors, left = DOORS[foreign], dict(weights)
    if foreign == "marian" and model.share == "none" and doors["shared"] in left:
        # A Marian may have one matrix for both sides without sharing it with the output.
        both = left.pop(doors["shared"])
        return {doors["source"]: both, doors["target"]: both, **left}
    shared = doors["shared" if model.share == "all" else "target"]
    for name in COPIES[foreign][model.share]:
        if name == shared or name not in left:
            continue
        if shared not in left:
            left[shared] = left.pop(name)
        elif np.array_equal(left[name], left[shared]):
            del left[name]
    return left


def with_todays_names(weights: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """The weights of a fairseq checkpoint of any age by the names they have today.

    The oldest keep queries, keys and values as one.
    """
    found: dict[str, NDArray[Any]] = {}
    for name, array in weights.items():
        stem, _, kind = name.rpartition(".")
        if kind in ("in_proj_weight", "in_proj_bias") and len(array) % 3 == 0:
            parts = zip(("q_proj", "k_proj", "v_proj"), np.split(array, 3), strict=True)
            kind = kind.removeprefix("in_proj_")
            found |= {f"{stem}.{part}.{kind}": rows for part, rows in parts}
        elif name not in NO_WEIGHTS["fairseq"]:
            found[_todays_name(name)] = array
    return found


def _todays_name(name: str) -> str:
    match name.split("."):
        case [stack, "layers", number, "layer_norms", place, kind]:
            norm = OLD_FAIRSEQ.get(f"{stack} layer_norms.{place}", f"layer_norms.{place}")
            return f"{stack}.layers.{number}.{norm}.{kind}"
        case _:
            return OLD_FAIRSEQ.get(name, name)


def _doors(
    model: ModelConfig, n_src: int, n_tgt: int, theirs: Mapping[str, str]
) -> Iterator[Place]:
    d = model.d_model
    if model.share == "all":
        yield Place("source.weight", (theirs["shared"],), (n_src, d), (1,))
    else:
        yield Place("source.weight", (theirs["source"],), (n_src, d), (1,))
        yield Place("target.weight", (theirs["target"],), (n_tgt, d), (1,))
    if model.share == "none":
        yield Place("output.weight", (theirs["output"],), (n_tgt, d), (1,))
    if model.output_bias:
        yield Place("output.bias", (theirs["bias"],), (n_tgt,), ())


def _pair(own: str, theirs: tuple[str, ...], side: str, d_model: int, d_ff: int) -> Iterator[Place]:
    """The weight and the bias of a linear layer or a norm."""
    weights, biases = (tuple(f"{name}.{kind}" for name in theirs) for kind in ("weight", "bias"))
    inner = d_ff if ".feed_forward." in f".{own}." else d_model
    match side:
        case "both":
            yield Place(f"{own}.weight", weights, (d_model,), (0,))
            yield Place(f"{own}.bias", biases, (d_model,), (0,))
        case "in":
            rows = inner * len(theirs)
            yield Place(f"{own}.weight", weights, (rows, d_model), (1,))
            yield Place(f"{own}.bias", biases, (rows,), ())
        case _:
            yield Place(f"{own}.weight", weights, (d_model, inner), (0,))
            yield Place(f"{own}.bias", biases, (d_model,), (0,))
