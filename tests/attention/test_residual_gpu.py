"""Residual, dropout and norm, and the product that ends in a ReLU, on a GPU, in bf16 too."""

import pytest
import torch
from torch.nn import functional as F

from regard.attention import kernels
from regard.config import ModelConfig
from regard.model import build_model

pytestmark = pytest.mark.gpu

BOUNDS = {torch.bfloat16: 2e-2, torch.float32: 1e-4}


def rows(*shape, dtype=torch.float32):
    return torch.randn(*shape, device="cuda").to(dtype).requires_grad_()


def assert_same(ours, truth, inputs, exact, bound):
    weight = torch.randn_like(truth)
    mine = torch.autograd.grad((ours * weight.to(ours)).sum(), inputs)
    right = torch.autograd.grad((truth * weight).sum(), exact)
    for a, b in zip((ours, *mine), (truth, *right), strict=True):
        assert (a.double() - b).norm() <= bound * b.norm().clamp(min=1.0)


@pytest.mark.parametrize("dtype", BOUNDS)
@pytest.mark.parametrize("width", [64, 96, 512, 1024])
@pytest.mark.parametrize("n_rows", [1, 3000])
def test_the_norm_of_a_sum_and_its_gradients(dtype, width, n_rows):
    from regard.attention.kernels.residual import residual_norm

    x, y = rows(n_rows, width, dtype=dtype), rows(n_rows, width, dtype=dtype)
    weight, bias = rows(width), rows(width)
    ours = residual_norm(x, y, weight, bias, 0.0, 1e-5)
    exact = [tensor.detach().double().requires_grad_() for tensor in (x, y, weight, bias)]
    truth = F.layer_norm(exact[0] + exact[1], (width,), exact[2], exact[3], 1e-5)
    assert_same(ours, truth, (x, y, weight, bias), exact, BOUNDS[dtype])


@torch.no_grad()
@pytest.mark.parametrize("dtype", BOUNDS)
@pytest.mark.parametrize("n_rows", [1, 3000])
def test_a_sum_and_its_norm_in_one_pass_are_those_of_two(dtype, n_rows):
    from regard.attention.kernels.residual import residual_norm, sum_and_norm

    x, y, (weight, bias) = (
        rows(n_rows, 512, dtype=dtype),
        rows(n_rows, 512, dtype=dtype),
        rows(2, 512),
    )
    total, norm = sum_and_norm(x, y, weight, bias, 1e-5)
    assert torch.equal(total, x + y)
    assert torch.equal(norm, residual_norm(x + y, None, weight, bias, 0.0, 1e-5))


def test_what_is_dropped_is_dropped_on_the_way_back_too():
    from regard.attention.kernels.residual import residual_norm

    x, y = (make(500, 512, device="cuda", requires_grad=True) for make in (torch.zeros, torch.ones))
    weight, bias = torch.ones(512, device="cuda"), torch.zeros(512, device="cuda")
    ours = residual_norm(x, y, weight, bias, 0.25, 1e-5)
    kept = ours.detach() > 0
    exact = [tensor.detach().double().requires_grad_() for tensor in (x, y)]
    truth = F.layer_norm(exact[0] + exact[1] * kept.double() / 0.75, (512,))
    assert_same(ours, truth, (x, y), exact, 1e-4)
    assert 0.74 < kept.float().mean() < 0.76


@pytest.mark.parametrize("width", [100, 2048])
def test_a_product_that_ends_in_a_relu_and_its_gradients(width):
    from regard.attention.kernels.rectified import linear_relu

    x, weight, bias = rows(5000, 64, dtype=torch.bfloat16), rows(width, 64), rows(width)
    ours = linear_relu(x, weight, bias)
    # rounded as the product takes them: else some numbers near zero have another sign
    rounded = [tensor.detach().bfloat16() for tensor in (x, weight, bias)]
    exact = [tensor.double().requires_grad_() for tensor in rounded]
    assert_same(ours, F.relu(F.linear(*exact)), (x, weight, bias), exact, 3e-2)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_a_network_with_and_without_kernels_says_the_same(monkeypatch, norm):
    network = build_model(ModelConfig(d_model=64, n_layers=2, n_heads=2, norm=norm), 90, 90).cuda()
    src, tgt = torch.randint(4, 90, (2, 5, 17), device="cuda")
    network.eval()
    ours = network(src, tgt, None, None)
    monkeypatch.setattr(kernels, "ARE_HERE", False)
    torch.testing.assert_close(ours, network(src, tgt, None, None), rtol=1e-3, atol=1e-3)
