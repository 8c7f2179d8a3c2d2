"""Training speed on a CPU: regard's trainer against Hugging Face MarianMT in plain PyTorch.

    python benchmarks/bench_train_cpu.py [--models small base] [--vocab 8000] [--rounds 7]
                                         [--write HARDWARE]

Both take the same padded batches (log-normal lengths, about 24 tokens, 4 to 120, like lengths
together), in float32, post-norm, ReLU, one matrix for the embeddings and the output, dropout,
label smoothing, clipping and Adam. A whole update is timed. Each side has a process of its own, as
it would alone, and they take turns batch by batch; a round is all batches once, and the ratio is
the median of the rounds'. Where other work disturbs the machine, that ratio says little: believe it
if the ratio of each batch's fastest updates, which stands beside it, agrees.
"""

import argparse
import multiprocessing
import resource
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import cycle
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import torch
import transformers
from peers import marianmt

from regard import __version__
from regard.config import ModelConfig
from regard.data.batch import Batch, padded_batch
from regard.data.batching import padded_plan
from regard.data.feed import Place
from regard.model import build_model
from regard.processors import processor_name
from regard.text.vocab import Vocabulary
from regard.train.allocator import keep_freed_memory
from regard.train.objective import Objective
from regard.train.optim import make_optimizer, make_schedule
from regard.train.trainer import Trainer

TOKENS, PAIRS = 2048, 8000  # places a side of a batch, and pairs the batches are cut from
DROPOUT, SMOOTHING, CLIP, LR, PAD = 0.1, 0.1, 1.0, 1e-4, 0
RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True)
class Model:
    """A network's sizes, and how many batches make a round of it."""

    title: str
    n_batches: int
    sizes: dict[str, int]


MODELS = {
    "small": Model(
        "small: d 256, 4 heads, d_ff 1024, 3+3 layers",
        8,
        {"d_model": 256, "n_heads": 4, "d_ff": 1024, "n_layers": 3},
    ),
    "base": Model(
        "base: d 512, 8 heads, d_ff 2048, 6+6 layers",
        3,
        {"d_model": 512, "n_heads": 8, "d_ff": 2048, "n_layers": 6},
    ),
}


@dataclass(frozen=True)
class Side:
    """What one side tells before it starts."""

    n_parameters: int
    n_targets: int


def main() -> None:
    """Measure, print, and write to results/train_HARDWARE_YYYYMM.md with --write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--vocab", type=int, default=8000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--write", metavar="HARDWARE", help="as a file is called: 2-core-cpu")
    asked = parser.parse_args()
    rows = [row(MODELS[name], asked.vocab, asked.rounds) for name in asked.models]
    lines = [*heading(asked.vocab, asked.rounds), *rows, ""]
    print("\n".join(lines))
    if asked.write:
        file = RESULTS / f"train_{asked.write}_{datetime.now(UTC):%Y%m}.md"
        file.write_text("\n".join(lines), encoding="utf-8")


def heading(n_words: int, n_rounds: int) -> list[str]:
    return [
        f"# Training on a {torch.get_num_threads()}-core CPU, {datetime.now(UTC):%B %Y}",
        "",
        "`python benchmarks/bench_train_cpu.py`: regard's trainer against Hugging Face MarianMT in",
        f"a plain PyTorch loop, both on the same padded batches, at most {TOKENS:,} places a side",
        "(log-normal lengths, about 24 tokens, 4 to 120, like lengths together), float32, a",
        f"vocabulary of {n_words:,}, dropout {DROPOUT}, label smoothing {SMOOTHING}, clipping at",
        f"{CLIP}, Adam (regard's is fused, MarianMT's torch's default). regard keeps freed memory",
        "(`keep_freed_memory`). Whole updates; each side in its own process, taking turns batch by",
        f"batch; {n_rounds} rounds over all batches. Tokens of both sides count, padding does not.",
        f"{processor_name()}; {torch.get_num_threads()} threads; torch {torch.__version__},",
        f"transformers {transformers.__version__}, regard {__version__} at commit {commit()}.",
        "CPU times swing by up to 40 % from minute to minute: read the ratio, and the one of each",
        "batch's fastest updates, which other work on the machine disturbs least.",
        "",
        "| model | batches | regard, tokens/s | MarianMT, tokens/s | ratio (median, spread) | "
        "of the fastest | peak memory |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]


def commit() -> str:
    told = subprocess.run(
        ["git", "describe", "--always", "--dirty"],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=True,
    )
    return told.stdout.strip()


def row(model: Model, n_words: int, n_rounds: int) -> str:
    """One line of the table."""
    batches = make_batches(model.n_batches, n_words)
    pipes = [start(update, model, n_words) for update in (regard_update, marian_update)]
    ours, theirs = [ready(pipe) for pipe in pipes]  # one after the other: both want all cores
    assert ours.n_targets == theirs.n_targets == sum(b.n_tokens for b in batches)
    assert ours.n_parameters == theirs.n_parameters, "nothing but the sines, which nobody trains"
    seconds = np.zeros((n_rounds, len(batches), 2))
    for turn in np.ndindex(seconds.shape):
        seconds[turn] = ask(pipes[turn[-1]])
    peaks = [finish(pipe) for pipe in pipes]
    rounds = seconds.sum(axis=1)
    ratios = (rounds[:, 1] / rounds[:, 0]).tolist()
    fastest = seconds.min(axis=0).sum(axis=0)
    total = sum(int(b.src.lens.sum()) + b.n_tokens for b in batches)
    speeds = [total / statistics.median(rounds[:, side].tolist()) for side in (0, 1)]
    return (
        f"| {model.title}, {ours.n_parameters / 1e6:.1f} M parameters | {len(batches)} of "
        f"{total // len(batches):,} tokens | {speeds[0]:,.0f} | {speeds[1]:,.0f} | "
        f"**{statistics.median(ratios):.2f}** ({min(ratios):.2f}–{max(ratios):.2f}) | "
        f"{fastest[1] / fastest[0]:.2f} | "
        f"{peaks[0]:,} / {peaks[1]:,} MB |"
    )


def make_batches(n: int, n_words: int) -> list[Batch]:
    """The first batches of a plan for pairs of realistic lengths and frequencies of words."""
    generator = np.random.default_rng(1)
    lens = np.clip(generator.lognormal(3.0, 0.6, PAIRS), 4, 119)
    src = lens.astype(int)
    tgt = np.clip(lens * generator.normal(1.0, 0.1, PAIRS), 4, 119).astype(int)
    pieces = ("<pad>", "<s>", "</s>", "<unk>", *map(str, range(4, n_words)))
    vocab = Vocabulary(pieces, pad=PAD, bos=1, eos=2, unk=3)
    plan = padded_plan(src + 1, tgt + 1, TOKENS, seed=1, epoch=0)

    def words(n: int) -> np.ndarray:
        return (generator.zipf(1.2, n) - 1) % (n_words - 4) + 4

    return [
        padded_batch(
            [words(src[i]) for i in pairs], [words(tgt[i]) for i in pairs], vocab, vocab, pairs
        )
        for pairs in (plan.batch(step).tolist() for step in range(n))
    ]


def regard_update(model: Model, batches: list[Batch], n_words: int) -> tuple[Side, Callable]:
    """One update of regard's own trainer, called again and again."""
    keep_freed_memory()
    config = ModelConfig(**model.sizes, dropout=DROPOUT)
    network = build_model(config, n_words, n_words)
    objective = Objective(network, pad=PAD, smoothing=SMOOTHING)

    def feed() -> Iterator[tuple[Place, Batch]]:
        for step, batch in enumerate(cycle(batches)):
            yield Place(0, step), batch

    optimizer = make_optimizer(network.parameters(), LR)
    schedule = make_schedule("constant", LR, 0, 1)
    trainer = Trainer(objective, feed(), optimizer, schedule, clip=CLIP)

    def update() -> None:
        trainer.train_step()
        trainer.settle()

    return side_of(network, batches), update


def marian_update(model: Model, batches: list[Batch], n_words: int) -> tuple[Side, Callable]:
    """One update of the peer's plain loop."""
    network = marianmt.build(**model.sizes, n_words=n_words, dropout=DROPOUT, pad=PAD).train()
    optimizer = marianmt.optimizer_of(network, LR)
    feed = cycle(batches)

    def update() -> None:
        b = next(feed)
        seen = (torch.arange(b.src_ids.shape[1]) < b.src.lens[:, None]).long()
        inputs = (b.src_ids, seen, b.tgt_ids, b.labels)
        marianmt.train_step(network, optimizer, *inputs, pad=PAD, smoothing=SMOOTHING, clip=CLIP)

    return side_of(network, batches), update


def side_of(network: torch.nn.Module, batches: list[Batch]) -> Side:
    return Side(
        sum(p.numel() for p in network.parameters() if p.requires_grad),
        sum(int((batch.labels != PAD).sum()) for batch in batches),
    )


def start(update: Callable, model: Model, n_words: int) -> Connection:
    """The near end of a pipe to a process that updates when asked, and says how long it took."""
    context = multiprocessing.get_context("spawn")
    near, far = context.Pipe()
    context.Process(target=serve, args=(far, update, model, n_words), daemon=True).start()
    return near


def serve(pipe: Connection, make: Callable, model: Model, n_words: int) -> None:
    torch.manual_seed(1)
    batches = make_batches(model.n_batches, n_words)
    side, update = make(model, batches, n_words)
    pipe.recv()
    for _ in batches:  # every shape once before the clock starts
        update()
    pipe.send(side)
    while pipe.recv():
        begun = time.perf_counter()
        update()
        pipe.send(time.perf_counter() - begun)
    pipe.send(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)


def ready(pipe: Connection) -> Side:
    """Let the process warm up, and wait for it."""
    pipe.send(True)
    return pipe.recv()


def ask(pipe: Connection) -> float:
    """Seconds of the next update there."""
    pipe.send(True)
    return pipe.recv()


def finish(pipe: Connection) -> int:
    """Let the process end; the most memory it held, in MB."""
    pipe.send(False)
    return pipe.recv()


if __name__ == "__main__":
    main()
