import math
import re

import pytest
import torch

from regard.attention import SinusoidalPositions
from regard.attention.positions import NoPositions
from regard.errors import ConfigError, DataError
from regard.model import Embedding, FeedForward
from regard.model.layers import Dropout, PostNorm, PreNorm, final_norm, make_residual, pass_on


@pytest.mark.parametrize(
    ("name", "function"),
    [("relu", lambda x: max(x, 0.0)), ("swish", lambda x: x / (1 + math.exp(-x)))],
)
def test_feed_forward_treats_each_token_alike_and_alone(name, function):
    network = FeedForward(3, 5, activation=name)
    x = torch.randn(2, 4, 3)
    hidden = (x @ network.inner.weight.T + network.inner.bias).tolist()
    hidden = torch.tensor([[[function(h) for h in t] for t in row] for row in hidden])
    expected = hidden @ network.outer.weight.T + network.outer.bias
    torch.testing.assert_close(network(x), expected)
    torch.testing.assert_close(network(x[1, 2]), network(x)[1, 2])


def test_dropout_drops_as_many_as_coins_would():
    n, p, rounds = 20, 0.1, 10_000
    torch.manual_seed(1)
    drop = Dropout(p)
    dropped = torch.stack([drop(torch.ones(n)) == 0.0 for _ in range(rounds)])
    counts = torch.bincount(dropped.sum(-1), minlength=n + 1)
    for k in range(n + 1):  # the binomial distribution, beyond what is drawn at once too
        share = math.comb(n, k) * p**k * (1 - p) ** (n - k)
        sigma = math.sqrt(rounds * share * (1 - share))
        assert abs(counts[k].item() - rounds * share) < 5 * sigma + 1
    sigma = math.sqrt(p * (1 - p) / rounds)  # and no place more often than another
    assert (dropped.double().mean(0) - p).abs().max().item() < 5 * sigma


@pytest.mark.parametrize("p", [0.1, 0.3, 0.5])
def test_dropout_decides_for_each_number_by_itself(p):
    torch.manual_seed(1)
    dropped = (Dropout(p)(torch.ones(1000, 1000)) == 0.0).flatten()
    n = dropped.numel()
    assert abs(dropped.double().mean().item() - p) < 5 * math.sqrt(p * (1 - p) / n)
    for distance in (1, 2, 1000):
        both = (dropped[distance:] & dropped[:-distance]).double().mean().item()
        assert abs(both - p * p) < 6 * math.sqrt(p * p / n)


@pytest.mark.parametrize("p", [0.1, 0.5])
def test_what_dropout_keeps_is_scaled_and_so_is_its_gradient(p):
    x = torch.rand(50, 8, dtype=torch.float64) + 1.0
    x.requires_grad_()
    y = Dropout(p)(x)
    kept = y != 0.0
    torch.testing.assert_close(y[kept], x[kept] / (1 - p), rtol=1e-6, atol=0)
    y.sum().backward()
    torch.testing.assert_close(x.grad, kept / (1 - p), rtol=1e-6, atol=0, check_dtype=False)


def test_dropout_repeats_with_its_seed_and_only_then():
    drop, x = Dropout(0.1), torch.randn(300, 8)
    draws = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        draws.append((drop(x), drop(x)))
    assert torch.equal(draws[0][0], draws[1][0])
    assert torch.equal(draws[0][1], draws[1][1])
    assert not torch.equal(draws[0][0], draws[0][1])
    assert not torch.equal(draws[0][0], draws[2][0])


def test_dropout_leaves_alone_what_is_not_trained_or_not_there():
    x = torch.randn(30, 8)
    assert Dropout(0.1).eval()(x) is x
    assert Dropout(0.0)(x) is x
    assert Dropout(0.1)(x[:0]).shape == (0, 8)


def test_feed_forward_drops_between_its_maps():
    network = FeedForward(3, 500, dropout=0.5)
    x = torch.randn(3)
    assert not torch.allclose(network(x), network(x))
    network.eval()
    torch.testing.assert_close(network(x), network(x))


@pytest.mark.parametrize("kind", [PreNorm, PostNorm])
def test_the_residual_drops_what_the_sub_layer_adds_and_never_x(kind):
    residual = kind(8, dropout=0.999)
    x = torch.randn(50, 8)
    expected = x if kind is PreNorm else residual.norm(x)
    left = residual.leave(x, torch.randn(50, 8))
    assert ((left - expected).abs() < 1e-5).float().mean() > 0.9


def test_pre_norm_norms_what_goes_in_and_post_norm_what_comes_out():
    x, y = 5 * torch.randn(4, 8) + 3, torch.randn(4, 8)
    pre, post = make_residual("pre", 8, 0.0), make_residual("post", 8, 0.0)
    torch.testing.assert_close(pre.enter(x).mean(-1), torch.zeros(4), rtol=0, atol=1e-5)
    torch.testing.assert_close(pre.leave(x, y), x + y)
    torch.testing.assert_close(post.enter(x), x)
    torch.testing.assert_close(post.leave(x, y).mean(-1), torch.zeros(4), rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", ["pre", "post"])
def test_passing_on_is_leaving_one_residual_and_entering_the_next(name):
    first, second = (make_residual(name, 8, 0.5) for _ in range(2))
    for weight in (*first.parameters(), *second.parameters()):
        torch.nn.init.normal_(weight)
    x, y = torch.randn(2, 4, 8)
    torch.manual_seed(1)
    left, given = pass_on(x, y, first, second)
    torch.manual_seed(1)
    expected = first.leave(x, y)
    assert torch.equal(left, expected)
    assert torch.equal(given, second.norm(expected) if name == "pre" else expected)


def test_only_a_stack_of_pre_norm_layers_needs_a_last_norm():
    x = 5 * torch.randn(4, 8) + 3
    torch.testing.assert_close(final_norm("post", 8)(x), x)
    assert final_norm("pre", 8)(x).std().item() == pytest.approx(1, abs=0.1)


def test_embedding_is_the_words_row_times_sqrt_d_and_its_position():
    embedding = Embedding(10, 16, SinusoidalPositions(16, 20))
    ids, places = torch.tensor([[3, 7]]), torch.tensor([4, 5])
    expected = 4 * embedding.weight[ids] + embedding.positions.table[4:6]
    torch.testing.assert_close(embedding(ids, places), expected)
    plain = Embedding(10, 16, NoPositions(), scaled=False)
    torch.testing.assert_close(plain(ids, places), plain.weight[ids])


def test_scaled_embeddings_start_with_unit_variance():
    embedding = Embedding(1000, 64, NoPositions())
    vectors = embedding(torch.arange(1000)[None], torch.arange(1000))
    assert vectors.std().item() == pytest.approx(1, rel=0.02)


def test_embeddings_are_dropped_in_training_only():
    embedding = Embedding(10, 64, NoPositions(), dropout=0.5)
    ids, places = torch.tensor([[3]]), torch.tensor([0])
    assert (embedding(ids, places) == 0).float().mean() > 0.2
    embedding.eval()
    assert (embedding(ids, places) == 0).float().mean() == 0


def test_ids_outside_the_vocabulary_are_named():
    embedding = Embedding(10, 4, NoPositions())
    embedding.check(torch.tensor([[0, 9]]), "source")
    embedding.check(torch.empty(1, 0, dtype=torch.int64), "source")
    for ids, named in (([[3, 10]], 10), ([[-1, 3]], -1)):
        sentence = f"source id {named} is outside the vocabulary, whose 10 ids are 0 to 9"
        with pytest.raises(DataError, match=f"^{re.escape(sentence)}$"):
            embedding.check(torch.tensor(ids), "source")


@pytest.mark.plain
def test_unknown_choices_are_named():
    with pytest.raises(ConfigError, match=r'^norm = "sandwich" is not one of pre, post$'):
        make_residual("sandwich", 8, 0.0)
    with pytest.raises(ConfigError, match=r'^activation = "gelu" is not one of relu, swish$'):
        FeedForward(4, 8, activation="gelu")
