import re
from types import SimpleNamespace

import pytest
import torch

from regard.errors import ResourceError
from regard.train.memory import fitting_tokens, is_out_of_memory, memory_told

GPU = torch.device("cuda", 0)


def test_torch_and_python_say_in_three_ways_that_memory_is_used_up():
    with pytest.raises((MemoryError, RuntimeError)) as caught:
        torch.empty(2**60)  # no machine has that
    assert is_out_of_memory(caught.value)
    assert is_out_of_memory(MemoryError())
    assert is_out_of_memory(torch.OutOfMemoryError("CUDA out of memory"))
    assert not is_out_of_memory(RuntimeError("a fault of ours"))
    assert not is_out_of_memory(ValueError("can't allocate memory"))


def test_want_of_memory_is_a_sentence_and_nothing_else_is():
    sentence = (
        "memory is used up, with train.tokens = 4096; choose a smaller one, or a smaller model"
    )
    with pytest.raises(ResourceError, match=f"^{re.escape(sentence)}$"), memory_told(4096):
        raise MemoryError
    with pytest.raises(RuntimeError, match=r"^a fault of ours$"), memory_told(4096):
        raise RuntimeError("a fault of ours")


@pytest.fixture
def gpu(monkeypatch):
    """A GPU of a thousand bytes, of which every token that is tried takes a tenth."""
    memory = SimpleNamespace(total=1000.0, peak=0.0, tried=[])
    monkeypatch.setattr(torch.cuda, "reset_peak_memory_stats", lambda device: None)
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
    monkeypatch.setattr(torch.cuda, "max_memory_reserved", lambda device: memory.peak)
    properties = SimpleNamespace(total_memory=memory.total)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: properties)
    return memory


def test_a_cpu_is_not_tried():
    def tried(tokens):
        raise AssertionError

    assert fitting_tokens(tried, torch.device("cpu")) == 4096


@pytest.mark.parametrize(
    ("per_token", "expected"), [(1e-9, 65_536), (0.05, 16_384), (0.03, 16_384), (0.4, 2048)]
)
def test_the_largest_power_of_two_that_leaves_room_is_found(gpu, per_token, expected):
    """By the numbers: 0.05 * 16384 = 819 < 900 < 1638, and 0.03 * 32768 = 983 is too near."""

    def update(tokens):
        gpu.tried.append(tokens)
        gpu.peak = per_token * tokens
        if gpu.peak > gpu.total:
            raise torch.OutOfMemoryError("CUDA out of memory")

    assert fitting_tokens(update, GPU) == expected
    assert gpu.tried == [2048 * 2**n for n in range(len(gpu.tried))]


def test_another_error_while_trying_is_not_taken_for_want_of_memory(gpu):
    def update(tokens):
        raise RuntimeError("a fault of ours")

    with pytest.raises(RuntimeError, match=r"^a fault of ours$"):
        fitting_tokens(update, GPU)
