"""regard and Hugging Face `generate` on the same sentences: who says how many in a second."""

import gc
import math
import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from bench_translate_cpu import _decoded, by_length
from peers import m2m100
from safetensors.torch import load_file

from regard.bundle import open_bundle
from regard.decode import rooms
from regard.decode.search import Search
from regard.decode.translator import Translator
from regard.decode.wording import sentences_of
from regard.evaluate.metrics import bleu
from regard.model.transformer import Transformer

GPU = torch.cuda.is_available()
BATCHES = (256, 512, 1024, 2048, 4096) if GPU else (4, 8, 16)
LEAST = 768 if GPU else 8  # sentences that the peer is timed on
ROUND = 10.0  # seconds of a round that the peer may have for more of them
BANDWIDTH, ARITHMETIC = 4.8e12, 989e12  # of an H200: bytes a second, and operations in bf16
PEER, TEXT, SAME, IDS = "`generate`", "regard", "regard, the same", "regard, ids to ids"
REPLAYED, STEPPED, ALONE = "replayed", "stepped", "alone"
Generate = Callable[[Sequence[int], int], dict[int, list[int]]]  # which sentences, batch size


@dataclass(frozen=True)
class Race:
    """Both systems with one search: who said how many sentences, in which seconds."""

    beam: int
    batch: int
    tried: dict[int, float]  # the peer's sentences a second, by batch size
    counts: dict[str, int]  # sentences, by system
    seconds: dict[str, list[float]]  # of each round
    steps: dict[str, int]
    alone: float  # seconds of regard's steps, where each is waited for
    shared: list[int]  # the sentences of the peer, by number
    said: dict[str, list[str]]  # to these by the peer, to all by regard

    def speed(self, name: str) -> float:
        """Sentences a second."""
        return self.counts[name] / statistics.median(self.seconds[name])

    def ratios(self, name: str) -> list[float]:
        """How many times faster than the peer somebody was, round by round."""
        n, n_peer = self.counts[name], self.counts[PEER]
        pairs = zip(self.seconds[name], self.seconds[PEER], strict=True)
        return [(n / own) / (n_peer / theirs) for own, theirs in pairs]


def search_words(beam: int) -> str:
    return "greedy" if beam == 1 else f"beam {beam}"


def say(*words: object) -> None:
    """On the screen, and where somebody collects it."""
    print(*words, flush=True)
    if "OUT" in os.environ:
        with (Path(os.environ["OUT"]) / "translate_log.txt").open("a", encoding="utf-8") as file:
            print(*words, file=file)


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    wait = torch.cuda.synchronize if GPU else lambda: None
    gc.collect()  # what others have left lying about is not this one's work
    wait()
    start = time.perf_counter()
    done = work()
    wait()
    return time.perf_counter() - start, done


def peer(network: Any, rows: Sequence[list[int]], beam: int, pad: int) -> Generate:
    def generate(numbers: Sequence[int], batch: int) -> dict[int, list[int]]:
        said: dict[int, list[int]] = {}
        for places in by_length([rows[i] for i in numbers], batch):
            chosen = [numbers[place] for place in places]
            some = [rows[i] for i in chosen]
            said |= zip(chosen, m2m100.generate(network, some, beam=beam, pad=pad), strict=True)
        return said

    return generate


def speeds_by_batch(
    generate: Generate, rows: Sequence[list[int]], left: Callable[[], float]
) -> dict[int, float]:
    """Sentences a second of one batch of middling lengths, larger and larger while that pays."""
    order = next(by_length(rows, len(rows)))
    generate(order[:2], 2)  # libraries are loaded
    speeds: dict[int, float] = {}
    for size in BATCHES:
        start = max((len(order) - size) // 2, 0)
        middle = order[start : start + size]
        try:
            work = lambda some=middle, n=size: generate(some, n)  # noqa: E731
            seconds = min(timed(work)[0] for _ in range(2))  # the first time memory is found
        except torch.cuda.OutOfMemoryError:
            torch.cuda.empty_cache()
            break
        speeds[size] = len(middle) / seconds
        say(f"{PEER}, batch {size}: {speeds[size]:,.0f} sentences/s")
        is_slower = len(speeds) > 1 and speeds[size] < max(speeds.values())
        if is_slower or left() < 4 * seconds:
            break
    return speeds


def chosen_batches(rows: Sequence[list[int]], batch: int, speed: float) -> list[int]:
    """Whole batches of the plan for all sentences, from its short end to its long one."""
    plan = list(by_length(rows, batch))
    n = max(int(ROUND * speed / batch), math.ceil(LEAST / batch), 1)
    if n >= len(plan):
        return sorted(i for one in plan for i in one)
    places = [(2 * k + 1) * len(plan) // (2 * n) for k in range(n)]
    return sorted(i for place in places for i in plan[place])


@contextmanager
def counting() -> Iterator[dict[str, float]]:
    """How often regard's decoder is asked for a word meanwhile, and how long that takes alone."""
    steps: dict[str, float] = dict.fromkeys((REPLAYED, STEPPED, ALONE), 0)
    record, step = rooms._recorded, Transformer.step

    def recorded(one: Callable[[], None], device: torch.device) -> Callable[[], None]:
        replay = record(one, device)

        def counted() -> None:
            steps[REPLAYED] += 1
            steps[ALONE] += timed(replay)[0]

        return counted

    def stepped(self: Transformer, token: Any, state: Any) -> Any:
        steps[STEPPED] += 1  # those that are recorded as well
        return step(self, token, state)

    rooms._recorded, Transformer.step = recorded, stepped  # type: ignore[method-assign]
    try:
        yield steps
    finally:
        rooms._recorded, Transformer.step = record, step  # type: ignore[method-assign]


def raced(
    translator: Translator,
    network: Any,
    texts: list[str],
    beam: int,
    n_rounds: int,
    left: Callable[[], float],
) -> Race:
    """Round by round; the first is made whatever is `left`, a further one if there is time."""
    search, wording = Search(beam=beam), translator.wording
    asked = sentences_of(wording.asked(texts, [("", "")] * len(texts)))
    rows = [list(one.ids) for one in asked]
    assert len(rows) == len(texts), "every text is one sentence"
    generate = peer(network, rows, beam, wording.src.vocab.pad)

    def by_regard(numbers: Sequence[int]) -> list[str]:
        some = [texts[i] for i in numbers]
        return [one.text for one in translator.translate(some, search=search)]

    everything = range(len(texts))
    with counting() as steps:
        translator._torch.forget()  # recorded anew, and counted
        by_regard(everything)
    translator._torch.forget()
    tried = speeds_by_batch(generate, rows, left)
    batch = max(tried, key=lambda size: tried[size])
    shared = chosen_batches(rows, batch, tried[batch])
    by_regard(shared)  # what a round sees was seen before, by both
    generate(shared, batch)
    systems: dict[str, Callable[[], Any]] = {
        PEER: lambda: generate(shared, batch),
        TEXT: lambda: by_regard(everything),
        SAME: lambda: by_regard(shared),
        IDS: lambda: translator._torch.search(asked, search),
    }
    counts = {PEER: len(shared), TEXT: len(texts), SAME: len(shared), IDS: len(texts)}
    seconds: dict[str, list[float]] = {one: [] for one in systems}
    last: dict[str, Any] = {}
    n_asked = [0]  # times that the peer's decoder was

    def ask(*_: object) -> None:
        n_asked[0] += 1

    hook = network.model.decoder.register_forward_pre_hook(ask)
    for number in range(n_rounds):
        if number and left() < 1.2 * sum(took[-1] for took in seconds.values()):
            break
        for one in systems if number % 2 else reversed(systems):  # nobody is always second
            took, last[one] = timed(systems[one])
            seconds[one].append(took)
            say(f"{search_words(beam)}, {one}: {counts[one] / took:,.0f} sentences/s")
    hook.remove()
    done = {
        PEER: n_asked[0] // len(seconds[PEER]),
        TEXT: int(steps[REPLAYED] or steps[STEPPED]),
    }
    said = {PEER: [_decoded(last[PEER][i], wording.tgt) for i in shared], TEXT: last[TEXT]}
    return Race(beam, batch, tried, counts, seconds, done, steps[ALONE], shared, said)


def race_lines(race: Race, references: Sequence[str], path: Path) -> list[str]:
    """The tables of one race: speed, what was said, and the time of a step."""
    speeds = [race.counts[TEXT] / one for one in race.seconds[TEXT]]
    cells = [
        f"{race.batch}",
        f"{race.speed(PEER):,.0f} ({race.counts[PEER]:,})",
        f"{race.speed(TEXT):,.0f} ({race.counts[TEXT]:,})",
        spread(speeds, ",.0f"),
        f"{race.speed(IDS):,.0f}",
        *(
            f"**{statistics.median(ratios):.2f}** ({spread(ratios, '.2f')})"
            for ratios in (race.ratios(TEXT), race.ratios(SAME))
        ),
    ]
    sizes = ", ".join(f"{size}: {value:,.0f}" for size, value in race.tried.items())
    some = [race.said[TEXT][i] for i in race.shared]
    wanted = [references[i] for i in race.shared]
    own, theirs = (bleu(one, wanted, "en").value for one in (some, race.said[PEER]))
    equal = sum(a == b for a, b in zip(some, race.said[PEER], strict=True)) / len(some)
    return [
        "| its best batch | `generate`, sent/s (of) | regard, sent/s (of) | min – max | regard, "
        "ids to ids, sent/s | regard ÷ generate | on the same sentences |",
        "|--:|--:|--:|--:|--:|--:|--:|",
        f"| {' | '.join(cells)} |",
        "",
        f"Alternating rounds: {len(race.seconds[PEER])}. `generate` on one batch of middling "
        f"lengths, sentences a second by batch size: {sizes}. It is timed on "
        f"{len(race.shared):,} sentences, whole batches of the plan for all, from short to long. "
        f"To these it says what has BLEU {theirs:.2f}, regard {own:.2f}, {100 * equal:.1f} % of "
        "sentences equal, both in bf16.",
        "",
        *step_lines(race, path),
    ]


def step_lines(race: Race, path: Path) -> list[str]:
    """The time of a step, and how far that is from its floors."""
    weights = load_file(open_bundle(path).weights)
    beside = ("encoder.", "source.positions", "target.positions")  # read once, or a row at a time
    n = sum(
        tensor.numel()
        for name, tensor in weights.items()
        if not name.startswith(beside) and ".key_value." not in name
    )
    read, computed = 2 * n / BANDWIDTH, 2 * n * rooms.ROWS / ARITHMETIC
    lines = [
        "| who | steps | µs a step | alone, µs | alone ÷ reading the weights |",
        "|---|--:|--:|--:|--:|",
    ]
    for name, n_steps in race.steps.items():
        whole = f"{1e6 * statistics.median(race.seconds[name]) / max(n_steps, 1):,.0f}"
        alone = race.alone / n_steps if name == TEXT and race.alone else None
        cells = (f"{1e6 * alone:,.0f}", f"{alone / read:,.1f}") if alone else ("–", "–")
        lines.append(f"| {' | '.join((name, f'{n_steps:,}', whole, *cells))} |")
    return [
        *lines,
        "",
        "A step's time is all the time there is, that of the sources and of the text as well, by "
        f"the steps; alone: each step waited for. Floor: {2 * n / 1e6:.0f} MB of decoder and "
        f"output weights in bf16, read once at {BANDWIDTH / 1e12:.1f} TB/s, are {1e6 * read:.1f} "
        f"µs; their products with {rooms.ROWS:,} rows, which regard has at most in a step, are "
        f"{1e6 * computed:.0f} µs at {ARITHMETIC / 1e12:.0f} TFLOP/s.",
    ]


def spread(values: Sequence[float], form: str) -> str:
    return f"{min(values):{form}} – {max(values):{form}}"
