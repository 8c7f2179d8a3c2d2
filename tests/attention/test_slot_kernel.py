"""Attention to tokens that several rows share equals attention to what each row has, gathered."""

import importlib
import random
from dataclasses import replace
from importlib.util import find_spec

import pytest
import torch

from regard.attention import attend, fused, padding_mask, scaled_dot_scores
from regard.attention.cache import Lineage, SlotKVCache

pytestmark = [
    pytest.mark.plain,  # the shape checker wraps functions that Triton has to read
    pytest.mark.skipif(find_spec("triton") is None, reason="needs Triton, which is for Linux"),
]

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
EVERY_ROW = torch.ones(6, dtype=torch.bool, device=DEVICE)


def searched(n_steps, width, n_slots=3, beam=2):
    """A cache after some steps of a search whose sentences began at different times."""
    draw = random.Random(n_steps)
    tokens = torch.randn(n_steps, n_slots * beam, 2, 1, width, device=DEVICE)
    lineage = Lineage.empty(n_slots * beam, 20, tokens.device)
    cache = SlotKVCache.empty(tokens[0], lineage)
    for step, token in enumerate(tokens):
        if step == n_steps // 2:
            lineage.begin_anew(torch.tensor([2, 3], device=DEVICE))
        cache.append(token, torch.randn_like(token))
        rows = [slot * beam + draw.randrange(beam) for slot in range(n_slots) for _ in range(beam)]
        lineage.follow(torch.tensor(rows, device=DEVICE), EVERY_ROW)
    return cache


def projected(n_rows, width):
    """Query, key and value of one token a row, as a projection leaves them: parts of a row."""
    wide = torch.randn(n_rows, 1, 3, 2, width, device=DEVICE)
    return wide.transpose(1, 3).unbind(2)


@pytest.fixture(params=[(16, 1), (64, 2), (128, 4)])
def kernel(monkeypatch, request):
    """The kernels where the fast path looks for them, as for many rows and for few."""
    found = importlib.import_module("regard.attention.kernels.slots")
    monkeypatch.setattr(found, "_tiles", lambda *_: request.param)
    for name in ("slot_attention", "source_attention"):
        monkeypatch.setattr(fused, name, getattr(found, name), raising=False)
    return lambda: monkeypatch.setattr(fused.kernels, "can_take", lambda *_: True)


@pytest.mark.parametrize(("n_steps", "width"), [(0, 16), (1, 16), (7, 12), (19, 16), (24, 64)])
def test_attention_reads_keys_and_values_where_they_were_written(kernel, n_steps, width):
    cache = searched(n_steps, width) if n_steps else empty(width)
    other = replace(cache, keys=cache.keys.clone(), values=cache.values.clone())
    token = projected(len(cache.keys), width)
    expected, _ = fused.scaled_dot_step(*token, other)
    kernel()
    found, longer = fused.scaled_dot_step(*token, cache)
    torch.testing.assert_close(found, expected)
    assert longer is cache
    assert torch.equal(cache.keys, other.keys)
    assert torch.equal(cache.values, other.values)


def test_the_fewer_rows_there_are_the_more_tokens_each_asks_for_at_once():
    tiles = importlib.import_module("regard.attention.kernels.slots")._tiles
    found = [tiles(n_heads, 64) for n_heads in (8, 512, 513, 1024, 1025, 24_576)]
    assert found == [(128, 4), (128, 4), (64, 2), (64, 2), (16, 1), (16, 1)]
    assert [tiles(8, width)[0] for width in (16, 64, 80, 128, 1024)] == [128, 128, 64, 64, 16]


def empty(width):
    lineage = Lineage.empty(6, 20, torch.device(DEVICE))
    return SlotKVCache.empty(torch.zeros(1, 2, 1, width, device=DEVICE), lineage)


@pytest.mark.parametrize(("n_queries", "n_keys", "width"), [(1, 5, 16), (5, 16, 12), (3, 37, 64)])
def test_hypotheses_ask_the_source_of_their_sentence(kernel, n_queries, n_keys, width):
    """As if each had a copy of it; a sentence without a source gets nothing, not nonsense."""
    query = torch.randn(3, n_queries, 2, width, device=DEVICE).transpose(1, 2)
    keys, values = torch.randn(2, 3, 2, n_keys, width, device=DEVICE)
    lens = torch.tensor([n_keys, 3, 0], device=DEVICE)
    mask = padding_mask(lens, n_keys)[:, None]
    expected = attend(query, keys, values, scaled_dot_scores, mask).output
    kernel()
    found = fused.scaled_dot_attention(query, keys, values, mask)
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("other", ["narrow values", "one head", "one sentence", "strided", "none"])
def test_what_the_kernel_would_read_wrongly_goes_another_way(kernel, other):
    query, keys, values = torch.randn(3, 3, 2, 4, 8, device=DEVICE)
    mask = torch.ones(3, 1, 1, 4, dtype=torch.bool, device=DEVICE)
    match other:
        case "narrow values":
            values = values[..., :5]
        case "one head":
            keys, values = keys[:, :1], values[:, :1]
        case "one sentence":
            keys, values = keys[:1], values[:1]
        case "strided":
            query, keys, values = (x.mT.contiguous().mT for x in (query, keys, values))
        case "none":
            keys, values, mask = keys[:, :, :0], values[:, :, :0], mask[..., :0]
    expected = fused.scaled_dot_attention(query, keys, values, mask)
    kernel()
    found = fused.scaled_dot_attention(query, keys, values, mask)
    torch.testing.assert_close(found, expected)


def test_rows_that_go_on_from_one_another_have_what_was_said_before_them():
    """As if the whole cache were copied at every step."""
    copied = torch.zeros(4, 2, 5, 3)
    lineage = Lineage.empty(4, 5, copied.device)
    cache = SlotKVCache.empty(copied, lineage)
    for place, rows in enumerate([[1, 1, 2, 3], [0, 0, 3, 2], [1, 0, 2, 2], [0, 1, 2, 3]]):
        token = torch.randn(4, 2, 1, 3)
        cache.append(token, -token)
        copied[:, :, place] = token[:, :, 0]
        assert torch.equal(cache.key[:, :, : place + 1], copied[:, :, : place + 1])
        assert torch.equal(cache.value[:, :, : place + 1], -copied[:, :, : place + 1])
        lineage.follow(torch.tensor(rows), torch.ones(4, dtype=torch.bool))
        copied = copied[rows]


@pytest.mark.parametrize(("n_words", "n"), [(12, 2), (300, 10), (1024, 3), (5, 5)])
def test_the_likeliest_words_are_those_of_torch(n_words, n):
    kernel = importlib.import_module("regard.attention.kernels.likeliest")
    logits = 4 * torch.randn(7, n_words + 3, device=DEVICE)[:, :n_words]  # rows with a gap
    assert kernel.can_hold(logits, n)
    found = kernel.likeliest(logits, n)
    expected = logits.log_softmax(-1).topk(n)
    torch.testing.assert_close(found[0], expected[0])
    assert torch.equal(found[1], expected[1])


def test_of_equal_words_the_first_are_the_likeliest():
    kernel = importlib.import_module("regard.attention.kernels.likeliest")
    _, words = kernel.likeliest(torch.zeros(2, 9, device=DEVICE), 3)
    assert words.tolist() == [[0, 1, 2]] * 2
