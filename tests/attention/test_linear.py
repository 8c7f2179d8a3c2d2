"""Linear maps as convolutions: the same numbers, where they are worth it."""

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from regard.attention import linear
from regard.attention.linear import Linear, convolved

ABROAD = linear._mkl_is_abroad.__wrapped__  # as it is, asked anew each time
SIZE, ROWS = 512, 1000
LEAD = [(7,), (3, 5), (1, 1), (2, 3, 4)]


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever chip the tests run on, it is none that MKL was made for."""
    monkeypatch.setattr(linear, "_mkl_is_abroad", lambda: True)


@pytest.fixture
def convolutions(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """The shapes of all weights that torch was asked to convolve with."""
    seen: list[tuple[int, ...]] = []
    real = F.conv2d

    def spy(
        picture: Tensor, weight: Tensor, bias: Tensor | None, dilation: tuple[int, int]
    ) -> Tensor:
        seen.append(tuple(weight.shape))
        return real(picture, weight, bias, dilation=dilation)

    monkeypatch.setattr(F, "conv2d", spy)
    monkeypatch.setattr(linear, "LARGE", 1)
    return seen


@pytest.fixture(params=[1, 2])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    """torch chooses among its convolutions by the number of threads too."""
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


@pytest.mark.parametrize("lead", LEAD)
@pytest.mark.parametrize("has_bias", [True, False])
def test_a_convolution_of_one_pixel_is_the_linear_map_and_has_its_gradients(
    lead: tuple[int, ...], has_bias: bool
) -> None:
    torch.manual_seed(len(lead))
    x, weight = torch.randn(*lead, 6, dtype=torch.float64), torch.randn(4, 6, dtype=torch.float64)
    inputs = [x, weight, *([torch.randn(4, dtype=torch.float64)] if has_bias else [])]
    for one in inputs:
        one.requires_grad_()
    found, wanted = convolved(x, weight, inputs[2] if has_bias else None), F.linear(*inputs)
    torch.testing.assert_close(found, wanted)
    back = torch.randn_like(wanted)
    torch.testing.assert_close(
        torch.autograd.grad(found, inputs, back), torch.autograd.grad(wanted, inputs, back)
    )


def test_rows_that_lie_apart_are_mapped_the_same() -> None:
    rows = torch.randn(5, 3, 8).transpose(0, 1)[..., ::2]
    weight, bias = torch.randn(6, 4), torch.randn(6)
    torch.testing.assert_close(convolved(rows, weight, bias), F.linear(rows, weight, bias))


@pytest.mark.usefixtures("threads")
def test_a_large_map_in_float32_agrees_with_float64_as_well_as_torchs() -> None:
    torch.manual_seed(1)
    layer, x = Linear(SIZE, SIZE), torch.randn(ROWS, SIZE)
    assert linear._suits_convolution(x, layer.weight)
    exact = F.linear(x.double(), layer.weight.double(), layer.bias.double())
    ours, torchs = layer(x).double(), F.linear(x, layer.weight, layer.bias).double()
    assert (ours - exact).abs().max() < 2.0 * (torchs - exact).abs().max() + 1e-6


def test_only_large_products_of_a_training_in_float32_are_convolutions(
    convolutions: list[tuple[int, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    layer = Linear(6, 4)
    x = torch.randn(2, 3, 6)
    layer(x)
    assert convolutions == [(4, 6, 1, 1)]
    layer.eval()(x)
    layer.train().double()(x.double())
    layer.float()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        layer(x)
    monkeypatch.setattr(linear, "LARGE", 2 * 3 * 6 * 4 + 1)
    layer(x)
    assert convolutions == [(4, 6, 1, 1)]


def test_on_chips_that_mkl_was_made_for_nothing_is_a_convolution(
    convolutions: list[tuple[int, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    layer, x = Linear(6, 4), torch.randn(2, 3, 6)
    layer(x)
    monkeypatch.setattr(linear, "_mkl_is_abroad", lambda: False)
    layer(x)
    assert convolutions == [(4, 6, 1, 1)]


@pytest.mark.parametrize(
    ("has_mkl", "on_intels", "is_so"),
    [(True, True, False), (True, False, True), (False, True, False), (False, False, False)],
)
def test_mkl_is_abroad_on_chips_that_are_not_intels(
    monkeypatch: pytest.MonkeyPatch, has_mkl: bool, on_intels: bool, is_so: bool
) -> None:
    monkeypatch.setattr(torch.backends.mkl, "is_available", lambda: has_mkl)
    monkeypatch.setattr(linear, "is_intels", lambda: on_intels)
    assert ABROAD() is is_so


def test_large_maps_go_to_onednn_whatever_the_number_of_threads(threads: int) -> None:
    layer, x = Linear(SIZE, SIZE), torch.randn(ROWS, SIZE, requires_grad=True)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        layer(x).sum().backward()
    names = {event.key for event in profile.key_averages()}
    assert "aten::mkldnn_convolution" in names, f"with {threads} threads torch did {sorted(names)}"


@pytest.mark.usefixtures("threads")
def test_two_updates_from_the_same_numbers_are_the_same_to_the_bit() -> None:
    torch.manual_seed(1)
    layer, x = Linear(SIZE, SIZE), torch.randn(ROWS, SIZE)
    assert linear._suits_convolution(x, layer.weight)

    def gradients() -> list[Tensor]:
        layer.zero_grad()
        layer(x).square().sum().backward()
        return [p.grad.clone() for p in layer.parameters() if p.grad is not None]

    first = gradients()
    for _ in range(5):
        assert all(torch.equal(a, b) for a, b in zip(gradients(), first, strict=True))
