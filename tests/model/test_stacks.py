"""Encoder and decoder layers and their stacks, where torch has nothing to compare."""

import pytest
import torch
from torch import nn

from regard.attention import KVCache
from regard.model import Decoder, DecoderLayer, Encoder, EncoderLayer


def test_weights_come_only_when_asked_for():
    x = torch.randn(1, 3, 8)
    encoder = Encoder([EncoderLayer(8, 2, 16)], nn.Identity())
    decoder = Decoder([DecoderLayer(8, 2, 16)], nn.Identity())
    assert encoder(x).weights == ()
    assert encoder.layers[0](x)[1] is None
    assert decoder(x, x).weights == decoder(x, x).cross_weights == ()
    _, attended, crossed = decoder.layers[0](x, x)
    assert attended.weights is None
    assert crossed.weights is None
    decoded = decoder(x, x, wants_weights=True)
    assert len(encoder(x, wants_weights=True).weights) == 1
    assert len(decoded.weights) == len(decoded.cross_weights) == 1


def test_dropping_every_sub_layer_of_a_pre_norm_stack_leaves_its_input():
    x = torch.randn(4, 50, 8)
    for layer, inputs in (
        (EncoderLayer(8, 2, 16, dropout=0.999, norm="pre"), (x,)),
        (DecoderLayer(8, 2, 16, dropout=0.999, norm="pre"), (x, x)),
    ):
        assert (layer(*inputs)[0] == x).float().mean() > 0.9


def pre_norm(x, residual, sub_layer):
    return x + sub_layer(residual.norm(x))


def post_norm(x, residual, sub_layer):
    return residual.norm(x + sub_layer(x))


@torch.no_grad()
@pytest.mark.parametrize(("norm", "around"), [("pre", pre_norm), ("post", post_norm)])
def test_a_layer_is_its_sub_layers_one_after_the_other_each_in_its_residual(norm, around):
    x, memory = torch.randn(2, 3, 5, 8)
    encoder = EncoderLayer(8, 2, 16, norm=norm).eval()
    decoder = DecoderLayer(8, 2, 16, norm=norm).eval()
    for weight in (*encoder.parameters(), *decoder.parameters()):
        nn.init.normal_(weight)
    expected = around(x, encoder.attention_residual, lambda z: encoder.attention(z).output)
    expected = around(expected, encoder.feed_forward_residual, encoder.feed_forward)
    assert torch.equal(encoder(x)[0], expected)
    remembered = decoder.cross_attention.remember(memory)
    expected = around(x, decoder.attention_residual, lambda z: decoder.attention(z).output)
    expected = around(
        expected,
        decoder.cross_residual,
        lambda z: decoder.cross_attention.recall(z, remembered).output,
    )
    expected = around(expected, decoder.feed_forward_residual, decoder.feed_forward)
    assert torch.equal(decoder(x, memory)[0], expected)


def test_every_layer_needs_its_cache():
    decoder = Decoder([DecoderLayer(8, 2, 16) for _ in range(2)], nn.Identity())
    x = torch.randn(1, 1, 8)
    caches = [KVCache.empty(torch.empty(1, 2, 0, 4))]
    with pytest.raises(ValueError, match="zip"):
        decoder.step(x, caches, decoder.remember(x), None)
