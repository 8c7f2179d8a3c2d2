import pytest
import torch

from regard.errors import ConfigError
from regard.train.optim import make_optimizer, make_schedule


def test_the_papers_schedule_rises_in_a_line_and_falls_by_the_root():
    rate = make_schedule("inverse_sqrt", lr=1.0, warmup=100, steps=1000)
    assert rate(50) == pytest.approx(0.5)
    assert rate(100) == pytest.approx(1.0)
    assert rate(400) == pytest.approx(0.5)
    for step in (1, 37, 100, 250, 1000):  # the paper's formula, d^-0.5 aside
        paper = min(step**-0.5, step * 100**-1.5)
        assert rate(step) == pytest.approx(paper * 100**0.5)


def test_cosine_ends_at_zero_and_constant_stays():
    cosine = make_schedule("cosine", lr=2.0, warmup=10, steps=110)
    assert [cosine(s) for s in (5, 10, 60, 110)] == pytest.approx([1.0, 2.0, 1.0, 0.0])
    constant = make_schedule("constant", lr=2.0, warmup=0, steps=110)
    assert constant(1) == constant(500) == 2.0


def test_an_unknown_schedule_is_named():
    with pytest.raises(ConfigError, match=r"is not one of inverse_sqrt, cosine, constant$"):
        make_schedule("steps", 1.0, 1, 1)


def test_adam_has_the_papers_constants():
    (group,) = make_optimizer([torch.nn.Parameter(torch.ones(1))], 0.1).param_groups
    assert (group["betas"], group["eps"], group["lr"]) == ((0.9, 0.98), 1e-9, 0.1)
