"""From settings to a network: the one place that sees both."""

from typing import TypeVar

from torch import nn

from regard.attention.linear import Linear
from regard.attention.positions import (
    LearnedPositions,
    NoPositions,
    RotaryPositions,
    SinusoidalPositions,
)
from regard.config import ModelConfig
from regard.errors import ConfigError
from regard.model.decoder import Decoder, DecoderLayer
from regard.model.encoder import Encoder, EncoderLayer
from regard.model.layers import Embedding, Positions, final_norm
from regard.model.recurrent import Recurrent
from regard.model.transformer import Transformer

Layer = TypeVar("Layer", EncoderLayer, DecoderLayer)


def build_model(config: ModelConfig, n_src_words: int, n_tgt_words: int) -> Transformer | Recurrent:
    """The network these settings describe, freshly initialised."""
    source, target, output = _doors(config, n_src_words, n_tgt_words)
    if config.kind == "recurrent":
        return Recurrent(
            config.d_model,
            config.encoder[0],
            config.decoder[0],
            source,
            target,
            output,
            dropout=config.dropout,
        )
    return Transformer(
        Encoder(
            [_encoder_layer(config) for _ in range(config.encoder[0])],
            final_norm(config.norm, config.d_model),
        ),
        Decoder(
            [_decoder_layer(config) for _ in range(config.decoder[0])],
            final_norm(config.norm, config.d_model),
        ),
        source,
        target,
        output,
    )


def _encoder_layer(config: ModelConfig) -> EncoderLayer:
    _, n_heads, d_ff = config.encoder
    return _with_xavier(
        EncoderLayer(
            config.d_model,
            n_heads,
            d_ff,
            dropout=config.dropout,
            attention_dropout=config.attention_dropout,
            activation_dropout=config.activation_dropout,
            norm=config.norm,
            activation=config.activation,
            score=config.score,
            rotary=_rotary(config, n_heads),
        )
    )


def _decoder_layer(config: ModelConfig) -> DecoderLayer:
    _, n_heads, d_ff = config.decoder
    return _with_xavier(
        DecoderLayer(
            config.d_model,
            n_heads,
            d_ff,
            dropout=config.dropout,
            attention_dropout=config.attention_dropout,
            activation_dropout=config.activation_dropout,
            norm=config.norm,
            activation=config.activation,
            score=config.score,
            rotary=_rotary(config, n_heads),
        )
    )


def _doors(
    config: ModelConfig, n_src_words: int, n_tgt_words: int
) -> tuple[Embedding, Embedding, nn.Linear]:
    """Both embeddings and the output, sharing what the settings say they share."""
    if config.share == "all" and n_src_words != n_tgt_words:
        raise ConfigError(
            'model.share = "all" needs one vocabulary, but the source has {source} words and the '
            'target {target}; train a joint one, or set model.share = "target"',
            source=n_src_words,
            target=n_tgt_words,
        )
    source, target = (
        Embedding(
            n_words,
            config.d_model,
            _positions(config),
            dropout=config.dropout,
            scaled=config.scale_embeddings,
        )
        for n_words in (n_src_words, n_tgt_words)
    )
    output = Linear(config.d_model, n_tgt_words, bias=config.output_bias)
    nn.init.normal_(output.weight, std=config.d_model**-0.5)
    if config.share == "all":
        source.weight = target.weight
    if config.share != "none":
        output.weight = target.weight
    return source, target, output


def _positions(config: ModelConfig) -> Positions:
    if config.kind == "recurrent":
        return NoPositions()
    match config.positions:
        case "sinusoidal":
            return SinusoidalPositions(config.d_model, config.max_len)
        case "learned":
            return LearnedPositions(config.d_model, config.max_len)
        case "rotary" | "none":
            return NoPositions()


def _rotary(config: ModelConfig, n_heads: int) -> RotaryPositions | None:
    if config.positions != "rotary":
        return None
    return RotaryPositions(config.d_model // n_heads, config.max_len)


def _with_xavier(layer: Layer) -> Layer:
    """The paper's initialisation: matrices by Xavier, biases zero."""
    for module in layer.modules():
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
            nn.init.zeros_(module.bias)
    return layer
