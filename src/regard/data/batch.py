"""Pairs of ids become the tensors a network is given: the one thing data hands to training."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Int
from numpy.typing import NDArray
from torch import Tensor

from regard.attention.layout import Layout, Packed, Padded
from regard.data.batching import PackedShape
from regard.text.vocab import Vocabulary

Ids = NDArray[np.integer]


@dataclass(frozen=True, slots=True)
class Batch:
    """Sources, targets shifted right, and the words they should predict.

    `labels` holds the target's padding where nothing is to be predicted, and `n_tokens` counts the
    rest: the loss is a sum over those, divided by how many there are in the whole update.
    """

    src_ids: Int[Tensor, "*B S"]
    tgt_ids: Int[Tensor, "*B T"]
    labels: Int[Tensor, "*B T"]
    src: Layout
    tgt: Layout
    n_tokens: int
    pairs: tuple[int, ...]

    def to(self, device: torch.device | str) -> "Batch":
        """The same batch on another device."""
        return Batch(
            _moved(self.src_ids, device),
            _moved(self.tgt_ids, device),
            _moved(self.labels, device),
            _layout_to(self.src, device),
            _layout_to(self.tgt, device),
            self.n_tokens,
            self.pairs,
        )


def padded_batch(
    sources: Sequence[Ids],
    targets: Sequence[Ids],
    src_vocab: Vocabulary,
    tgt_vocab: Vocabulary,
    pairs: Sequence[int] = (),
) -> Batch:
    """A row for each pair, filled up to the longest: source eos, bos target, target eos."""
    src_lens, tgt_lens = _lens(sources), _lens(targets)
    return Batch(
        _rows(_ended(sources, src_vocab.eos), src_lens, src_vocab.pad),
        _rows(_begun(targets, tgt_vocab.bos), tgt_lens, tgt_vocab.pad),
        _rows(_ended(targets, tgt_vocab.eos), tgt_lens, tgt_vocab.pad),
        Padded(torch.from_numpy(src_lens)),
        Padded(torch.from_numpy(tgt_lens)),
        int(tgt_lens.sum()),
        tuple(pairs),
    )


def packed_batch(
    sources: Sequence[Ids],
    targets: Sequence[Ids],
    src_vocab: Vocabulary,
    tgt_vocab: Vocabulary,
    shape: PackedShape,
    pairs: Sequence[int] = (),
) -> Batch:
    """All pairs end to end in one row a side, of one shape for ever."""
    src_lens, tgt_lens = _lens(sources), _lens(targets)
    return Batch(
        _row(_ended(sources, src_vocab.eos), shape.n_src, src_vocab.pad),
        _row(_begun(targets, tgt_vocab.bos), shape.n_tgt, tgt_vocab.pad),
        _row(_ended(targets, tgt_vocab.eos), shape.n_tgt, tgt_vocab.pad),
        Packed.of(
            src_lens.tolist(),
            n_tokens=shape.n_src,
            n_slots=shape.n_slots,
            max_len=shape.max_src_len,
        ),
        Packed.of(
            tgt_lens.tolist(),
            n_tokens=shape.n_tgt,
            n_slots=shape.n_slots,
            max_len=shape.max_tgt_len,
        ),
        int(tgt_lens.sum()),
        tuple(pairs),
    )


def halves(batch: Batch, pad: int) -> tuple[Batch, Batch]:
    """A batch as two: the first half of its pairs, and the others."""
    n, middle = len(batch.pairs), len(batch.pairs) // 2
    return _slice(batch, 0, middle, pad), _slice(batch, middle, n, pad)


def _slice(batch: Batch, start: int, stop: int, pad: int) -> Batch:
    """Pairs `start` to `stop` of a batch, as narrow as they are."""
    (src_ids,), src = _part((batch.src_ids,), batch.src, start, stop)
    (tgt_ids, labels), tgt = _part((batch.tgt_ids, batch.labels), batch.tgt, start, stop)
    n_tokens = int((labels != pad).sum())
    return Batch(src_ids, tgt_ids, labels, src, tgt, n_tokens, batch.pairs[start:stop])


def _part(
    sides: tuple[Tensor, ...], layout: Layout, start: int, stop: int
) -> tuple[tuple[Tensor, ...], Layout]:
    lens = layout.lens[start:stop]
    if isinstance(layout, Packed):
        begin, end = int(layout.offsets[start]), int(layout.offsets[stop])
        return tuple(ids[begin:end] for ids in sides), Packed.of(
            lens.tolist(), n_tokens=end - begin, n_slots=stop - start, max_len=layout.max_len
        )
    width = int(lens.max())
    return tuple(ids[start:stop, :width] for ids in sides), Padded(lens)


def _lens(sentences: Sequence[Ids]) -> NDArray[np.int64]:
    """Lengths with the one special id that each sentence gets."""
    return np.array([len(ids) + 1 for ids in sentences], dtype=np.int64)


def _ended(sentences: Sequence[Ids], eos: int) -> NDArray[np.int64]:
    """All sentences end to end, each with its eos."""
    last = np.array([eos])
    return np.concatenate([part for ids in sentences for part in (ids, last)], dtype=np.int64)


def _begun(sentences: Sequence[Ids], bos: int) -> NDArray[np.int64]:
    """All sentences end to end, each behind its bos."""
    first = np.array([bos])
    return np.concatenate([part for ids in sentences for part in (first, ids)], dtype=np.int64)


def _row(flat: NDArray[np.int64], n_tokens: int, pad: int) -> Int[Tensor, "P"]:
    row = np.full(max(n_tokens, len(flat)), pad)
    row[: len(flat)] = flat
    return torch.from_numpy(row)


def _rows(flat: NDArray[np.int64], lens: NDArray[np.int64], pad: int) -> Int[Tensor, "B T"]:
    rows = np.full((len(lens), lens.max()), pad)
    rows[np.arange(lens.max()) < lens[:, None]] = flat
    return torch.from_numpy(rows)


def _layout_to(layout: Layout, device: torch.device | str) -> Layout:
    if isinstance(layout, Packed):
        return Packed(_moved(layout.offsets, device), layout.max_len)
    return Padded(_moved(layout.lens, device))


def _moved(tensor: Tensor, device: torch.device | str) -> Tensor:
    """The same on another device; a GPU fetches it by itself, while the next step is prepared."""
    if torch.device(device).type == "cuda" and not tensor.is_cuda:
        tensor = tensor.pin_memory()  # from elsewhere a copy waits for all the GPU has to do
    return tensor.to(device, non_blocking=True)
