"""Tables of what benchmarks/train_and_translate.py and the peers left behind, scored here.

    python benchmarks/bench_runs.py FOLDER --data DIR [--write]

A run is FOLDER/NAME.json with FOLDER/NAME.SPLIT.LANGUAGE; its name says which table it belongs to:

    en-de.1 en-de.2 ...   Multi30k by seeds; de-en.N the other way
    marian.1, en-de.uN    MarianMT in a plain loop, and regard stopped after N updates
    gru.1                 Bahdanau's GRU, beside en-de.1
    french.1              Tatoeba
    restored.1            what is no translation

A table whose runs are not there is not written.
"""

import argparse
import json
import statistics
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sacrebleu.metrics.base import Metric
from train_and_translate import lines_of

from regard.evaluate.metrics import bleu_metric, chrf, exact_match, lowercase_metric, moses_metric

RESULTS = Path(__file__).parent / "results"
HEADS = "updates | minutes | dev, lc Moses | test, lc Moses | test, lc 13a | test, cased 13a"


@dataclass(frozen=True)
class Run:
    """What a run left behind, scored: the name of a score and its value, for dev and for test."""

    name: str
    facts: dict[str, Any]
    dev: dict[str, float]
    test: dict[str, float]
    signatures: dict[str, str]

    @property
    def minutes(self) -> float:
        """Of the whole command."""
        return float(self.facts["seconds"]) / 60

    @property
    def cells(self) -> list[str]:
        """The columns of HEADS."""
        return [
            f"{self.facts['updates']:,}",
            f"{self.minutes:.1f}",
            f"{self.dev['lc Moses']:.2f}",
            *(f"{self.test[kind]:.2f}" for kind in ("lc Moses", "lc 13a", "cased 13a")),
        ]


def scored(said: list[str], wanted: list[str], language: str) -> dict[str, tuple[float, str]]:
    """Every score by its name, with its signature."""
    metrics: dict[str, Metric | None] = {
        "lc Moses": moses_metric(language),
        "lc 13a": lowercase_metric(language),
        "cased 13a": bleu_metric(language),
    }
    found = {
        name: (metric.corpus_score(said, [wanted]).score, str(metric.get_signature()))
        for name, metric in metrics.items()
        if metric is not None
    }
    for metric in (chrf, exact_match):
        score = metric(said, wanted, language)
        found["chrF" if score.name == "chrf" else score.name] = (score.value, score.signature)
    return found


def runs_in(folder: Path, data: Path) -> dict[str, Run]:
    """Every run of a folder by its name."""
    found = {}
    for file in sorted(folder.glob("*.json")):
        facts = json.loads(file.read_text(encoding="utf-8"))
        name = file.name.removesuffix(".json")
        parts: dict[str, dict[str, tuple[float, str]]] = {}
        for hypotheses in folder.glob(f"{name}.[dt]e*.*"):  # dev and test; not the metrics
            split, language = hypotheses.name.removeprefix(name + ".").rsplit(".", 1)
            said = hypotheses.read_text(encoding="utf-8").split("\n")[:-1]
            wanted = lines_of(data / facts["corpus"] / f"{split}.{language}.gz")
            parts["dev" if split == "dev" else "test"] = scored(said, wanted, language)
        dev, test = ({k: value for k, (value, _) in parts[one].items()} for one in ("dev", "test"))
        signatures = {kind: signature for kind, (_, signature) in parts["test"].items()}
        found[name] = Run(name, facts, dev, test, signatures)
    return found


def table(head: str, rows: Iterable[list[str]]) -> list[str]:
    """Markdown; numbers stand to the right."""
    n_more = head.count("|")
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return [f"| {head} |", "|---|" + "--:|" * n_more, *lines, ""]


def told(run: Run) -> str:
    """Where, with what, and the signatures of its scores."""
    facts = run.facts
    kinds = [kind for kind in run.signatures if kind != "exact"]
    return "\n".join(
        [
            f"{facts['hardware']}, torch {facts['torch']}, beam {facts['beam']}, commit "
            f"{commit()}; minutes are those of the whole command. Signatures:",
            "",
            *(f"- {kind}: `{run.signatures[kind]}`" for kind in kinds),
        ]
    )


def multi30k(runs: dict[str, Run]) -> list[str]:
    """By seeds, each way, with the mean."""
    lines = ["# Multi30k, one NVIDIA H200, November 2026", ""]
    for way, words in (("en-de", "English to German"), ("de-en", "German to English")):
        seeds = [runs[f"{way}.{n}"] for n in range(1, 10) if f"{way}.{n}" in runs]
        if not seeds:
            continue
        first = seeds[0]
        lines += [
            f"## {words}",
            "",
            f"`regard train recipes/{first.facts['recipe']} --set train.seed=N`: "
            f"{first.facts['what']}, {first.facts['parameters'] / 1e6:.1f} M parameters. Chosen on "
            "dev alone, scored once on test_2016_flickr."
            + (" Published text-only Transformer: 41.02 lc Moses." if way == "en-de" else ""),
            "",
        ]
        columns = list(zip(*(one.cells for one in seeds), strict=True))
        means = [f"{statistics.mean(float(x.replace(',', '')) for x in c):.2f}" for c in columns]
        mean = ["mean", columns[0][0], *means[1:]]
        lines += table(
            "seed | " + HEADS, [[str(one.facts["seed"]), *one.cells] for one in seeds] + [mean]
        )
    return [*lines, told(runs["en-de.1"])]


def ours_in(runs: dict[str, Run]) -> list[Run]:
    """What stands beside the peer: the recipe, and its shorter forms."""
    return [run for name, run in runs.items() if name.startswith("en-de.u") or name == "en-de.1"]


def _settings(run: Run) -> str:
    return ", ".join(run.facts["settings"]) or "the recipe"


def peer(runs: dict[str, Run]) -> list[str]:
    """Our score at its minutes, our minutes at its score."""
    theirs = runs["marian.1"]
    ours = sorted(ours_in(runs), key=lambda run: run.minutes)
    lines = [
        "# Multi30k, English to German: regard and MarianMT in a plain loop, November 2026",
        "",
        "The same text, vocabulary, size, batch of 4,096 tokens, kind of schedule and averaging, "
        f"one after the other on one machine. {theirs.facts['what']}: padded batches, bf16, eager, "
        "no validations, no R-Drop (`benchmarks/peers/train_marianmt.py`). regard: packed, "
        f"recorded, with validations. Settings are what differs from "
        f"`recipes/{theirs.facts['recipe']}`.",
        "",
    ]
    rows = [
        [f"{who}: {_settings(run)}", f"{run.facts['target_tokens_per_s']:,}", *run.cells]
        for who, run in [*(("regard", run) for run in ours), ("MarianMT", theirs)]
    ]
    lines += table("run | target tokens/s | " + HEADS, rows)
    score = "lc Moses"
    in_time = [run for run in ours if run.minutes <= theirs.minutes * 1.02]
    as_good = [run for run in ours if run.dev[score] >= theirs.dev[score]]
    best = max(in_time, key=lambda run: run.dev[score], default=None)
    first = min(as_good, key=lambda run: run.minutes, default=None)
    rows = [
        [
            f"test at its minutes, {score}",
            f"{best.test[score]:.2f} ({best.minutes:.1f} min)" if best else "–",
            f"{theirs.test[score]:.2f} ({theirs.minutes:.1f} min)",
        ],
        [
            f"minutes to its dev, {score}",
            f"{first.minutes:.1f} ({first.dev[score]:.2f})" if first else "–",
            f"{theirs.minutes:.1f} ({theirs.dev[score]:.2f})",
        ],
    ]
    lines += table("at | regard | MarianMT", rows)
    return [*lines, told(theirs)]


def history(runs: dict[str, Run]) -> list[str]:
    """The notes' history: from additive attention between GRUs to attention alone."""
    named = {
        "GRU, additive attention (2014)": runs["gru.1"],
        "Transformer (2017)": runs["en-de.1"],
    }
    lines = [
        "# The notes' history: Multi30k, English to German, November 2026",
        "",
        "Both by `regard train`, on the same text and vocabulary; speeds are target tokens a "
        "second in training\nand sentences a second in translating.",
        "",
    ]
    head = "network | parameters | training tokens/s | sentences/s | " + HEADS
    rows = [
        [
            name,
            f"{run.facts['parameters'] / 1e6:.1f} M",
            f"{run.facts['target_tokens_per_s']:,}",
            f"{run.facts['sentences_per_s']:,.0f}",
            *run.cells,
        ]
        for name, run in named.items()
    ]
    return [*lines, *table(head, rows), told(runs["gru.1"])]


def nearly_known(place: Path, language: str) -> float:
    """Of a hundred test lines, how many are a training line but for one word."""

    def gaps(line: str) -> set[tuple[str, ...]]:
        words = line.lower().split()
        return {(*words[:i], "", *words[i + 1 :]) for i in range(len(words))}

    train, test = (lines_of(place / f"{split}.{language}.gz") for split in ("train", "test"))
    known = {gap for line in train for gap in gaps(line)}
    return 100 * sum(not known.isdisjoint(gaps(line)) for line in test) / len(test)


def french(runs: dict[str, Run], data: Path) -> list[str]:
    """The honest version of d2l's toy."""
    run = runs["french.1"]
    lines = [
        "# Tatoeba, English to French, November 2026",
        "",
        f"`regard train recipes/tatoeba-fra.toml`: {run.facts['what']}, "
        f"{run.facts['parameters'] / 1e6:.1f} M parameters, {run.facts['updates']:,} updates in "
        f"{run.minutes:.1f} minutes. 160,550 pairs; dev and test are drawn by chance, and neither "
        "side of them stands in training; but for one word, "
        f"{nearly_known(data / run.facts['corpus'], 'en'):.0f} % of the test's sources do.",
        "",
    ]
    kinds = ("cased 13a", "lc 13a", "chrF", "exact")
    parts = {"dev": run.dev, "test": run.test}
    rows = [[part, *(f"{scores[kind]:.1f}" for kind in kinds)] for part, scores in parts.items()]
    return [*lines, *table("part | " + " | ".join(kinds), rows), told(run)]


def tasks(run: Run, data: Path) -> list[str]:
    """What is no translation, beside what needs no network."""
    lines = [
        "# Not translation: documentation, English, November 2026",
        "",
        "Capitals and punctuation put back. Test text by the corpora's own split, which is by "
        "document. Beside it what\nneeds no network: a capital and a full stop.",
        "",
    ]
    kinds = ("exact", "chrF", "cased 13a")
    bare, wanted = (
        lines_of(data / "restored" / f"test.en-{side}.gz") for side in ("bare", "written")
    )
    by_rule = scored([text[:1].upper() + text[1:] + "." for text in bare], wanted, "en-written")
    rows = [
        [f"restored, {len(wanted):,} lines: {who}", *(f"{scores[kind]:.1f}" for kind in kinds)]
        for who, scores in (
            (f"regard, {run.minutes:.1f} min", run.test),
            ("by rule", {kind: value for kind, (value, _) in by_rule.items()}),
        )
    ]
    return [*lines, *table("task | " + " | ".join(kinds), rows), told(run)]


def commit() -> str:
    """Of the clone this is scored in."""
    asked = ["git", "rev-parse", "--short", "HEAD"]
    return subprocess.run(asked, capture_output=True, text=True, cwd=RESULTS).stdout.strip()


def main() -> None:
    """Score all, then every table that can be made."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--hardware", default="h200")
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    runs = runs_in(asked.folder, asked.data)
    made: dict[str, tuple[bool, Callable[[], list[str]]]] = {
        "multi30k": ("en-de.1" in runs, lambda: multi30k(runs)),
        "multi30k-marianmt": ("marian.1" in runs and ours_in(runs) != [], lambda: peer(runs)),
        "multi30k-history": ({"gru.1", "en-de.1"} <= runs.keys(), lambda: history(runs)),
        "tatoeba-fra": ("french.1" in runs, lambda: french(runs, asked.data)),
        "tasks": ("restored.1" in runs, lambda: tasks(runs["restored.1"], asked.data)),
    }  # fmt: skip
    for name, (can_be, lines) in made.items():
        if can_be:
            text = "\n".join(lines()) + "\n"
            print(text)
            if asked.write:
                place = RESULTS / f"{name}_{asked.hardware}_202611.md"
                place.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
