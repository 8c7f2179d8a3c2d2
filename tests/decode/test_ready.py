"""Rows of ids as a network takes them: filled up, or end to end."""

import numpy as np
import pytest
import torch

from regard.decode.ready import MULTIPLE, packed_ids, padded_ids

CPU = torch.device("cpu")
PAD = 9
ROWS = {
    "one of one": [(5,)],
    "some": [(1, 2, 3), (4,), (5, 6)],
    "a multiple": [tuple(range(MULTIPLE - 1)), (3,)],
    "many": [tuple(range(n % 7 + 1)) for n in range(100)],
}


@pytest.mark.parametrize("rows", ROWS.values(), ids=ROWS)
def test_padded_rows_are_filled_up_to_the_longest(rows):
    ids, layout = padded_ids(rows, PAD, CPU)
    longest = max(map(len, rows))
    assert ids.tolist() == [[*row, *[PAD] * (longest - len(row))] for row in rows]
    assert ids.dtype is layout.lens.dtype is torch.int64
    assert layout.lens.tolist() == list(map(len, rows))


@pytest.mark.parametrize("rows", ROWS.values(), ids=ROWS)
def test_packed_rows_stand_end_to_end_and_then_padding_up_to_a_multiple(rows):
    ids, offsets, lens = packed_ids(rows, PAD)
    every = [id for row in rows for id in row]
    assert ids.tolist() == every + [PAD] * (-len(every) % MULTIPLE)
    assert lens.tolist() == list(map(len, rows))
    assert np.diff(offsets).tolist() == list(map(len, rows)) + [1] * (len(ids) - len(every))
    assert offsets[0] == 0
