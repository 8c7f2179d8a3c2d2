"""`fused.py` equals `functional.py`: values and gradients, every score, mask and precision."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.attention import (
    Blocks,
    Causal,
    Packed,
    additive_attention,
    additive_scores,
    attend,
    causal_mask,
    dense,
    dot_attention,
    dot_scores,
    gaussian_attention,
    gaussian_scores,
    scaled_dot_attention,
    scaled_dot_scores,
)
from regard.attention.fused import gaussian_as_dot
from regard.errors import ModelError

V, W = torch.randn(2, 8), torch.tensor([0.3, 0.8])

PAIRS = {
    "scaled_dot": (scaled_dot_attention, scaled_dot_scores),
    "dot": (dot_attention, dot_scores),
    "gaussian": (
        lambda q, k, v, mask=None: gaussian_attention(q, k, v, W.to(q), mask),
        lambda q, k: gaussian_scores(q, k, W.to(q)),
    ),
    "additive": (
        lambda q, k, v, mask=None: additive_attention(q, k, v, V.to(q), mask),
        lambda q, k: additive_scores(q, k, V.to(q)),
    ),
}

MASKS = {
    "none": lambda q, k: None,
    "causal": lambda q, k: Causal(),
    "dense causal": causal_mask,
    "padding": lambda q, k: torch.arange(k) < torch.tensor([2, k])[:, None, None, None],
    "a query with no keys": lambda q, k: torch.arange(q)[:, None] > torch.zeros(k),
}


def inputs(*shape, n_queries, n_keys, dtype=torch.float64):
    return [
        torch.randn(*shape, n, 8, dtype=dtype, requires_grad=True)
        for n in (n_queries, n_keys, n_keys)
    ]


def gradients(output, tensors):
    # a sum of squares, so that every output element has its own gradient
    return torch.autograd.grad(output.square().sum(), tensors)


@pytest.mark.parametrize("mask_name", MASKS)
@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_fast_path_equals_the_definition(name, mask_name, dtype):
    fast, scores = PAIRS[name]
    query, key, value = inputs(2, 2, n_queries=5, n_keys=5, dtype=dtype)
    mask = MASKS[mask_name](5, 5)

    ours = fast(query, key, value, mask)
    truth = attend(query, key, value, scores, dense(mask, 5, 5)).output

    torch.testing.assert_close(ours, truth)
    torch.testing.assert_close(
        gradients(ours, (query, key, value)), gradients(truth, (query, key, value))
    )


@pytest.mark.parametrize("name", PAIRS)
def test_causal_counts_from_the_first_key_when_there_are_more_keys_than_queries(name):
    fast, scores = PAIRS[name]
    query, key, value = inputs(1, 2, n_queries=3, n_keys=5)
    truth = attend(query, key, value, scores, causal_mask(3, 5)).output
    torch.testing.assert_close(fast(query, key, value, Causal()), truth)


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("causal", [False, True])
@given(data=st.data())
def test_packed_rows_equal_the_block_diagonal_mask_written_out(name, causal, data):
    fast, scores = PAIRS[name]
    lens = data.draw(st.lists(st.integers(0, 4), min_size=1, max_size=4))
    key_lens = lens if causal else [data.draw(st.integers(0, 4)) for _ in lens]
    slots = len(lens) + 3
    query_layout = Packed.of(lens, n_tokens=sum(lens) + 2, n_slots=slots, max_len=5)
    key_layout = Packed.of(key_lens, n_tokens=sum(key_lens) + 2, n_slots=slots, max_len=5)
    mask = Blocks(query_layout, key_layout, causal)
    query, key, value = inputs(2, n_queries=sum(lens) + 2, n_keys=sum(key_lens) + 2)

    ours = fast(query, key, value, mask)
    truth = attend(query, key, value, scores, dense(mask, query.shape[-2], key.shape[-2])).output

    torch.testing.assert_close(ours, truth)
    torch.testing.assert_close(
        gradients(ours, (query, key, value)), gradients(truth, (query, key, value))
    )


@pytest.mark.parametrize("name", PAIRS)
def test_bfloat16_stays_within_its_own_rounding_of_the_definition(name):
    fast, scores = PAIRS[name]
    query, key, value = (x.detach() for x in inputs(2, 2, n_queries=16, n_keys=16))
    query, key, value = (x.bfloat16() for x in (query, key, value))
    truth = attend(query.double(), key.double(), value.double(), scores).output
    error = (fast(query, key, value).double() - truth).norm() / truth.norm()
    assert error < 1e-2


def test_two_coordinates_for_the_square_of_a_key_keep_gaussian_scores_exact_in_bfloat16():
    """Far from the origin |k|^2 / 2 is large; in one bfloat16 its rounding swamps the scores."""
    w = torch.ones(1)
    query = (torch.randn(1, 32, 64) + 3).bfloat16()
    key = (torch.randn(1, 32, 64) + 3).bfloat16()
    truth = gaussian_scores(query.double(), key.double(), 1.0).log_softmax(-1)

    long_query, long_key = gaussian_as_dot(query, key, w)
    with_two = (long_query.double() @ long_key.double().mT).log_softmax(-1)
    coarse_only = long_key.clone()
    coarse_only[..., 65] = 0
    with_one = (long_query.double() @ coarse_only.double().mT).log_softmax(-1)

    assert long_key.shape[-1] == 72
    assert (with_two - truth).abs().max() < 0.01
    assert (with_one - truth).abs().max() > 0.2


def test_one_width_for_all_heads_may_be_a_number():
    query, key, value = inputs(2, 2, n_queries=3, n_keys=4)
    truth = attend(query, key, value, lambda q, k: gaussian_scores(q, k, 0.5)).output
    torch.testing.assert_close(gaussian_attention(query, key, value, 0.5), truth)


def test_dropout_is_applied_in_the_fast_path():
    query, key = torch.randn(1, 2, 8, 16), torch.randn(1, 2, 64, 16)
    value = torch.ones(1, 2, 64, 16)
    for dropped in (
        scaled_dot_attention(query, key, value, dropout=0.5),
        dot_attention(query, key, value, dropout=0.5),
        gaussian_attention(query, key, value, torch.ones(2), dropout=0.5),
        additive_attention(query, key, value, torch.randn(2, 16), dropout=0.5),
    ):
        assert (dropped - 1).abs().max() > 0.01
        assert dropped.mean().item() == pytest.approx(1.0, abs=0.35)


@pytest.mark.parametrize("attention", [dot_attention, scaled_dot_attention])
def test_dropout_is_applied_in_packed_rows(attention):
    packed = Packed.of([40, 24], n_tokens=64, n_slots=2, max_len=40)
    query, key, value = torch.randn(2, 64, 16), torch.randn(2, 64, 16), torch.ones(2, 64, 16)
    dropped = attention(query, key, value, Blocks(packed, packed), dropout=0.5)
    assert (dropped - 1).abs().max() > 0.01
    assert dropped.mean().item() == pytest.approx(1.0, abs=0.35)


@pytest.mark.parametrize("d_value", [1, 3, 16, 17])
@pytest.mark.parametrize("d_head", [2, 5, 8, 14])
def test_gaussian_values_may_be_of_any_width(d_head, d_value):
    query, key = torch.randn(1, 3, d_head).double(), torch.randn(1, 4, d_head).double()
    value = torch.randn(1, 4, d_value).double()
    truth = attend(query, key, value, lambda q, k: gaussian_scores(q, k, 0.5)).output
    torch.testing.assert_close(gaussian_attention(query, key, value, 0.5), truth)
    long_query, long_key = gaussian_as_dot(query, key, 0.5)
    assert long_query.shape[-1] == long_key.shape[-1] == (d_head + 2 + 7) // 8 * 8


@pytest.mark.parametrize("name", PAIRS)
def test_half_precision_goes_in_and_comes_out_whatever_the_parameters_are(name):
    x = torch.randn(1, 2, 3, 8).bfloat16()
    attentions = {
        "scaled_dot": lambda: scaled_dot_attention(x, x, x),
        "dot": lambda: dot_attention(x, x, x),
        "gaussian": lambda: gaussian_attention(x, x, x, W),
        "additive": lambda: additive_attention(x, x, x, V),
    }
    assert attentions[name]().dtype == torch.bfloat16


@pytest.mark.parametrize("offset", [0.0, 100.0, 10_000.0])
def test_gaussian_attention_does_not_depend_on_where_the_origin_is(offset):
    query, key, value = (x.detach().float() for x in inputs(1, 2, n_queries=5, n_keys=6))
    query, key = query + offset, key + offset
    exact = [x.double() for x in (query, key, value)]
    truth = attend(*exact, lambda q, k: gaussian_scores(q, k, 1.0)).output
    ours = gaussian_attention(query, key, value, 1.0).double()
    assert (ours - truth).abs().max() < 1e-4


@pytest.mark.plain
@pytest.mark.parametrize("name", PAIRS)
def test_packed_rows_must_be_one_row_of_the_right_length(name):
    fast, _ = PAIRS[name]
    packed = Packed.of([2, 3], n_tokens=5, n_slots=2, max_len=3)
    batched, short = torch.randn(3, 2, 5, 8), torch.randn(2, 4, 8)
    with pytest.raises(
        ModelError,
        match=r"^a packed mask is for one row of tokens without a batch, but the heads have shape "
        r"\(3, 2, 5, \d+\)$",
    ):
        fast(batched, batched, batched, Blocks(packed, packed))
    for query in (short, batched[0]):
        with pytest.raises(ModelError, match=r"^a packed mask covers 5 tokens but there are 4$"):
            fast(query, short, short, Blocks(packed, packed))
