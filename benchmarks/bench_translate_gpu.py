"""Translation speed on a GPU: regard from text to text, Hugging Face `generate` from ids to ids.

    python benchmarks/bench_translate_gpu.py [--data DIR] [--sentences 3000] [--rounds 3] [--write]

The same weights in both: the Tatoeba model of tests/models made base-size (d 512, 8 heads, d_ff
2048, 6+6 layers), so that it says the same words at the cost of a base model. DIR holds the Tatoeba
Challenge, `test_hans.zh.gz` and `.en.gz`; without it, data/tatoeba-challenge-zh-en.

    speed   bf16, greedy and beam 5, in one process, round by round. The peer has its sentences in
            order of length, and the batch size that suits it best: each size once on a third, the
            two best on all; what a round sees was seen before. Then the time of a step, beside what
            it cannot be faster than.
    bleu    bf16 and float32, with references
    equal   the first 500 sentences in float32 without tf32, on the GPU and on the CPU

Without a GPU the same lines run at toy size, which says nothing about speed. Where OUT names a
folder, the tables and all that was said go there as well.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
import transformers
from bench_translate_cpu import SMALL, _decoded, base_bundle, by_length
from corpora import place_of, sentences
from peers import m2m100
from safetensors.torch import load_file

from regard import __version__
from regard.attention import kernels
from regard.bundle import open_bundle
from regard.decode import slots
from regard.decode.search import Search
from regard.decode.translator import Dtype, Translator, load
from regard.decode.wording import sentences_of
from regard.evaluate.metrics import bleu
from regard.model.transformer import Transformer

GPU = torch.cuda.is_available()
DEVICE = "cuda" if GPU else "cpu"
RESULTS = Path(__file__).parent / "results" / "translate_h200_202611.md"
CORPUS = "tatoeba-challenge-zh-en"
BEAMS = (1, 5)
BATCHES = (128, 256, 512, 1024) if GPU else (4, 8)
COMPARED = 500  # sentences translated on the CPU as well
SHOWN = 5  # of those that differ
BANDWIDTH, ARITHMETIC = 4.8e12, 989e12  # of an H200: bytes a second, and operations in bf16
PEER, TEXT, IDS = "`generate`", "regard", "regard, ids to ids"
REPLAYED, STEPPED, ALONE = "replayed", "stepped", "alone"


@dataclass
class Bench:
    """A model, sentences with their references, and what was said to them, by system."""

    path: Path
    texts: list[str]
    references: list[str]
    rounds: int
    said: dict[str, list[str]] = field(default_factory=dict)

    def translator(self, dtype: Dtype, device: str = DEVICE) -> Translator:
        """By torch, also on the CPU."""
        return load(self.path, engine="torch", device=device, dtype=dtype)

    def translated(self, dtype: Dtype, beam: int) -> list[str]:
        """What regard says to all sentences on the GPU; once is enough."""
        name = f"{TEXT}, {dtype}, {search_words(beam)}"
        if name not in self.said:
            found = self.translator(dtype).translate(self.texts, search=Search(beam=beam))
            self.said[name] = [one.text for one in found]
        return self.said[name]


@dataclass(frozen=True)
class Race:
    """Both systems on all sentences with one search: seconds by round, and steps."""

    beam: int
    n_sentences: int
    batch: int
    tried: dict[int, float]  # sentences a second on a third, by batch size
    seconds: dict[str, list[float]]
    steps: dict[str, int]
    alone: float  # seconds of regard's steps, where each is waited for

    def speed(self, name: str) -> float:
        """Sentences a second."""
        return self.n_sentences / statistics.median(self.seconds[name])

    @property
    def ratios(self) -> list[float]:
        """How many times faster regard was, round by round."""
        return [a / b for a, b in zip(self.seconds[PEER], self.seconds[TEXT], strict=True)]


def search_words(beam: int) -> str:
    return "greedy" if beam == 1 else f"beam {beam}"


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    wait = torch.cuda.synchronize if GPU else lambda: None
    wait()
    start = time.perf_counter()
    done = work()
    wait()
    return time.perf_counter() - start, done


# --- speed

Generate = Callable[[Sequence[list[int]], int], list[list[int]]]  # rows of ids, and a batch size


def peer(network: Any, beam: int, pad: int) -> Generate:
    def generate(rows: Sequence[list[int]], batch: int) -> list[list[int]]:
        said: dict[int, list[int]] = {}
        for chosen in by_length(rows, batch):
            some = [rows[i] for i in chosen]
            said |= zip(chosen, m2m100.generate(network, some, beam=beam, pad=pad), strict=True)
        return [said[i] for i in range(len(rows))]

    return generate


def best_batch(generate: Generate, rows: Sequence[list[int]]) -> tuple[int, dict[int, float]]:
    """The batch size with which the peer is fastest, and sentences a second of every size."""
    some = rows[::3]
    longest = sorted(rows, key=len)
    speeds: dict[int, float] = {}
    for size in BATCHES:
        try:
            generate(longest[-size:], size)  # the largest batch it will meet: memory is found
            speeds[size] = len(some) / timed(lambda n=size: generate(some, n))[0]
            print(f"{PEER}, batch {size}: {speeds[size]:,.0f} sentences/s", flush=True)
        except torch.cuda.OutOfMemoryError:
            torch.cuda.empty_cache()
    best = sorted(speeds, key=lambda size: -speeds[size])[:2]
    return min(best, key=lambda size: timed(lambda: generate(rows, size))[0]), speeds


@contextmanager
def counting(network: Any) -> Iterator[dict[str, float]]:
    """How often the decoders are asked for a word meanwhile, and how long regard's takes alone."""
    steps: dict[str, float] = dict.fromkeys((PEER, REPLAYED, STEPPED, ALONE), 0)
    record, step = slots._recorded, Transformer.step

    def recorded(one: Callable[[], None], device: torch.device) -> Callable[[], None]:
        replay = record(one, device)

        def counted() -> None:
            steps[REPLAYED] += 1
            steps[ALONE] += timed(replay)[0]

        return counted

    def stepped(self: Transformer, token: Any, state: Any) -> Any:
        steps[STEPPED] += 1  # those that are recorded as well
        return step(self, token, state)

    def asked(*_: object) -> None:
        steps[PEER] += 1

    hook = network.model.decoder.register_forward_pre_hook(asked)
    slots._recorded, Transformer.step = recorded, stepped  # type: ignore[method-assign]
    try:
        yield steps
    finally:
        slots._recorded, Transformer.step = record, step  # type: ignore[method-assign]
        hook.remove()


def raced(bench: Bench, translator: Translator, network: Any, beam: int) -> Race:
    search, wording = Search(beam=beam), translator.wording
    asked = sentences_of(wording.asked(bench.texts, [("", "")] * len(bench.texts)))
    rows = [list(one.ids) for one in asked]
    assert len(rows) == len(bench.texts), "every text is one sentence"
    generate = peer(network, beam, wording.src.vocab.pad)
    batch, tried = best_batch(generate, rows)
    systems: dict[str, Callable[[], Any]] = {
        PEER: lambda: generate(rows, batch),
        TEXT: lambda: [one.text for one in translator.translate(bench.texts, search=search)],
        IDS: lambda: translator._torch.search(asked, search),
    }
    with counting(network) as steps:
        by_peer, said = systems[PEER](), systems[TEXT]()
    name = search_words(beam)
    bench.said[f"{TEXT}, bf16, {name}"] = said
    bench.said[f"{PEER}, bf16, {name}"] = [_decoded(ids, wording.tgt) for ids in by_peer]
    seconds: dict[str, list[float]] = {one: [] for one in systems}
    for number in range(bench.rounds):
        for one in systems if number % 2 else reversed(systems):  # nobody is always second
            seconds[one].append(timed(systems[one])[0])
    counts = {PEER: int(steps[PEER]), TEXT: int(steps[REPLAYED] or steps[STEPPED])}
    return Race(beam, len(rows), batch, tried, seconds, counts, steps[ALONE])


def speed(bench: Bench) -> list[str]:
    translator = bench.translator("bf16")
    network = m2m100.build(open_bundle(bench.path)).to(DEVICE, torch.bfloat16)
    races = [raced(bench, translator, network, beam) for beam in BEAMS]
    lines = [
        "| search | its best batch | `generate`, sent/s | regard, sent/s | min – max | regard, ids "
        "to ids, sent/s | regard ÷ generate |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    for race in races:
        speeds = [race.n_sentences / one for one in race.seconds[TEXT]]
        ratio = f"**{statistics.median(race.ratios):.2f}** ({spread(race.ratios, '.2f')})"
        lines.append(
            f"| {search_words(race.beam)} | {race.batch} | {race.speed(PEER):,.0f} | "
            f"{race.speed(TEXT):,.0f} | {spread(speeds, ',.0f')} | {race.speed(IDS):,.0f} | "
            f"{ratio} |"
        )
    lines += ["", "`generate` on a third of the sentences, sentences a second by batch size:", ""]
    for race in races:
        sizes = ", ".join(f"{size}: {value:,.0f}" for size, value in race.tried.items())
        lines.append(f"- {search_words(race.beam)}: {sizes}")
    return [*lines, "", *step_lines(bench, races)]


def step_lines(bench: Bench, races: Sequence[Race]) -> list[str]:
    """The time of a step, and how far that is from its floors."""
    weights = load_file(open_bundle(bench.path).weights)
    beside = ("encoder.", "source.positions", "target.positions")  # read once, or a row at a time
    n = sum(
        tensor.numel()
        for name, tensor in weights.items()
        if not name.startswith(beside) and ".key_value." not in name
    )
    read = 2 * n / BANDWIDTH
    lines = [
        "| search | who | steps | µs a step | alone, µs | alone ÷ reading the weights |",
        "|---|---|--:|--:|--:|--:|",
    ]
    for race in races:
        for name, n_steps in race.steps.items():
            whole = f"{1e6 * statistics.median(race.seconds[name]) / max(n_steps, 1):,.0f}"
            alone = race.alone / n_steps if name == TEXT and race.alone else None
            cells = (f"{1e6 * alone:,.0f}", f"{alone / read:,.1f}") if alone else ("–", "–")
            who = search_words(race.beam), name, f"{n_steps:,}"
            lines.append(f"| {' | '.join((*who, whole, *cells))} |")
    computed = 2 * n * slots.ROWS / ARITHMETIC
    return [
        *lines,
        "",
        "A step's time is all the time there is, that of the sources and of the text as well, by "
        f"the steps; alone: each step waited for. Floor: {2 * n / 1e6:.0f} MB of decoder and "
        f"output weights in bf16, read once at {BANDWIDTH / 1e12:.1f} TB/s, are {1e6 * read:.1f} "
        f"µs; their products with {slots.ROWS:,} rows, which regard has at most in a step, are "
        f"{1e6 * computed:.0f} µs at {ARITHMETIC / 1e12:.0f} TFLOP/s.",
    ]


def spread(values: Sequence[float], form: str) -> str:
    return f"{min(values):{form}} – {max(values):{form}}"


# --- what is said


def bleu_table(bench: Bench) -> list[str]:
    lines = [
        "| search | bf16 | float32 | difference | sentences equal, % | `generate`, bf16 | "
        "bf16 equal to it, % |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    for beam in BEAMS:
        half, whole = (bench.translated(dtype, beam) for dtype in ("bf16", "float32"))
        own, exact = (bleu(one, bench.references, "en") for one in (half, whole))
        theirs = bench.said.get(f"{PEER}, bf16, {search_words(beam)}")
        of_peer = ("–", "–")  # where it was not asked
        if theirs:
            score = bleu(theirs, bench.references, "en").value
            of_peer = f"{score:.2f}", f"{100 * share_equal(half, theirs):.1f}"
        lines.append(
            f"| {search_words(beam)} | {own.value:.2f} | {exact.value:.2f} | "
            f"{own.value - exact.value:+.2f} | {100 * share_equal(half, whole):.1f} | "
            f"{' | '.join(of_peer)} |"
        )
    return [*lines, "", f"BLEU: `{exact.signature}`"]


def equal(bench: Bench) -> list[str]:
    """Float32 on the GPU and on the CPU, sentence by sentence."""
    texts = bench.texts[:COMPARED]
    here, there = bench.translator("float32"), bench.translator("float32", "cpu")
    lines = ["| search | sentences | equal | % |", "|---|--:|--:|--:|"]
    for beam in BEAMS:
        ours, theirs = (
            [said.text for said in one.translate(texts, search=Search(beam=beam))]
            for one in (here, there)
        )
        share, name = share_equal(ours, theirs), search_words(beam)
        lines.append(f"| {name} | {len(texts)} | {share * len(texts):.0f} | {100 * share:.2f} |")
        said = zip(texts, ours, theirs, strict=True)
        for differing in [three for three in said if three[1] != three[2]][:SHOWN]:
            print(f"differs, {name}:", *differing, sep=" | ", flush=True)
    return lines


def share_equal(ours: Sequence[str], theirs: Sequence[str]) -> float:
    return sum(a == b for a, b in zip(ours, theirs, strict=True)) / len(ours)


PARTS: dict[str, tuple[str, Callable[[Bench], list[str]]]] = {
    "speed": ("Speed, bf16", speed),
    "bleu": ("BLEU of bf16 and of float32", bleu_table),
    "equal": ("Float32 without tf32, the same on the GPU and the CPU", equal),
}


def heading(n_sentences: int, n_rounds: int) -> list[str]:
    where = f"one {torch.cuda.get_device_name()}" if GPU else "a CPU, at toy size"
    model = "the Tatoeba model of tests/models"
    model += " made base-size (d 512, 8 heads, d_ff 2048, 6+6 layers)" if GPU else ""
    return [
        f"# Translating on {where}, {datetime.now(UTC):%B %Y}",
        "",
        f"`python benchmarks/bench_translate_gpu.py`: the same weights in both, {model}; "
        f"{n_sentences:,} sentences of Tatoeba's test set. regard goes from text to text; Hugging "
        "Face `generate` (M2M100, early_stopping) from ids to ids, in order of length, at its best "
        "batch size. "
        f"{n_rounds} alternating rounds, medians; kernels {'on' if kernels.ARE_HERE else 'off'}; "
        f"torch {torch.__version__}, transformers {transformers.__version__}, regard "
        f"{__version__}.",
    ]


def main() -> None:
    """Measure, print, and write with --write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--sentences", type=int, default=3000 if GPU else 20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.set_float32_matmul_precision("highest")
    transformers.logging.set_verbosity_error()
    pairs = sentences(asked.data or place_of(CORPUS), "zh", "en", asked.sentences)
    lines = heading(asked.sentences, asked.rounds)
    with tempfile.TemporaryDirectory() as directory:
        path = base_bundle(Path(directory), open_bundle(SMALL)) if GPU else SMALL
        bench = Bench(path, *pairs, asked.rounds)
        for name in asked.only:
            title, part = PARTS[name]
            start = time.perf_counter()
            try:
                own = part(bench)
            except Exception:  # the other parts stand without it
                traceback.print_exc()
                own = ["WRONG: it did not come to its end."]
            lines += ["", f"## {title}", "", *own]
            print("\n".join(own), f"\n({name}: {time.perf_counter() - start:.0f} s)\n", flush=True)
            keep(lines, bench)
    text = "\n".join([*lines, ""])
    print(text)
    if asked.write:
        RESULTS.write_text(text, encoding="utf-8")
    sys.exit("WRONG" in text)


def keep(lines: Sequence[str], bench: Bench) -> None:
    """What there is so far, where somebody collects it."""
    if "OUT" in os.environ:
        folder = Path(os.environ["OUT"])
        (folder / RESULTS.name).write_text("\n".join([*lines, ""]), encoding="utf-8")
        said = {"source": bench.texts, "reference": bench.references, **bench.said}
        text = json.dumps(said, ensure_ascii=False, indent=1)
        (folder / "translate_said.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
