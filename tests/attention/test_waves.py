"""Additive attention as products of sines equals the definition, by Triton's interpreter."""

import importlib
import math
from importlib.util import find_spec

import pytest
import torch

from regard.attention import Causal, additive_scores, attend, dense, fused, padding_mask
from regard.attention.kernels.spans import spans_of

pytestmark = [
    pytest.mark.plain,  # the shape checker wraps functions that Triton has to read
    pytest.mark.skipif(find_spec("triton") is None, reason="needs Triton, which is for Linux"),
]

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@pytest.fixture
def waves():
    return importlib.import_module("regard.attention.kernels.waves")


@pytest.mark.parametrize("reach", [0.5, 3.0, 10.6, 24.0])
@pytest.mark.parametrize("error", [2**-9, 1e-6])
def test_so_many_sines_are_tanh(waves, reach, error):
    n_waves, half_period = waves.series_for(reach, error)
    x = torch.linspace(-reach, reach, 2001, dtype=torch.float64)
    w = (2 * torch.arange(n_waves, dtype=torch.float64) + 1) * math.pi / half_period
    b = 2 * math.pi / (half_period * torch.sinh(math.pi * w / 2))
    ours = torch.sin(x[:, None] * w) @ b
    assert (ours - x.tanh()).abs().max() < error
    assert n_waves == 1 or (ours - b[-1] * torch.sin(x * w[-1]) - x.tanh()).abs().max() > error / 4


def rows(n_rows, width, dtype=torch.float32):
    """Heads as a projection leaves them: within rows that belong to all of them."""
    wide = torch.randn(2, n_rows, 2, width, device=DEVICE, dtype=dtype)
    return wide.transpose(1, 2).requires_grad_()


def relative(ours, truth, inputs, exact):
    """How far values and gradients are from the truth, in units of it."""
    weight = torch.randn_like(truth)
    mine = torch.autograd.grad((ours * weight.to(ours)).sum(), inputs)
    right = torch.autograd.grad((truth * weight).sum(), exact)
    pairs = zip((ours, *mine), (truth, *right), strict=True)
    return [float((a.detach().double() - b.detach()).norm() / b.detach().norm()) for a, b in pairs]


def off(waves, kind, dtype=torch.float32, reach=1.0):
    """How far attention by waves is from the definition, in parts of some rows of some heads."""
    allowed = {
        "padding": padding_mask(torch.tensor([0, 17]), 18)[:, None],
        "any": torch.rand(2, 1, 9, 18) > 0.5,
    }.get(kind)
    allowed = None if allowed is None else allowed.to(DEVICE)
    seen = Causal() if kind == "causal" else None
    query, key, value = rows(9, 8, dtype), rows(18, 8, dtype), rows(18, 16, dtype)
    with torch.no_grad():
        query *= reach
    v = torch.randn(2, 8, device=DEVICE, requires_grad=True)
    spans = spans_of(seen, 9, 18, query.device)
    ours = waves.wave_attention(query, key, value, v, spans, allowed, 0.0)
    inputs = query, key, value, v
    exact = [x.detach().double().requires_grad_() for x in inputs]
    mask = dense(seen, 9, 18, query.device) if allowed is None else allowed
    truth = attend(*exact[:3], lambda q, k: additive_scores(q, k, exact[3]), mask).output
    return relative(ours, truth, inputs, exact)


@pytest.mark.parametrize(
    ("kind", "pairs"),
    [("none", 10**6), ("causal", 80), ("padding", 500), ("any", 200), ("any", 10**6)],
)
def test_attention_by_waves_equals_the_definition(waves, monkeypatch, kind, pairs):
    for name in ("PAIRS", "PAIRS_BACK"):
        monkeypatch.setattr(waves, name, pairs)  # some rows at a time, some heads, or all
    assert max(off(waves, kind)) < 2e-5


@pytest.mark.filterwarnings("ignore:overflow")  # meant: one over infinity is zero
def test_what_is_too_far_for_waves_goes_another_way(waves, monkeypatch):
    monkeypatch.setattr(waves, "_product", None)  # there are no products on that way
    assert max(off(waves, "any", reach=20.0)) < 2e-5


@pytest.mark.skipif(DEVICE == "cpu", reason="the interpreter's half precision is wrong")
@pytest.mark.gpu
@pytest.mark.parametrize("kind", ["none", "causal", "any"])
@pytest.mark.parametrize("reach", [1.0, 4.0])
def test_in_half_precision_it_is_as_near_as_that_can_be(waves, kind, reach):
    assert max(off(waves, kind, torch.bfloat16, reach)) < 2e-2


def test_dropout_is_the_same_on_the_way_back(waves, monkeypatch):
    monkeypatch.setattr(waves, "PAIRS", 400)
    monkeypatch.setattr(waves, "PAIRS_BACK", 60)  # some rows of one head
    query, key = rows(18, 8), rows(18, 8)
    v = torch.randn(2, 8, device=DEVICE, requires_grad=True)
    value = torch.eye(18, device=DEVICE).expand(2, 2, -1, -1).clone().requires_grad_()
    spans = spans_of(Causal(), 18, 18, query.device)
    weights = waves.wave_attention(query, key, value, v, spans, None, 0.4)
    inputs = query, key, value, v
    exact = [x.detach().double().requires_grad_() for x in inputs]
    mask = dense(Causal(), 18, 18, query.device)
    whole = attend(*exact[:3], lambda q, k: additive_scores(q, k, exact[3]), mask)
    kept = weights.detach().double() > 0
    truth = (kept * whole.weights / 0.6) @ exact[2]
    assert max(relative(weights, truth, inputs, exact)) < 2e-5
    assert 0.4 < float(kept.sum() / (4 * 18 * 19 / 2)) < 0.8


@pytest.mark.skipif(DEVICE == "cuda", reason="there it is so by itself")
def test_long_rows_of_half_precision_go_by_waves(waves, monkeypatch):
    asked = []
    monkeypatch.setattr(fused.kernels, "can_take", lambda *_: True)
    for name in ("is_for_waves", "tiled_additive_attention"):
        other = importlib.import_module("regard.attention.kernels.additive")
        own = waves if name == "is_for_waves" else other
        monkeypatch.setattr(fused, name, getattr(own, name), raising=False)
    monkeypatch.setattr(
        fused, "wave_attention", lambda q, *_: asked.append(q.shape) or q, raising=False
    )
    x = torch.randn(1, 2, waves.LONG, 16, dtype=torch.bfloat16)
    fused.additive_attention(x, x, x, torch.randn(2, 16))
    fused.additive_attention(x[0], x[0], x[0], torch.randn(16), Causal())
    assert asked == [x.shape, x.shape]
