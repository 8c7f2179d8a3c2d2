"""What one head of one attention computed with: its queries, keys and values, and its weights.

    weights = softmax(query key^T * scale + mask),    each row by itself

For all kinds of scores but the scaled dot product the scale is 1, and the formula is another.
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from regard.attention.functional import dot_scale
from regard.attention.scores import ScaledDotScore
from regard.decode.engines.torch import TorchEngine
from regard.decode.search import Ids
from regard.errors import ConfigError
from regard.model.transformer import Transformer

Kind = Literal["cross", "encoder", "decoder"]
Numbers = NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class Head:
    """One head: rows of numbers for each token, and the weights that came of them."""

    query: Numbers
    key: Numbers
    value: Numbers
    weights: Numbers
    scale: float
    is_causal: bool


@torch.inference_mode()
def head_of(engine: TorchEngine, src: Ids, tgt: Ids, kind: Kind, layer: int, head: int) -> Head:
    """A head, while the network reads a source and writes a given translation.

    Layers and heads are counted from 0; the target is given as the network is, from its start on.
    """
    network = engine.network
    if not isinstance(network, Transformer):
        raise ConfigError("only a Transformer has heads with queries, keys and values to show")
    layers: Any = network.encoder.layers if kind == "encoder" else network.decoder.layers
    if not 0 <= layer < len(layers):
        raise ConfigError(
            "there is no layer {layer}; they are 0 to {last}", layer=layer, last=len(layers) - 1
        )
    attention = layers[layer].cross_attention if kind == "cross" else layers[layer].attention
    heads = attention.heads
    if not 0 <= head < heads.n_heads:
        raise ConfigError(
            "there is no head {head}; they are 0 to {last}", head=head, last=heads.n_heads - 1
        )
    seen: list[Any] = []
    hook = heads.register_forward_hook(lambda _, given, back: seen.append((*given[:3], back)))
    try:
        src_ids, tgt_ids = (torch.tensor([side], device=engine.device) for side in (src, tgt))
        network.explain(src_ids, tgt_ids)
    finally:
        hook.remove()
    query, key, value, attended = seen[0]
    scale = dot_scale(query.shape[-1]) if isinstance(heads.score, ScaledDotScore) else 1.0
    query, key, value, weights = (
        part[0, head].float().cpu().numpy() for part in (query, key, value, attended.weights)
    )
    return Head(query, key, value, weights, scale, kind == "decoder")
