import torch

from regard.attention import (
    Blocks,
    Causal,
    Packed,
    Padded,
    causal_mask,
    causal_padding_mask,
    dense,
    padding_mask,
    valid_lens_mask,
)
from regard.attention.masks import decoder_mask, encoder_mask, memory_mask


def test_padding_mask_shows_the_first_keys_of_each_sentence():
    mask = padding_mask(torch.tensor([2, 0, 3]), 3)
    assert mask.shape == (3, 1, 3)
    assert mask[:, 0].tolist() == [[True, True, False], [False] * 3, [True] * 3]


def test_causal_mask_shows_a_query_itself_and_what_came_before():
    assert causal_mask(3).tolist() == [[j <= i for j in range(3)] for i in range(3)]
    assert causal_mask(2, 4).tolist() == [[j <= i for j in range(4)] for i in range(2)]


def test_causal_padding_mask_is_both():
    mask = causal_padding_mask(torch.tensor([1, 3]), 3)
    assert mask[0].tolist() == [[True, False, False]] * 3
    assert mask[1].tolist() == causal_mask(3).tolist()


def test_valid_lens_may_be_one_for_each_sentence_or_one_for_each_query():
    per_sentence = valid_lens_mask(torch.tensor([1, 2]), 3)
    assert per_sentence.tolist() == [[[True, False, False]], [[True, True, False]]]
    per_query = valid_lens_mask(torch.tensor([[1, 3], [2, 0]]), 3)
    assert per_query.tolist() == [
        [[True, False, False], [True, True, True]],
        [[True, True, False], [False, False, False]],
    ]


def test_blocks_let_a_token_see_its_own_sentence_only():
    query, key = Packed(torch.tensor([0, 1, 3, 3]), 2), Packed(torch.tensor([0, 2, 3, 4]), 2)
    seen = dense(Blocks(query, key), 3, 4)
    assert seen.tolist() == [
        [True, True, False, False],
        [False, False, True, False],
        [False, False, True, False],
    ]


def test_causal_blocks_hide_the_rest_of_the_sentence():
    packed = Packed(torch.tensor([0, 2, 4]), 2)
    assert dense(Blocks(packed, packed, causal=True), 4, 4).int().tolist() == [
        [1, 0, 0, 0],
        [1, 1, 0, 0],
        [0, 0, 1, 0],
        [0, 0, 1, 1],
    ]


def test_blocks_for_padded_rows_show_the_keys_of_each_sentence():
    packed = Packed(torch.tensor([0, 2, 3]), 2)
    assert Blocks(packed, packed).padded(2, 2).int().tolist() == [[[1, 1]], [[1, 0]]]
    assert Blocks(packed, packed, causal=True).padded(2, 2).int().tolist() == [
        [[1, 0], [1, 1]],
        [[1, 0], [1, 0]],
    ]


def test_dense_writes_out_causal_and_leaves_tensors_alone():
    assert dense(Causal(), 2, 2).tolist() == [[True, False], [True, True]]
    mask = torch.ones(1, 2, dtype=torch.bool)
    assert dense(mask, 1, 2) is mask
    assert dense(None, 1, 2) is None


def test_each_layout_has_its_masks():
    lens = torch.tensor([2, 1])
    packed = Packed(torch.tensor([0, 2, 3]), 2)
    assert encoder_mask(None, 2) is None
    assert encoder_mask(Padded(lens), 2).tolist() == padding_mask(lens, 2).tolist()
    assert encoder_mask(packed, 3) == Blocks(packed, packed)
    assert decoder_mask(None) == decoder_mask(Padded(lens)) == Causal()
    assert decoder_mask(packed) == Blocks(packed, packed, causal=True)
    assert memory_mask(None, None, 2) is None
    assert memory_mask(None, Padded(lens), 2).tolist() == padding_mask(lens, 2).tolist()
    other = Packed(torch.tensor([0, 1, 3]), 2)
    assert memory_mask(other, packed, 3) == Blocks(other, packed)


def test_causal_blocks_for_padded_rows_are_queries_by_keys():
    query, key = Packed(torch.tensor([0, 2, 3]), 2), Packed(torch.tensor([0, 3, 5]), 3)
    assert Blocks(query, key, causal=True).padded(2, 3).int().tolist() == [
        [[1, 0, 0], [1, 1, 0]],
        [[1, 0, 0], [1, 1, 0]],
    ]
