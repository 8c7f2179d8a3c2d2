import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.attention import (
    LearnedPositions,
    RotaryPositions,
    SinusoidalPositions,
    rotation,
    sinusoidal_positions,
)


def test_sinusoidal_positions_equal_the_papers_formula():
    table = sinusoidal_positions(20, 6)
    for i in range(20):
        for j in range(3):
            angle = i / 10000 ** (2 * j / 6)
            assert table[i, 2 * j].item() == pytest.approx(math.sin(angle), abs=1e-12)
            assert table[i, 2 * j + 1].item() == pytest.approx(math.cos(angle), abs=1e-12)


def test_every_position_is_different():
    table = sinusoidal_positions(1000, 16)
    distances = torch.cdist(table, table) + torch.eye(1000)
    assert distances.min() > 0.01


@given(st.integers(0, 50), st.integers(-20, 20))
def test_a_step_turns_every_position_by_the_same_matrix(i, delta):
    table = sinusoidal_positions(100, 8)
    turned = rotation(delta, 8) @ table[i + 20]
    torch.testing.assert_close(turned, table[i + 20 + delta])


def test_rotations_add_up_and_turn_back():
    torch.testing.assert_close(rotation(3, 8) @ rotation(4, 8), rotation(7, 8))
    torch.testing.assert_close(rotation(5, 8).T, rotation(-5, 8))


def test_rotary_positions_turn_by_the_same_matrix():
    x = torch.randn(2, 3, 7, 8, dtype=torch.float64)
    turned = RotaryPositions(8, 20).double()(x, torch.arange(4, 11))
    for t in range(7):
        torch.testing.assert_close(
            turned[:, :, t], x[:, :, t] @ rotation(t + 4, 8), rtol=0, atol=1e-6
        )


@given(st.integers(0, 30))
def test_rotary_scores_depend_only_on_how_far_apart_query_and_key_are(shift):
    rotary = RotaryPositions(8, 64)
    query, key = torch.randn(5, 8), torch.randn(5, 8)

    def scores(start):
        places = torch.arange(start, start + 5)
        return rotary(query, places) @ rotary(key, places).T

    torch.testing.assert_close(scores(0), scores(shift), rtol=0, atol=1e-5)
    assert not torch.allclose(scores(0), query @ key.T, atol=1e-2)


def test_tables_are_looked_up_by_position():
    places = torch.tensor([3, 0, 3])
    fixed = SinusoidalPositions(4, 10)
    torch.testing.assert_close(fixed(places), sinusoidal_positions(10, 4).float()[places])
    learned = LearnedPositions(4, 10)
    torch.testing.assert_close(learned(places), learned.table[places])


def test_only_learned_positions_are_trained_and_saved():
    assert not list(SinusoidalPositions(4, 10).state_dict())
    assert not list(RotaryPositions(4, 10).state_dict())
    assert [name for name, _ in LearnedPositions(4, 10).named_parameters()] == ["table"]
    assert LearnedPositions(64, 500).table.std().item() == pytest.approx(1 / 8, rel=0.05)


def test_rotary_positions_keep_the_precision_of_what_they_turn():
    rotary = RotaryPositions(4, 10)
    assert rotary.cos.dtype == rotary.sin.dtype == torch.float32
    x = torch.randn(3, 4)
    assert rotary(x.bfloat16(), torch.arange(3)).dtype == torch.bfloat16
