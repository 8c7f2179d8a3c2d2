"""An experiment conducted: seeded, timed, its controls checked, and written down."""

import json
import re
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from regard import __version__
from regard.study import (
    e01_kernel_regression,
    e02_addressing,
    e03_scores,
    e04_root_d,
    e05_masks,
    e06_alignments,
    e07_heads,
    e08_three_encoders,
    e09_positions,
    e10_norms,
    e11_teacher_forcing,
    e12_arithmetic,
    e13_poem,
    e14_occlusion,
    e15_ablations,
)
from regard.study.claim import Bound, Finding, Result
from regard.study.contents import CONTENTS
from regard.view.figures import draw_figure
from regard.view.panels import Words
from regard.view.svg import svg

Run = Callable[[int, bool], Result]
"""A seed, and whether it should be quick: a form of seconds for the tests."""

DIGITS, DRAWN_DIGITS = 6, 3  # of a number that is written down, and of one that is drawn
NUMBERS = re.compile(r"\[\s+([-+\d.e,\s]+?)\s+\]")  # a list of numbers, which JSON spreads out


@dataclass(frozen=True, slots=True)
class Conducted:
    """A result with the conditions it was found under."""

    name: str
    seed: int
    is_quick: bool
    seconds: float
    processor_seconds: float
    result: Result


def experiments(model: Path | None = None) -> dict[str, Run]:
    """Every experiment by its name; some look into a model, the bundled one unless another."""
    return {
        "e01_kernel_regression": e01_kernel_regression.run,
        "e02_addressing": e02_addressing.run,
        "e03_scores": e03_scores.run,
        "e04_root_d": e04_root_d.run,
        "e05_masks": e05_masks.run,
        "e06_alignments": e06_alignments.run,
        "e07_heads": e07_heads.run,
        "e08_three_encoders": e08_three_encoders.run,
        "e09_positions": e09_positions.run,
        "e10_norms": e10_norms.run,
        "e11_teacher_forcing": e11_teacher_forcing.run,
        "e12_arithmetic": partial(e12_arithmetic.run, model=model),
        "e13_poem": partial(e13_poem.run, model=model),
        "e14_occlusion": partial(e14_occlusion.run, model=model),
        "e15_ablations": e15_ablations.run,
    }


def conduct(name: str, run: Run, seed: int, *, quick: bool = False) -> Conducted:
    """Run it on one thread, where small networks are quickest; what the caller draws is his own."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    start, started = time.perf_counter(), time.process_time()
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            result = run(seed, quick)
    finally:
        torch.set_num_threads(threads)
    for finding in result.findings:
        finding.check(name)
    seconds, busy = time.perf_counter() - start, time.process_time() - started
    return Conducted(name, seed, quick, seconds, busy, result)


def write(conducted: Conducted, folder: Path) -> Path:
    """`result.json`, and the figure in each language, in a folder of the experiment's name."""
    place = folder / conducted.name
    place.mkdir(parents=True, exist_ok=True)
    text = json.dumps(as_table(conducted), ensure_ascii=False, indent=1)
    (place / "result.json").write_text(NUMBERS.sub(_in_one_line, text) + "\n", encoding="utf-8")
    figure = conducted.result.figure
    (place / "figure.svg").write_text(svg(draw_figure(figure, "en")), encoding="utf-8")
    (place / "figure.zh.svg").write_text(svg(draw_figure(figure, "zh")), encoding="utf-8")
    return place


def as_table(conducted: Conducted) -> dict[str, Any]:
    """All of it, for JSON."""
    table = {
        "name": conducted.name,
        "title": _words(CONTENTS[conducted.name]),
        "seed": conducted.seed,
        "quick": conducted.is_quick,
        "seconds": round(conducted.seconds, 1),
        "processor_seconds": round(conducted.processor_seconds, 1),
        "regard": __version__,
        "torch": torch.__version__.split("+")[0],
        **({"model": conducted.result.model} if conducted.result.model else {}),
        "findings": [_finding(finding) for finding in conducted.result.findings],
        "figure": _rounded(asdict(conducted.result.figure), DRAWN_DIGITS),
    }
    rounded: dict[str, Any] = _rounded(table, DIGITS)
    return rounded


def _finding(finding: Finding) -> dict[str, Any]:
    claim = finding.claim
    table: dict[str, Any] = {
        "note": claim.note,
        "claim": _words(claim.words),
        "verdict": finding.verdict,
        "measured": {**_words(claim.measured), "number": finding.number},
        "threshold": _bound(claim.bound),
        "control": {**_words(claim.control), "number": finding.control},
    }
    if claim.limit is not None:
        limit = {**_words(claim.limit.measured), "number": finding.limit}
        table["limit"] = {**limit, "threshold": _bound(claim.limit.bound)}
    if claim.remark is not None:
        table["remark"] = _words(claim.remark)
    return table


def _words(words: Words) -> dict[str, str]:
    return {"en": words.english, "zh": words.chinese}


def _bound(bound: Bound) -> dict[str, Any]:
    return {"relation": bound.relation, "number": bound.value}


def _rounded(value: Any, digits: int) -> Any:
    """Numbers to as many digits as mean something."""
    match value:
        case float():
            return float(f"{value:.{digits}g}")
        case dict():
            return {key: _rounded(one, digits) for key, one in value.items()}
        case list() | tuple():
            return [_rounded(one, digits) for one in value]
        case _:
            return value


def _in_one_line(numbers: re.Match[str]) -> str:
    return f"[{' '.join(numbers[1].split())}]"
