"""Devices by their names."""

import re

import pytest
import torch

from regard.errors import ConfigError, ResourceError
from regard.model.device import device_named


@pytest.mark.parametrize(
    "name", ["gpu", "cuda:", "cuda:x", "cuda:-1", "cpu:0", "mps", "", "cuda:²"]
)
def test_what_is_no_device_is_refused(name):
    sentence = f'device = "{name}" is not one of cpu, cuda, cuda:0, cuda:1'
    with pytest.raises(ConfigError, match=f"^{re.escape(sentence)}$"):
        device_named(name)


@pytest.mark.parametrize(("name", "n_gpus"), [("cuda", 0), ("cuda:0", 0), ("cuda:2", 2)])
def test_a_gpu_that_is_not_there_is_refused(monkeypatch, name, n_gpus):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: n_gpus)
    sentence = (
        f'device = "{name}", but of the GPUs that torch can use there are {n_gpus} here; '
        "choose cpu, or install torch for CUDA if there are more"
    )
    with pytest.raises(ResourceError, match=f"^{re.escape(sentence)}$"):
        device_named(name)


def test_what_is_there_is_found(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert [str(device_named(name)) for name in ("cpu", "cuda", "cuda:1")] == [
        "cpu",
        "cuda",
        "cuda:1",
    ]
