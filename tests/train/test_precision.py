import re

import pytest
import torch
from torch import nn

from regard.errors import ConfigError
from regard.train.precision import Precision, compile_whole, is_compiled

CPU, GPU = torch.device("cpu"), torch.device("cuda", 0)


@pytest.mark.parametrize(
    ("name", "device", "has_bf16", "expected"),
    [
        ("auto", CPU, False, "float32"),
        ("float32", CPU, False, "float32"),
        ("bf16", CPU, False, "bf16"),
        ("auto", GPU, True, "bf16"),
        ("auto", GPU, False, "float32"),
        ("float32", GPU, True, "float32"),
        ("bf16", GPU, True, "bf16"),
    ],
)
def test_bf16_is_for_gpus_that_have_it_or_for_those_who_ask(
    monkeypatch, name, device, has_bf16, expected
):
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda: has_bf16)
    assert str(Precision(name, device)) == expected


def test_bf16_that_a_gpu_does_not_have_is_refused(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda: False)
    sentence = 'train.precision = "bf16" but cuda:0 has none; set train.precision = "float32"'
    with pytest.raises(ConfigError, match=f"^{re.escape(sentence)}$"):
        Precision("bf16", GPU)


def test_products_are_in_bf16_and_weights_are_not():
    layer = nn.Linear(3, 3)
    with Precision("bf16", CPU).autocast():
        assert layer(torch.ones(1, 3)).dtype is torch.bfloat16
    assert layer.weight.dtype is torch.float32
    with Precision("float32", CPU).autocast():
        assert layer(torch.ones(1, 3)).dtype is torch.float32


@pytest.mark.parametrize(
    ("name", "device", "batching", "expected"),
    [
        ("auto", GPU, "packed", True),
        ("auto", GPU, "padded", False),
        ("auto", CPU, "packed", False),
        ("on", CPU, "padded", True),
        ("off", GPU, "packed", False),
    ],
)
def test_compiling_is_for_packed_batches_on_a_gpu_or_for_those_who_ask(
    name, device, batching, expected
):
    assert is_compiled(name, device, batching) is expected


def test_on_a_cpu_what_is_compiled_repeats_to_the_bit(monkeypatch):
    asked = []
    monkeypatch.setattr(torch, "use_deterministic_algorithms", asked.append)
    monkeypatch.setattr(nn.Module, "compile", lambda self: asked.append("compiled"))
    compile_whole(nn.Linear(1, 1), CPU)
    compile_whole(nn.Linear(1, 1), GPU)
    assert asked == [True, "compiled", "compiled"]
