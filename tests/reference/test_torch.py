"""The same weights in torch's own modules and in ours: the same values and the same gradients."""

import pytest
import torch
from torch import nn

from regard.attention import Causal, CrossAttention, SelfAttention, causal_mask, padding_mask
from regard.config import ModelConfig
from regard.model import Decoder, DecoderLayer, Encoder, EncoderLayer, build_model
from regard.model.layers import final_norm

D, HEADS, FF = 16, 4, 24
LENS = torch.tensor([3, 6])


def copy_self(ours, theirs):
    ours.qkv.weight.data.copy_(theirs.in_proj_weight)
    ours.qkv.bias.data.copy_(theirs.in_proj_bias)
    ours.out.load_state_dict(theirs.out_proj.state_dict())


def copy_cross(ours, theirs):
    ours.query.weight.data.copy_(theirs.in_proj_weight[:D])
    ours.query.bias.data.copy_(theirs.in_proj_bias[:D])
    ours.key_value.weight.data.copy_(theirs.in_proj_weight[D:])
    ours.key_value.bias.data.copy_(theirs.in_proj_bias[D:])
    ours.out.load_state_dict(theirs.out_proj.state_dict())


def copy_encoder_layer(ours, theirs):
    copy_self(ours.attention, theirs.self_attn)
    ours.feed_forward.inner.load_state_dict(theirs.linear1.state_dict())
    ours.feed_forward.outer.load_state_dict(theirs.linear2.state_dict())
    ours.attention_residual.norm.load_state_dict(theirs.norm1.state_dict())
    ours.feed_forward_residual.norm.load_state_dict(theirs.norm2.state_dict())


def copy_decoder_layer(ours, theirs):
    copy_self(ours.attention, theirs.self_attn)
    copy_cross(ours.cross_attention, theirs.multihead_attn)
    ours.feed_forward.inner.load_state_dict(theirs.linear1.state_dict())
    ours.feed_forward.outer.load_state_dict(theirs.linear2.state_dict())
    ours.attention_residual.norm.load_state_dict(theirs.norm1.state_dict())
    ours.cross_residual.norm.load_state_dict(theirs.norm2.state_dict())
    ours.feed_forward_residual.norm.load_state_dict(theirs.norm3.state_dict())


def randomized(module):
    """Biases and norms start as zeros and ones, where a forgotten one would not show."""
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.4)
    return module.double()


def assert_same_gradients(ours, theirs, inputs, weight):
    mine = torch.autograd.grad((ours * weight).sum(), inputs)
    right = torch.autograd.grad((theirs * weight).sum(), inputs)
    torch.testing.assert_close(mine, right)


def source_and_target():
    src = torch.randn(2, 6, D, dtype=torch.float64, requires_grad=True)
    tgt = torch.randn(2, 5, D, dtype=torch.float64, requires_grad=True)
    return src, tgt, torch.randn(2, 5, D, dtype=torch.float64)


def real(x):
    """What is not padding."""
    return torch.cat([row[:n] for row, n in zip(x, LENS, strict=True)])


@pytest.mark.parametrize("is_causal", [False, True])
def test_self_attention_equals_torchs(is_causal):
    theirs = randomized(nn.MultiheadAttention(D, HEADS, batch_first=True))
    ours = SelfAttention(D, HEADS).double()
    copy_self(ours, theirs)
    x, _, _ = source_and_target()
    mask = causal_mask(6) if is_causal else padding_mask(LENS, 6)
    output, weights = theirs(
        x,
        x,
        x,
        attn_mask=~mask if is_causal else None,
        key_padding_mask=None if is_causal else ~mask[:, 0],
        average_attn_weights=False,
    )
    attended = ours(x, mask, wants_weights=True)
    torch.testing.assert_close(attended.output, output)
    torch.testing.assert_close(attended.weights, weights)
    assert_same_gradients(ours(x, mask).output, output, (x,), torch.randn_like(output))


def test_cross_attention_equals_torchs():
    theirs = randomized(nn.MultiheadAttention(D, HEADS, batch_first=True))
    ours = CrossAttention(D, HEADS).double()
    copy_cross(ours, theirs)
    src, tgt, weight = source_and_target()
    mask = padding_mask(LENS, 6)
    output, weights = theirs(
        tgt, src, src, key_padding_mask=~mask[:, 0], average_attn_weights=False
    )
    attended = ours(tgt, src, mask, wants_weights=True)
    torch.testing.assert_close(attended.output, output)
    torch.testing.assert_close(attended.weights, weights)
    assert_same_gradients(ours(tgt, src, mask).output, output, (tgt, src), weight)


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("activation", ["relu", "swish"])
def test_encoder_layer_equals_torchs(norm, activation):
    theirs = randomized(
        nn.TransformerEncoderLayer(
            D,
            HEADS,
            FF,
            dropout=0.0,
            activation="relu" if activation == "relu" else nn.functional.silu,
            batch_first=True,
            norm_first=norm == "pre",
        )
    )
    ours = EncoderLayer(D, HEADS, FF, dropout=0.0, norm=norm, activation=activation).double()
    copy_encoder_layer(ours, theirs)
    x, _, _ = source_and_target()
    mask = padding_mask(LENS, 6)
    output, weights = ours(x, mask)
    expected = theirs(x, src_key_padding_mask=~mask[:, 0])
    assert weights is None
    torch.testing.assert_close(real(output), real(expected))
    assert_same_gradients(real(output), real(expected), (x,), torch.randn(9, D).double())


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_decoder_layer_equals_torchs(norm):
    theirs = randomized(
        nn.TransformerDecoderLayer(
            D, HEADS, FF, dropout=0.0, batch_first=True, norm_first=norm == "pre"
        )
    )
    ours = DecoderLayer(D, HEADS, FF, dropout=0.0, norm=norm).double()
    copy_decoder_layer(ours, theirs)
    src, tgt, weight = source_and_target()
    mask = padding_mask(LENS, 6)
    output, _, _ = ours(tgt, src, Causal(), mask)
    expected = theirs(tgt, src, tgt_mask=~causal_mask(5), memory_key_padding_mask=~mask[:, 0])
    torch.testing.assert_close(output, expected)
    assert_same_gradients(output, expected, (tgt, src), weight)


def torch_transformer(norm):
    """torch closes post-norm stacks with one more norm than the paper; this one does not."""
    first = norm == "pre"
    encoder_layer = nn.TransformerEncoderLayer(
        D, HEADS, FF, dropout=0.0, batch_first=True, norm_first=first
    )
    decoder_layer = nn.TransformerDecoderLayer(
        D, HEADS, FF, dropout=0.0, batch_first=True, norm_first=first
    )
    closing = [nn.LayerNorm(D) if first else None for _ in range(2)]
    return randomized(
        nn.Transformer(
            D,
            HEADS,
            dropout=0.0,
            batch_first=True,
            custom_encoder=nn.TransformerEncoder(
                encoder_layer, 2, closing[0], enable_nested_tensor=False
            ),
            custom_decoder=nn.TransformerDecoder(decoder_layer, 3, closing[1]),
        )
    )


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_whole_stacks_equal_torchs_transformer(norm):
    theirs = torch_transformer(norm)
    encoder = Encoder(
        [EncoderLayer(D, HEADS, FF, dropout=0.0, norm=norm) for _ in range(2)], final_norm(norm, D)
    ).double()
    decoder = Decoder(
        [DecoderLayer(D, HEADS, FF, dropout=0.0, norm=norm) for _ in range(3)], final_norm(norm, D)
    ).double()
    copy_stacks(encoder, decoder, theirs)
    src, tgt, weight = source_and_target()
    mask = padding_mask(LENS, 6)
    output = decoder(tgt, encoder(src, mask).output, Causal(), mask).output
    expected = theirs(
        src,
        tgt,
        tgt_mask=~causal_mask(5),
        src_key_padding_mask=~mask[:, 0],
        memory_key_padding_mask=~mask[:, 0],
    )
    torch.testing.assert_close(output, expected)
    assert_same_gradients(output, expected, (src, tgt), weight)


def copy_stacks(encoder, decoder, theirs):
    for mine, other in zip(encoder.layers, theirs.encoder.layers, strict=True):
        copy_encoder_layer(mine, other)
    for mine, other in zip(decoder.layers, theirs.decoder.layers, strict=True):
        copy_decoder_layer(mine, other)
    if theirs.encoder.norm is not None:
        encoder.norm.load_state_dict(theirs.encoder.norm.state_dict())
        decoder.norm.load_state_dict(theirs.decoder.norm.state_dict())


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_a_model_from_settings_equals_torchs_with_embeddings_and_output(norm):
    """From ids to logits: shared scaled embedding, the paper's positions, and the same stacks."""
    config = ModelConfig(d_model=D, n_heads=HEADS, d_ff=FF, n_layers=(2, 3), norm=norm, dropout=0.0)
    ours = build_model(config, 20, 20).double()
    theirs = torch_transformer(norm)
    copy_stacks(ours.encoder, ours.decoder, theirs)
    src_ids, tgt_ids = torch.randint(0, 20, (2, 6)), torch.randint(0, 20, (2, 5))
    table = ours.source.weight
    place = torch.arange(6, dtype=torch.float64)[:, None]
    angle = place / 10000 ** (torch.arange(0, D, 2, dtype=torch.float64) / D)
    positions = torch.zeros(6, D, dtype=torch.float64)
    positions[:, 0::2], positions[:, 1::2] = angle.sin(), angle.cos()

    logits = ours(src_ids, tgt_ids)

    hidden = theirs(
        table[src_ids] * D**0.5 + positions,
        table[tgt_ids] * D**0.5 + positions[:5],
        tgt_mask=~causal_mask(5),
    )
    torch.testing.assert_close(logits, hidden @ table.T, rtol=1e-5, atol=1e-6)
