"""The attention library: the mechanisms of the notes, usable by themselves."""

from regard.attention.additive import AdditiveAttention
from regard.attention.cache import Cache, FixedKVCache, KVCache
from regard.attention.functional import (
    Attended,
    additive_scores,
    attend,
    attend_hard,
    dot_scores,
    gaussian_scores,
    masked_softmax,
    scaled_dot_scores,
)
from regard.attention.fused import (
    additive_attention,
    dot_attention,
    gaussian_attention,
    scaled_dot_attention,
)
from regard.attention.gaussian import GaussianAttention
from regard.attention.layout import Layout, Packed, Padded
from regard.attention.masks import (
    Blocks,
    Causal,
    Mask,
    causal_mask,
    causal_padding_mask,
    dense,
    padding_mask,
    valid_lens_mask,
)
from regard.attention.multihead import CrossAttention, SelfAttention
from regard.attention.positions import (
    LearnedPositions,
    RotaryPositions,
    SinusoidalPositions,
    rotation,
    sinusoidal_positions,
)

__all__ = [
    "AdditiveAttention",
    "Attended",
    "Blocks",
    "Cache",
    "Causal",
    "CrossAttention",
    "FixedKVCache",
    "GaussianAttention",
    "KVCache",
    "Layout",
    "LearnedPositions",
    "Mask",
    "Packed",
    "Padded",
    "RotaryPositions",
    "SelfAttention",
    "SinusoidalPositions",
    "additive_attention",
    "additive_scores",
    "attend",
    "attend_hard",
    "causal_mask",
    "causal_padding_mask",
    "dense",
    "dot_attention",
    "dot_scores",
    "gaussian_attention",
    "gaussian_scores",
    "masked_softmax",
    "padding_mask",
    "rotation",
    "scaled_dot_attention",
    "scaled_dot_scores",
    "sinusoidal_positions",
    "valid_lens_mask",
]
