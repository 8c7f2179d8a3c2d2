"""Batch after batch, for ever, from any place: what a trainer is fed.

A place is two numbers, epoch and step, and a batch is a pure function of dataset, settings and
place. So a run that stops goes on with the very next batch, with any number of workers, and each of
several ranks takes its own batches of the same plan.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from torch.utils.data import Dataset

from regard.data.batch import Batch, Ids, packed_batch, padded_batch
from regard.data.batching import (
    PackedShape,
    Plan,
    n_packed_batches,
    packed_plan,
    packed_shape,
    padded_plan,
)
from regard.data.corpus import Pair
from regard.data.dataset import PairDataset, Side
from regard.data.workers import made_ahead
from regard.errors import ConfigError, DataError
from regard.text.tokenizer import Tokenizer

GOLDEN = 0.6180339887498949  # whose multiples fall evenly between whole numbers
PROBED = 2000  # pairs whose sampled segmentation tells how much longer sentences become


@dataclass(frozen=True, slots=True)
class Place:
    """Where a run stands in its data: the next batch is `step` of `epoch`."""

    epoch: int = 0
    step: int = 0

    def among(self, ranks: int, before: int) -> "Place":
        """The same place, where it was counted among `before` ranks."""
        return Place(self.epoch, self.step * before // ranks)


class Batches(Dataset[Batch]):
    """All batches of a dataset, by place."""

    def __init__(
        self,
        dataset: PairDataset,
        src_tokenizer: Tokenizer,
        tgt_tokenizer: Tokenizer,
        *,
        kind: Literal["packed", "padded"],
        tokens: int,
        seed: int,
        rank: int = 0,
        ranks: int = 1,
        sampled: bool = False,
        max_len: int | None = None,
    ) -> None:
        """`max_len` is the most tokens that the network has places for."""
        if not len(dataset):
            raise DataError("the dataset has no pairs, so there is nothing to train on")
        _check(kind, tokens, rank, ranks)
        self.dataset = dataset
        self.tokenizers = src_tokenizer, tgt_tokenizer
        self.kind, self.tokens, self.seed = kind, tokens, seed
        self.rank, self.ranks, self.sampled, self.max_len = rank, ranks, sampled, max_len
        self.prefixes = [_prefix(src_tokenizer, lang) for lang in dataset.languages]
        growth = self._growth() if sampled else (1.0, 1.0)
        self.planned = self._planned(dataset.src, growth[0]), self._planned(dataset.tgt, growth[1])
        self.n_packed = n_packed_batches(*self.planned, tokens, ranks)
        self.shape = packed_shape(*self.planned, self.n_packed)
        if sampled:  # what was planned may come out shorter, and more of the row is filler
            self.shape = _with_filler(self.shape)
        self._last: tuple[int, Plan] | None = None

    def steps(self, epoch: int) -> int:
        """How many batches this rank has in an epoch: as many as every other."""
        return len(self.plan(epoch)) // self.ranks

    def batch(self, place: Place) -> Batch:
        """The batch at a place."""
        pairs = self.plan(place.epoch).batch(place.step * self.ranks + self.rank).tolist()
        sources, targets = self._ids(pairs, place.epoch)
        vocabs = self.tokenizers[0].vocab, self.tokenizers[1].vocab
        if self.kind == "padded":
            return padded_batch(sources, targets, *vocabs, pairs)
        return packed_batch(sources, targets, *vocabs, self.shape, pairs)

    def after(self, place: Place, *, workers: int = 0) -> Iterator[tuple[Place, Batch]]:
        """Every batch from a place on, each with the place that follows it."""
        epoch, step = place.epoch, place.step
        while True:
            places = [Place(epoch, s) for s in range(step, self.steps(epoch))]
            for at, batch in zip(places, self._load(places, workers), strict=True):
                is_last = at.step + 1 == self.steps(epoch)
                yield Place(epoch + 1) if is_last else Place(epoch, at.step + 1), batch
            epoch, step = epoch + 1, 0

    def _load(self, places: Sequence[Place], workers: int) -> Iterator[Batch]:
        if not workers:
            return map(self.batch, places)
        return made_ahead(self, places, workers)

    def __getitem__(self, place: Place) -> Batch:  # what a DataLoader calls
        return self.batch(place)

    def plan(self, epoch: int) -> Plan:
        """The batches of an epoch, of all ranks; the last one asked for is kept."""
        if self._last is None or self._last[0] != epoch:
            self._last = epoch, self._plan(epoch)
        return self._last[1]

    def _plan(self, epoch: int) -> Plan:
        if self.kind == "padded":
            return padded_plan(*self.planned, self.tokens, self.seed, epoch, self.ranks)
        return packed_plan(*self.planned, self.shape, self.n_packed, self.seed, epoch)

    def _planned(self, side: Side, growth: float) -> NDArray[np.int64]:
        """Lengths as they will be in a batch: with the special id, and a language in front."""
        # Rounded up or down by turns, so that many short sentences are as long as they will be.
        turns = np.arange(len(side.lens)) * GOLDEN % 1.0
        lens = np.floor(side.lens * growth + (turns if growth > 1.0 else 0.0)).astype(np.int64) + 1
        if side is self.dataset.src:
            lens += np.array([len(prefix) for prefix in self.prefixes])[self.dataset.target_langs]
        # A sentence that would grow beyond is not sampled; as it is, it was let in.
        return lens if self.max_len is None else np.minimum(lens, self.max_len)

    def _ids(self, pairs: Sequence[int], epoch: int) -> tuple[list[Ids], list[Ids]]:
        plain = [self._plain(pair) for pair in pairs]
        if not self.sampled:
            return [src for src, _ in plain], [tgt for _, tgt in plain]
        drawn = [self._drawn(pair, epoch) for pair in pairs]
        if self.max_len is not None:
            both = zip(drawn, plain, strict=True)
            drawn = [a if max(map(len, a)) < self.max_len else b for a, b in both]
        return _fitted(drawn, plain, self.shape if self.kind == "packed" else None)

    def _plain(self, pair: int) -> tuple[Ids, Ids]:
        prefix = self.prefixes[self.dataset.target_langs[pair]]
        source = self.dataset.src[pair]
        return np.concatenate([prefix, source]) if len(prefix) else source, self.dataset.tgt[pair]

    def _drawn(self, pair: int, epoch: int) -> tuple[Ids, Ids]:
        """A segmentation that is a pure function of seed, epoch and pair."""
        src, tgt = (
            np.array(tokenizer.sample(side.sentence(pair), (self.seed, epoch, pair, i)))
            for i, (tokenizer, side) in enumerate(
                zip(self.tokenizers, (self.dataset.src, self.dataset.tgt), strict=True)
            )
        )
        return np.concatenate([self.prefixes[self.dataset.target_langs[pair]], src]), tgt

    def _growth(self) -> tuple[float, float]:
        """How much longer sentences of each side become when they are sampled."""
        probes = np.linspace(0, len(self.dataset) - 1, min(PROBED, len(self.dataset))).astype(int)
        drawn = [self._drawn(int(pair), 0) for pair in probes]
        plain = [self._plain(int(pair)) for pair in probes]
        src, tgt = (
            sum(len(pair[i]) for pair in drawn) / max(sum(len(pair[i]) for pair in plain), 1)
            for i in range(2)
        )
        return max(src, 1.0), max(tgt, 1.0)


def ordered_batches(
    pairs: Sequence[Pair], src: Tokenizer, tgt: Tokenizer, tokens: int
) -> list[Batch]:
    """Every pair once, like lengths together, in padded batches: to judge by, not to learn from."""
    sources = [
        np.concatenate([_prefix(src, pair.tgt_lang), np.array(ids, dtype=np.int64)])
        for pair, ids in zip(pairs, src.encode_all([p.src for p in pairs]), strict=True)
    ]
    targets = [np.array(ids, dtype=np.int64) for ids in tgt.encode_all([p.tgt for p in pairs])]
    batches: list[list[int]] = []
    width = 0
    for at in sorted(range(len(pairs)), key=lambda i: max(len(sources[i]), len(targets[i]))):
        width = max(width, len(sources[at]) + 1, len(targets[at]) + 1)
        if not batches or (len(batches[-1]) + 1) * width > tokens:
            batches.append([])
            width = max(len(sources[at]), len(targets[at])) + 1
        batches[-1].append(at)
    return [
        padded_batch([sources[i] for i in b], [targets[i] for i in b], src.vocab, tgt.vocab, b)
        for b in batches
    ]


def _check(kind: str, tokens: int, rank: int, ranks: int) -> None:
    if kind not in ("packed", "padded"):
        raise ConfigError('batching = "{kind}" is not one of packed, padded', kind=kind)
    if tokens < 1 or not 0 <= rank < ranks:
        raise ConfigError(
            "tokens = {tokens}, rank = {rank} of {ranks}: there is at least 1 token, and ranks "
            "count from 0",
            tokens=tokens,
            rank=rank,
            ranks=ranks,
        )


def _with_filler(shape: PackedShape) -> PackedShape:
    """The same with slots for as much filler as there could be."""
    filler = shape.n_src // shape.max_src_len + shape.n_tgt // shape.max_tgt_len
    return replace(shape, n_slots=shape.n_slots + filler)


def _prefix(tokenizer: Tokenizer, language: str) -> Ids:
    """The token that asks for a target language, where the vocabulary has any."""
    languages = tokenizer.vocab.languages
    return np.array([tokenizer.vocab.language(language)] if languages else [], dtype=np.int64)


def _fitted(
    drawn: list[tuple[Ids, Ids]], plain: list[tuple[Ids, Ids]], shape: PackedShape | None
) -> tuple[list[Ids], list[Ids]]:
    """Sampled pairs, but plain ones where a sampled one would burst the row: first the too long."""
    chosen = list(drawn)
    if shape is not None:
        room = shape.n_src, shape.n_tgt
        most = shape.max_src_len, shape.max_tgt_len
        for i in range(len(chosen)):
            if any(len(ids) + 1 > limit for ids, limit in zip(chosen[i], most, strict=True)):
                chosen[i] = plain[i]
        totals = [sum(len(pair[side]) + 1 for pair in chosen) for side in range(2)]
        for i in range(len(chosen)):
            if totals[0] <= room[0] and totals[1] <= room[1]:
                break
            totals = [t - len(chosen[i][s]) + len(plain[i][s]) for s, t in enumerate(totals)]
            chosen[i] = plain[i]
    return [src for src, _ in chosen], [tgt for _, tgt in chosen]
