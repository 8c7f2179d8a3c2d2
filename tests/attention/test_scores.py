import pytest
import torch

from regard.attention import (
    additive_scores,
    attend,
    dot_scores,
    gaussian_scores,
    scaled_dot_scores,
)
from regard.attention.scores import make_score

DEFINITIONS = {
    "scaled_dot": lambda score: scaled_dot_scores,
    "dot": lambda score: dot_scores,
    "additive": lambda score: lambda q, k: additive_scores(q, k, score.v),
    "gaussian": lambda score: lambda q, k: gaussian_scores(q, k, score.w),
}


@pytest.mark.parametrize("name", DEFINITIONS)
def test_a_score_of_a_name_is_that_score_in_both_its_forms(name):
    score = make_score(name, n_heads=2, d_head=4)
    definition = DEFINITIONS[name](score)
    query, key, value = (torch.randn(3, 2, 5, 4) for _ in range(3))
    torch.testing.assert_close(score(query, key), definition(query, key))
    torch.testing.assert_close(
        score.attend(query, key, value, None, 0.0), attend(query, key, value, definition).output
    )


@pytest.mark.parametrize("name", ["scaled_dot", "additive", "gaussian"])
def test_scores_start_with_a_spread_of_about_one(name):
    score = make_score(name, n_heads=4, d_head=64)
    query, key = torch.randn(4, 100, 64), torch.randn(4, 100, 64)
    assert 0.5 < score(query, key).std().item() < 1.5


def test_each_head_learns_its_own_width_and_its_own_v():
    assert make_score("gaussian", n_heads=3, d_head=8).w.shape == (3,)
    assert make_score("additive", n_heads=3, d_head=8).v.shape == (3, 8)


def test_gaussian_scores_start_with_unit_variance():
    query, key = torch.randn(1, 500, 64), torch.randn(1, 500, 64)
    scores = make_score("gaussian", n_heads=1, d_head=64)(query, key)
    assert scores.std().item() == pytest.approx(1, rel=0.1)
