"""From the bytes of a corpus to ids on disk, against SentencePiece on lines already in memory.

    python benchmarks/bench_data.py DIRECTORY [--from zh] [--to en] [--rounds 7]

One core, rounds interleaved, median and spread; peak memory above the imports, in a process of its
own; waste of packed and padded batches.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import sentencepiece

from regard.data.batching import n_packed_batches, packed_plan, packed_shape, padded_plan
from regard.data.corpus import find_corpus, read_pairs
from regard.data.dataset import PairDataset, build_dataset
from regard.text.tokenizer import Tokenizer, load_tokenizer, train_tokenizer

PACKED, PADDED = 32_768, 4096


def main() -> None:
    """Measure and print one JSON object."""
    arguments = parse()
    files = find_corpus(arguments.directory, arguments.src_lang, arguments.tgt_lang)
    if arguments.memory_of:
        print(json.dumps(memory_of_a_build(files, load_tokenizer(arguments.memory_of))))
        return
    pairs = list(read_pairs(files))
    texts = [text for pair in pairs for text in (pair.src, pair.tgt)]
    tokenizer = train_tokenizer(texts, kind="unigram", size=16_000)
    with tempfile.TemporaryDirectory() as folder:
        tokenizer.save(Path(folder) / "tokenizer")
        processor = sentencepiece.SentencePieceProcessor(
            model_file=str(Path(folder) / "tokenizer" / "tokenizer.model")
        )
        rounds = []
        for _ in range(arguments.rounds):
            theirs = seconds(lambda: processor.encode(texts, num_threads=1))
            ours = seconds(lambda: build(files, tokenizer, Path(folder) / "data"))
            rounds.append((ours, theirs, ours / theirs))
        dataset = build(files, tokenizer, Path(folder) / "data")
        memory = json.loads(
            subprocess.run(
                [
                    *(sys.executable, __file__, arguments.directory, *languages(arguments)),
                    *("--memory-of", str(Path(folder) / "tokenizer")),
                ],
                capture_output=True,
                check=True,
            ).stdout
        )
        ratios = [ratio for _, _, ratio in rounds]
        print(
            json.dumps(
                {
                    "corpus": Path(arguments.directory).name,
                    "pairs": len(pairs),
                    "seconds": statistics.median(ours for ours, _, _ in rounds),
                    "sentencepiece_seconds": statistics.median(t for _, t, _ in rounds),
                    "ratio": statistics.median(ratios),
                    "ratio_spread": [min(ratios), max(ratios)],
                    **memory,
                    **waste(dataset),
                },
                indent=1,
            )
        )


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory")
    parser.add_argument("--from", dest="src_lang")
    parser.add_argument("--to", dest="tgt_lang")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--memory-of", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()


def languages(arguments: argparse.Namespace) -> list[str]:
    """The languages, as the command line takes them."""
    given = (("--from", arguments.src_lang), ("--to", arguments.tgt_lang))
    return [word for flag, language in given if language for word in (flag, language)]


def build(files, tokenizer: Tokenizer, directory: Path) -> PairDataset:
    """The whole way: decompress, decode, pair, normalise, tokenise, write."""
    pairs = read_pairs(files)
    return build_dataset(
        directory, pairs, tokenizer, tokenizer, fingerprint="", max_len=256, workers=1
    )


def seconds(work) -> float:
    """How long it takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def memory_of_a_build(files, tokenizer: Tokenizer) -> dict[str, float]:
    """Peak memory of a build above what the imports and the tokenizer take."""
    before = peak_kb()
    with tempfile.TemporaryDirectory() as folder:
        build(files, tokenizer, Path(folder) / "data")
    return {
        "peak_mb_above_imports": (peak_kb() - before) / 1024,
        "imports_mb": before / 1024,
    }


def peak_kb() -> int:
    """The most this process has held; getrusage would tell what its parent held."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0])


def waste(dataset: PairDataset) -> dict[str, float]:
    """The share of places that hold padding, both sides counted."""
    src, tgt = dataset.src.lens + 1, dataset.tgt.lens + 1
    tokens = int(src.sum() + tgt.sum())
    n_batches = n_packed_batches(src, tgt, PACKED)
    shape = packed_shape(src, tgt, n_batches)
    for epoch in range(3):
        packed_plan(src, tgt, shape, n_batches, seed=0, epoch=epoch)
    plan = padded_plan(src, tgt, PADDED, seed=0, epoch=0)
    batches = [plan.batch(i) for i in range(len(plan))]
    places = sum(len(b) * int(src[b].max() + tgt[b].max()) for b in batches)
    return {
        "packed_tokens": PACKED,
        "packed_batches": n_batches,
        "packed_waste": 1 - tokens / (n_batches * (shape.n_src + shape.n_tgt)),
        "padded_tokens": PADDED,
        "padded_batches": len(plan),
        "padded_waste": 1 - tokens / places,
    }


if __name__ == "__main__":
    main()
