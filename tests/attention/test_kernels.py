"""The kernels equal the definition, by Triton's interpreter in float32, where there is no GPU.

On a GPU `test_fused_gpu.py` compares the same kernels as they run there.
"""

import importlib
import math
from importlib.util import find_spec

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch._dynamo.testing import CompileCounterWithBackend

from regard.attention import (
    Blocks,
    Causal,
    Packed,
    additive_scores,
    attend,
    dense,
    dot_scores,
    fused,
    padding_mask,
)
from regard.attention.kernels.spans import spans_of
from regard.attention.scores import make_score

pytestmark = [
    pytest.mark.plain,  # the shape checker wraps functions that Triton has to read
    pytest.mark.skipif(torch.cuda.is_available(), reason="the kernels run there themselves"),
    pytest.mark.skipif(find_spec("triton") is None, reason="needs Triton, which is for Linux"),
]

MASKS = ["self", "causal", "cross"]
lengths = st.lists(st.tuples(st.integers(1, 24), st.integers(0, 24)), min_size=1, max_size=4)


@pytest.fixture
def short():
    return importlib.import_module("regard.attention.kernels.short")


def packed(lens, filler=3):
    return Packed.of(lens, n_tokens=sum(lens) + filler, n_slots=len(lens) + 4, max_len=128)


def blocks(kind, lens=((3, 7), (17, 0), (1, 30), (40, 2))):
    """A mask of packed rows, and how many queries and keys it has."""
    own, other = packed([a for a, _ in lens]), packed([b for _, b in lens])
    mask = Blocks(own, other if kind == "cross" else own, causal=kind == "causal")
    return mask, int(mask.query.offsets[-1]), int(mask.key.offsets[-1])


def heads(n_rows, width, n_heads=2):
    """Heads of packed rows as a projection leaves them: a part of a wider row, heads within."""
    row = torch.randn(n_rows, 3, n_heads, width)
    return row[:, 1].transpose(0, 1).requires_grad_()


def assert_equal(ours, truth, inputs, exact_inputs, bound=1e-5):
    """Values and gradients, relative to their size."""
    weight = torch.randn_like(truth)
    mine = torch.autograd.grad((ours * weight.to(ours)).sum(), inputs)
    right = torch.autograd.grad((truth * weight).sum(), exact_inputs)
    for a, b in zip((ours, *mine), (truth, *right), strict=True):
        assert a.isfinite().all()
        assert (a.double() - b).norm() <= bound * b.norm().clamp(min=1.0)


def assert_short_equals_the_definition(short, mask, query, key, value, scale, bound=1e-5):
    spans = spans_of(mask, query.shape[-2], key.shape[-2], query.device)
    is_own = mask.query is mask.key
    ours = short.short_attention(query, key, value, spans, scale, 0.0, is_own=is_own)
    exact = [x.detach().double().requires_grad_() for x in (query, key, value)]
    written_out = dense(mask, query.shape[-2], key.shape[-2])
    truth = attend(*exact, lambda q, k: scale * dot_scores(q, k), written_out).output
    assert_equal(ours, truth, (query, key, value), exact, bound)


@pytest.mark.parametrize("kind", MASKS)
@settings(max_examples=2)
@given(lens=lengths)
def test_many_short_sentences_equal_the_definition(short, kind, lens):
    mask, n_queries, n_keys = blocks(kind, lens)
    query, key, value = heads(n_queries, 16), heads(n_keys, 16), heads(n_keys, 16)
    assert_short_equals_the_definition(short, mask, query, key, value, 0.3)


def test_a_sentence_longer_than_a_tile_and_widths_that_are_no_powers_of_two(short):
    mask, n_queries, n_keys = blocks("causal", [(5, 0), (70, 0), (2, 0)])
    query, key, value = heads(n_queries, 24), heads(n_keys, 24), heads(n_keys, 10)
    assert_short_equals_the_definition(short, mask, query, key, value, 24**-0.5)


def test_scores_far_from_zero_stay_finite(short):
    mask, n_queries, n_keys = blocks("cross")
    query, key, value = heads(n_queries, 16), heads(n_keys, 16), heads(n_keys, 16)
    # an error in the last digit of a score, and these are thousands, is as large in its weight
    largest = 100.0 * (query @ key.mT).detach().abs().max()
    bound = float(largest) * torch.finfo(torch.float32).eps
    assert_short_equals_the_definition(short, mask, query, key, value, 100.0, bound=bound)


@pytest.mark.parametrize("kind", MASKS)
def test_the_rows_that_a_mask_stands_for_are_those_of_its_spans(kind):
    mask, n_queries, n_keys = blocks(kind)
    assert_spans_equal(mask, n_queries, n_keys)


@pytest.mark.parametrize("mask", [None, Causal()])
def test_spans_of_rows_that_are_not_packed(mask):
    assert_spans_equal(mask, 5, 5)
    assert_spans_equal(mask, 3, 7)
    assert_spans_equal(mask, 7, 3)


def test_spans_are_worked_out_once_for_all_layers_and_anew_for_another_mask():
    device, masks = torch.device("cpu"), [blocks(kind) for kind in MASKS]
    first = [spans_of(*one, device) for one in masks]
    assert len(masks) <= 3
    assert all(spans_of(*one, device) is spans for one, spans in zip(masks, first, strict=True))
    for one in masks:
        assert_spans_equal(*one)
        assert_spans_equal(*blocks("causal", [(2, 0), (5, 0)]))
    with torch.inference_mode():
        inferred = spans_of(*masks[0], device)
    assert not spans_of(*masks[0], device).first_key.is_inference()
    assert inferred.first_key.is_inference()


def assert_spans_equal(mask, n_queries, n_keys):
    spans = spans_of(mask, n_queries, n_keys, torch.device("cpu"))
    expected = dense(mask, n_queries, n_keys)
    expected = torch.ones(n_queries, n_keys, dtype=torch.bool) if mask is None else expected
    queries, keys = torch.arange(n_queries), torch.arange(n_keys)
    by_query = (keys >= spans.first_key[:, None]) & (keys < spans.end_key[:, None])
    by_key = (queries >= spans.first_query[:, None]) & (queries < spans.end_query[:, None])
    assert torch.equal(by_query, expected)
    assert torch.equal(by_key.T, expected)
    for bound in (spans.first_key, spans.end_key, spans.first_query, spans.end_query):
        assert (bound.diff() >= 0).all(), "tiles rely on it"


@pytest.mark.parametrize("kind", MASKS)
def test_dropout_is_the_same_on_the_way_back_and_drops_its_share(short, kind):
    """With values that name the keys the weights can be read off, and so what was dropped."""
    mask, n_queries, n_keys = blocks(kind)
    query, key = heads(n_queries, 16), heads(n_keys, 16)
    value = torch.eye(n_keys).expand(2, -1, -1).clone().requires_grad_()
    spans = spans_of(mask, n_queries, n_keys, query.device)
    weights = short.short_attention(query, key, value, spans, 0.25, 0.4)

    exact = [x.detach().double().requires_grad_() for x in (query, key, value)]
    written_out = dense(mask, n_queries, n_keys)
    whole = attend(*exact, lambda q, k: 0.25 * dot_scores(q, k), written_out).weights
    kept = weights.detach().double() > 0
    truth = (kept * whole / 0.6) @ exact[2]
    assert_equal(weights, truth, (query, key, value), exact)

    n_seen, n_kept = 2 * int(written_out.sum()), int(kept.sum())
    assert abs(n_kept - 0.6 * n_seen) < 4 * math.sqrt(0.24 * n_seen)
    assert not torch.equal(kept[0], kept[1]), "every head draws for itself"


def test_dropout_follows_the_seed(short):
    mask, n_queries, n_keys = blocks("self")
    query, key, value = heads(n_queries, 16), heads(n_keys, 16), heads(n_keys, 16)
    spans = spans_of(mask, n_queries, n_keys, query.device)

    def run(seed):
        torch.manual_seed(seed)
        return short.short_attention(query, key, value, spans, 0.25, 0.4)

    assert torch.equal(run(1), run(1))
    assert not torch.equal(run(1), run(2))


def test_the_kernel_is_one_node_of_a_compiled_graph_and_compiled_once(short):
    def loss(query, key, value, mask):
        spans = spans_of(mask, query.shape[-2], key.shape[-2], query.device)
        return short.short_attention(query, key, value, spans, 0.25, 0.0).square().sum()

    counter = CompileCounterWithBackend("aot_eager")
    compiled = torch.compile(loss, backend=counter, fullgraph=True)
    for lens in ([5, 9, 3], [11, 2, 4]):
        layout = Packed.of(lens, n_tokens=20, n_slots=8, max_len=16)
        inputs = [heads(20, 16) for _ in range(3)]
        mine = torch.autograd.grad(compiled(*inputs, Blocks(layout, layout)), inputs)
        right = torch.autograd.grad(loss(*inputs, Blocks(layout, layout)), inputs)
        torch.testing.assert_close(mine, right)
    assert counter.frame_count == 1


@pytest.fixture
def additive():
    return importlib.import_module("regard.attention.kernels.additive")


def rows(n_rows, width, n_batch=1):
    return torch.randn(n_batch, 2, n_rows, width, requires_grad=True)


def assert_additive_equals_the_definition(additive, seen, allowed, query, key, value):
    v = torch.randn(2, query.shape[-1], requires_grad=True)
    n_queries, n_keys = query.shape[-2], key.shape[-2]
    spans = spans_of(seen, n_queries, n_keys, query.device)
    inputs = query, key, value, v
    exact = [x.detach().double().requires_grad_() for x in inputs]
    mask = dense(seen, n_queries, n_keys) if allowed is None else allowed
    for longest in (n_keys, additive.KEPT + 1):  # scores are kept, or made again on the way back
        truth = attend(*exact[:3], lambda q, k: additive_scores(q, k, exact[3]), mask).output
        ours = additive.tiled_additive_attention(*inputs, spans, allowed, 0.0, 20.0, longest)
        assert_equal(ours, truth, inputs, exact)


@pytest.mark.parametrize("kind", MASKS)
def test_additive_attention_in_packed_rows_equals_the_definition(additive, kind):
    mask, n_queries, n_keys = blocks(kind, [(3, 7), (9, 0), (5, 11)])
    query, key, value = rows(n_queries, 6), rows(n_keys, 6), rows(n_keys, 10)
    assert_additive_equals_the_definition(additive, mask, None, query, key, value)


@pytest.mark.parametrize("kind", ["none", "causal", "padding", "any"])
def test_additive_attention_in_padded_rows_equals_the_definition(additive, kind):
    allowed = {
        "padding": padding_mask(torch.tensor([0, 17]), 18)[:, None],
        "any": torch.rand(2, 1, 9, 18) > 0.5,
    }
    query, key, value = rows(9, 4, 2), rows(18, 4, 2), rows(18, 16, 2)
    seen = Causal() if kind == "causal" else None
    assert_additive_equals_the_definition(additive, seen, allowed.get(kind), query, key, value)


@pytest.mark.filterwarnings("ignore:overflow")  # meant: one over infinity is zero
def test_additive_scores_of_far_coordinates_are_finite_and_right(additive):
    """Where tanh is flat, or would be if q and k did not cancel."""
    query, key, value = rows(8, 4), rows(8, 4), rows(8, 16)
    with torch.no_grad():
        query += 30.0 * torch.tensor([1.0, -1.0, 1.0, 0.0])
        key += 30.0 * torch.tensor([-1.0, 1.0, 1.0, 0.0])
    assert_additive_equals_the_definition(additive, None, None, query, key, value)


@pytest.mark.parametrize("longest", [18, 1000])
def test_additive_dropout_is_the_same_on_the_way_back(additive, longest):
    query, key = rows(18, 4), rows(18, 4)
    v = torch.randn(2, 4, requires_grad=True)
    value = torch.eye(18).expand(1, 2, -1, -1).clone().requires_grad_()
    spans = spans_of(Causal(), 18, 18, query.device)
    weights = additive.tiled_additive_attention(
        query, key, value, v, spans, None, 0.4, 20.0, longest
    )
    inputs = query, key, value, v
    exact = [x.detach().double().requires_grad_() for x in inputs]
    whole = attend(
        *exact[:3], lambda q, k: additive_scores(q, k, exact[3]), dense(Causal(), 18, 18)
    )
    kept = weights.detach().double() > 0
    assert_equal(weights, (kept * whole.weights / 0.6) @ exact[2], inputs, exact)
    assert 0.4 < float(kept.sum() / (2 * 18 * 19 / 2)) < 0.8


@pytest.fixture
def on_a_gpu(monkeypatch, short, additive):
    """The fast paths as they choose where there is a GPU; what they call is counted."""
    asked = []

    def counted(kernel):
        return lambda *given, **named: asked.append(kernel.__name__) or kernel(*given, **named)

    waves = importlib.import_module("regard.attention.kernels.waves")
    monkeypatch.setattr(fused.kernels, "can_take", lambda *_: True)
    monkeypatch.setattr(fused, "is_for_waves", waves.is_for_waves, raising=False)
    for kernel in (short.short_attention, additive.tiled_additive_attention):
        monkeypatch.setattr(fused, kernel.__name__, counted(kernel), raising=False)
    return asked


@pytest.mark.parametrize(
    ("name", "kernel"),
    [
        ("scaled_dot", "short_attention"),
        ("dot", "short_attention"),
        ("gaussian", "short_attention"),
        ("additive", "tiled_additive_attention"),
    ],
)
def test_packed_rows_go_to_the_kernels_and_come_back_the_same(on_a_gpu, name, kernel):
    score = make_score(name, n_heads=2, d_head=8)
    mask, n_queries, n_keys = blocks("cross", [(3, 7), (9, 0), (5, 11)])
    query, key, value = heads(n_queries, 8), heads(n_keys, 8), heads(n_keys, 8)
    ours = score.attend(query, key, value, mask, 0.0)
    truth = attend(query, key, value, score, dense(mask, n_queries, n_keys)).output
    torch.testing.assert_close(ours, truth)
    assert on_a_gpu == [kernel]


def test_long_sentences_go_to_torch_unless_there_is_dropout(on_a_gpu, monkeypatch):
    monkeypatch.setattr(fused, "SHORT", 5)
    layout = Packed.of([9, 9], n_tokens=18, n_slots=2, max_len=9)
    mask, (query, key, value) = Blocks(layout, layout), (heads(18, 16) for _ in range(3))
    fused.scaled_dot_attention(query, key, value, mask)
    assert on_a_gpu == []
    fused.scaled_dot_attention(query, key, value, mask, dropout=0.1)
    assert on_a_gpu == ["short_attention"]


@pytest.mark.parametrize("kind", ["none", "causal", "dense", "padding", "one query", "shared keys"])
def test_padded_rows_of_additive_attention_go_to_the_kernel_where_it_pays(on_a_gpu, kind):
    score = make_score("additive", n_heads=2, d_head=8)
    masks = {
        "causal": Causal(),
        "dense": torch.rand(6, 6) > 0.4,
        "padding": padding_mask(torch.tensor([2, 6]), 6)[:, None],
    }
    mask = masks.get(kind)
    query, key, value = torch.randn(3, 2, 2, 6, 8)
    query = query[:, :, :1] if kind == "one query" else query
    key, value = (key[:1], value[:1]) if kind == "shared keys" else (key, value)
    ours = score.attend(query, key, value, mask, 0.0)
    truth = attend(query, key, value, score, dense(mask, query.shape[-2], 6)).output
    torch.testing.assert_close(ours, truth)
    by_definition = kind in ("one query", "shared keys")
    assert on_a_gpu == ([] if by_definition else ["tiled_additive_attention"])
