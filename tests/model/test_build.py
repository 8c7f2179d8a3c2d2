import re

import pytest
import torch

from regard.attention.positions import NoPositions
from regard.config import ModelConfig
from regard.errors import ConfigError
from regard.model import Recurrent, Transformer, build_model

SMALL = {"d_model": 16, "n_heads": 4, "n_layers": 2, "d_ff": 32}


def count(model):
    return sum(p.numel() for p in model.parameters())


def test_the_papers_base_model_has_its_size():
    """Paper, table 3: 65 million parameters; counted here from its formula for 37,000 words."""
    with torch.device("meta"):
        model = build_model(ModelConfig(), 37000, 37000)
    attention, feed_forward, norm = 4 * (512 * 512 + 512), 2 * 512 * 2048 + 2048 + 512, 2 * 512
    encoder = 6 * (attention + feed_forward + 2 * norm)
    decoder = 6 * (2 * attention + feed_forward + 3 * norm)
    assert count(model) == 37000 * 512 + encoder + decoder
    assert 60e6 < count(model) < 66e6


def test_embeddings_and_output_share_what_the_settings_say():
    shared = build_model(ModelConfig(**SMALL), 20, 20)
    assert shared.source.weight is shared.target.weight is shared.output.weight
    target = build_model(ModelConfig(**SMALL, share="target"), 20, 30)
    assert target.output.weight is target.target.weight
    assert target.source.weight.shape == (20, 16)
    none = build_model(ModelConfig(**SMALL, share="none"), 20, 20)
    assert len({id(m.weight) for m in (none.source, none.target, none.output)}) == 3


def test_one_matrix_cannot_serve_two_vocabularies():
    sentence = (
        'model.share = "all" needs one vocabulary, but the source has 20 words and the target 30; '
        'train a joint one, or set model.share = "target"'
    )
    with pytest.raises(ConfigError, match=f"^{re.escape(sentence)}$"):
        build_model(ModelConfig(**SMALL), 20, 30)


def test_each_side_has_its_own_depth_heads_and_feed_forward():
    model = build_model(
        ModelConfig(d_model=16, n_layers=(2, 3), n_heads=(4, 2), d_ff=(32, 8)), 20, 20
    )
    assert (len(model.encoder.layers), len(model.decoder.layers)) == (2, 3)
    encoder, decoder = model.encoder.layers[0], model.decoder.layers[0]
    assert (encoder.attention.heads.n_heads, decoder.attention.heads.n_heads) == (4, 2)
    assert decoder.cross_attention.heads.n_heads == 2
    assert encoder.feed_forward.inner.out_features == 32
    assert decoder.feed_forward.inner.out_features == 8


def test_settings_reach_every_layer():
    model = build_model(
        ModelConfig(
            **SMALL,
            dropout=0.11,
            attention_dropout=0.22,
            activation_dropout=0.33,
            output_bias=True,
            score="gaussian",
            scale_embeddings=False,
        ),
        20,
        20,
    )
    for layer in (*model.encoder.layers, *model.decoder.layers):
        assert layer.attention.heads.dropout == 0.22
        assert layer.feed_forward.dropout.p == 0.33
        assert layer.attention_residual.dropout.p == layer.feed_forward_residual.dropout.p == 0.11
        assert layer.attention.heads.score.w.shape == (4,)
    for layer in model.decoder.layers:
        assert layer.cross_attention.heads.dropout == 0.22
        assert layer.cross_residual.dropout.p == 0.11
        assert layer.cross_attention.heads.score.w.shape == (4,)
    assert model.output.bias is not None
    assert model.source.dropout.p == model.target.dropout.p == 0.11
    assert model.source.scale == 1.0


def test_the_kind_chooses_the_network():
    assert isinstance(build_model(ModelConfig(**SMALL), 20, 20), Transformer)
    recurrent = build_model(
        ModelConfig(d_model=16, n_layers=(2, 3), kind="recurrent", dropout=0.2), 20, 20
    )
    assert isinstance(recurrent, Recurrent)
    assert (recurrent.encoder.num_layers, recurrent.decoder.num_layers) == (2, 3)
    assert recurrent.encoder.dropout == recurrent.decoder.dropout == 0.2
    assert recurrent.dropout.p == 0.2


def test_positions_can_be_left_out():
    model = build_model(ModelConfig(**SMALL, positions="none"), 20, 20).eval()
    assert isinstance(model.source.positions, NoPositions)
    assert model.encoder.layers[0].attention.rotary is None
    ids = torch.tensor([[1, 2, 3]])
    torch.testing.assert_close(
        model.encode(ids.flip(1)).output.flip(1), model.encode(ids).output, rtol=1e-4, atol=1e-5
    )


def test_layers_start_by_xavier_with_zero_biases():
    model = build_model(ModelConfig(**{**SMALL, "d_model": 64}), 20, 20)
    inner = model.encoder.layers[0].feed_forward.inner
    assert inner.weight.abs().max().item() <= (6 / (64 + 32)) ** 0.5
    assert inner.weight.std().item() == pytest.approx((2 / (64 + 32)) ** 0.5, rel=0.1)
    assert inner.bias.abs().max() == 0.0
    assert model.decoder.layers[1].cross_attention.key_value.bias.abs().max() == 0.0


def test_logits_of_a_fresh_model_are_of_unit_size():
    for share in ("all", "none"):
        model = build_model(ModelConfig(**{**SMALL, "d_model": 64}, share=share), 100, 100).eval()
        ids = torch.randint(0, 100, (4, 10))
        assert model(ids, ids).std().item() == pytest.approx(1, rel=0.25)
