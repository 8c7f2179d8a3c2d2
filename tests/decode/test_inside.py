"""One head, from its queries and keys to its weights, computed again by hand."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch

from regard.bundle import open_bundle
from regard.decode.engines.torch import torch_engine
from regard.decode.inside import head_of
from regard.errors import ConfigError

TATOEBA = Path(__file__).parents[1] / "models" / "tatoeba-zh-en"
SRC, TGT = (30, 41, 52, 3), (2, 60, 71)


@pytest.fixture(scope="module")
def engine():
    return torch_engine([open_bundle(TATOEBA)], torch.device("cpu"))


@pytest.mark.parametrize("kind", ["cross", "encoder", "decoder"])
@pytest.mark.parametrize(("layer", "head"), [(0, 0), (2, 3)])
def test_a_weight_can_be_computed_again_from_queries_and_keys(engine, kind, layer, head):
    seen = head_of(engine, SRC, TGT, kind, layer, head)
    n_queries, n_keys = seen.weights.shape
    for row in range(n_queries):
        visible = row + 1 if seen.is_causal else n_keys
        scores = [
            math.fsum(float(a) * float(b) for a, b in zip(seen.query[row], key, strict=True))
            * seen.scale
            for key in seen.key[:visible]
        ]
        parts = [math.exp(score - max(scores)) for score in scores]
        again = [part / sum(parts) for part in parts] + [0.0] * (n_keys - visible)
        np.testing.assert_allclose(seen.weights[row], again, atol=1e-6)


def test_a_head_s_weights_are_those_of_the_whole_picture(engine):
    for kind, weights in zip(
        ("cross", "encoder", "decoder"), engine.explain(SRC, TGT), strict=True
    ):
        seen = head_of(engine, SRC, TGT, kind, 1, 2)
        np.testing.assert_allclose(seen.weights, weights[1, 2], atol=1e-6)
        assert seen.value.shape == seen.key.shape


def test_what_is_not_there_is_named(engine):
    with pytest.raises(ConfigError) as error:
        head_of(engine, SRC, TGT, "cross", 3, 0)
    assert str(error.value) == "there is no layer 3; they are 0 to 2"
    with pytest.raises(ConfigError) as error:
        head_of(engine, SRC, TGT, "cross", 0, 4)
    assert str(error.value) == "there is no head 4; they are 0 to 3"


def test_a_network_without_heads_says_so(engine):
    class Other:
        network = None

    with pytest.raises(ConfigError) as error:
        head_of(Other(), SRC, TGT, "cross", 0, 0)
    assert str(error.value) == (
        "only a Transformer has heads with queries, keys and values to show"
    )
