"""Bahdanau's formulas, place by place, against the network."""

import torch

from regard.attention import Padded
from regard.config import ModelConfig
from regard.model import build_model


def test_the_decoder_follows_bahdanaus_formulas():
    config = ModelConfig(kind="recurrent", d_model=8, n_layers=1, dropout=0.0)
    model = build_model(config, 12, 12).eval()
    src_ids, tgt_ids = torch.randint(0, 12, (1, 4)), torch.randint(0, 12, (1, 3))

    states = model.encode(src_ids).output[0]
    table = model.target.weight * 8**0.5
    hidden = torch.tanh(model.first(states[0]))
    logits, weights = [], []
    for token in tgt_ids[0]:
        scores = torch.stack(
            [
                model.attention.v
                @ torch.tanh(model.attention.query.weight @ hidden + model.attention.key.weight @ h)
                for h in states
            ]
        )
        alpha = scores.softmax(-1)
        context = alpha @ states
        hidden = gru_cell(model.decoder, torch.cat([table[token], context]), hidden)
        read = torch.tanh(model.readout(torch.cat([hidden, context, table[token]])))
        logits.append(model.output(read))
        weights.append(alpha)

    explained = model.explain(src_ids, tgt_ids)
    torch.testing.assert_close(explained.logits[0], torch.stack(logits))
    torch.testing.assert_close(explained.cross[0, 0, 0], torch.stack(weights))


def gru_cell(gru, x, h):
    """The gates of a GRU, as torch's documentation writes them."""
    x_r, x_z, x_n = (gru.weight_ih_l0 @ x + gru.bias_ih_l0).chunk(3)
    h_r, h_z, h_n = (gru.weight_hh_l0 @ h + gru.bias_hh_l0).chunk(3)
    reset, update = (x_r + h_r).sigmoid(), (x_z + h_z).sigmoid()
    return (1 - update) * (x_n + reset * h_n).tanh() + update * h


def test_the_encoder_reads_from_both_ends():
    model = build_model(ModelConfig(kind="recurrent", d_model=8, n_layers=1), 12, 12).eval()
    ids = torch.randint(1, 12, (1, 5))
    before = model.encode(ids).output[0]
    ids[0, 4] = 0
    after = model.encode(ids).output[0]
    torch.testing.assert_close(after[0, :4], before[0, :4])
    assert not torch.allclose(after[0, 4:], before[0, 4:])


def test_the_first_state_knows_the_whole_sentence():
    model = build_model(ModelConfig(kind="recurrent", d_model=8, n_layers=1), 12, 12).eval()
    ids = torch.randint(1, 12, (1, 5))
    before = model.start(model.encode(ids)).hidden
    ids[0, 4] = 0
    assert not torch.allclose(model.start(model.encode(ids)).hidden, before)


def test_an_empty_sentence_is_read_without_harm():
    model = build_model(ModelConfig(kind="recurrent", d_model=8, n_layers=2), 12, 12).eval()
    ids, lens = torch.randint(0, 12, (2, 3)), Padded(torch.tensor([0, 3]))
    explained = model.explain(ids, ids, lens)
    assert explained.logits.isfinite().all()
    assert explained.cross[0, 0].abs().max() == 0.0


def test_dropout_acts_on_what_is_read_and_on_what_is_written():
    config = ModelConfig(kind="recurrent", d_model=64, n_layers=(1, 2), dropout=0.5)
    model = build_model(config, 12, 12)
    assert model.decoder.dropout == 0.5
    assert model.encoder.dropout == 0.0
    ids = torch.randint(0, 12, (4, 6))
    for layout in (None, Padded(torch.tensor([6, 6, 6, 6]))):
        memory = model.encode(ids, layout)
        assert 0.4 < (memory.output == 0).float().mean() < 0.6
        assert 0.4 < (model.decode(ids, memory) == 0).float().mean() < 0.6
