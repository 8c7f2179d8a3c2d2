"""The data of a run: prepared in sight of the person who waits for it, and told in one line."""

import os
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from regard.bundle import Bundle
from regard.config import Config
from regard.data.prepare import Prepared, prepare


def prepared_data(config: Config, folder: Path, source: Bundle | None) -> Prepared:
    """The dataset, by as many processes as there are cores, with a bar that shows it is alive."""
    columns = (BarColumn(), TextColumn("{task.completed:,.0f} pairs"), TimeElapsedColumn())
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


def data_line(prepared: Prepared) -> str:
    """What there is to learn from, and what was left out."""
    dropped = ", ".join(
        f"{n:,} by {reason}" for reason, n in sorted(prepared.dataset.dropped.items())
    )
    return (
        f"{len(prepared.dataset):,} pairs ({'dropped ' + dropped if dropped else 'none dropped'}), "
        f"{len(prepared.dev):,} to judge by, "
        f"{len(prepared.src_tokenizer.vocab):,} and {len(prepared.tgt_tokenizer.vocab):,} words"
    )
