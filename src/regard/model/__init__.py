"""The networks made of attention, all with `encode`, `start`, `step`, `forward` and `explain`."""

from regard.model.build import build_model
from regard.model.decoder import Decoder, DecoderLayer
from regard.model.encoder import Encoder, EncoderLayer
from regard.model.layers import Embedding, FeedForward
from regard.model.protocol import DecoderState, Explained, Memory, Translating
from regard.model.recurrent import Recurrent
from regard.model.transformer import Transformer

__all__ = [
    "Decoder",
    "DecoderLayer",
    "DecoderState",
    "Embedding",
    "Encoder",
    "EncoderLayer",
    "Explained",
    "FeedForward",
    "Memory",
    "Recurrent",
    "Transformer",
    "Translating",
    "build_model",
]
