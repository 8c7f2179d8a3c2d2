import math
from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from regard.view.axes import exact_axis, is_drawable, log_axis, rounded_axis

NUMBERS = st.floats(-1e99, 1e99)


def test_a_rounded_axis_begins_and_ends_with_a_tick():
    axis = rounded_axis(1.2, 9.1, 200, 0)
    assert (axis.low, axis.high) == (0, 10)
    assert axis.ticks == (0, 2, 4, 6, 8, 10)
    assert [axis.place(value) for value in (0, 5, 9.1)] == pytest.approx([200, 100, 18])


def test_an_exact_axis_ends_where_its_values_end():
    axis = exact_axis(0, 23_000, 10, 240)
    assert axis.ticks == (0, 5000, 10_000, 15_000, 20_000)
    assert [axis.place(value) for value in (0, 11_500, 23_000)] == pytest.approx([10, 125, 240])


def test_equal_factors_are_equal_lengths_on_a_logarithmic_axis():
    axis = log_axis(0.5, 60, 0, 100)
    places = [axis.place(value) for value in (0.5, 2, 8, 32)]
    gaps = [b - a for a, b in pairwise(places)]
    assert gaps == pytest.approx([gaps[0]] * 3)
    assert axis.labels() == ("0.5", "1", "2", "5", "10", "20", "50")


@pytest.mark.parametrize(
    ("low", "high", "labels"),
    [
        (0, 30_000, ("0", "10,000", "20,000", "30,000")),
        (0, 7e-4, ("0", "2e-4", "4e-4", "6e-4", "8e-4")),
        (0, 1e-3, ("0.0000", "0.0002", "0.0004", "0.0006", "0.0008", "0.0010")),
        (0, 2.3e7, ("0", "5e6", "1e7", "1.5e7", "2e7", "2.5e7")),
        (0.1, 0.4, ("0.1", "0.2", "0.3", "0.4")),
        (-3, 4, ("-4", "-2", "0", "2", "4")),
        (5, 5, ("2", "3", "4", "5", "6", "7", "8")),
        (0, 0, ("0.0", "0.2", "0.4", "0.6", "0.8", "1.0")),
    ],
)
def test_ticks_are_written_as_a_person_would(low, high, labels):
    assert rounded_axis(low, high, 0, 1).labels() == labels


@pytest.mark.parametrize(
    ("low", "high", "labels"),
    [
        (1.6, 10, ("2", "3", "5", "7", "10")),
        (2.1, 2.3, ("2.1", "2.15", "2.2", "2.25", "2.3")),
        (0.01, 300, ("0.01", "0.1", "1", "10", "100")),
    ],
)
def test_a_logarithmic_axis_has_ticks_enough_and_not_too_many(low, high, labels):
    assert log_axis(low, high, 0, 1).labels() == labels


@given(NUMBERS, NUMBERS)
def test_any_values_lie_on_their_axis_with_ticks_told_apart(one, other):
    low, high = min(one, other), max(one, other)
    for axis in (exact_axis(low, high, 0, 100), rounded_axis(low, high, 0, 100)):
        assert -1e-4 <= axis.place(low) <= axis.place(high) <= 100 + 1e-4
        assert 1 <= len(axis.ticks) <= 9
        assert len(set(axis.labels())) == len(axis.ticks)


@given(st.floats(1e-99, 1e99), st.floats(1e-99, 1e99))
def test_any_positive_values_lie_on_a_logarithmic_axis(one, other):
    low, high = min(one, other), max(one, other)
    axis = log_axis(low, high, 0, 100)
    assert 0 <= axis.place(low) <= axis.place(high) <= 100
    assert 1 <= len(axis.ticks) <= 9
    assert all(0 <= axis.place(tick) <= 100 + 1e-9 for tick in axis.ticks)


@given(NUMBERS)
def test_numbers_can_be_drawn_and_what_is_no_number_cannot(number):
    assume(abs(number) < 1e99)
    assert is_drawable(number)
    assert not any(map(is_drawable, (math.nan, math.inf, -math.inf, 1e200)))
