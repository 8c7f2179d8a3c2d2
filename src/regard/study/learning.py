"""Small networks taught small tasks, by the classes that train the real translator."""

from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Any

import numpy as np
import torch
from torch import nn

from regard.data.batch import Batch, Ids, padded_batch
from regard.data.feed import Place
from regard.data.tasks import Split, TaskName, example
from regard.decode.engines.torch import TorchEngine
from regard.decode.search import Search, Sentence
from regard.text.vocab import SPECIAL_PIECES, Vocabulary
from regard.train.objective import Objective
from regard.train.optim import make_optimizer, make_schedule
from regard.train.precision import Precision
from regard.train.trainer import Action, Trainer
from regard.train.validate import dev_loss

DIGITS = Vocabulary((*SPECIAL_PIECES, *"0123456789"), pad=0, bos=1, eos=2, unk=3)
"""All that copying, reversing and sorting digits needs."""

TRIES = 1000  # examples looked through for one of the right length

Pair = tuple[Ids, Ids]
Draw = Callable[[int], Pair]
"""The pair of a number, always the same: what a task is."""


def digit_task(task: TaskName, seed: int, lengths: range, split: Split = "train") -> Draw:
    """Digits copied, reversed or sorted, of these lengths, as regard's own tasks make them."""

    def draw(number: int) -> Pair:
        found = (example(task, seed, number * TRIES + n, split) for n in range(TRIES))
        one = next(pair for pair in found if (len(pair.src) + 1) // 2 in lengths)
        return _ids(one.src), _ids(one.tgt)

    return draw


def _ids(text: str) -> Ids:
    return np.array([DIGITS.id_of(word) for word in text.split(" ")])


def batch_of(draw: Draw, numbers: Sequence[int], vocab: Vocabulary = DIGITS) -> Batch:
    """The pairs of these numbers as one batch."""
    pairs = [draw(number) for number in numbers]
    sources, targets = [src for src, _ in pairs], [tgt for _, tgt in pairs]
    return padded_batch(sources, targets, vocab, vocab, numbers)


def teach(
    network: nn.Module,
    draw: Draw,
    *,
    updates: int,
    lr: float = 3e-3,
    rows: int = 64,
    warmup: int | None = None,
    smoothing: float = 0.0,
    vocab: Vocabulary = DIGITS,
    seed: int = 1,
    hooks: Sequence[tuple[int, Action]] = (),
) -> None:
    """Fit a network to pairs that never repeat; the rate rises for a tenth of the updates."""

    def batches() -> Iterator[tuple[Place, Batch]]:
        for step in count():
            yield Place(0, step), batch_of(draw, range(step * rows, (step + 1) * rows), vocab)

    warmup = updates // 10 if warmup is None else warmup
    Trainer(
        Objective(network, pad=vocab.pad, smoothing=smoothing),
        batches(),
        make_optimizer(network.parameters(), lr),
        make_schedule("cosine", lr, warmup, updates),
        seed=seed,
        hooks=hooks,
    ).fit(updates)
    network.eval()


def loss_and_accuracy(
    network: nn.Module, draw: Draw, n_pairs: int, vocab: Vocabulary = DIGITS
) -> tuple[float, float]:
    """Cross-entropy per token and the share of tokens predicted right, from the true prefix."""
    batch = batch_of(draw, range(n_pairs), vocab)
    return dev_loss(
        network, [batch], pad=vocab.pad, precision=Precision("float32", torch.device("cpu"))
    )


def written(
    network: Any, draw: Draw, n_pairs: int, *, beam: int = 1, vocab: Vocabulary = DIGITS
) -> list[tuple[Ids, Ids]]:
    """What a network writes by itself for each source, beside what is right."""
    pairs = [draw(number) for number in range(n_pairs)]
    longest = max(len(tgt) for _, tgt in pairs) + 8
    engine = TorchEngine(
        [network],
        pad=vocab.pad,
        bos=vocab.bos,
        eos=vocab.eos,
        longest=longest,
        device=torch.device("cpu"),
    )
    found = engine.search(
        [Sentence((*map(int, src), vocab.eos)) for src, _ in pairs], Search(beam=beam)
    )
    return [(np.array(one[0].ids), tgt) for one, (_, tgt) in zip(found, pairs, strict=True)]


def share_exact(
    network: Any, draw: Draw, n_pairs: int, *, beam: int = 1, vocab: Vocabulary = DIGITS
) -> float:
    """How many sequences a network gets exactly right, written word by word."""
    said = written(network, draw, n_pairs, beam=beam, vocab=vocab)
    return sum(np.array_equal(mine, right) for mine, right in said) / n_pairs
