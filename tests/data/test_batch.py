import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.data.batch import packed_batch, padded_batch
from regard.data.batching import PackedShape
from regard.text.vocab import Vocabulary

VOCAB = Vocabulary(("<pad>", "<s>", "</s>", "<unk>", *"abcdefgh"), pad=0, bos=1, eos=2, unk=3)
SHAPE = PackedShape(n_src=64, n_tgt=64, n_slots=24, max_src_len=9, max_tgt_len=9)

sentences = st.lists(st.integers(4, 11), min_size=1, max_size=8).map(np.array)
pairs = st.lists(st.tuples(sentences, sentences), min_size=1, max_size=5)


def test_a_padded_batch_by_hand():
    batch = padded_batch(
        [np.array([4, 5]), np.array([6])], [np.array([7]), np.array([8, 9])], VOCAB, VOCAB
    )
    assert batch.src_ids.tolist() == [[4, 5, 2], [6, 2, 0]]
    assert batch.tgt_ids.tolist() == [[1, 7, 0], [1, 8, 9]]
    assert batch.labels.tolist() == [[7, 2, 0], [8, 9, 2]]
    assert batch.src.lens.tolist() == [3, 2]
    assert batch.tgt.lens.tolist() == [2, 3]
    assert batch.n_tokens == 5


@given(pairs)
def test_packed_and_padded_hold_the_same_words_at_the_same_places(pairs):
    sources, targets = [s for s, _ in pairs], [t for _, t in pairs]
    padded = padded_batch(sources, targets, VOCAB, VOCAB)
    packed = packed_batch(sources, targets, VOCAB, VOCAB, SHAPE)
    assert packed.src_ids.shape == packed.tgt_ids.shape == packed.labels.shape == (64,)
    assert packed.n_tokens == padded.n_tokens == int((packed.labels != 0).sum())
    for row, one_row, layout in (
        (padded.src_ids, packed.src_ids, packed.src),
        (padded.tgt_ids, packed.tgt_ids, packed.tgt),
        (padded.labels, packed.labels, packed.tgt),
    ):
        for i, start in enumerate(layout.offsets[: len(pairs)].tolist()):
            n = int(layout.lens[i])
            assert one_row[start : start + n].tolist() == row[i, :n].tolist()


@given(pairs)
def test_labels_are_the_targets_one_place_on(pairs):
    batch = padded_batch([s for s, _ in pairs], [t for _, t in pairs], VOCAB, VOCAB)
    for inputs, labels, n in zip(batch.tgt_ids, batch.labels, batch.tgt.lens, strict=True):
        assert inputs[0] == VOCAB.bos
        assert labels[n - 1] == VOCAB.eos
        assert inputs[1:n].tolist() == labels[: n - 1].tolist()


@pytest.mark.parametrize("make", [padded_batch, lambda *a: packed_batch(*a, SHAPE)])
def test_a_batch_goes_to_a_device_whole(make):
    batch = make([np.array([4])], [np.array([5])], VOCAB, VOCAB).to("meta")
    layouts = (getattr(side, "lens", None) for side in (batch.src, batch.tgt))
    for tensor in (batch.src_ids, batch.tgt_ids, batch.labels, *layouts):
        assert tensor.device == torch.device("meta")
