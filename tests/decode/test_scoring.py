import math

import numpy as np
import pytest
import torch

from regard.config import ModelConfig
from regard.decode.coverage import coverage, rescored
from regard.decode.scoring import attentions, scored
from regard.decode.search import Hypothesis
from regard.model.build import build_model

CPU = torch.device("cpu")
IDS = {"pad": 0, "bos": 1, "device": CPU}
PAIRS = [((5, 6, 7, 2), (8, 9, 2)), ((5, 2), (9, 9, 9, 9, 2)), ((6, 6, 6, 6, 6, 2), (2,))]


def network(kind="transformer"):
    config = ModelConfig(kind=kind, d_model=16, n_layers=2, n_heads=2, d_ff=32, max_len=32)
    return build_model(config, 12, 12).eval()


@pytest.mark.parametrize("kind", ["transformer", "recurrent"])
def test_scores_in_a_batch_are_those_of_each_prefix_alone(kind):
    model = network(kind)
    for (source, target), found in zip(PAIRS, scored(model, PAIRS, **IDS), strict=True):
        for place, word in enumerate(target):
            logits = model(torch.tensor([source]), torch.tensor([[1, *target[:place]]]))
            expected = logits[0, -1].log_softmax(-1)[word].item()
            assert found.log_probs[place] == pytest.approx(expected, abs=1e-5)
        assert len(found.log_probs) == len(target)


@pytest.mark.parametrize("kind", ["transformer", "recurrent"])
def test_attention_in_a_batch_is_the_last_layer_s_mean_of_each_pair_alone(kind):
    model = network(kind)
    for (source, target), weights in zip(PAIRS, attentions(model, PAIRS, **IDS), strict=True):
        explained = model.explain(torch.tensor([source]), torch.tensor([[1, *target[:-1]]]))
        expected = explained.cross[-1, 0].mean(dim=0).detach().numpy()
        np.testing.assert_allclose(weights, expected, atol=1e-5)
        assert weights.shape == (len(target), len(source))
        np.testing.assert_allclose(weights.sum(axis=1), 1.0, atol=1e-5)


def test_a_translation_without_words_has_neither_scores_nor_attention():
    pairs = [((5, 2), ()), ((5, 2), (2,))]
    assert scored(network(), pairs, **IDS)[0].log_probs == ()
    assert attentions(network(), pairs, **IDS)[0].shape == (0, 2)


def test_coverage_is_0_where_all_of_the_source_is_looked_at_and_falls_with_what_is_not():
    whole = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.5, 1.0]], np.float32)
    half = np.array([[1.0, 0.0, 0.0], [0.0, 0.5, 0.5]], np.float32)
    assert coverage(whole) == 0.0
    assert coverage(half) == pytest.approx(2 * math.log(0.5))
    assert -200 < coverage(np.array([[1.0, 0.0, 0.0]])) < coverage(half)


def test_coverage_brings_the_translation_that_leaves_nothing_out_to_the_front():
    short, whole = Hypothesis((4,), -0.5, True), Hypothesis((4, 5), -0.6, True)
    weights = [np.array([[0.9, 0.1]]), np.array([[0.9, 0.1], [0.1, 0.9]])]
    assert rescored([short, whole], weights, 0.0) == [short, whole]
    first, second = rescored([short, whole], weights, 0.2)
    assert (first.ids, second.ids) == (whole.ids, short.ids)
    assert first.score == pytest.approx(-0.6)
    assert second.score == pytest.approx(-0.5 + 0.2 * (math.log(0.9) + math.log(0.1)))
    assert rescored([short, whole], weights, 0.2, (((4,),),))[0].ids == whole.ids
    assert rescored([whole, short], weights[::-1], 0.01, (((5,),),))[0].ids == whole.ids
