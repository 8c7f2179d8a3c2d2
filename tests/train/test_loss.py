import importlib
import math
from importlib.util import find_spec

import pytest
import torch
from torch.nn import functional as F

from regard.config import ModelConfig
from regard.data.batch import Batch
from regard.model import build_model
from regard.train import loss
from regard.train.loss import label_smoothed_loss
from regard.train.objective import Objective


def test_the_loss_equals_its_formula_and_leaves_out_padding():
    logits, labels = torch.randn(2, 3, 5), torch.tensor([[1, 4, 0], [2, 0, 0]])
    log_p = logits.log_softmax(-1)
    expected = 0.0
    for b in range(2):
        for t in range(3):
            if labels[b, t] != 0:
                right = -log_p[b, t, labels[b, t]].item()
                spread = -log_p[b, t].mean().item()
                expected += 0.9 * right + 0.1 * spread
    assert math.isclose(label_smoothed_loss(logits, labels, 0, 0.1).item(), expected, rel_tol=1e-5)


def test_without_smoothing_a_certain_right_answer_costs_nothing():
    logits = torch.tensor([[0.0, 100.0]])
    assert label_smoothed_loss(logits, torch.tensor([1]), 0, 0.0).item() == 0.0


def output_layer(dtype=torch.float64):
    hidden, weight, bias = (
        torch.randn(*shape, dtype=dtype, requires_grad=True)
        for shape in ((3, 4, 6), (37, 6), (37,))
    )
    return hidden, weight, bias, torch.randint(0, 37, (3, 4)).index_fill(1, torch.tensor(3), 0)


@pytest.mark.parametrize("chunk", [37 * 5, 1, 2**28])
@pytest.mark.parametrize("has_bias", [True, False])
def test_the_loss_in_chunks_equals_that_of_all_logits_and_so_do_its_gradients(
    monkeypatch, chunk, has_bias
):
    monkeypatch.setattr(loss, "CHUNK", chunk)
    hidden, weight, bias, labels = output_layer()
    inputs = (hidden, weight, bias) if has_bias else (hidden, weight)
    bias = bias if has_bias else None
    ours = loss.output_and_loss(hidden, weight, bias, labels, 0, 0.1)
    logits = F.linear(hidden, weight, bias)
    truth = F.cross_entropy(
        logits.flatten(0, 1), labels.flatten(), ignore_index=0, reduction="sum", label_smoothing=0.1
    )
    torch.testing.assert_close(ours, truth)
    torch.testing.assert_close(
        torch.autograd.grad(ours / 7, inputs), torch.autograd.grad(truth / 7, inputs)
    )


def test_no_more_than_a_chunk_of_logits_is_ever_there(monkeypatch):
    shapes = []
    rows = loss.losses_and_gradients
    monkeypatch.setattr(loss, "CHUNK", 37 * 5)
    monkeypatch.setattr(
        loss, "losses_and_gradients", lambda z, *rest: shapes.append(z.shape) or rows(z, *rest)
    )
    loss.output_and_loss(*output_layer(), 0, 0.1)
    assert shapes == [(5, 37), (5, 37), (2, 37)]


def test_a_loss_in_bf16_has_the_weights_gradient_in_float32(monkeypatch):
    monkeypatch.setattr(loss, "CHUNK", 37 * 5)
    hidden, weight, bias, labels = output_layer(torch.float32)
    narrow = loss.output_and_loss(hidden.bfloat16(), weight, bias, labels, 0, 0.1)
    exact = loss.output_and_loss(hidden, weight, bias, labels, 0, 0.1)
    assert math.isclose(narrow.item(), exact.item(), rel_tol=1e-2)
    mine, right = (torch.autograd.grad(x, weight)[0] for x in (narrow, exact))
    assert mine.dtype is torch.float32
    assert (mine - right).norm() / right.norm() < 2e-2


def test_a_loss_of_wide_numbers_stays_wide_where_products_are_narrow():
    """As when the GPU's room is tried before layers hand on bf16."""
    hidden, weight, bias, labels = output_layer(torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = loss.output_and_loss(hidden, weight, bias, labels, 0, 0.1)
    wanted = loss.output_and_loss(hidden, weight, bias, labels, 0, 0.1)
    inputs = (hidden, weight, bias)
    torch.testing.assert_close(found, wanted)
    torch.testing.assert_close(
        torch.autograd.grad(found, inputs), torch.autograd.grad(wanted, inputs)
    )


def test_the_loss_in_chunks_is_one_node_of_a_compiled_graph():
    hidden, weight, bias, labels = output_layer()
    compiled = torch.compile(loss.output_and_loss, backend="aot_eager", fullgraph=True)
    ours = compiled(hidden, weight, bias, labels, 0, 0.1)
    truth = loss.output_and_loss(hidden, weight, bias, labels, 0, 0.1)
    torch.testing.assert_close(
        torch.autograd.grad(ours, (hidden, weight)), torch.autograd.grad(truth, (hidden, weight))
    )


def test_what_an_objective_asks_of_a_gpu_equals_what_it_asks_of_a_cpu():
    network = build_model(ModelConfig(d_model=16, n_heads=2, n_layers=1, d_ff=16), 30, 30).eval()
    objective = Objective(network, pad=0, smoothing=0.1)
    ids, labels = torch.randint(1, 30, (2, 2, 5))
    batch = Batch(ids, ids, labels, None, None, 10, (0, 1))
    torch.testing.assert_close(objective.in_chunks(batch), objective(batch))


def test_two_passes_that_do_not_agree_cost_what_the_paper_says():
    """Both divergences by torch's own `kl_div`, which torch's dropout has no part in."""
    network = build_model(ModelConfig(d_model=16, n_heads=2, n_layers=1, d_ff=16), 30, 30).train()
    objective = Objective(network, pad=0, smoothing=0.1, r_drop=5.0)
    ids, labels = torch.randint(1, 30, (2, 2, 5))
    labels[1, 3:] = 0
    batch = Batch(ids, ids, labels, None, None, 8, (0, 1))
    torch.manual_seed(3)
    ours = objective(batch)
    torch.manual_seed(3)
    one, other = network(ids, ids), network(ids, ids)
    assert not torch.equal(one, other)
    counts = labels != 0
    log_p, log_q = (x[counts].log_softmax(-1) for x in (one, other))
    apart = [
        F.kl_div(a, b, reduction="sum", log_target=True)
        for a, b in ((log_p, log_q), (log_q, log_p))
    ]
    wrong = [loss.label_smoothed_loss(x, labels, 0, 0.1) for x in (one, other)]
    torch.testing.assert_close(ours, sum(wrong) / 2 + 5.0 * sum(apart) / 4)
    network.eval()  # judged by one pass
    torch.testing.assert_close(
        objective(batch), loss.label_smoothed_loss(network(ids, ids), labels, 0, 0.1)
    )


@pytest.mark.skipif(torch.cuda.is_available(), reason="the kernel runs there itself")
@pytest.mark.skipif(find_spec("triton") is None, reason="needs Triton, which is for Linux")
@pytest.mark.parametrize("n_words", [37, 5])
def test_the_kernel_for_rows_leaves_the_same_losses_and_gradients(monkeypatch, n_words):
    kernel = importlib.import_module("regard.train.loss_rows")
    monkeypatch.setattr(kernel, "WORDS", 16)
    logits = 5.0 * torch.randn(6, n_words)
    labels = torch.randint(0, n_words, (6,)).index_fill(0, torch.tensor(2), 0)
    expected = logits.clone()
    losses = kernel.losses_and_gradients_on_gpu(logits, labels, 0, 0.1)
    torch.testing.assert_close(losses, loss.losses_and_gradients(expected, labels, 0, 0.1))
    torch.testing.assert_close(logits, expected)
