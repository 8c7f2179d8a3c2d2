import itertools

import numpy as np
import pytest
from transformers import MarianConfig, MarianMTModel

from regard.config import ModelConfig
from regard.errors import ModelError
from regard.interchange.names import (
    NO_WEIGHTS,
    gathered,
    permuted,
    places,
    scattered,
    without_copies,
)
from regard.interchange.taken import Weights
from regard.model.build import build_model
from regard.model.weights import weights_of

SIZES = {"d_model": 8, "n_layers": (1, 2), "n_heads": (2, 4), "d_ff": (12, 10), "max_len": 9}
CHOICES = [
    {"share": share, "norm": norm, "output_bias": bias}
    for share, norm, bias in itertools.product(
        ("all", "target", "none"), ("pre", "post"), (True, False)
    )
]


def sizes(choice):
    return (13, 13) if choice["share"] == "all" else (13, 11)


@pytest.mark.parametrize("foreign", ["marian", "fairseq"])
@pytest.mark.parametrize("choice", CHOICES, ids=str)
def test_the_table_has_every_weight_once_by_its_shape(choice, foreign):
    model = ModelConfig(**SIZES, **choice)
    table = places(model, *sizes(choice), foreign)
    own = weights_of(build_model(model, *sizes(choice)))
    assert {place.own: place.shape for place in table} == {
        name: tuple(weight.shape) for name, weight in own.items()
    }
    theirs = [name for place in table for name in place.theirs]
    assert len(theirs) == len(set(theirs))


@pytest.mark.parametrize("share", ["all", "target", "none"])
def test_the_names_are_those_of_transformers(share):
    n_src, n_tgt = sizes({"share": share})
    config = MarianConfig(
        d_model=8, encoder_layers=1, decoder_layers=2, encoder_attention_heads=2,
        decoder_attention_heads=4, encoder_ffn_dim=12, decoder_ffn_dim=10,
        max_position_embeddings=9, vocab_size=n_src, decoder_vocab_size=n_tgt, pad_token_id=5,
        share_encoder_decoder_embeddings=share == "all", tie_word_embeddings=share != "none",
    )  # fmt: skip
    state = {name: tensor.numpy() for name, tensor in MarianMTModel(config).state_dict().items()}
    for name in NO_WEIGHTS["marian"]:
        del state[name]
    model = ModelConfig(**SIZES, share=share, output_bias=True)
    left = without_copies(model, state, "marian")
    left["final_logits_bias"] = left["final_logits_bias"][0]
    weights = Weights(left)
    found = gathered(places(model, n_src, n_tgt, "marian"), weights)
    weights.check()  # none is missing, left over or of another shape
    own = weights_of(build_model(model, n_src, n_tgt))
    assert {name: weight.shape for name, weight in found.items()} == {
        name: tuple(weight.shape) for name, weight in own.items()
    }


def test_one_matrix_for_both_sides_that_the_output_does_not_share_is_read_twice():
    model = ModelConfig(**SIZES, share="none")
    shared, own = np.zeros((13, 8)), np.ones((13, 8))
    names = [f"model.{side}.embed_tokens.weight" for side in ("encoder", "decoder")]
    weights = {"model.shared.weight": shared, "lm_head.weight": own, names[1]: own}
    found = without_copies(model, weights, "marian")
    assert found.keys() == {*names, "lm_head.weight"}
    assert found[names[0]] is shared
    assert found[names[1]] is own  # a matrix of its own comes first, as in transformers


def some_weights(model, n_src, n_tgt):
    draw = np.random.default_rng(0)
    return {
        place.own: draw.normal(size=place.shape).astype(np.float32)
        for place in places(model, n_src, n_tgt, "marian")
    }


def test_there_and_back_every_bit_is_the_same():
    model = ModelConfig(**SIZES, share="none", output_bias=True)
    table = places(model, 13, 11, "marian")
    own = some_weights(model, 13, 11)
    theirs = Weights(scattered(table, own))
    again = gathered(table, theirs)
    theirs.check()
    assert own.keys() == again.keys()
    assert all(np.array_equal(own[name], again[name]) for name in own)


def test_coordinates_in_another_order_and_back_are_the_same():
    model = ModelConfig(**SIZES)
    table, own = places(model, 13, 13, "marian"), some_weights(model, 13, 13)
    order = np.array([3, 1, 7, 0, 6, 2, 5, 4])
    other = permuted(table, own, order)
    again = permuted(table, other, np.argsort(order))
    assert all(np.array_equal(own[name], again[name]) for name in own)
    changed = [name for name in own if not np.array_equal(own[name], other[name])]
    # Whatever lies between the heads or inside the feed-forward layer stays as it is.
    still = {name for name in own if name not in changed}
    assert still == {
        name for name in own
        if name.endswith((".qkv.bias", ".query.bias", ".key_value.bias", ".inner.bias"))
    }  # fmt: skip


def test_what_is_missing_unexpected_or_misshapen_is_said_at_once():
    weights = Weights({"a": np.zeros(3), "b": np.zeros(2), "c": np.zeros(1)})
    weights.take("a", 4)
    weights.take("d", 2)
    assert weights.take("b", 2).dtype == np.float32
    with pytest.raises(ModelError) as caught:
        weights.check()
    assert str(caught.value) == (
        "the weights do not fit the model: a has shape (3,) instead of (4,), c is unexpected, "
        "d is missing"
    )
