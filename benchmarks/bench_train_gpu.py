"""Training speed on a GPU: regard's packed, compiled path against Hugging Face MarianMT.

    REGARD_KERNELS=on python benchmarks/bench_train_gpu.py [--write] [--tokens 32768] [--profile]

Both train the paper's base model on the same sentences (log-normal lengths, about 24 tokens, 4 to
120), in bf16, with dropout on residuals, label smoothing, clipping and fused Adam, updates of about
as many tokens. MarianMT has padded batches of like lengths, the usual way. Every batch is seen once
before the clock starts, so nobody pays for compiling or planning. Tokens of both sides are counted,
padding is not. Rounds alternate; the ratio is the median of the rounds'. regard also runs without
its own kernels: with torch's attention, all logits at once and a float32 stream. With --profile it
only says where the time of a few updates goes.
"""

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path

import numpy as np
import torch
from peers import marianmt

from regard import __version__
from regard.attention import kernels
from regard.config import ModelConfig
from regard.data.batch import Batch, packed_batch, padded_batch
from regard.data.batching import n_packed_batches, packed_plan, packed_shape, padded_plan
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
HERE = kernels.ARE_HERE
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


def make_batches(tokens: int, n_pairs: int) -> tuple[list[Batch], list[Batch]]:
    """The same pairs as packed and as padded batches."""
    vocab = Vocabulary(
        ("<pad>", "<s>", "</s>", "<unk>", *map(str, range(4, WORDS))), pad=0, bos=1, eos=2, unk=3
    )
    sources, targets = sentences(n_pairs, seed=1)
    lens = tuple(np.array([len(ids) + 1 for ids in side]) for side in (sources, targets))
    n_batches = n_packed_batches(*lens, tokens)
    shape = packed_shape(*lens, n_batches)
    packed = packed_plan(*lens, shape, n_batches, seed=1, epoch=0)
    padded = padded_plan(*lens, tokens, seed=1, epoch=0)

    def chosen(side: list[np.ndarray], pairs: np.ndarray) -> list[np.ndarray]:
        return [side[i] for i in pairs]

    plans = [[plan.batch(i) for i in range(len(plan))] for plan in (packed, padded)]
    return (
        [
            packed_batch(chosen(sources, p), chosen(targets, p), vocab, vocab, shape, p.tolist())
            for p in plans[0]
        ],
        [
            padded_batch(chosen(sources, p), chosen(targets, p), vocab, vocab, p.tolist())
            for p in plans[1]
        ],
    )


def regard_update(
    batches: list[Batch],
    device: torch.device,
    sizes: dict[str, int] = SIZES,
    *,
    has_kernels: bool = True,
) -> Callable[[], None]:
    """One update of regard's own trainer, called again and again."""
    torch.manual_seed(1)
    config = ModelConfig(**sizes, dropout=DROPOUT, max_len=128)
    objective = Objective(build_model(config, WORDS, WORDS).to(device), pad=0, smoothing=SMOOTHING)
    compile_whole(objective, device)

    def feed() -> Iterator[tuple[Place, Batch]]:
        for step, batch in enumerate(cycle([batch.to(device) for batch in batches])):
            yield Place(0, step), batch

    trainer = Trainer(
        objective,
        feed(),
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

    return update


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
    for _ in range(20):
        update()
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


def n_tokens(batches: list[Batch]) -> int:
    """Real tokens of both sides."""
    return sum(int((b.src_ids != 0).sum()) + b.n_tokens for b in batches)


def main() -> None:
    """Measure, print, and write with --write."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--tokens", type=int, default=32_768)
    parser.add_argument("--batches", type=int, default=24)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--profile", action="store_true")
    asked = parser.parse_args()
    device = torch.device("cuda", 0)
    packed, padded = make_batches(asked.tokens, asked.tokens * asked.batches // 25)
    if asked.profile:
        profile(regard_update(packed, device))
        return
    total = n_tokens(packed)
    assert total == n_tokens(padded), "both see the same tokens"
    runs = {
        "regard, packed, compiled": (regard_update(packed, device), len(packed)),
        "the same without its own kernels": (
            regard_update(packed, device, has_kernels=False),
            len(packed),
        ),
        "MarianMT, padded, eager": (marian_update(padded, device), len(padded)),
    }
    speeds: dict[str, list[float]] = {name: [] for name in runs}
    peaks: dict[str, float] = {}
    for name, (update, n) in runs.items():  # the first pass compiles, plans, warms
        torch.cuda.reset_peak_memory_stats()
        for _ in range(n):
            update()
        peaks[name] = torch.cuda.max_memory_allocated() / 2**30
    graphs = n_graphs()
    for _ in range(asked.rounds):
        for name, (update, n) in runs.items():
            torch.cuda.synchronize()
            start = time.perf_counter()
            for _ in range(n):
                update()
            torch.cuda.synchronize()
            speeds[name].append(total / (time.perf_counter() - start))
    ours, _, theirs = speeds.values()
    ratios = [a / b for a, b in zip(ours, theirs, strict=True)]
    lines = [
        f"# Training on one {torch.cuda.get_device_name()}",
        "",
        f"Base model (d 512, 8 heads, d_ff 2048, 6+6), {WORDS:,} words, bf16, "
        f"{asked.tokens:,} tokens a side, {asked.rounds} alternating rounds of {total:,} tokens; "
        f"torch {torch.__version__}, regard {__version__}.",
        "",
        "| what | tokens/s (median) | min – max | peak memory |",
        "|---|--:|--:|--:|",
        *(
            f"| {name} | {statistics.median(s):,.0f} | {min(s):,.0f} – {max(s):,.0f} | "
            f"{peaks[name]:.1f} GiB |"
            for name, s in speeds.items()
        ),
        "",
        f"Ratio: **{statistics.median(ratios):.2f}** ({min(ratios):.2f} – {max(ratios):.2f}). "
        f"Compiled again after the first pass: {n_graphs() - graphs}.",
        "",
    ]
    print("\n".join(lines))
    if asked.write:
        RESULTS.write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
