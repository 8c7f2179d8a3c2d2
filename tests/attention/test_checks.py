"""Bad input gets one sentence that names the value; each sentence whole."""

import re

import pytest
import torch

from regard.attention import (
    AdditiveAttention,
    CrossAttention,
    FixedKVCache,
    LearnedPositions,
    Packed,
    Padded,
    RotaryPositions,
    SelfAttention,
    SinusoidalPositions,
    additive_scores,
    attend,
    attend_hard,
    dot_scores,
    gaussian_scores,
    masked_softmax,
    scaled_dot_attention,
    scaled_dot_scores,
    sinusoidal_positions,
    valid_lens_mask,
)
from regard.attention.checks import check_layout, check_pairs
from regard.attention.fused import gaussian_as_dot
from regard.attention.masks import memory_mask
from regard.attention.scores import make_score
from regard.errors import ConfigError, DataError, ModelError

pytestmark = pytest.mark.plain


def refuses(kind, sentence):
    return pytest.raises(kind, match=f"^{re.escape(sentence)}$")


@pytest.mark.parametrize(
    "compare",
    [
        dot_scores,
        scaled_dot_scores,
        gaussian_scores,
        lambda q, k: additive_scores(q, k, torch.ones(4)),
        lambda q, k: gaussian_as_dot(q, k, torch.ones(())),
        lambda q, k: scaled_dot_attention(q, k, k),
    ],
)
def test_query_and_key_of_different_widths(compare):
    with refuses(
        ModelError,
        "query is 4 wide but key is 5; this score compares them coordinate by coordinate, "
        "so project both to one width first",
    ):
        compare(torch.randn(2, 4), torch.randn(3, 5))


@pytest.mark.parametrize(
    "attention",
    [
        lambda q, k, v: attend(q, k, v, dot_scores),
        lambda q, k, v: attend_hard(q, k, v, dot_scores),
        scaled_dot_attention,
    ],
)
def test_a_key_without_a_value(attention):
    with refuses(ModelError, "there are 3 keys but 2 values; each key needs its own value"):
        attention(torch.randn(2, 4), torch.randn(3, 4), torch.randn(2, 4))


MASKED = [
    lambda mask: masked_softmax(torch.randn(2, 3), mask),
    lambda mask: attend_hard(
        torch.ones(2, 4), torch.ones(3, 4), torch.ones(3, 4), dot_scores, mask
    ),
    lambda mask: scaled_dot_attention(torch.ones(2, 4), torch.ones(3, 4), torch.ones(3, 4), mask),
]


@pytest.mark.parametrize("attention", MASKED)
def test_a_mask_of_floats(attention):
    with refuses(
        ModelError,
        "mask is torch.float32 but must be torch.bool, True where a query may attend; "
        "make it of zeros and ones with mask.bool(), of lengths with valid_lens_mask",
    ):
        attention(torch.ones(2, 3))


@pytest.mark.parametrize("attention", MASKED)
def test_a_mask_of_too_few_keys(attention):
    with refuses(ModelError, "mask covers 2 keys but there are 3 (mask (1, 2))"):
        attention(torch.ones(1, 2, dtype=torch.bool))


@pytest.mark.parametrize("attention", MASKED)
def test_a_mask_of_too_many_queries(attention):
    with refuses(
        ModelError,
        "mask covers 4 queries but there are 2 (mask (4, 3)); "
        "give one row for each query, or one row for all",
    ):
        attention(torch.ones(4, 3, dtype=torch.bool))


def test_valid_lens_that_are_no_lengths():
    with refuses(
        ModelError,
        "valid_lens is torch.float32 of shape (2,) but must be integers, one for each sentence "
        "(batch) or one for each query (batch, queries)",
    ):
        valid_lens_mask(torch.tensor([1.0, 2.0]), 3)
    with pytest.raises(ModelError, match=r"of shape \(1, 1, 1\) but"):
        valid_lens_mask(torch.ones(1, 1, 1, dtype=torch.int64), 3)


@pytest.mark.parametrize("attention", [SelfAttention, CrossAttention])
def test_a_width_that_heads_cannot_share(attention):
    with refuses(ConfigError, "d_model = 500 is not a multiple of n_heads = 8"):
        attention(500, 8)
    with refuses(ConfigError, "d_model = 8 is not a multiple of n_heads = 0"):
        attention(8, 0)


def test_input_of_the_wrong_width():
    x = torch.randn(1, 2, 7)
    with refuses(ModelError, "x is 7 wide but must be 8"):
        SelfAttention(8, 2)(x)
    with refuses(ModelError, "memory is 7 wide but must be 8"):
        CrossAttention(8, 2)(torch.randn(1, 2, 8), x)
    with refuses(ModelError, "x is 7 wide but must be 8"):
        CrossAttention(8, 2)(x, torch.randn(1, 2, 8))
    with refuses(ModelError, "query is 7 wide but must be 3"):
        AdditiveAttention(3, 5, 4)(x, torch.randn(1, 2, 5), x)
    with refuses(ModelError, "key is 7 wide but must be 5"):
        AdditiveAttention(3, 5, 4)(torch.randn(1, 2, 3), x, x)


def test_an_unknown_score():
    with refuses(ConfigError, 'score = "cosine" is not one of scaled_dot, dot, additive, gaussian'):
        make_score("cosine", 2, 4)


def test_sinusoids_of_an_odd_width():
    with refuses(ConfigError, "d = 7 is odd; sines and cosines come in pairs, so make it even"):
        sinusoidal_positions(3, 7)


@pytest.mark.parametrize("positions", [SinusoidalPositions, LearnedPositions])
def test_a_text_beyond_the_last_position(positions):
    with refuses(
        ModelError,
        "the text has 11 tokens but the model's positions end at 10; "
        "split it, or build the model with a larger max_len",
    ):
        positions(4, 10)(torch.arange(11))
    with pytest.raises(ModelError, match=r"^the text has 11 tokens but"):
        positions(4, 10)(torch.tensor([10]))
    assert positions(4, 10)(torch.arange(10)).shape == (10, 4)
    assert positions(4, 10)(torch.arange(0)).shape == (0, 4)


def test_rotary_positions_beyond_the_last():
    rotary = RotaryPositions(4, 10)
    with pytest.raises(ModelError, match=r"^the text has 11 tokens but"):
        rotary(torch.randn(11, 4), torch.arange(11))


def test_a_fixed_cache_that_is_full():
    cache = FixedKVCache.empty(torch.zeros(1, 1, 0, 2), max_len=2)
    two = torch.randn(1, 1, 2, 2)
    full = cache.append(two, two)
    with refuses(
        ModelError,
        "the cache holds 2 tokens and token 3 was to follow; start with a larger max_len",
    ):
        full.append(two[:, :, :1], two[:, :, :1])


@pytest.mark.parametrize(
    ("lens", "sentence"),
    [
        ([5, 6], "2 sentences of 11 tokens, the longest 6"),
        ([1, 1, 1, 1], "4 sentences of 4 tokens, the longest 1"),
        ([9], "1 sentences of 9 tokens, the longest 9"),
    ],
    ids=["too many tokens", "too many sentences", "too long a sentence"],
)
def test_sentences_that_do_not_fit_a_packed_row(lens, sentence):
    with refuses(
        DataError,
        f"{sentence}, do not fit a packed row of 10 tokens in 3 sentences of at most 8",
    ):
        Packed.of(lens, n_tokens=10, n_slots=3, max_len=8)


def test_one_side_packed_and_the_other_padded():
    packed, padded = Packed(torch.tensor([0, 2]), 2), Padded(torch.tensor([2]))
    with refuses(ModelError, "source is packed but target is padded; pack both or pad both"):
        memory_mask(padded, packed, 2)
    with refuses(ModelError, "source is padded but target is packed; pack both or pad both"):
        memory_mask(packed, None, 2)


@pytest.mark.parametrize(
    ("ids", "layout", "sentence"),
    [
        (torch.ones(2, 3), Padded(torch.tensor([3])), "has 2 sentences but 1 lengths"),
        (
            torch.ones(2, 3),
            Padded(torch.tensor([3, 4])),
            "has a sentence of length 4 in rows of 3 tokens",
        ),
        (torch.ones(2, 3), Padded(torch.tensor([3, -1])), "has a sentence of length -1"),
        (
            torch.ones(1, 3),
            Packed(torch.tensor([0, 3]), 3),
            "is packed, so its ids are one row, but they have shape (1, 3)",
        ),
        (
            torch.ones(4),
            Packed(torch.tensor([0, 3]), 3),
            "has offsets from 0 to 3 for 4 tokens; they must rise from 0 to the number of tokens",
        ),
        (
            torch.ones(4),
            Packed(torch.tensor([1, 4]), 3),
            "has offsets from 1 to 4 for 4 tokens; they must rise from 0 to the number of tokens",
        ),
        (
            torch.ones(4),
            Packed(torch.tensor([0, 3, 2, 4]), 3),
            "has offsets from 0 to 4 for 4 tokens; they must rise from 0 to the number of tokens",
        ),
        (
            torch.ones(4),
            Packed(torch.tensor([0, 4]), 3),
            "has a sentence of length 4 but says that none exceeds 3",
        ),
    ],
)
def test_a_layout_that_does_not_fit_its_ids(ids, layout, sentence):
    with refuses(DataError, f"source {sentence}"):
        check_layout(ids, layout, "source")


def test_a_layout_that_fits_passes():
    check_layout(torch.ones(2, 3), Padded(torch.tensor([0, 3])), "source")
    check_layout(torch.ones(2, 3), None, "source")
    check_layout(torch.ones(4), Packed(torch.tensor([0, 3, 3, 4]), 3), "source")


def test_a_target_without_a_source():
    with refuses(DataError, "there are 2 source sentences but 1 target sentences"):
        check_pairs(2, 1)
    check_pairs(2, 2)


def test_a_fixed_cache_asked_for_fewer_rows():
    cache = FixedKVCache.empty(torch.zeros(3, 1, 0, 2), max_len=2)
    with refuses(
        ModelError,
        "a cache of fixed size keeps its 3 rows, but 1 were asked for; start without max_len",
    ):
        cache.reorder(torch.tensor([1]))
