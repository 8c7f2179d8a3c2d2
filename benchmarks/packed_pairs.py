"""Made-up sentence pairs for the benchmarks of training, and how they are packed."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from regard.data.batch import Batch, packed_batch, padded_batch
from regard.data.batching import (
    PackedShape,
    n_packed_batches,
    packed_plan,
    packed_shape,
    padded_plan,
)
from regard.data.feed import Place
from regard.text.vocab import Vocabulary

WORDS = 32_000


def sentences(n: int, seed: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Random ids in lengths like those of news; the two sides are about equally long."""
    generator = np.random.default_rng(seed)
    src = np.clip(generator.lognormal(3.0, 0.6, n), 4, 119).astype(int)
    tgt = np.clip(src * generator.normal(1.0, 0.1, n), 4, 119).astype(int)
    return (
        [generator.integers(4, WORDS, k) for k in src],
        [generator.integers(4, WORDS, k) for k in tgt],
    )


@dataclass
class Pairs:
    """Sentence pairs and how they are packed; a batch is made when it is asked for."""

    sources: list[np.ndarray]
    targets: list[np.ndarray]
    tokens: int
    vocab: Vocabulary = field(init=False)
    shape: PackedShape = field(init=False)
    plan: list[np.ndarray] = field(init=False)

    def __post_init__(self) -> None:
        words = ("<pad>", "<s>", "</s>", "<unk>", *map(str, range(4, WORDS)))
        self.vocab = Vocabulary(words, pad=0, bos=1, eos=2, unk=3)
        n_batches = n_packed_batches(*self.lens, self.tokens)
        self.shape = packed_shape(*self.lens, n_batches)
        plan = packed_plan(*self.lens, self.shape, n_batches, seed=1, epoch=0)
        self.plan = [plan.batch(i) for i in range(len(plan))]

    @property
    def lens(self) -> tuple[np.ndarray, np.ndarray]:
        """Tokens of each sentence, with its end."""
        src, tgt = ([len(ids) + 1 for ids in side] for side in (self.sources, self.targets))
        return np.array(src), np.array(tgt)

    def __len__(self) -> int:
        return len(self.plan)

    def __getitem__(self, at: int) -> Batch:
        pairs = self.plan[at % len(self)]
        sources, targets = ([side[i] for i in pairs] for side in (self.sources, self.targets))
        return packed_batch(sources, targets, self.vocab, self.vocab, self.shape, pairs.tolist())

    def padded(self) -> list[Batch]:
        """The same pairs in batches of like lengths."""
        plan = padded_plan(*self.lens, self.tokens, seed=1, epoch=0)
        chosen = [plan.batch(i) for i in range(len(plan))]
        return [
            padded_batch(
                [self.sources[i] for i in pairs],
                [self.targets[i] for i in pairs],
                self.vocab,
                self.vocab,
                pairs.tolist(),
            )
            for pairs in chosen
        ]


def make_pairs(tokens: int, n_batches: int) -> Pairs:
    """About so many batches of so many tokens a side."""
    return Pairs(*sentences(tokens * n_batches // 25, seed=1), tokens)


class Feed:
    """The batches round and round: made when they are asked for, or lying ready on the device."""

    def __init__(self, pairs: Pairs) -> None:
        self.pairs = pairs
        self.ready: list[Batch] = []
        self.step = 0

    def __iter__(self) -> Iterator[tuple[Place, Batch]]:
        return self

    def __next__(self) -> tuple[Place, Batch]:
        at = self.step % len(self.pairs)
        self.step += 1
        return Place(0, self.step), self.ready[at] if self.ready else self.pairs[at]


def n_tokens(pairs: Pairs) -> int:
    """Real tokens of both sides."""
    return sum(int(side.sum()) for side in pairs.lens)
