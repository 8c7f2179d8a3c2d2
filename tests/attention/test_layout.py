import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.attention import Packed, Padded
from regard.attention.layout import positions_of


def test_every_token_knows_its_sentence_and_its_place_in_it():
    packed = Packed(torch.tensor([0, 2, 2, 5, 5]), 3)
    assert packed.lens.tolist() == [2, 0, 3, 0]
    assert packed.sentences(5).tolist() == [0, 0, 2, 2, 2]
    assert packed.positions(5).tolist() == [0, 1, 0, 1, 2]


def test_what_is_left_of_a_row_becomes_sentences_of_padding():
    packed = Packed.of([3, 2], n_tokens=12, n_slots=6, max_len=4)
    assert packed.offsets.tolist() == [0, 3, 5, 9, 12, 12, 12]
    assert packed.offsets.dtype == torch.int32
    full = Packed.of([2, 2], n_tokens=4, n_slots=2, max_len=2)
    assert full.offsets.tolist() == [0, 2, 4]


@given(st.lists(st.integers(0, 5), min_size=1, max_size=6), st.booleans())
def test_packing_inverts_unpacking(lens, has_heads):
    n_tokens = sum(lens) + 3
    packed = Packed.of(lens, n_tokens=n_tokens, n_slots=len(lens) + 3, max_len=6)
    x = torch.randn(2, n_tokens, 4) if has_heads else torch.randn(n_tokens, 4)
    rows = packed.unpack(x)
    assert rows.shape[0] == len(lens) + 3
    torch.testing.assert_close(packed.pack(rows, n_tokens), x)
    start = 0
    for row, n in zip(rows, lens, strict=False):
        torch.testing.assert_close(row[..., :n, :], x[..., start : start + n, :])
        start += n


def test_unpacked_rows_are_as_narrow_as_their_longest_sentence():
    packed = Packed.of([2, 3], n_tokens=5, n_slots=2, max_len=100)
    assert packed.unpack(torch.randn(5, 1)).shape == (2, 3, 1)


def test_positions_start_again_only_in_packed_rows():
    packed = Packed(torch.tensor([0, 2, 5]), 3)
    device = torch.device("cpu")
    assert positions_of(packed, 5, device).tolist() == [0, 1, 0, 1, 2]
    assert positions_of(Padded(torch.tensor([2, 5])), 5, device).tolist() == [0, 1, 2, 3, 4]
    assert positions_of(None, 3, device).tolist() == [0, 1, 2]


def test_sentences_of_one_token_unpack_to_one_column():
    packed = Packed.of([1, 1], n_tokens=2, n_slots=2, max_len=4)
    assert packed.unpack(torch.randn(2, 3)).shape == (2, 1, 3)
