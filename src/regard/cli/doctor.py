"""`regard doctor`: what is wrong with a corpus, before it is trained on."""

import json
from pathlib import Path
from typing import Any

import click

from regard.cli.language import language

WORDS = {
    "en": {
        "split": "{name}: {pairs:,} pairs",
        "lengths": "  {lang}: {mean} characters on average, half up to {median}, 99 % up to {p99}, "
        "longest {longest}",
        "count": "  {n:,} × {kind}, first in line {line}",
        "overlap": "{name} in train: {pairs:,} pairs ({folded:,} by letters and digits alone)",
        "tokens": "about {tokens:,} tokens an epoch (both sides, 8,000 pieces)",
        "uncovered": "{n:,} characters are rare enough to be spelled in bytes: {examples}",
        "advice": "worth turning on: {filters}",
        "well": "nothing to mend",
    },
    "zh": {
        "split": "{name}：{pairs:,}个句对",
        "lengths": "  {lang}：平均{mean}个字符，半数不超过{median}，99%不超过{p99}，最长{longest}",
        "count": "  {n:,}×{kind}，首见于第{line}行",
        "overlap": "{name}与train重复：{pairs:,}个句对（只看字母、汉字和数字则为{folded:,}个）",
        "tokens": "每轮约{tokens:,}个词元（两端合计，词表8,000）",
        "uncovered": "{n:,}个字符很少见，将按字节拼写：{examples}",
        "advice": "建议打开的过滤器：{filters}",
        "well": "没有需要修补的地方",
    },
}


@click.command()
@click.argument("corpus", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--from", "src_lang", help="Source language, such as zh.")
@click.option("--to", "tgt_lang", help="Target language, such as en.")
@click.option("--json", "as_json", is_flag=True, help="Everything found, as JSON.")
def command(
    corpus: tuple[Path, ...], src_lang: str | None, tgt_lang: str | None, as_json: bool
) -> None:
    """What is wrong with a corpus: faults, overlap, lengths, advice.

    CORPUS is a directory with train.*, dev.* and test.* files, two plain files, or one TSV, JSONL,
    TMX, XLIFF or PO file.
    """
    from rich.console import Console

    from regard.data.doctor import as_table, examine
    from regard.data.splits import find_splits
    from regard.errors import DataError

    splits = find_splits(corpus, src_lang, tgt_lang)
    with Console(stderr=True).status("") as status:  # silent unless stderr is a terminal
        report = examine(splits, lambda name, n: status.update(f"{name}: {n:,}"))
    table = as_table(report)
    click.echo(json.dumps(table, ensure_ascii=False, indent=1) if as_json else _shown(table))
    if report.errors:
        raise report.errors[0]
    if not table["pairs"]:
        raise DataError(
            "no pair could be read from {corpus}; two plain files need both their names, one file "
            "with both sides is TSV, JSONL, TMX, XLIFF or PO by its ending",
            corpus=", ".join(map(str, corpus)),
        )


def _shown(table: dict[str, Any]) -> str:
    words = WORDS[language()]
    lines = [line for name, split in table["splits"].items() for line in _split(name, split, table)]
    lines += [
        words["overlap"].format(name=name, pairs=found["pairs"], folded=found["folded"])
        for name, found in table["overlap"].items()
    ]
    if table["tokens_per_epoch"]:
        lines.append(words["tokens"].format(tokens=table["tokens_per_epoch"]))
    if rare := table["uncovered"]:
        examples = " ".join(found["character"] for found in rare[:20])
        lines.append(words["uncovered"].format(n=len(rare), examples=examples))
    filters = ", ".join(f"{name} ({n:,})" for name, n in table["advice"].items())
    if filters:
        lines.append(words["advice"].format(filters=filters))
    elif not table["faults"]:
        lines.append(words["well"])
    return "\n".join(lines)


def _split(name: str, split: dict[str, Any], table: dict[str, Any]) -> list[str]:
    words = WORDS[language()]
    lines = [words["split"].format(name=name, pairs=split["pairs"])]
    for lang, numbers in split["characters"].items():
        if numbers:
            lines.append(words["lengths"].format(lang=lang, **numbers))
    for kind, n in split["counts"].items():
        first = next(f for f in split["faults"] if f["kind"] == kind)
        detail = f": {first['detail']}" if first["detail"] else ""
        lines.append(words["count"].format(n=n, kind=kind, line=first["line"]) + detail)
    return lines
