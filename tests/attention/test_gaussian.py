import pytest
import torch

from regard.attention import GaussianAttention


def test_regression_learns_a_width_that_fits_noisy_points_better():
    torch.manual_seed(1)
    x = torch.rand(50, 1).sort(0).values * 5
    y = 2 * x.sin() + x**0.8 + 0.5 * torch.randn(50, 1)
    places = torch.linspace(0, 5, 50)[:, None]
    truth = 2 * places.sin() + places**0.8
    regression = GaussianAttention()

    def distance():
        with torch.no_grad():
            return (regression(places, x, y).output - truth).square().mean().item()

    untrained = distance()
    others = ~torch.eye(50, dtype=torch.bool)  # a point must not predict itself
    optimizer = torch.optim.Adam(regression.parameters(), lr=0.1)
    for _ in range(100):
        optimizer.zero_grad()
        (regression(x, x, y, others).output - y).square().mean().backward()
        optimizer.step()

    average = (y.mean() - truth).square().mean().item()
    assert regression.w.item() > 1.5
    assert distance() < 0.5 * untrained < 0.5 * average


def test_a_narrower_width_looks_at_fewer_keys():
    key = torch.linspace(-2, 2, 21)[:, None]
    query = torch.zeros(1, 1)
    peaks = [GaussianAttention(w)(query, key, key).weights.max().item() for w in (0.5, 1.0, 4.0)]
    assert peaks == sorted(peaks)
    assert peaks[0] < peaks[2] / 3


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_any_precision_goes_in_and_comes_out(dtype):
    x = torch.randn(4, 1, dtype=dtype)
    assert GaussianAttention(2)(x, x, x).output.dtype == dtype
