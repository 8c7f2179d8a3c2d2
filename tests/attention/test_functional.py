import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.attention import (
    additive_scores,
    attend,
    attend_hard,
    causal_mask,
    dot_scores,
    gaussian_scores,
    masked_softmax,
    scaled_dot_scores,
)

W, V = 0.7, [0.5, -1.0, 2.0, 0.25]

SCORES = {
    "dot": dot_scores,
    "scaled_dot": scaled_dot_scores,
    "gaussian": lambda q, k: gaussian_scores(q, k, W),
    "additive": lambda q, k: additive_scores(q, k, torch.tensor(V, dtype=q.dtype)),
}

# The formulas of the notes for one query and one key, in plain Python.
FORMULAS = {
    "dot": lambda q, k: sum(a * b for a, b in zip(q, k, strict=True)),
    "scaled_dot": lambda q, k: sum(a * b for a, b in zip(q, k, strict=True)) / math.sqrt(len(q)),
    "gaussian": lambda q, k: -sum(((a - b) * W) ** 2 for a, b in zip(q, k, strict=True)) / 2,
    "additive": lambda q, k: sum(v * math.tanh(a + b) for v, a, b in zip(V, q, k, strict=True)),
}


def attention_by_hand(query, key, value, formula, mask):
    """f(q) = sum_i softmax_i(score(q, k_i)) v_i, by loops over lists."""
    weights, output = [], []
    for i, q in enumerate(query):
        seen = [j for j in range(len(key)) if mask[i][j]]
        exps = {j: math.exp(formula(q, key[j])) for j in seen}
        row = [exps[j] / sum(exps.values()) if j in exps else 0.0 for j in range(len(key))]
        weights.append(row)
        output.append([sum(w * v[d] for w, v in zip(row, value, strict=True)) for d in range(2)])
    return weights, output


@pytest.mark.parametrize("name", SCORES)
@given(data=st.data())
def test_attention_equals_loops_over_the_formula(name, data):
    n_queries, n_keys = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 5))
    torch.manual_seed(data.draw(st.integers(0, 1000)))
    query, key = torch.randn(n_queries, 4).double(), torch.randn(n_keys, 4).double()
    value, mask = torch.randn(n_keys, 2).double(), torch.rand(n_queries, n_keys) < 0.7

    ours = attend(query, key, value, SCORES[name], mask)

    weights, output = attention_by_hand(
        query.tolist(), key.tolist(), value.tolist(), FORMULAS[name], mask.tolist()
    )
    torch.testing.assert_close(ours.weights, torch.tensor(weights).double())
    torch.testing.assert_close(ours.output, torch.tensor(output).double())


def test_masked_keys_get_exactly_zero_weight_however_high_they_score():
    scores = torch.tensor([[1.0, 1e30, 2.0]])
    weights = masked_softmax(scores, torch.tensor([[True, False, True]]))
    assert weights[0, 1].item() == 0.0
    assert weights.sum().item() == pytest.approx(1.0)


def test_query_with_no_keys_gets_zeros_and_finite_gradients():
    query, key, value = (torch.randn(2, 3, requires_grad=True) for _ in range(3))
    mask = torch.tensor([[False, False], [True, True]])
    attended = attend(query, key, value, scaled_dot_scores, mask)
    assert attended.output[0].tolist() == [0.0, 0.0, 0.0]
    assert attended.weights[0].tolist() == [0.0, 0.0]
    attended.output.sum().backward()
    for x in (query, key, value):
        assert x.grad.isfinite().all()
    assert query.grad[0].tolist() == [0.0, 0.0, 0.0]


def test_one_row_of_a_mask_serves_every_query():
    scores = torch.randn(2, 3, 4)
    row = torch.tensor([[True, False, True, True]])
    torch.testing.assert_close(
        masked_softmax(scores, row), masked_softmax(scores, row.expand(3, 4))
    )


def test_scaling_keeps_the_variance_of_scores_at_one():
    query, key = torch.randn(400, 256), torch.randn(400, 256)
    assert dot_scores(query, key).var().item() == pytest.approx(256, rel=0.05)
    assert scaled_dot_scores(query, key).var().item() == pytest.approx(1, rel=0.05)


def test_additive_scores_take_one_v_for_each_head():
    query, key, v = torch.randn(2, 3, 4, 5), torch.randn(2, 3, 6, 5), torch.randn(3, 5)
    per_head = [additive_scores(query[:, h], key[:, h], v[h]) for h in range(3)]
    torch.testing.assert_close(additive_scores(query, key, v), torch.stack(per_head, dim=1))


def test_gaussian_scores_take_one_width_for_each_head():
    query, key, w = torch.randn(2, 3, 4, 5), torch.randn(2, 3, 6, 5), torch.rand(3)
    per_head = [gaussian_scores(query[:, h], key[:, h], w[h]) for h in range(3)]
    torch.testing.assert_close(gaussian_scores(query, key, w), torch.stack(per_head, dim=1))


def test_hard_addressing_takes_the_value_at_the_best_key():
    key, value = torch.eye(3), torch.tensor([[10.0], [20.0], [30.0]])
    query = torch.tensor([[0.1, 0.9, 0.2], [0.9, 0.1, 0.2]])
    attended = attend_hard(query, key, value, dot_scores)
    assert attended.output.tolist() == [[20.0], [10.0]]
    assert attended.weights.tolist() == [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]


def test_hard_addressing_obeys_the_mask():
    key, value = torch.eye(3), torch.tensor([[10.0], [20.0], [30.0]])
    query = torch.tensor([[0.1, 0.9, 0.2], [0.1, 0.9, 0.2]])
    mask = torch.tensor([[True, False, True], [False, False, False]])
    assert attend_hard(query, key, value, dot_scores, mask).output.tolist() == [[30.0], [0.0]]


def test_soft_addressing_becomes_hard_as_the_temperature_falls_to_zero():
    query, key, value = torch.randn(5, 8), torch.randn(6, 8), torch.randn(6, 3)
    hard = attend_hard(query, key, value, dot_scores).output
    distances = [
        (attend(query, key, value, lambda q, k: dot_scores(q, k) / t).output - hard).abs().max()  # noqa: B023
        for t in (10.0, 1.0, 0.1, 0.001)
    ]
    assert distances == sorted(distances, reverse=True)
    assert distances[-1] < 1e-6


def test_dropout_drops_weights_but_reports_them_whole():
    query, key, value = torch.randn(50, 8), torch.randn(60, 8), torch.ones(60, 1)
    attended = attend(query, key, value, dot_scores, causal_mask(50, 60), dropout=0.5)
    torch.testing.assert_close(attended.weights.sum(-1), torch.ones(50))
    assert not torch.allclose(attended.output, torch.ones(50, 1), atol=1e-3)
    assert attended.output.mean().item() == pytest.approx(1.0, abs=0.25)


def test_the_width_of_a_gaussian_is_one_unless_said_otherwise():
    query, key = torch.randn(2, 3), torch.randn(4, 3)
    torch.testing.assert_close(gaussian_scores(query, key), gaussian_scores(query, key, 1.0))


@pytest.mark.plain
def test_a_mask_of_one_axis_serves_every_query():
    scores, mask = torch.randn(3, 4), torch.tensor([True, False, True, True])
    torch.testing.assert_close(masked_softmax(scores, mask), masked_softmax(scores, mask[None]))
