"""Alignments judged by a gold one, for `regard evaluate --gold`."""

import json
from pathlib import Path

import click

from regard.cli.evaluate import lines_of
from regard.cli.language import language
from regard.decode.translator import load
from regard.document.alignment import Gold, Links, aer, aligned, read_gold, read_links, word_links
from regard.errors import ConfigError, DataError

_RESULT = {
    "en": "AER {aer:.4f}  ({pairs} pairs, {links} links, {sure} sure and {possible} possible)",
    "zh": "AER {aer:.4f}（{pairs}个句对，{links}个对应；金标准有{sure}个确定、{possible}个可能）",
}


def judge_alignments(
    model: Path | None,
    alignments: Path | None,
    gold: Path | None,
    src: Path | None,
    ref: Path | None,
    *,
    as_json: bool,
) -> None:
    """Print the alignment error rate of a file's links, or of a model's for given pairs."""
    if gold is not None and alignments is not None:
        ours = read_links(lines_of(alignments), str(alignments))
        true = _gold_of(gold, {alignments: len(ours)})
    elif gold is not None and model and src and ref:
        sources, targets = lines_of(src), lines_of(ref)
        true = _gold_of(gold, {src: len(sources), ref: len(targets)})
        ours = _model_links(model, sources, targets)
    else:
        raise ConfigError(
            "give --gold and what is judged by it: --alignments, or --model with --src and --ref"
        )
    counts = {
        "aer": aer(ours, true),
        "pairs": len(true),
        "links": sum(map(len, ours)),
        "sure": sum(len(one.sure) for one in true),
        "possible": sum(len(one.possible - one.sure) for one in true),
    }
    click.echo(json.dumps(counts) if as_json else _RESULT[language()].format(**counts))


def _model_links(model: Path, sources: list[str], targets: list[str]) -> list[Links]:
    """The links of given pairs, by a model's attention; words are what spaces part."""
    translator = load(model)
    return [
        word_links(aligned(translator, source, target), source, target)
        for source, target in zip(sources, targets, strict=True)
    ]


def _gold_of(gold: Path, others: dict[Path, int]) -> list[Gold]:
    """The true links, if they are of as many pairs as the other files have."""
    true = read_gold(lines_of(gold), str(gold))
    for file, n_lines in others.items():
        if n_lines != len(true):
            raise DataError(
                "{file} has {n_lines} lines but {gold} has {n_gold}; each line is a pair",
                file=file,
                n_lines=n_lines,
                gold=gold,
                n_gold=len(true),
            )
    return true
