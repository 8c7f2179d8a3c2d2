"""Training speed on a GPU: regard's packed, compiled path against Hugging Face MarianMT.

    python benchmarks/bench_train_gpu.py [--plain | --big] [--write] [--tokens 131072] [--profile]
    python benchmarks/bench_train_gpu.py --additive [--apart] [--write]

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

With --additive it trains the base model with additive scores and with scaled dot products instead,
on the same batches, round by round in one process; with --apart, each in a process of its own. This
also runs without a GPU, at toy size, which says nothing about speed. Where OUT names a folder, the
result goes there as well.
"""

import argparse
import faulthandler
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path

import torch
from packed_pairs import WORDS, Feed, Pairs, make_pairs, n_tokens
from peers import marianmt

from regard import __version__
from regard.attention import kernels
from regard.config import ModelConfig
from regard.data.batch import Batch
from regard.model import build_model
from regard.train.objective import Objective
from regard.train.optim import make_optimizer, make_schedule
from regard.train.parallel import Parallel
from regard.train.precision import Precision, compile_whole
from regard.train.trainer import Trainer

GPU = torch.cuda.is_available()
SIZES = {"d_model": 512, "n_layers": 6, "n_heads": 8, "d_ff": 2048}
TOY = {"d_model": 16, "n_layers": 1, "n_heads": 2, "d_ff": 32}
BIG = {"d_model": 1024, "n_layers": 6, "n_heads": 16, "d_ff": 4096}
HERE = kernels.ARE_HERE
OURS, READY = "regard, packed, compiled", "the same, batches ready on the GPU"
THEIRS = "MarianMT, padded, eager"
DROPOUT, SMOOTHING, CLIP = 0.1, 0.1, 1.0
SCALED_DOT, ADDITIVE = "scaled_dot", "additive"
Measured = dict[str, list[float]]  # by score: tokens a second, round by round
RESULTS = Path(__file__).parent / "results" / "train_h200_202611.md"


def regard_update(
    feed: Feed,
    device: torch.device,
    sizes: dict[str, int] = SIZES,
    *,
    score: str = SCALED_DOT,
    has_kernels: bool = True,
) -> Callable[[], None]:
    """One update of regard's own trainer, called again and again."""
    torch.manual_seed(1)
    config = ModelConfig(**sizes, score=score, dropout=DROPOUT, max_len=128)
    objective = Objective(build_model(config, WORDS, WORDS).to(device), pad=0, smoothing=SMOOTHING)
    if device.type == "cuda":
        compile_whole(objective, device, is_replayed=True)
    trainer = Trainer(
        objective,
        feed,
        make_optimizer(objective.parameters(), 1e-4),
        make_schedule("constant", 1e-4, 0, 1),
        clip=CLIP,
        parallel=Parallel(device=device.type),
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


def wait() -> None:
    """Until the GPU, if there is one, has done all it was told."""
    if GPU:
        torch.cuda.synchronize()


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
        if GPU:
            torch.cuda.reset_peak_memory_stats()
        for _ in range(self.n_updates + 2):
            self.update()
        wait()
        self.peak = torch.cuda.max_memory_allocated() / 2**30 if GPU else 0.0
        print(f"{name}: warm after {time.perf_counter():.0f} s", file=sys.stderr, flush=True)

    def measure(self, total: int) -> None:
        """All pairs once."""
        wait()
        start = time.perf_counter()
        for _ in range(self.n_updates):
            self.update()
        wait()
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
    parser.add_argument("--batches", type=int, default=6)  # the most that fit beside MarianMT
    parser.add_argument("--rounds", type=int, help="without it 7, or 5 with --additive")
    parser.add_argument("--plain", action="store_true")
    parser.add_argument("--big", action="store_true")
    parser.add_argument("--additive", action="store_true")
    parser.add_argument("--apart", action="store_true")
    parser.add_argument("--score", help=argparse.SUPPRESS)  # one alone, for --apart
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--limit", type=float, default=540.0, help="seconds, then says where it is")
    asked = parser.parse_args()
    faulthandler.dump_traceback_later(asked.limit, exit=True)
    if asked.additive or asked.score:
        compare_scores(asked)
        return
    asked.rounds = asked.rounds or 7
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
    print(text, json.dumps({name: run.speeds for name, run in runs.items()}), sep="\n")
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


# --- additive scores beside scaled dot products


def compare_scores(asked: argparse.Namespace) -> None:
    """Tokens a second with each score, or with the one that is asked for alone."""
    asked.rounds = asked.rounds or 5
    if asked.score:
        print(json.dumps(measured_scores(asked, [asked.score])), flush=True)
        return
    names = [SCALED_DOT, ADDITIVE]
    if asked.apart:
        found = {name: measured_apart(asked, name) for name in names}
    else:
        found = measured_scores(asked, names)
    text = report_of_scores(asked, found)
    print(text, json.dumps(found), sep="\n")
    places = [Path(os.environ["OUT"])] if "OUT" in os.environ else []
    for place in [*places, *([RESULTS.parent] if asked.write else [])]:
        (place / "train-additive_h200_202611.md").write_text(text, encoding="utf-8")


def measured_scores(asked: argparse.Namespace, names: list[str]) -> Measured:
    """Rounds alternate; what each measures is said at once."""
    device = torch.device("cuda", 0) if GPU else torch.device("cpu")
    pairs = make_pairs(asked.tokens, asked.batches)
    total = n_tokens(pairs)
    runs = {}
    for name in names:
        update = regard_update(Feed(pairs), device, SIZES if GPU else TOY, score=name)
        runs[name] = Run(update, len(pairs), products=0.0)
        runs[name].warm(name)
    for number in range(asked.rounds):
        for name, run in runs.items():
            run.measure(total)
            words = f"round {number + 1}, {name}: {run.speeds[-1]:,.0f} tokens/s"
            print(words, file=sys.stderr, flush=True)
    return {name: run.speeds for name, run in runs.items()}


def measured_apart(asked: argparse.Namespace, name: str) -> list[float]:
    """One score in a process of its own."""
    sizes = "--tokens", asked.tokens, "--batches", asked.batches, "--rounds", asked.rounds
    command = [sys.executable, __file__, "--score", name, *map(str, sizes)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    found: Measured = json.loads(done.stdout.splitlines()[-1])
    return found[name]


def report_of_scores(asked: argparse.Namespace, found: Measured) -> str:
    """The page of results."""
    ratios = [a / b for a, b in zip(found[ADDITIVE], found[SCALED_DOT], strict=True)]
    where = f"one {torch.cuda.get_device_name()}" if GPU else "a CPU, at toy size"
    how = "each in a process of its own" if asked.apart else "alternating, in one process"
    lines = [
        f"# Training with additive scores on {where}",
        "",
        f"`{'REGARD_KERNELS=on ' if HERE else ''}python benchmarks/bench_train_gpu.py --additive"
        f"{' --apart' if asked.apart else ''}`: the base model (d 512, 8 heads, d_ff 2048, 6+6 "
        f"layers), {WORDS:,} words, bf16, packed, compiled, {asked.tokens:,} tokens a side; "
        f"sentences of 4 to 120 tokens, about 24; {asked.rounds} rounds of {asked.batches} "
        f"updates, {how}; torch {torch.__version__}, regard {__version__}.",
        "",
        "| score | tokens/s (median) | min – max |",
        "|---|--:|--:|",
        *(
            f"| {name.replace('_', ' ')} | {statistics.median(speeds):,.0f} | "
            f"{min(speeds):,.0f} – {max(speeds):,.0f} |"
            for name, speeds in found.items()
        ),
        "",
        f"Additive ÷ scaled dot: **{statistics.median(ratios):.2f}** "
        f"({min(ratios):.2f} – {max(ratios):.2f}).",
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
