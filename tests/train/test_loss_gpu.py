"""The loss in chunks on a GPU equals that of all logits in float64."""

import pytest
import torch
from torch.nn import functional as F

from regard.train import loss

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize(("dtype", "bound"), [(torch.bfloat16, 2e-2), (torch.float32, 1e-4)])
@pytest.mark.parametrize("n_words", [37, 5000, 32_000])
def test_the_loss_in_chunks_and_its_gradients(monkeypatch, dtype, bound, n_words):
    monkeypatch.setattr(loss, "CHUNK", n_words * 100)
    hidden = torch.randn(330, 64, device="cuda").to(dtype).requires_grad_()
    weight = torch.randn(n_words, 64, device="cuda").div_(8.0).requires_grad_()
    bias = torch.randn(n_words, device="cuda", requires_grad=True)
    labels = torch.randint(0, n_words, (330,), device="cuda").index_fill_(
        0, torch.tensor([3, 329], device="cuda"), 0
    )
    ours = loss.output_and_loss(hidden, weight, bias, labels, 0, 0.1)
    exact = [x.detach().double().requires_grad_() for x in (hidden, weight, bias)]
    truth = F.cross_entropy(
        F.linear(*exact), labels, ignore_index=0, reduction="sum", label_smoothing=0.1
    )
    mine = torch.autograd.grad(ours, (hidden, weight, bias))
    right = torch.autograd.grad(truth, exact)
    for a, b in zip((ours, *mine), (truth, *right), strict=True):
        assert (a.double() - b).norm() / b.norm() < bound


def test_compiled_it_is_the_same():
    hidden = torch.randn(130, 64, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    weight = torch.randn(500, 64, device="cuda", requires_grad=True)
    labels = torch.randint(0, 500, (130,), device="cuda")
    compiled = torch.compile(loss.output_and_loss, fullgraph=True)
    gradients = [
        torch.autograd.grad(f(hidden, weight, None, labels, 0, 0.1) / 7, (hidden, weight))
        for f in (compiled, loss.output_and_loss)
    ]
    torch.testing.assert_close(*gradients)
