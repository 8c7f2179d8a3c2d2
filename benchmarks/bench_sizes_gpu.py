"""How fast networks of several sizes train and translate on a GPU: what a plan is made from.

    python benchmarks/bench_sizes_gpu.py [--write] [--rounds 5] [--only sizes|updates|translating]

Training is that of bench_train_gpu.py (packed, compiled, bf16, 32,000 words): every size of the
table, and the base model with smaller and larger updates. Translating is from text to text, in
bf16: the Tatoeba model of tests/models, and the same made base-size. `tools/plan.py` takes its
numbers from the result file.
"""

import argparse
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import torch
from bench_train_gpu import WORDS, Feed, make_pairs, n_tokens, regard_update
from bench_translate_cpu import SMALL, base_bundle

from regard import __version__
from regard.bundle import open_bundle
from regard.decode.search import Search
from regard.decode.translator import load

SIZES = {
    "tiny": {"d_model": 128, "n_layers": 2, "n_heads": 4, "d_ff": 512},
    "small": {"d_model": 256, "n_layers": 3, "n_heads": 4, "d_ff": 1024},
    "medium": {"d_model": 384, "n_layers": 4, "n_heads": 6, "d_ff": 1536},
    "base": {"d_model": 512, "n_layers": 6, "n_heads": 8, "d_ff": 2048},
    "wide": {"d_model": 768, "n_layers": 6, "n_heads": 12, "d_ff": 3072},
    "big": {"d_model": 1024, "n_layers": 6, "n_heads": 16, "d_ff": 4096},
}
TOKENS, BATCHES = 32_768, 16  # a side of an update, and updates of a round
UPDATES = (2048, 4096, 8192, 16_384, 65_536)  # tokens a side
SENTENCES = 40_000  # translated in a round
PIECES = ["喜欢", "今天", "苹果", "学校", "朋友", *"我你他去吃看书的了吗很不在"]
RESULTS = Path(__file__).parent / "results" / "sizes_h200_202611.md"


def seconds(work: Callable[[], object]) -> float:
    torch.cuda.synchronize()
    start = time.perf_counter()
    work()
    torch.cuda.synchronize()
    return time.perf_counter() - start


def measured(name: str, tokens: int, n_rounds: int) -> tuple[list[float], float]:
    """Tokens a second in each round, and the most memory in GiB."""
    device = torch.device("cuda", 0)
    pairs = make_pairs(tokens, BATCHES)
    total = n_tokens(pairs)
    torch.compiler.reset()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    update = regard_update(Feed(pairs), device, SIZES[name])

    def a_round() -> None:
        for _ in range(len(pairs)):
            update()

    a_round()  # compiles, plans, warms
    peak = torch.cuda.max_memory_allocated() / 2**30
    return [total / seconds(a_round) for _ in range(n_rounds)], peak


def size_rows(n_rounds: int) -> list[str]:
    rows = []
    for name, sizes in SIZES.items():
        speeds, peak = measured(name, TOKENS, n_rounds)
        d, n, ff = sizes["d_model"], sizes["n_layers"], sizes["d_ff"]
        rows.append(
            f"| {name} | {d} | {n} | {ff} | {statistics.median(speeds):,.0f} | "
            f"{min(speeds):,.0f} – {max(speeds):,.0f} | {peak:.1f} GiB |"
        )
        print(rows[-1], flush=True)
    return rows


def update_rows(n_rounds: int) -> list[str]:
    rows = []
    for tokens in UPDATES:
        speeds, _ = measured("base", tokens, n_rounds)
        rows.append(
            f"| {tokens:,} | {statistics.median(speeds):,.0f} | "
            f"{min(speeds):,.0f} – {max(speeds):,.0f} |"
        )
        print(rows[-1], flush=True)
    return rows


def translating_rows(n_rounds: int) -> list[str]:
    chance, rows = random.Random(1), []
    lengths = chance.choices(range(3, 13), k=SENTENCES)
    texts = ["".join(chance.choices(PIECES, k=length)) + "。" for length in lengths]
    with tempfile.TemporaryDirectory() as directory:
        places = {"small": SMALL, "base": base_bundle(Path(directory), open_bundle(SMALL))}
        for name, path in places.items():
            translator = load(path, engine="torch", device="cuda", dtype="bf16")
            for beam in (1, 5):
                search = Search(beam=beam)
                some = texts if beam == 1 else texts[: SENTENCES // 4]
                translator.translate(some, search=search)
                took = [
                    seconds(lambda t=translator, s=some, how=search: t.translate(s, search=how))
                    for _ in range(n_rounds)
                ]
                speeds = [len(some) / one for one in took]
                what = "greedy" if beam == 1 else f"beam {beam}"
                rows.append(
                    f"| {name} | {what} | {statistics.median(speeds):,.0f} | "
                    f"{min(speeds):,.0f} – {max(speeds):,.0f} |"
                )
                print(rows[-1], flush=True)
    return rows


PARTS = {
    "sizes": (
        f"Updates of {TOKENS:,} tokens a side:",
        "| size | d | layers a side | feed-forward | tokens/s (median) | min – max | peak memory |",
        "|---|--:|--:|--:|--:|--:|--:|",
        size_rows,
    ),
    "updates": (
        "The base model, with other updates:",
        "| tokens a side | tokens/s (median) | min – max |",
        "|--:|--:|--:|",
        update_rows,
    ),
    "translating": (
        f"Translating from text to text, bf16, {SENTENCES:,} sentences of 3 to 12 words a round (a "
        "quarter of them with a beam); small is d 256 with 3+3 layers, base d 512 with 6+6:",
        "| size | search | sentences/s (median) | min – max |",
        "|---|---|--:|--:|",
        translating_rows,
    ),
}


def main() -> None:
    """Measure, print, and write with --write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", choices=PARTS)
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    lines = [
        f"# Networks of several sizes on one {torch.cuda.get_device_name()}, "
        f"{datetime.now(UTC):%B %Y}",
        "",
        f"`python benchmarks/bench_sizes_gpu.py`: training packed, compiled, bf16, {WORDS:,} "
        f"words, tokens of both sides counted; {asked.rounds} rounds of {BATCHES} updates; torch "
        f"{torch.__version__}, regard {__version__}.",
    ]
    for name, (words, head, rule, rows) in PARTS.items():
        if asked.only in (None, name):
            lines += ["", words, "", head, rule, *rows(asked.rounds)]
    if asked.write:
        RESULTS.write_text("\n".join([*lines, ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
