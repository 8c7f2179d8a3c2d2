"""Residual, dropout and norm in one pass, and a product that ends in a ReLU, equal the definition.

By Triton's interpreter in float32 where there is no GPU; `test_residual_gpu.py` has the GPU's.
"""

import importlib
from importlib.util import find_spec

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional as F

pytestmark = [
    pytest.mark.plain,  # the shape checker wraps functions that Triton has to read
    pytest.mark.skipif(torch.cuda.is_available(), reason="the kernels run there themselves"),
    pytest.mark.skipif(find_spec("triton") is None, reason="needs Triton, which is for Linux"),
]


@pytest.fixture
def residual():
    return importlib.import_module("regard.attention.kernels.residual")


@pytest.fixture
def rectified():
    return importlib.import_module("regard.attention.kernels.rectified")


def rows(*shape):
    return torch.randn(*shape, requires_grad=True)


def assert_same(ours, truth, inputs, exact):
    weight = torch.randn_like(truth)
    mine = torch.autograd.grad((ours * weight.to(ours)).sum(), inputs)
    right = torch.autograd.grad((truth * weight).sum(), exact)
    for a, b in zip((ours, *mine), (truth, *right), strict=True):
        torch.testing.assert_close(a.double(), b, rtol=1e-4, atol=1e-4)


@given(n_rows=st.integers(1, 70), width=st.sampled_from([16, 24, 64]), adds=st.booleans())
def test_the_norm_of_a_sum_and_its_gradients(residual, n_rows, width, adds):
    x, y, weight, bias = rows(n_rows, width), rows(n_rows, width), rows(width), rows(width)
    inputs = (x, y, weight, bias) if adds else (x, weight, bias)
    ours = residual.residual_norm(x, y if adds else None, weight, bias, 0.0, 1e-5)
    exact = [tensor.detach().double().requires_grad_() for tensor in inputs]
    total = exact[0] + exact[1] if adds else exact[0]
    truth = F.layer_norm(total, (width,), exact[-2], exact[-1], 1e-5)
    assert_same(ours, truth, inputs, exact)


def test_rows_of_many_axes_keep_them(residual):
    x, y, weight, bias = rows(2, 3, 5, 16), rows(2, 3, 5, 16), rows(16), rows(16)
    ours = residual.residual_norm(x, y, weight, bias, 0.0, 1e-5)
    torch.testing.assert_close(ours, F.layer_norm(x + y, (16,), weight, bias))


@torch.no_grad()
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
@given(n_rows=st.integers(1, 70), width=st.sampled_from([1, 16, 24, 100]))
def test_a_sum_and_its_norm_in_one_pass_are_those_of_two(residual, dtype, n_rows, width):
    """To the last digit: the sum is rounded before it is normed, as torch's addition rounds it."""
    x, y = torch.randn(2, n_rows, width).to(dtype)
    weight, bias = torch.randn(2, width)
    total, normed = residual.sum_and_norm(x, y, weight, bias, 1e-5)
    assert torch.equal(total, x + y)
    assert torch.equal(normed, residual.residual_norm(x + y, None, weight, bias, 0.0, 1e-5))
    truth = F.layer_norm((x + y).double(), (width,), weight.double(), bias.double(), 1e-5)
    bound = {torch.float32: 1e-5, torch.float16: 1e-2}[dtype]
    torch.testing.assert_close(normed.double(), truth, rtol=bound, atol=bound)


@torch.no_grad()
def test_a_sum_and_its_norm_keep_the_axes_of_rows_that_lie_apart(residual):
    x, y = torch.randn(2, 3, 16, 5).mT, torch.randn(2, 3, 5, 32)[..., ::2]
    weight, bias = torch.randn(2, 16)
    total, normed = residual.sum_and_norm(x, y, weight, bias, 1e-5)
    assert torch.equal(total, x + y)
    torch.testing.assert_close(normed, F.layer_norm(x + y, (16,), weight, bias))


def test_what_is_dropped_is_dropped_on_the_way_back_too(residual):
    """With a weight of one and no bias, the sum minus x shows what is kept, up to the norm."""
    x, y = torch.zeros(200, 64, requires_grad=True), torch.ones(200, 64, requires_grad=True)
    weight, bias = torch.ones(64), torch.zeros(64)
    torch.manual_seed(3)
    ours = residual.residual_norm(x, y, weight, bias, 0.25, 1e-5)
    kept = ours > 0  # above the mean of its row
    exact = [tensor.detach().double().requires_grad_() for tensor in (x, y)]
    total = exact[0] + exact[1] * kept.double() / 0.75
    assert_same(ours, F.layer_norm(total, (64,)), (x, y), exact)
    assert 0.73 < kept.float().mean() < 0.77


def test_each_row_column_and_seed_drops_others(residual):
    x, y = torch.zeros(256, 256), torch.ones(256, 256)
    weight, bias = torch.ones(256), torch.zeros(256)
    first, second = (residual.residual_norm(x, y, weight, bias, 0.5, 1e-5) > 0 for _ in range(2))
    signs = [mask.double() * 2.0 - 1.0 for mask in (first, second)]
    assert abs(float((signs[0] * signs[1]).mean())) < 0.02  # 5 standard deviations
    for a in (signs[0], signs[0].T):
        likeness = a @ a.T / 256 - torch.eye(256)
        assert likeness.abs().max() < 6 / 16  # of some 32,000 pairs, none beyond 6 deviations
        assert likeness.mean().abs() < 0.01


@given(n_rows=st.integers(1, 90), width=st.integers(1, 150))
def test_a_product_that_ends_in_a_relu_and_its_gradients(rectified, n_rows, width):
    x, weight, bias = rows(n_rows, 8), rows(width, 8), rows(width)
    exact = [tensor.detach().double().requires_grad_() for tensor in (x, weight, bias)]
    ours = rectified.linear_relu(x, weight, bias)
    assert_same(ours, F.relu(F.linear(*exact)), (x, weight, bias), exact)


def test_more_rows_than_a_program_goes_through(rectified, monkeypatch):
    monkeypatch.setattr(rectified, "N_ROWS", 64)
    grad, y = torch.randn(200, 40), torch.randn(200, 40).relu()
    dz, db = rectified.relu_backward(grad, y)
    torch.testing.assert_close(dz, grad * (y > 0))
    torch.testing.assert_close(db, (grad * (y > 0)).sum(0))
