"""Several systems on one page: scores, intervals and p, what to know of the outputs, signatures."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from rich.cells import cell_len

from regard.evaluate.bootstrap import SAMPLES, SEED, Estimate, compare
from regard.evaluate.metrics import Score
from regard.evaluate.outputs import Bucket, Outputs, by_length, examine

TITLES = {"bleu": "BLEU", "chrf": "chrF", "ter": "TER", "exact": "exact"}
HEADINGS = {
    "en": ("system", "BLEU ↑", "chrF ↑", "TER ↓", "exact ↑", "length", "empty", "copied"),
    "zh": ("系统", "BLEU ↑", "chrF ↑", "TER ↓", "全对 ↑", "长度比", "空行", "照抄"),
}


@dataclass(frozen=True)
class Run:
    """What it took to translate the test set."""

    seconds: float
    peak_bytes: int


@dataclass(frozen=True)
class System:
    """All that is known of one system's outputs."""

    name: str
    estimates: tuple[Estimate, ...]
    outputs: Outputs
    buckets: tuple[Bucket, ...]
    run: Run | None


@dataclass(frozen=True)
class Report:
    """Systems on the same test set, the baseline first."""

    tgt_lang: str
    lines: int
    systems: tuple[System, ...]

    @property
    def signatures(self) -> dict[str, str]:
        """One for each metric, as all systems are scored alike."""
        scores = [estimate.score for estimate in self.systems[0].estimates]
        return {score.name: score.signature for score in scores}


def report_on(
    systems: Mapping[str, Sequence[str]],
    references: Sequence[str],
    tgt_lang: str,
    *,
    sources: Sequence[str] | None = None,
    runs: Mapping[str, Run] | None = None,
    samples: int = SAMPLES,
    seed: int = SEED,
) -> Report:
    """Everything about every system; what a run took is known only to who ran it."""
    estimates = compare(systems, references, tgt_lang, samples=samples, seed=seed)
    described = (
        System(
            name=name,
            estimates=tuple(estimate for estimate in estimates if estimate.system == name),
            outputs=examine(hypotheses, references, tgt_lang, sources),
            buckets=by_length(hypotheses, references, tgt_lang),
            run=(runs or {}).get(name),
        )
        for name, hypotheses in systems.items()
    )
    return Report(tgt_lang, len(references), tuple(described))


def as_json(report: Report) -> dict[str, Any]:
    """The report as JSON knows it."""
    return {
        "tgt_lang": report.tgt_lang,
        "lines": report.lines,
        "systems": {system.name: _system_json(system) for system in report.systems},
    }


def as_table(report: Report, language: Literal["en", "zh"] = "en") -> str:
    """Aligned columns for a terminal, then the signatures."""
    rows = [HEADINGS[language], *map(_row, report.systems)]
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(map(_padded, row, widths)).rstrip() for row in rows]
    width = max(map(len, TITLES.values()))
    signatures = [
        f"{TITLES[name]:{width}}  {signature}" for name, signature in report.signatures.items()
    ]
    return "\n".join([*lines, "", *signatures])


def as_markdown(report: Report, language: Literal["en", "zh"] = "en") -> str:
    """A table for a page or a pull request, then the signatures."""
    head = HEADINGS[language]
    rule = ["---", *["---:"] * (len(head) - 1)]
    rows = [[cell.replace("|", r"\|") for cell in _row(system)] for system in report.systems]
    table = ["| " + " | ".join(row) + " |" for row in (head, rule, *rows)]
    signatures = [f"- {TITLES[name]}: `{text}`" for name, text in report.signatures.items()]
    return "\n".join([*table, "", *signatures])


def _row(system: System) -> tuple[str, ...]:
    outputs = system.outputs
    return (
        system.name,
        *map(_cell, system.estimates),
        f"{outputs.length_ratio:.3f}",
        str(len(outputs.empty)),
        "-" if outputs.copied is None else str(len(outputs.copied)),
    )


def _cell(estimate: Estimate) -> str:
    shown = f"{estimate.score.value:.1f} ± {estimate.interval:.1f}"
    return shown if estimate.p is None else f"{shown}, p {estimate.p:.3f}"


def _padded(cell: str, width: int) -> str:
    return cell + " " * (width - cell_len(cell))  # a Chinese character takes two columns


def _system_json(system: System) -> dict[str, Any]:
    return {
        "scores": {
            estimate.score.name: {
                **_score_json(estimate.score),
                "mean": estimate.mean,
                "interval": estimate.interval,
                "p": estimate.p,
            }
            for estimate in system.estimates
        },
        "outputs": asdict(system.outputs),
        "buckets": [
            {"least": b.least, "most": b.most, "lines": b.lines, **_score_json(b.score)}
            for b in system.buckets
        ],
        "run": None if system.run is None else asdict(system.run),
    }


def _score_json(score: Score) -> dict[str, Any]:
    return {"value": score.value, "signature": score.signature}
