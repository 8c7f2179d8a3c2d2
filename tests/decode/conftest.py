"""A network without weights: its words depend on sentence and words before, and nothing else."""

import math
from dataclasses import dataclass
from functools import lru_cache

import pytest
import torch

from regard.decode.ready import Ready

BOS, EOS, WORDS = 0, 1, 6


@lru_cache(maxsize=100_000)
def log_probs(seed, source, ids, n_words=WORDS):
    """log p of the next word, as a tuple; the start is never said again."""
    generator = torch.Generator().manual_seed(hash((seed, source, ids)) % 2**31)
    logits = torch.randn(n_words, generator=generator, dtype=torch.float64) * 2.0
    logits[BOS] = -math.inf
    return tuple(logits.float().log_softmax(-1).tolist())


@dataclass(frozen=True)
class Written:
    """The sentences, and the words that each row has been given; as many rows for each."""

    sources: tuple[tuple[int, ...], ...]
    rows: tuple[tuple[int, ...], ...]

    def source(self, row):
        return self.sources[row * len(self.sources) // len(self.rows)]

    def reorder(self, rows, sentences=None):
        kept = range(len(self.sources)) if sentences is None else sentences.tolist()
        after = Written(
            tuple(self.sources[sentence] for sentence in kept),
            tuple(self.rows[row] for row in rows.tolist()),
        )
        assert len(rows) % len(kept) == 0
        assert [after.source(row) for row in range(len(rows))] == [
            self.source(row) for row in rows.tolist()
        ]
        return after


class Toy:
    """`ready(sentences)` for a search, and `log_probs(sentence)` for the reference."""

    bos, eos, words = BOS, EOS, range(2, WORDS)

    def __init__(self, seed, n_words=WORDS, longest=1000):
        self.seed, self.n_words, self.longest = seed, n_words, longest
        self.n_steps = self.n_rows = 0

    def ready(self, sentences):
        state = Written(tuple(one.ids for one in sentences), ((),) * len(sentences))
        return Ready(self.step, state, BOS, EOS, self.longest, torch.device("cpu"))

    def step(self, token, state):
        self.n_steps, self.n_rows = self.n_steps + 1, self.n_rows + len(token)
        rows = tuple(
            (*ids, word) if word != BOS else ids
            for word, ids in zip(token.tolist(), state.rows, strict=True)
        )
        state = Written(state.sources, rows)
        table = [
            log_probs(self.seed, state.source(row), ids, self.n_words)
            for row, ids in enumerate(rows)
        ]
        return torch.tensor(table), state

    def log_probs(self, sentence):
        return lambda ids: log_probs(self.seed, sentence.ids, tuple(ids), self.n_words)


@pytest.fixture(scope="session")
def toy():
    """How to make one of these networks, by its seed."""
    return Toy
