"""Plans a long run from what was measured: hours, machines, what travels between them.

    python tools/plan.py train --size base --billions 5 --gpus 1 8 64 --link 50 --price 3
    python tools/plan.py translate --sentences 1e9 --size small --cores 1024 --gpus 16
    python tools/plan.py check
    python tools/plan.py pages          writes what is printed now into docs/*/machines.md

Speeds are those of benchmarks/results. The time that a token takes in training is

    seconds = a x products + b x layers x width

where the products are counted, and a and b follow from two sizes that were measured (base, big).
Two sizes that took no part (medium, wide) show how far that can be trusted: `check`. But however
small an update is, it takes as long as the processor needs to give the GPU its work, which follows
from small updates.
"""

import argparse
import re
import shlex
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
SHOWN = re.compile(
    r"(?<=^```sh\npython tools/plan\.py )(.*?)(\n```\n\n```text\n)(.*?)(?=^```$)", re.M | re.S
)
TRAINED, TRANSLATED = "sizes_h200_202611.md", "translate_2-core-cpu_202611.md"
WORDS = 32_000  # of the vocabulary the sizes were measured with
MEASURED_TOKENS = 2 * 32_768  # of an update, both sides
FITTED, HELD_OUT = ("base", "big"), ("medium", "wide")
SMALL = 16_384  # tokens of an update, both sides, below which a GPU waits for the processor
STATE = 16  # bytes of a weight: itself, its gradient and two moments in float32
BACKWARD = 2 / 3  # of an update's time, in which gradients can travel unnoticed
GIB = 2**30


@dataclass(frozen=True)
class Size:
    """A network with as many layers on either side."""

    d_model: int
    n_layers: int
    d_ff: int

    @property
    def n_weights(self) -> int:
        """The matrices: attention thrice a pair of layers, two feed-forwards, one embedding."""
        d, ff = self.d_model, self.d_ff
        return self.n_layers * (12 * d * d + 4 * d * ff) + WORDS * d

    @property
    def products(self) -> float:
        """Multiplications and additions for a token, forward and backward, of either side.

        A source token meets the encoder, a target token the decoder and the output: half of the
        weights each. Two operations a weight forward, and twice that backward.
        """
        return 3 * 2 * self.n_weights / 2

    @property
    def breadth(self) -> int:
        """What all that is no matrix product grows with: norms, dropout, attention."""
        return self.n_layers * self.d_model


@dataclass(frozen=True)
class Speed:
    """The time that training takes on one GPU."""

    per_product: float
    per_breadth: float
    least: float  # of an update

    def seconds(self, size: Size, tokens: float) -> float:
        """One update of so many tokens, both sides counted."""
        per_token = self.per_product * size.products + self.per_breadth * size.breadth
        return max(self.least, tokens * per_token)

    def tokens_per_s(self, size: Size, tokens: float = MEASURED_TOKENS) -> float:
        """Tokens a second at that size of update."""
        return tokens / self.seconds(size, tokens)


@dataclass(frozen=True)
class Update:
    """One update on several GPUs."""

    kind: str  # ddp or fsdp
    gib: float  # what each GPU holds
    travels: float  # bytes to and from each GPU
    seconds: float
    waits: float  # seconds of it for what travels


# --- what was measured


def rows(file: str, first: str) -> list[list[str]]:
    """The rows of the table whose head begins with these names; none, if there is no such."""
    text = (RESULTS / file).read_text(encoding="utf-8")
    for block in re.findall(r"(?:^\|.*\n?)+", text, re.M):
        head, _, *others = [
            [cell.strip().strip("*") for cell in line.strip().strip("|").split("|")]
            for line in block.splitlines()
        ]
        if head[: first.count("|") + 1] == [name.strip() for name in first.split("|")]:
            return others
    return []


def number(text: str) -> float:
    """A number as the tables write it."""
    return float(text.replace(",", "").split()[0])


def sizes() -> dict[str, Size]:
    """The sizes that were measured, by name."""
    return {name: Size(int(d), int(n), int(ff)) for name, d, n, ff, *_ in rows(TRAINED, "size | d")}


def measured_speeds() -> dict[str, float]:
    """Tokens a second in training, by size."""
    return {name: number(speed) for name, _, _, _, speed, *_ in rows(TRAINED, "size | d")}


def measured_updates() -> dict[int, float]:
    """Tokens a second of the base model, by tokens of an update, both sides."""
    found = {2 * int(number(n)): number(speed) for n, speed, _ in rows(TRAINED, "tokens a side")}
    return {MEASURED_TOKENS: measured_speeds()["base"], **found}


def measured_peaks() -> dict[str, float]:
    """GiB in training, by size."""
    return {name: number(peak) for name, *_, peak in rows(TRAINED, "size | d")}


def fitted_speed() -> Speed:
    """The times that follow from two sizes and from small updates."""
    known, speeds = sizes(), measured_speeds()
    table = np.array([[known[name].products, known[name].breadth] for name in FITTED])
    a, b = np.linalg.solve(table, np.array([1 / speeds[name] for name in FITTED]))
    least = statistics.median(n / own for n, own in measured_updates().items() if n <= SMALL)
    return Speed(float(a), float(b), least)


def fitted_memory() -> tuple[float, float]:
    """GiB that a token needs: for each unit of breadth, and for whatever the size is."""
    known, peaks = sizes(), measured_peaks()
    small, big = (known[name] for name in ("small", "big"))
    needs = [
        (peaks[name] - STATE * known[name].n_weights / GIB) / MEASURED_TOKENS
        for name in ("small", "big")
    ]
    per_breadth = (needs[1] - needs[0]) / (big.breadth - small.breadth)
    return per_breadth, needs[0] - per_breadth * small.breadth


# --- what follows


def update_on(
    size: Size, tokens: float, gpus: int, link: float, memory: float, kind: str = "auto"
) -> Update:
    """An update of so many tokens (both sides) spread over GPUs that talk at `link` GB/s.

    DDP: each holds all, and 2 (n-1)/n of the gradients' bytes go in and out (a ring). FSDP: each
    holds its share, and weights travel forward and backward, gradients once: 3 (n-1)/n.
    """
    own = tokens / gpus
    per_breadth, per_token = fitted_memory()
    passing = own * (per_breadth * size.breadth + per_token)
    whole = STATE * size.n_weights / GIB
    if kind == "auto":
        kind = "ddp" if whole + passing <= memory or gpus == 1 else "fsdp"
    ring = (gpus - 1) / gpus
    travels = (2 if kind == "ddp" else 3) * ring * 4 * size.n_weights
    compute = fitted_speed().seconds(size, own)
    waits = max(0.0, travels / (link * 1e9) - BACKWARD * compute)
    held = whole if kind == "ddp" else whole / gpus
    return Update(kind, held + passing, travels, compute + waits, waits)


def ddp_ends(shape: Size, tokens: float, memory: float) -> int:
    """How many weights a network of this shape may have before one GPU cannot hold them."""
    per_breadth, per_token = fitted_memory()
    wider = (
        Size(d, shape.n_layers, d * shape.d_ff // shape.d_model) for d in range(64, 1 << 20, 64)
    )
    fitting = takewhile(
        lambda size: (
            STATE * size.n_weights / GIB + tokens * (per_breadth * size.breadth + per_token)
            <= memory
        ),
        wider,
    )
    return max((size.n_weights for size in fitting), default=0)


def sentence_speeds() -> dict[tuple[str, str], float]:
    """Sentences a second on one core (int8, or float32 on Ray) and on one GPU, by size."""
    text = (RESULTS / TRANSLATED).read_text(encoding="utf-8")
    found = {}
    for name in ("small", "base"):
        part = text.split(f"\n## {name}\n", 1)[1].split("\n## ", 1)[0]
        greedy = [line for line in part.splitlines() if line.startswith("| greedy |")][1]
        cells = [cell.strip() for cell in greedy.strip("|").split("|")]
        found[name, "core"] = number(cells[6]) / 2  # the table is of two
    for name, search, speed, _ in rows(TRAINED, "size | search"):
        if search == "greedy":
            found[name, "GPU"] = number(speed)
    return found


def hours(n: float, per_second: float) -> float:
    """How long n take."""
    return n / per_second / 3600


# --- what is printed


def train_lines(asked: argparse.Namespace) -> list[str]:
    """A training run on so many GPUs."""
    size, own = sizes()[asked.size], 2 * asked.tokens
    lines = [
        f"{asked.size}: {size.n_weights / 1e6:.1f} million weights, {asked.billions:g} billion "
        f"tokens, {own:,} of them on each GPU in an update",
        "",
        "| GPUs | kind | GiB each | travels | an update | of it waiting | tokens/s | updates | "
        "hours | GPU hours |" + (" cost |" if asked.price else ""),
        "|--:|---|--:|--:|--:|--:|--:|--:|--:|--:|" + ("--:|" if asked.price else ""),
    ]
    for gpus in asked.gpus:
        one = update_on(size, own * gpus, gpus, asked.link, asked.memory)
        n_updates = asked.billions * 1e9 / (own * gpus)
        took = one.seconds * n_updates / 3600
        cost = f" {took * gpus * asked.price:,.2f} |" if asked.price else ""
        lines.append(
            f"| {gpus} | {one.kind} | {one.gib:.1f} | {one.travels / 1e6:,.0f} MB | "
            f"{one.seconds * 1e3:.1f} ms | {one.waits / one.seconds:.0%} | "
            f"{own * gpus / one.seconds:,.0f} | {n_updates:,.0f} | {took:.2f} | "
            f"{took * gpus:.2f} |{cost}"
        )
    most = ddp_ends(size, own, asked.memory)
    lines += [
        "",
        f"DDP up to about {most / 1e9:.1f} billion weights of this shape in {asked.memory:g} GiB; "
        "FSDP beyond",
    ]
    if own < min(measured_updates()):
        lines.append("so small an update was not measured: it will take longer than is said here")
    return lines


def translate_lines(asked: argparse.Namespace) -> list[str]:
    """A translation of so many sentences on cores, and on GPUs."""
    speeds = sentence_speeds()
    lines = ["| on | sentences/s each | together | hours |", "|---|--:|--:|--:|"]
    for kind, n in (("core", asked.cores), ("GPU", asked.gpus)):
        if n:
            each = speeds[asked.size, kind]
            lines.append(
                f"| {n:,} {kind}s | {each:,.0f} | {each * n:,.0f} | "
                f"{hours(asked.sentences, each * n):.1f} |"
            )
    return [f"{asked.size}, greedily: {asked.sentences:,.0f} sentences", "", *lines]


def check_lines(_: argparse.Namespace) -> list[str]:
    """Predictions beside what was measured; the first sizes had a part in making them."""
    speed, known = fitted_speed(), sizes()
    lines = ["| what | predicted, tokens/s | measured, tokens/s | ratio |", "|---|--:|--:|--:|"]
    points = {name: (known[name], MEASURED_TOKENS, own) for name, own in measured_speeds().items()}
    points |= {
        f"base, {n:,} tokens an update": (known["base"], n, own)
        for n, own in sorted(measured_updates().items())
        if n != MEASURED_TOKENS
    }
    for name, (size, tokens, own) in points.items():
        said = speed.tokens_per_s(size, tokens)
        mark = " (fitted)" if name in FITTED else ""
        lines.append(f"| {name}{mark} | {said:,.0f} | {own:,.0f} | {said / own:.2f} |")
    return lines


def page_lines(_: argparse.Namespace) -> list[str]:
    """Write every plan of the guide's pages as it is now."""

    def planned(found: re.Match[str]) -> str:
        asked = arguments_of(shlex.split(found[1]))
        return found[1] + found[2] + "\n".join([*asked.lines(asked), ""])

    pages = sorted((ROOT / "docs").glob("*/machines.md"))
    for page in pages:
        text = page.read_text(encoding="utf-8")
        page.write_text(SHOWN.sub(planned, text), encoding="utf-8")
    return [str(page.relative_to(ROOT)) for page in pages]


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a plan."""
    asked = arguments_of(arguments)
    print("\n".join(asked.lines(asked)))


def arguments_of(arguments: Sequence[str] | None) -> argparse.Namespace:
    """What is asked for on the command line, and the function that answers."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(required=True)
    train = commands.add_parser("train", help="hours of a training run")
    train.add_argument("--size", choices=sizes(), default="base")
    train.add_argument("--billions", type=float, default=5.0, help="tokens seen, both sides")
    train.add_argument("--tokens", type=int, default=32_768, help="a side of an update, each GPU")
    train.add_argument("--gpus", type=int, nargs="+", default=[1, 8])
    train.add_argument("--link", type=float, default=50.0, help="GB/s between GPUs")
    train.add_argument("--memory", type=float, default=139.0, help="GiB of a GPU")
    train.add_argument("--price", type=float, default=0.0, help="of a GPU for an hour")
    train.set_defaults(lines=train_lines)
    translate = commands.add_parser("translate", help="hours of a translation")
    translate.add_argument("--sentences", type=float, default=1e9)
    translate.add_argument("--size", choices=("small", "base"), default="base")
    translate.add_argument("--cores", type=int, default=0)
    translate.add_argument("--gpus", type=int, default=0)
    translate.set_defaults(lines=translate_lines)
    check = commands.add_parser("check", help="predictions beside what was measured")
    check.set_defaults(lines=check_lines)
    pages = commands.add_parser("pages", help="write the plans into the guide")
    pages.set_defaults(lines=page_lines)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
