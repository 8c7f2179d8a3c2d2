"""Attention to tokens that several rows share equals attention to what each row has, gathered."""

import importlib
import random
from importlib.util import find_spec

import pytest
import torch

from regard.attention import fused
from regard.attention.cache import SlotKVCache

pytestmark = [
    pytest.mark.plain,  # the shape checker wraps functions that Triton has to read
    pytest.mark.skipif(find_spec("triton") is None, reason="needs Triton, which is for Linux"),
]

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def searched(n_steps, width, n_slots=3, beam=2):
    """A cache after some steps of a search whose sentences began at different times."""
    draw = random.Random(n_steps)
    tokens = torch.randn(n_steps, n_slots * beam, 2, 1, width, device=DEVICE)
    cache = SlotKVCache.empty(tokens[0], n_slots * beam, max_len=20)
    for step, token in enumerate(tokens):
        if step == n_steps // 2:
            cache.begin_anew(torch.tensor([2, 3], device=DEVICE))
        rows = [slot * beam + draw.randrange(beam) for slot in range(n_slots) for _ in range(beam)]
        cache.reorder(torch.tensor(rows, device=DEVICE))
        cache.append(token, torch.randn_like(token))
    return cache


@pytest.mark.parametrize(("n_steps", "width"), [(1, 16), (7, 12), (19, 16), (24, 64)])
def test_attention_reads_keys_and_values_where_they_were_written(monkeypatch, n_steps, width):
    kernel = importlib.import_module("regard.attention.kernels.slots")
    cache = searched(n_steps, width)
    assert len(set(cache.owners.flatten().tolist())) > 1
    wide = torch.randn(len(cache.keys), 1, 3, 2, width, device=DEVICE)
    query = wide[:, :, 1].transpose(1, 2)  # a part of a row, as a projection leaves it
    expected = fused.scaled_dot_attention(query, cache.key, cache.value, cache.visible(1)[:, None])
    monkeypatch.setattr(fused.kernels, "can_take", lambda *_: True)
    monkeypatch.setattr(fused, "slot_attention", kernel.slot_attention, raising=False)
    torch.testing.assert_close(fused.scaled_dot_step(query, cache), expected)


def test_rows_that_go_on_from_one_another_have_what_was_said_before_them():
    """As if the whole cache were copied at every step, which is what `reorder` means."""
    copied = torch.zeros(4, 2, 5, 3)
    cache = SlotKVCache.empty(copied, 4, max_len=5)
    for place, rows in enumerate([[0, 1, 2, 3], [1, 1, 2, 3], [0, 0, 3, 2], [1, 0, 2, 2]]):
        token = torch.randn(4, 2, 1, 3)
        cache.reorder(torch.tensor(rows)).append(token, -token)
        copied = copied[rows]
        copied[:, :, place] = token[:, :, 0]
        assert torch.equal(cache.key[:, :, : place + 1], copied[:, :, : place + 1])
        assert torch.equal(cache.value[:, :, : place + 1], -copied[:, :, : place + 1])
