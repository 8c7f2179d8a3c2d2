import re

import pytest
import torch
from torch import nn

from regard.attention import kernels
from regard.config import ModelConfig
from regard.errors import ConfigError
from regard.model import build_model
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
    monkeypatch.setattr(nn.Module, "compile", lambda self, mode: asked.append(mode))
    compile_whole(nn.Linear(1, 1), CPU, is_replayed=True)
    compile_whole(nn.Linear(1, 1), GPU)
    assert asked == [True, None, None]


def test_a_gpu_replays_a_pass_where_nothing_else_comes_between(monkeypatch):
    modes = []
    monkeypatch.setattr(nn.Module, "compile", lambda self, mode: modes.append(mode))
    compile_whole(nn.Linear(1, 1), GPU, is_replayed=True)
    assert modes == ["reduce-overhead"]


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_layers_hand_on_bf16_while_training_in_it_and_compute_the_same_but_for_rounding(
    norm, monkeypatch
):
    monkeypatch.setattr(kernels, "ARE_HERE", True)
    config = ModelConfig(d_model=16, n_heads=2, n_layers=2, d_ff=16, dropout=0.0, norm=norm)
    network = build_model(config, 20, 20).train()
    ids = torch.randint(0, 20, (2, 7))
    exact = network(ids, ids)
    handed_on = []
    for layer in (*network.encoder.layers, *network.decoder.layers):
        layer.register_forward_hook(lambda _, args, output: handed_on.append(output[0].dtype))
    precision = Precision("bf16", CPU)
    precision.narrow(network)
    with precision.autocast():
        narrow = network(ids, ids)
        decoded = network.decode(ids, network.encode(ids))
    assert set(handed_on) == {torch.bfloat16}
    assert decoded.dtype is torch.bfloat16, "the loss computes in what it is given"
    assert (narrow - exact).norm() / exact.norm() < 5e-2

    handed_on.clear()
    network.eval()(ids, ids)  # as it is judged and searched with, also without autocast
    assert set(handed_on) == {torch.float32}


def test_a_network_in_float32_stays_as_it_is():
    network = build_model(ModelConfig(d_model=16, n_heads=2, n_layers=1, d_ff=16), 20, 20)
    Precision("float32", CPU).narrow(network)
    assert network.source.stream is None
