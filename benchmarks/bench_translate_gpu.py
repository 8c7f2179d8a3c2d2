"""Translation speed on a GPU: regard from text to text, Hugging Face `generate` from ids to ids.

    python benchmarks/bench_translate_gpu.py [--data DIR] [--sentences 3000] [--rounds 2]
        [--limit 165] [--write]

The same weights in both: the Tatoeba model of tests/models made base-size (d 512, 8 heads, d_ff
2048, 6+6 layers), so that it says the same words at the cost of a base model. DIR holds the Tatoeba
Challenge, `test_hans.zh.gz` and `.en.gz`; without it, data/tatoeba-challenge-zh-en.

    bleu    bf16 and float32, with references
    greedy  bf16, in one process, round by round. The peer has its sentences in order of length and
            the batch size that suits it best: larger ones are tried while they are faster. It is
            so slow that it is timed on some batches of the plan for all sentences; regard has all
            of them, and the peer's as well. Then the time of a step, beside what it cannot be
            faster than.
    equal   float32 without tf32, on the GPU and on the CPU, as many sentences as there is time for
    beam    the same as greedy with a beam of 5

Behind the tables stand the seconds of each round as JSON. A part is not begun when --limit seconds
have passed, and shortens itself as they come near. Without a GPU the same lines run at toy size,
which says nothing about speed. Where OUT names a folder, the tables and all that was said go there
as well, each as soon as it is known.
"""

import argparse
import json
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
import transformers
from bench_translate_cpu import SMALL, base_bundle
from corpora import place_of, sentences
from peers import m2m100
from translate_race import GPU, PEER, TEXT, race_lines, raced, say, search_words

from regard import __version__
from regard.attention import kernels
from regard.bundle import open_bundle
from regard.decode.search import Search
from regard.decode.translator import Dtype, Translator, load
from regard.evaluate.metrics import bleu

DEVICE = "cuda" if GPU else "cpu"
RESULTS = Path(__file__).parent / "results" / "translate_h200_202611.md"
CORPUS = "tatoeba-challenge-zh-en"
BEAM = 5
COMPARED = {1: 25.0, BEAM: 12.0}  # seconds for the CPU, by beam
AT_LEAST = {1: 1000, BEAM: 250}  # sentences, however long that takes it
CHUNK = 250 if GPU else 10
SHOWN = 5  # of those that differ
BLEU_BOUND, EQUAL_BOUND = 0.2, 0.995


@dataclass
class Bench:
    """A model, sentences with their references, and what was said to them, by system."""

    path: Path
    texts: list[str]
    references: list[str]
    rounds: int
    end: float  # when no part is begun any more
    said: dict[str, list[str]] = field(default_factory=dict)
    seconds: dict[str, dict[str, list[float]]] = field(default_factory=dict)  # of each race

    def left(self) -> float:
        """Seconds until the end."""
        return self.end - time.monotonic()

    def translator(self, dtype: Dtype, device: str = DEVICE) -> Translator:
        """By torch, also on the CPU."""
        return load(self.path, engine="torch", device=device, dtype=dtype)

    @cached_property
    def half(self) -> Translator:
        """The one that races."""
        return self.translator("bf16")

    @cached_property
    def network(self) -> Any:
        """The peer."""
        return m2m100.build(open_bundle(self.path)).to(DEVICE, torch.bfloat16)

    def translated(self, dtype: Dtype, beam: int) -> list[str]:
        """What regard says to all sentences on the GPU; once is enough."""
        name = f"{TEXT}, {dtype}, {search_words(beam)}"
        if name not in self.said:
            translator = self.half if dtype == "bf16" else self.translator(dtype)
            found = translator.translate(self.texts, search=Search(beam=beam))
            self.said[name] = [one.text for one in found]
        return self.said[name]


def race_part(beam: int) -> Callable[[Bench], list[str]]:
    def part(bench: Bench) -> list[str]:
        race = raced(bench.half, bench.network, bench.texts, beam, bench.rounds, bench.left)
        bench.seconds[search_words(beam)] = race.seconds
        by_peer = dict(zip(race.shared, race.said[PEER], strict=True))
        all_by_peer = [by_peer.get(i, "") for i in range(len(bench.texts))]
        bench.said[f"{PEER}, bf16, {search_words(beam)}"] = all_by_peer
        return race_lines(race, bench.references, bench.path)

    return part


def bleu_table(bench: Bench) -> list[str]:
    lines = [
        "| search | bf16 | float32 | difference | sentences equal, % |",
        "|---|--:|--:|--:|--:|",
    ]
    differences = []
    for beam in (1, BEAM):
        half, whole = (bench.translated(dtype, beam) for dtype in ("bf16", "float32"))
        own, exact = (bleu(one, bench.references, "en") for one in (half, whole))
        differences.append(abs(own.value - exact.value))
        lines.append(
            f"| {search_words(beam)} | {own.value:.2f} | {exact.value:.2f} | "
            f"{own.value - exact.value:+.2f} | {100 * share_equal(half, whole):.1f} |"
        )
        say(lines[-1])
    within = "within" if max(differences) <= BLEU_BOUND else "NOT within"
    return [*lines, "", f"BLEU: `{exact.signature}`; {within} {BLEU_BOUND} of float32."]


def equal(bench: Bench) -> list[str]:
    """Float32 on the GPU and on the CPU, sentence by sentence."""
    there = bench.translator("float32", "cpu")
    lines = ["| search | sentences | equal | % | at least 99.5 % |", "|---|--:|--:|--:|---|"]
    for beam, seconds in COMPARED.items():
        whole, name = bench.translated("float32", beam), search_words(beam)
        on_cpu: list[str] = []
        start = time.monotonic()
        while len(on_cpu) < len(bench.texts):
            late = time.monotonic() - start > seconds and len(on_cpu) >= AT_LEAST[beam]
            if late or (on_cpu and bench.left() < 0):
                break
            some = bench.texts[len(on_cpu) : len(on_cpu) + CHUNK]
            on_cpu += [one.text for one in there.translate(some, search=Search(beam=beam))]
            n = len(on_cpu)
            share = share_equal(whole[:n], on_cpu)
            took = time.monotonic() - start
            say(f"{name}: {share * n:.0f} of {n:,} as on the CPU, which took {took:.0f} s")
        is_enough = "yes" if share >= EQUAL_BOUND else "NO"
        lines.append(f"| {name} | {n:,} | {share * n:.0f} | {100 * share:.2f} | {is_enough} |")
        said = zip(bench.texts[:n], whole[:n], on_cpu, strict=True)
        for differing in [three for three in said if three[1] != three[2]][:SHOWN]:
            say(f"differs, {name}:", *differing)
        bench.said[f"{TEXT}, float32 on the CPU, {name}"] = on_cpu
    return lines


def share_equal(ours: Sequence[str], theirs: Sequence[str]) -> float:
    return sum(a == b for a, b in zip(ours, theirs, strict=True)) / len(ours)


PARTS: dict[str, tuple[str, Callable[[Bench], list[str]]]] = {
    "bleu": ("BLEU of bf16 and of float32", bleu_table),
    "greedy": ("Speed, bf16, greedy", race_part(1)),
    "equal": ("Float32 without tf32, the same on the GPU and the CPU", equal),
    "beam": (f"Speed, bf16, beam {BEAM}", race_part(BEAM)),
}


def heading(n_sentences: int) -> list[str]:
    where = f"one {torch.cuda.get_device_name()}" if GPU else "a CPU, at toy size"
    model = "the Tatoeba model of tests/models"
    model += " made base-size (d 512, 8 heads, d_ff 2048, 6+6 layers)" if GPU else ""
    return [
        f"# Translating on {where}, {datetime.now(UTC):%B %Y}",
        "",
        f"`python benchmarks/bench_translate_gpu.py`: the same weights in both, {model}; "
        f"{n_sentences:,} sentences of Tatoeba's test set. regard goes from text to text; Hugging "
        "Face `generate` (M2M100, early_stopping) from ids to ids, in order of length, at its best "
        f"batch size. Medians of rounds; kernels {'on' if kernels.ARE_HERE else 'off'}; torch "
        f"{torch.__version__}, transformers {transformers.__version__}, regard {__version__}.",
    ]


def measured(bench: Bench, name: str) -> list[str]:
    """One part's lines; where it does not come to its end, the other parts stand without it."""
    if bench.left() < 0:
        say(f"{name}: no time is left for it")
        return ["Not measured: there was no time left."]
    start = time.monotonic()
    try:
        found = PARTS[name][1](bench)
    except Exception:
        traceback.print_exc()
        found = ["WRONG: it did not come to its end."]
    say("\n".join(found))
    say(f"({name}: {time.monotonic() - start:.0f} s)\n")
    return found


def main() -> None:
    """Measure, print, and write with --write."""
    started = time.monotonic()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--sentences", type=int, default=3000 if GPU else 20)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--limit", type=float, default=165.0, help="seconds, then no part is begun")
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.set_float32_matmul_precision("highest")
    transformers.logging.set_verbosity_error()
    pairs = sentences(asked.data or place_of(CORPUS), "zh", "en", asked.sentences)
    lines = heading(asked.sentences)
    with tempfile.TemporaryDirectory() as directory:
        path = base_bundle(Path(directory), open_bundle(SMALL)) if GPU else SMALL
        bench = Bench(path, *pairs, asked.rounds, started + asked.limit)
        say(f"ready after {time.monotonic() - started:.0f} s")
        for name in asked.only:
            lines += ["", f"## {PARTS[name][0]}", "", *measured(bench, name)]
            keep(lines, bench, is_written=asked.write)
    text = "\n".join([*lines, ""])
    print(text, json.dumps({"sentences": asked.sentences, "seconds": bench.seconds}), sep="\n")
    sys.exit("WRONG" in text)


def keep(lines: Sequence[str], bench: Bench, *, is_written: bool) -> None:
    """What there is so far, where it belongs and where somebody collects it."""
    text = "\n".join([*lines, ""])
    if is_written:
        RESULTS.write_text(text, encoding="utf-8")
    if "OUT" in os.environ:
        folder = Path(os.environ["OUT"])
        (folder / RESULTS.name).write_text(text, encoding="utf-8")
        said = {"source": bench.texts, "reference": bench.references, **bench.said}
        words = json.dumps(said, ensure_ascii=False, indent=1)
        (folder / "translate_said.json").write_text(words, encoding="utf-8")


if __name__ == "__main__":
    main()
