import pytest
import torch

from regard.config import ModelConfig
from regard.errors import ModelError
from regard.model import build_model
from regard.model.weights import load_weights, weights_of

SMALL = {"d_model": 8, "n_heads": 2, "n_layers": 1, "d_ff": 8}


def network(seed):
    torch.manual_seed(seed)
    return build_model(ModelConfig(**SMALL), 12, 12).eval()


def test_weights_go_from_one_network_into_another():
    one, other, ids = network(0), network(1), torch.randint(0, 12, (2, 3))
    assert not torch.equal(one(ids, ids), other(ids, ids))
    load_weights(other, weights_of(one))
    assert torch.equal(one(ids, ids), other(ids, ids))


def test_a_shared_matrix_is_stored_once():
    matrices = [weight for weight in weights_of(network(0)).values() if weight.shape == (12, 8)]
    assert len(matrices) == 1


def test_all_that_does_not_fit_is_named_at_once_and_nothing_is_changed():
    model = network(0)
    before, weights = weights_of(network(0)), weights_of(model)
    del weights["encoder.layers.0.attention.out.bias"]
    weights["extra"] = torch.zeros(1)
    weights["decoder.layers.0.attention.out.bias"] = torch.zeros(9)
    with pytest.raises(ModelError) as caught:
        load_weights(model, weights)
    assert str(caught.value) == (
        "the weights do not fit the model: "
        "decoder.layers.0.attention.out.bias has shape (9,) instead of (8,), "
        "encoder.layers.0.attention.out.bias is missing, extra is unexpected"
    )
    assert all(torch.equal(weight, before[name]) for name, weight in weights_of(model).items())


def test_of_many_that_do_not_fit_three_are_named_and_the_others_counted():
    model = network(0)
    weights = weights_of(model) | {f"extra.{n}": torch.zeros(1) for n in range(10)}
    with pytest.raises(ModelError) as caught:
        load_weights(model, weights)
    assert str(caught.value) == (
        "the weights do not fit the model: extra.0 is unexpected, extra.1 is unexpected, "
        "extra.2 is unexpected, and 7 more"
    )
    assert caught.value.in_language("zh").endswith("，另有7处")
