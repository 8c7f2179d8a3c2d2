"""The data of a run: prepared in sight of the person who waits for it, and told in one line."""

import os
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from regard.bundle import Bundle
from regard.cli.language import language
from regard.config import Config
from regard.data.prepare import Prepared, prepare


def prepared_data(config: Config, folder: Path, source: Bundle | None) -> Prepared:
    """The dataset, by as many processes as there are cores, with a bar that shows it is alive."""
    pairs = {"en": "{task.completed:,.0f} pairs", "zh": "{task.completed:,.0f}个句对"}[language()]
    columns = (BarColumn(), TextColumn(pairs), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        reading = bar.add_task("", total=None)  # a stream does not know its end
        return prepare(
            config.data,
            folder,
            seed=config.train.seed,
            workers=os.cpu_count() or 1,
            progress=lambda n: bar.update(reading, completed=n),
            tokenizers=(source.src_tokenizer, source.tgt_tokenizer) if source else None,
        )


def data_line(prepared: Prepared) -> tuple[str, str]:
    """What there is to learn from, and what was left out, in English and in Chinese."""
    reasons = sorted(prepared.dataset.dropped.items())
    dropped = ", ".join(f"{n:,} by {reason}" for reason, n in reasons)
    chinese = "，".join(f"{reason} {n:,}" for reason, n in reasons)
    pairs, dev = len(prepared.dataset), len(prepared.dev)
    src, tgt = len(prepared.src_tokenizer.vocab), len(prepared.tgt_tokenizer.vocab)
    return (
        f"{pairs:,} pairs ({'dropped ' + dropped if dropped else 'none dropped'}), "
        f"{dev:,} to judge by, {src:,} and {tgt:,} words",
        f"{pairs:,}个句对（{'丢弃：' + chinese if chinese else '没有丢弃'}），"
        f"{dev:,}个用于评判，词表{src:,}和{tgt:,}",
    )
