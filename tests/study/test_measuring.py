import torch
from torch import nn

from regard.study.measuring import exponent, largest_tensor, longest_chain, seconds


def test_an_exponent_is_found_whatever_the_factor():
    xs = [10, 20, 40, 80]
    assert abs(exponent(xs, [7 * x**1.5 for x in xs]) - 1.5) < 1e-9


def test_calls_are_timed_in_turns_and_by_the_median():
    order = []
    took = seconds({name: lambda n=name: order.append(n) for name in "ab"}, rounds=3)
    assert "".join(order) == "aabb" * 3  # each once for nothing
    assert set(took) == {"a", "b"}


def test_more_work_takes_more_time():
    x = torch.randn(400, 400)
    took = seconds({"one": lambda: x @ x, "nine": lambda: [x @ x for _ in range(9)]}, rounds=5)
    assert took["nine"] > 2 * took["one"]


def test_the_largest_tensor_is_what_is_made_and_not_what_is_given_or_viewed():
    x = torch.randn(100, 10)
    assert largest_tensor(lambda: (x.T @ x).sum()) == 10 * 10 * 4
    assert largest_tensor(lambda: x @ x.T) == 100 * 100 * 4


def test_a_chain_is_as_long_as_operations_wait_for_one_another():
    x = torch.ones(3, requires_grad=True)
    y = x
    for _ in range(7):
        y = y.sin()
    alone = longest_chain(y)
    beside = longest_chain(y + x.cos())
    assert (alone, beside) == (8, 9)  # the leaf counts, and the sum waits for both


def test_a_recurrent_chain_grows_with_length_and_a_pointwise_one_does_not():
    gru, linear = nn.GRU(4, 4, batch_first=True), nn.Linear(4, 4)
    chains = {
        n: (
            longest_chain(gru(torch.randn(1, n, 4, requires_grad=True))[0].sum()),
            longest_chain(linear(torch.randn(1, n, 4, requires_grad=True)).sum()),
        )
        for n in (4, 16)
    }
    assert chains[16][0] > 2.5 * chains[4][0]
    assert chains[16][1] == chains[4][1]
