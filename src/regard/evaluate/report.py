"""Several systems on one page: scores, intervals and p, what to know of the outputs, signatures."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from rich.cells import cell_len

from regard.evaluate.bootstrap import SAMPLES, SEED, Estimate, compare
from regard.evaluate.metrics import Score
from regard.evaluate.outputs import Bucket, Outputs, by_length, examine

Language = Literal["en", "zh"]

METRICS = ("bleu", "chrf", "ter", "exact", "bleu_lc", "bleu_moses")  # bleu_lc is for JSON alone
TITLES = {
    "bleu": "BLEU",
    "bleu_moses": "BLEU (lc, Moses tokens)",
    "chrf": "chrF",
    "ter": "TER",
    "exact": "exact",
}
WORDS = {
    "en": {
        "system": "system", "bleu": "BLEU ↑", "bleu_moses": "BLEU (lc, Moses) ↑", "chrf": "chrF ↑",
        "ter": "TER ↓", "exact": "exact ↑", "length": "length", "empty": "empty",
        "copied": "copied", "buckets": "BLEU by words of the reference (lines)",
        "run": "{seconds:.1f} s, {rate:.1f} sentences/s, {peak:,.0f} MiB at most",
    },
    "zh": {
        "system": "系统", "bleu": "BLEU ↑", "bleu_moses": "BLEU（小写，Moses） ↑",
        "chrf": "chrF ↑", "ter": "TER ↓", "exact": "全对 ↑", "length": "长度比", "empty": "空行",
        "copied": "照抄", "buckets": "按参考译文词数的BLEU（行数）",
        "run": "{seconds:.1f}秒，每秒{rate:.1f}句，内存最多{peak:,.0f} MiB",
    },
}  # fmt: skip


@dataclass(frozen=True)
class Run:
    """What it took to translate the test set; peak_bytes: the most memory of the process so far."""

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
        "systems": {system.name: _system_json(system, report.lines) for system in report.systems},
    }


def as_table(report: Report, language: Language = "en") -> str:
    """Aligned columns for a terminal, then lengths and speed, then the signatures."""
    titles = _shown(report)
    rows = [_head(report, language), *(_row(system, titles) for system in report.systems)]
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(map(_padded, row, widths)).rstrip() for row in rows]
    width = max(map(len, titles.values()))
    signatures = [f"{title:{width}}  {report.signatures[name]}" for name, title in titles.items()]
    return "\n".join([*lines, "", *_details(report, language), "", *signatures])


def as_markdown(report: Report, language: Language = "en") -> str:
    """A table for a page or a pull request, then lengths and speed, then the signatures."""
    titles = _shown(report)
    head = _head(report, language)
    rule = ["---", *["---:"] * (len(head) - 1)]
    rows = [
        [cell.replace("|", r"\|") for cell in _row(system, titles)] for system in report.systems
    ]
    table = ["| " + " | ".join(row) + " |" for row in (head, rule, *rows)]
    details = [f"- {line}" for line in _details(report, language)]
    signatures = [f"- {title}: `{report.signatures[name]}`" for name, title in titles.items()]
    return "\n".join([*table, "", *details, "", *signatures])


def _shown(report: Report) -> dict[str, str]:
    """The metrics of a table, in its order, with their titles."""
    return {name: title for name, title in TITLES.items() if name in report.signatures}


def _head(report: Report, language: Language) -> list[str]:
    names = ("system", *_shown(report), "length", "empty", "copied")
    return [WORDS[language][name] for name in names]


def _details(report: Report, language: Language) -> list[str]:
    """How each system does on short and on long sentences, and what translating took."""
    words = WORDS[language]
    lines = []
    for system in report.systems:
        buckets = "  ".join(f"{_span(b)}: {b.score.value:.1f} ({b.lines})" for b in system.buckets)
        lines.append(f"{system.name}: {words['buckets']}: {buckets}")
        if run := system.run:
            rate, peak = _rate(run, report.lines), run.peak_bytes / 2**20
            took = words["run"].format(seconds=run.seconds, rate=rate, peak=peak)
            lines.append(f"{system.name}: {took}")
    return lines


def _rate(run: Run, lines: int) -> float:
    return lines / max(run.seconds, 1e-9)  # of a clock that did not move


def _span(bucket: Bucket) -> str:
    return f"{bucket.least}+" if bucket.most is None else f"{bucket.least}–{bucket.most}"


def _row(system: System, metrics: Iterable[str]) -> list[str]:
    outputs = system.outputs
    estimates = {estimate.score.name: estimate for estimate in system.estimates}
    return [
        system.name,
        *(_cell(estimates[name]) for name in metrics),
        f"{outputs.length_ratio:.3f}",
        str(len(outputs.empty)),
        "-" if outputs.copied is None else str(len(outputs.copied)),
    ]


def _cell(estimate: Estimate) -> str:
    shown = f"{estimate.score.value:.1f} ± {estimate.interval:.1f}"
    return shown if estimate.p is None else f"{shown}, p {estimate.p:.3f}"


def _padded(cell: str, width: int) -> str:
    return cell + " " * (width - cell_len(cell))  # a Chinese character takes two columns


def _system_json(system: System, lines: int) -> dict[str, Any]:
    scores = {
        estimate.score.name: {
            **_score_json(estimate.score),
            "mean": estimate.mean,
            "interval": estimate.interval,
            "p": estimate.p,
        }
        for estimate in system.estimates
    }
    run = system.run
    return {
        "scores": {name: scores.get(name) for name in METRICS},
        "outputs": asdict(system.outputs),
        "buckets": [
            {"least": b.least, "most": b.most, "lines": b.lines, **_score_json(b.score)}
            for b in system.buckets
        ],
        "run": run and {**asdict(run), "sentences_per_s": _rate(run, lines)},
    }


def _score_json(score: Score) -> dict[str, Any]:
    return {"value": score.value, "signature": score.signature}
