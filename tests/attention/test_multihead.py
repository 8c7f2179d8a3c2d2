import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.attention import (
    Blocks,
    Causal,
    CrossAttention,
    FixedKVCache,
    KVCache,
    Packed,
    RotaryPositions,
    SelfAttention,
    attend,
    causal_mask,
    padding_mask,
    scaled_dot_scores,
)

SCORES = ["scaled_dot", "dot", "additive", "gaussian"]


def test_self_attention_equals_its_heads_one_by_one():
    attention = SelfAttention(12, 3)
    x, mask = torch.randn(2, 5, 12), causal_mask(5)
    w_query, w_key, w_value = attention.qkv.weight.chunk(3)
    b_query, b_key, b_value = attention.qkv.bias.chunk(3)
    heads = []
    for h in range(3):
        of_head = slice(4 * h, 4 * h + 4)
        query = x @ w_query[of_head].T + b_query[of_head]
        key = x @ w_key[of_head].T + b_key[of_head]
        value = x @ w_value[of_head].T + b_value[of_head]
        heads.append(attend(query, key, value, scaled_dot_scores, mask))
    expected = torch.cat([head.output for head in heads], dim=-1) @ attention.out.weight.T
    attended = attention(x, mask, wants_weights=True)
    torch.testing.assert_close(attended.output, expected + attention.out.bias)
    torch.testing.assert_close(attended.weights, torch.stack([h.weights for h in heads], dim=1))


def test_cross_attention_asks_with_x_and_answers_from_memory():
    attention = CrossAttention(8, 2)
    x, memory = torch.randn(2, 3, 8), torch.randn(2, 5, 8)
    w_key, w_value = attention.key_value.weight.chunk(2)
    b_key, b_value = attention.key_value.bias.chunk(2)
    heads = []
    for of_head in (slice(0, 4), slice(4, 8)):
        query = x @ attention.query.weight[of_head].T + attention.query.bias[of_head]
        key = memory @ w_key[of_head].T + b_key[of_head]
        value = memory @ w_value[of_head].T + b_value[of_head]
        heads.append(attend(query, key, value, scaled_dot_scores).output)
    expected = torch.cat(heads, dim=-1) @ attention.out.weight.T + attention.out.bias
    torch.testing.assert_close(attention(x, memory).output, expected)


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("mask", [None, causal_mask(5), Causal()], ids=["none", "dense", "causal"])
def test_asking_for_weights_changes_nothing_else(score, mask):
    attention = SelfAttention(8, 2, score=score)
    x = torch.randn(3, 5, 8)
    without, with_weights = attention(x, mask), attention(x, mask, wants_weights=True)
    assert without.weights is None
    torch.testing.assert_close(without.output, with_weights.output)
    torch.testing.assert_close(with_weights.weights.sum(-1), torch.ones(3, 2, 5))


def test_nothing_is_kept_on_the_module():
    attention = SelfAttention(8, 2)
    before = set(vars(attention)) | {name for name, _ in attention.named_buffers()}
    attention(torch.randn(1, 3, 8), wants_weights=True)
    assert set(vars(attention)) | {name for name, _ in attention.named_buffers()} == before


@pytest.mark.parametrize("score", SCORES)
@given(order=st.permutations(range(5)))
def test_permuting_tokens_permutes_the_output_when_there_are_no_positions(score, order):
    attention = SelfAttention(8, 2, score=score)
    x = torch.randn(1, 5, 8)
    torch.testing.assert_close(
        attention(x[:, order]).output, attention(x).output[:, order], rtol=1e-4, atol=1e-5
    )


def test_rotary_positions_break_that_symmetry():
    attention = SelfAttention(8, 2, rotary=RotaryPositions(4, 10))
    x, places = torch.randn(1, 5, 8), torch.arange(5)
    turned = attention(x.flip(1), None, places).output.flip(1)
    assert not torch.allclose(turned, attention(x, None, places).output, atol=1e-3)


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("rotary", [False, True])
@pytest.mark.parametrize("fixed", [False, True])
@given(cuts=st.lists(st.integers(1, 3), min_size=1, max_size=4))
def test_cached_steps_equal_one_forward_pass(score, rotary, fixed, cuts):
    attention = SelfAttention(
        8, 2, score=score, rotary=RotaryPositions(4, 16) if rotary else None
    ).eval()
    n = sum(cuts)
    x = torch.randn(2, n, 8)
    whole = attention(x, Causal(), torch.arange(n), wants_weights=True)
    like = torch.empty(2, 2, 0, 4)
    cache = FixedKVCache.empty(like, 14) if fixed else KVCache.empty(like)
    with torch.no_grad():
        start = 0
        for n_new in cuts:
            new = slice(start, start + n_new)
            attended, cache = attention.step(x[:, new], cache, wants_weights=True)
            torch.testing.assert_close(attended.output, whole.output[:, new])
            start += n_new
            torch.testing.assert_close(
                attended.weights[..., :start], whole.weights[:, :, new, :start]
            )


@pytest.mark.parametrize("score", SCORES)
def test_masked_keys_change_nothing(score):
    attention = CrossAttention(8, 2, score=score)
    x, memory = torch.randn(2, 3, 8), torch.randn(2, 5, 8)
    mask = padding_mask(torch.tensor([2, 5]), 5)
    before = attention(x, memory, mask).output
    memory[0, 2:] = 100 * torch.randn(3, 8)
    torch.testing.assert_close(attention(x, memory, mask).output, before)


def test_remembered_keys_serve_later_questions():
    attention = CrossAttention(8, 2)
    memory, x = torch.randn(2, 5, 8), torch.randn(2, 4, 8)
    remembered = attention.remember(memory)
    one_by_one = [attention.recall(x[:, t : t + 1], remembered).output for t in range(4)]
    torch.testing.assert_close(torch.cat(one_by_one, dim=1), attention(x, memory).output)


def test_packed_rows_go_through_heads_as_padded_ones_do():
    attention = SelfAttention(8, 2)
    packed = Packed.of([2, 3], n_tokens=5, n_slots=2, max_len=3)
    x = torch.randn(5, 8)
    output = attention(x, Blocks(packed, packed, causal=True)).output
    torch.testing.assert_close(output[:2], attention(x[:2], Causal()).output)
    torch.testing.assert_close(output[2:], attention(x[2:], Causal()).output)
    weights = attention(x, Blocks(packed, packed), wants_weights=True).weights
    assert weights[:, :2, 2:].abs().max() == 0.0


def test_dropout_acts_in_training_only():
    attention = SelfAttention(8, 2, dropout=0.9)
    x = torch.randn(1, 20, 8)
    assert not torch.allclose(attention(x).output, attention(x).output)
    attention.eval()
    torch.testing.assert_close(attention(x).output, attention(x).output)


def test_bias_can_be_left_out():
    names = {name for name, _ in SelfAttention(8, 2, bias=False).named_parameters()}
    assert names == {"qkv.weight", "out.weight"}
    names = {name for name, _ in CrossAttention(8, 2, bias=False).named_parameters()}
    assert names == {"query.weight", "key_value.weight", "out.weight"}


def test_rotary_positions_are_counted_where_they_are_not_given():
    attention = SelfAttention(8, 2, rotary=RotaryPositions(4, 10))
    x = torch.randn(2, 5, 8)
    torch.testing.assert_close(attention(x).output, attention(x, None, torch.arange(5)).output)
    packed = Packed.of([2, 3], n_tokens=5, n_slots=2, max_len=3)
    output = attention(x[0], Blocks(packed, packed)).output
    torch.testing.assert_close(output[2:], attention(x[:1, 2:]).output[0])


def test_rotary_positions_turn_queries_and_keys_and_leave_values():
    rotary = RotaryPositions(4, 10)
    attention = SelfAttention(8, 2, rotary=rotary)
    x, places = torch.randn(1, 5, 8), torch.tensor([0, 2, 4, 6, 9])
    query, key, value = attention.qkv(x).chunk(3, dim=-1)
    heads = [
        attend(rotary(q, places), rotary(k, places), v, scaled_dot_scores)
        for q, k, v in zip(*(y.split(4, dim=-1) for y in (query, key, value)), strict=True)
    ]
    expected = attention.out(torch.cat([head.output for head in heads], dim=-1))
    torch.testing.assert_close(attention(x, None, places).output, expected)
    assert not torch.allclose(attention(x).output, expected, atol=1e-4)


def test_weights_of_packed_rows_may_have_more_keys_than_queries():
    attention = CrossAttention(8, 2)
    query, key = (
        Packed.of([1, 2], n_tokens=3, n_slots=2, max_len=3),
        Packed.of([3, 2], n_tokens=5, n_slots=2, max_len=3),
    )
    x, memory, mask = torch.randn(3, 8), torch.randn(5, 8), Blocks(query, key)
    weighed = attention(x, memory, mask, wants_weights=True)
    assert weighed.weights.shape == (2, 3, 5)
    torch.testing.assert_close(weighed.output, attention(x, memory, mask).output)


def test_one_head_is_enough():
    assert SelfAttention(8, 1)(torch.randn(1, 2, 8)).output.shape == (1, 2, 8)


def test_weights_come_only_when_asked_for():
    x, attention, cross = torch.randn(1, 2, 8), SelfAttention(8, 2), CrossAttention(8, 2)
    assert attention(x).weights is None
    assert attention.step(x, KVCache.empty(torch.empty(1, 2, 0, 4)))[0].weights is None
    assert cross(x, x).weights is None
    assert cross.recall(x, cross.remember(x)).weights is None
