"""Training speed on a GPU: regard's packed, compiled path against Hugging Face MarianMT.

    python benchmarks/bench_train_gpu.py [--plain | --big] [--write] [--tokens 131072] [--profile]

Both train the paper's base model on the same sentences (log-normal lengths, about 24 tokens, 4 to
120), in bf16, with dropout on residuals, label smoothing, clipping and fused Adam, updates of about
as many tokens. MarianMT has padded batches of like lengths, the usual way. Every batch is seen once
before the clock starts, so nobody pays for compiling or planning. Tokens of both sides are counted,
padding is not. Rounds alternate; the ratio is the median of the rounds'. regard's batches are made
and copied while the GPU is at the update before, as `regard train` does it; a row with all
batches ready on the GPU says what that costs. With --plain it also runs without its own kernels:
with torch's attention, all logits at once and a float32 stream. With --big it trains the big model
(d 1024, 16 heads) alone, to see how far from the chip's matrix products it is: useful operations
are those of the weights on real tokens.
With --profile it only says where the time of a few updates goes.
"""

import argparse
import faulthandler
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path

import numpy as np
import torch
from peers import marianmt

from regard import __version__
from regard.attention import kernels
from regard.config import ModelConfig
from regard.data.batch import Batch, packed_batch, padded_batch
from regard.data.batching import (
    PackedShape,
    n_packed_batches,
    packed_plan,
    packed_shape,
    padded_plan,
)
from regard.data.feed import Place
from regard.model import build_model
from regard.text.vocab import Vocabulary
from regard.train.objective import Objective
from regard.train.optim import make_optimizer, make_schedule
from regard.train.parallel import Parallel
from regard.train.precision import Precision, compile_whole
from regard.train.trainer import Trainer

WORDS = 32_000
SIZES = {"d_model": 512, "n_layers": 6, "n_heads": 8, "d_ff": 2048}
BIG = {"d_model": 1024, "n_layers": 6, "n_heads": 16, "d_ff": 4096}
HERE = kernels.ARE_HERE
OURS, READY = "regard, packed, compiled", "the same, batches ready on the GPU"
THEIRS = "MarianMT, padded, eager"
DROPOUT, SMOOTHING, CLIP = 0.1, 0.1, 1.0
RESULTS = Path(__file__).parent / "results" / "train_h200_202611.md"


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


def regard_update(
    feed: Feed,
    device: torch.device,
    sizes: dict[str, int] = SIZES,
    *,
    has_kernels: bool = True,
) -> Callable[[], None]:
    """One update of regard's own trainer, called again and again."""
    torch.manual_seed(1)
    config = ModelConfig(**sizes, dropout=DROPOUT, max_len=128)
    objective = Objective(build_model(config, WORDS, WORDS).to(device), pad=0, smoothing=SMOOTHING)
    compile_whole(objective, device, is_replayed=True)
    trainer = Trainer(
        objective,
        feed,
        make_optimizer(objective.parameters(), 1e-4),
        make_schedule("constant", 1e-4, 0, 1),
        clip=CLIP,
        parallel=Parallel(device="cuda"),
        precision=Precision("bf16", device),
    )
    if not has_kernels:
        trainer.model.source.stream = trainer.model.target.stream = None

    def update() -> None:
        kernels.ARE_HERE = has_kernels and HERE  # what is compiled looks again at every call
        trainer.train_step()
        trainer.settle(behind=1)

    return update


def with_ready(update: Callable[[], None], feed: Feed, ready: list[Batch]) -> Callable[[], None]:
    """The same update of the same trainer, with batches that nobody has to make."""

    def from_ready() -> None:
        feed.ready = ready
        update()
        feed.ready = []

    return from_ready


def marian_update(batches: list[Batch], device: torch.device) -> Callable[[], None]:
    """One update of the peer's plain loop."""
    torch.manual_seed(1)
    sizes = {"n_words": WORDS, "dropout": DROPOUT, "pad": 0, **SIZES}
    model = marianmt.build(**sizes).to(device).train()
    optimizer = torch.optim.Adam(
        model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9, fused=True
    )
    feed = cycle([batch.to(device) for batch in batches])

    def update() -> None:
        batch = next(feed)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            marianmt.train_step(
                model,
                optimizer,
                batch.src_ids,
                (batch.src_ids != 0).long(),
                batch.tgt_ids,
                batch.labels,
                pad=0,
                smoothing=SMOOTHING,
                clip=CLIP,
            )

    return update


def profile(update: Callable[[], None]) -> None:
    """Where the time of three updates goes, kernel by kernel."""
    for step in range(20):
        update()
        print(f"update {step + 1} at {time.perf_counter():.0f} s", file=sys.stderr, flush=True)
    torch.cuda.synchronize()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as measured:
        for _ in range(3):
            update()
        torch.cuda.synchronize()
    averages = measured.key_averages()
    print(averages.table(sort_by="self_device_time_total", row_limit=45, max_name_column_width=70))


def n_graphs() -> int:
    """How many programs torch has compiled so far."""
    return torch._dynamo.utils.counters["stats"]["unique_graphs"]


def n_tokens(pairs: Pairs) -> int:
    """Real tokens of both sides."""
    return sum(int(side.sum()) for side in pairs.lens)


def n_products(pairs: Pairs, sizes: dict[str, int]) -> float:
    """Operations of the weights' products for all pairs, forward and backward."""
    d, d_ff, n_layers = sizes["d_model"], sizes["d_ff"], sizes["n_layers"]
    feed_forward = 2 * d * d_ff
    for_source = n_layers * (4 * d * d + feed_forward + 2 * d * d)  # and the decoder's keys, values
    for_target = n_layers * (4 * d * d + 2 * d * d + feed_forward) + WORDS * d
    src, tgt = (int(side.sum()) for side in pairs.lens)
    return 6.0 * (src * for_source + tgt * for_target)


def ceiling(device: torch.device) -> float:
    """Operations a second of one large bf16 product, the median of 20."""
    n = 8192
    a, b = torch.randn(2, n, n, device=device).to(torch.bfloat16)
    times = []
    for _ in range(30):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        a @ b
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) / 1000)
    return 2 * n**3 / statistics.median(times[10:])


@dataclass
class Run:
    """Somebody's updates, and what was measured of them."""

    update: Callable[[], None]
    n_updates: int  # for all pairs once
    products: float
    speeds: list[float] = field(default_factory=list)
    peak: float = 0.0

    def warm(self, name: str) -> None:
        """The first pass compiles, plans, warms; then two more updates, as recording takes two."""
        torch.cuda.reset_peak_memory_stats()
        for _ in range(self.n_updates + 2):
            self.update()
        torch.cuda.synchronize()
        self.peak = torch.cuda.max_memory_allocated() / 2**30
        print(f"{name}: warm after {time.perf_counter():.0f} s", file=sys.stderr, flush=True)

    def measure(self, total: int) -> None:
        """All pairs once."""
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(self.n_updates):
            self.update()
        torch.cuda.synchronize()
        self.speeds.append(total / (time.perf_counter() - start))

    def row(self, name: str, total: int, most: float) -> str:
        """A row of the table."""
        median = statistics.median(self.speeds)
        useful = self.products / total * median
        peak = f"{self.peak:.1f} GiB" if self.peak else ""
        return (
            f"| {name} | {median:,.0f} | {min(self.speeds):,.0f} – {max(self.speeds):,.0f} | "
            f"{useful / 1e12:,.0f} | {useful / most:.1%} | {peak} |"
        )


def main() -> None:
    """Measure, print, and write with --write."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--tokens", type=int, default=131_072)
    parser.add_argument("--batches", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--plain", action="store_true")
    parser.add_argument("--big", action="store_true")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--limit", type=float, default=540.0, help="seconds, then says where it is")
    asked = parser.parse_args()
    faulthandler.dump_traceback_later(asked.limit, exit=True)
    device = torch.device("cuda", 0)
    pairs = make_pairs(asked.tokens, asked.batches)
    if asked.profile:
        profile(regard_update(Feed(pairs), device))
        return
    total = n_tokens(pairs)
    sizes = BIG if asked.big else SIZES
    products = n_products(pairs, sizes)
    feed = Feed(pairs)
    update = regard_update(feed, device, sizes)
    ready = [pairs[i].to(device) for i in range(len(pairs))]
    runs = {
        OURS: Run(update, len(pairs), products),
        READY: Run(with_ready(update, feed, ready), len(pairs), products),
    }
    if asked.plain:
        plain = regard_update(Feed(pairs), device, has_kernels=False)
        runs["the same without its own kernels"] = Run(plain, len(pairs), products)
    if not asked.big:
        padded = pairs.padded()
        runs[THEIRS] = Run(marian_update(padded, device), len(padded), products)
    for name, run in runs.items():
        run.warm(name)
    runs[READY].peak = 0.0  # it replays what the one before has recorded, memory and all
    graphs = n_graphs()
    for _ in range(asked.rounds):
        for run in runs.values():
            run.measure(total)
    text = report(asked, runs, total, ceiling(device), n_graphs() - graphs)
    print(text)
    if asked.write:
        place = RESULTS.with_name("train-big_h200_202611.md") if asked.big else RESULTS
        place.write_text(text, encoding="utf-8")


def report(
    asked: argparse.Namespace, runs: dict[str, Run], total: int, most: float, recompiled: int
) -> str:
    """The page of results."""
    ours, ready = runs[OURS].speeds, runs[READY].speeds
    costs = 1.0 - statistics.median(a / b for a, b in zip(ours, ready, strict=True))
    ratio = ""
    if THEIRS in runs:
        ratios = [a / b for a, b in zip(ours, runs[THEIRS].speeds, strict=True)]
        ratio = (
            f"Ratio: **{statistics.median(ratios):.2f}** ({min(ratios):.2f} – {max(ratios):.2f}). "
        )
    size = (
        "big model (d 1024, 16 heads, d_ff 4096"
        if asked.big
        else "base model (d 512, 8 heads, d_ff 2048"
    )
    lines = [
        f"# Training on one {torch.cuda.get_device_name()}",
        "",
        f"`{'REGARD_KERNELS=on ' if HERE else ''}python benchmarks/bench_train_gpu.py"
        f"{' --big' if asked.big else ''}`: the {size}, 6+6 "
        f"layers), {WORDS:,} words, bf16, {asked.tokens:,} tokens a side, {asked.rounds} "
        f"alternating rounds of {total:,} tokens; torch {torch.__version__}, regard {__version__}. "
        "Useful are the operations of the weights on real tokens; the ceiling, a product of 8192³ "
        f"in bf16, has {most / 1e12:,.0f} TFLOP/s here.",
        "",
        "| what | tokens/s (median) | min – max | useful TFLOP/s | of the ceiling | peak memory |",
        "|---|--:|--:|--:|--:|--:|",
        *(run.row(name, total, most) for name, run in runs.items()),
        "",
        f"{ratio}Making and copying batches costs {max(costs, 0.0):.1%} of the time. Compiled "
        f"again after the first pass: {recompiled}.",
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
