"""Stacks whose sums and norms are made by kernels say what plain ones say.

By Triton's interpreter where there is no GPU.
"""

import importlib
from importlib.util import find_spec
from types import SimpleNamespace

import pytest
import torch

from regard.config import ModelConfig
from regard.model import build_model, layers

pytestmark = [
    pytest.mark.plain,  # the shape checker wraps functions that Triton has to read
    pytest.mark.skipif(find_spec("triton") is None, reason="needs Triton, which is for Linux"),
]

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
BOUND = 1e-5 if DEVICE.type == "cpu" else 1e-3  # a GPU's attention multiplies in fewer digits
N_LAYERS = 2, 3
FUSED = 2 * 1 + 3 * 2  # an encoder's layer passes on once, a decoder's twice


@pytest.fixture
def use_kernels(monkeypatch):
    """Turns the kernels of residuals on and off; what it returns has a mark for each fused sum."""
    residual = importlib.import_module("regard.attention.kernels.residual")
    marks = []

    def counted(*arguments):
        marks.append(1)
        return residual.sum_and_norm(*arguments)

    monkeypatch.setattr(layers, "residual_norm", residual.residual_norm, raising=False)
    monkeypatch.setattr(layers, "sum_and_norm", counted, raising=False)

    def use(are_used):
        marks.clear()
        monkeypatch.setattr(layers, "kernels", SimpleNamespace(can_take=lambda *_: are_used))
        return marks

    return use


def network(norm):
    config = ModelConfig(
        d_model=24, n_heads=2, n_layers=N_LAYERS, d_ff=32, max_len=12, norm=norm, dropout=0.0
    )
    made = build_model(config, 20, 20).to(DEVICE)
    with torch.no_grad():
        for weight in made.parameters():
            weight.add_(0.1 * torch.randn_like(weight))  # norms that differ from each other
    return made


def some_ids():
    return torch.randint(4, 20, (2, 3, 7), device=DEVICE)


def assert_close(ours, expected):
    torch.testing.assert_close(ours, expected, rtol=BOUND, atol=BOUND)


@torch.no_grad()
@pytest.mark.parametrize(("norm", "fused"), [("pre", FUSED), ("post", 0)])
def test_whole_stacks_with_kernels_say_what_they_say_without(use_kernels, norm, fused):
    model, (src, tgt) = network(norm).eval(), some_ids()
    use_kernels(False)
    expected = model(src, tgt)
    marks = use_kernels(True)
    assert_close(model(src, tgt), expected)
    assert len(marks) == fused


@torch.no_grad()
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_steps_with_kernels_say_what_all_places_at_once_say_without(use_kernels, norm):
    model, (src, tgt) = network(norm).eval(), some_ids()
    use_kernels(False)
    expected = model(src, tgt)
    use_kernels(True)
    state = model.start(model.encode(src))
    for place in range(tgt.shape[1]):
        logits, state = model.step(tgt[:, place], state)
        assert_close(logits, expected[:, place])


@pytest.mark.parametrize(("learns", "trains"), [(True, False), (False, True), (True, True)])
def test_who_learns_adds_and_norms_in_two_passes(use_kernels, learns, trains):
    model, (src, tgt) = network("pre").train(trains), some_ids()
    answers = {}
    for are_used in (False, True):
        marks = use_kernels(are_used)
        with torch.set_grad_enabled(learns):
            answers[are_used] = model(src, tgt)
    assert not marks
    assert_close(answers[True], answers[False])
    if learns:
        ours, expected = (
            torch.autograd.grad(answer.square().mean(), list(model.parameters()))
            for answer in (answers[True], answers[False])
        )
        for own, other in zip(ours, expected, strict=True):
            torch.testing.assert_close(own, other, rtol=1e-3, atol=BOUND)
