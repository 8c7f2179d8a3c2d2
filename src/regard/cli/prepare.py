"""What a run begins with: its data, prepared in sight of who waits, and another model's weights."""

from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from torch import Tensor

from regard.bundle import Bundle
from regard.cli.language import language
from regard.config import Config, ModelConfig
from regard.data.prepare import Prepared, prepare
from regard.decode.engines.torch import read_weights
from regard.model.weights import with_fewer_layers
from regard.processors import n_processors
from regard.train.log import Log


def prepared_data(
    config: Config, folder: Path, source: Bundle | None, *, vocabulary: str | None
) -> Prepared:
    """The dataset, by as many processes as there are cores, with a bar that shows it is alive."""
    pairs = {"en": "{task.completed:,.0f} pairs", "zh": "{task.completed:,.0f}个句对"}[language()]
    columns = (BarColumn(), TextColumn(pairs), TimeElapsedColumn())
    console = Console(stderr=True)
    is_off = not console.is_terminal  # where it would leave an empty line
    with Progress(*columns, console=console, transient=True, disable=is_off) as bar:
        reading = bar.add_task("", total=None)  # a stream does not know its end
        return prepare(
            config.data,
            folder,
            seed=config.train.seed,
            workers=n_processors(),
            progress=lambda n: bar.update(reading, completed=n),
            tokenizers=(source.src_tokenizer, source.tgt_tokenizer) if source else None,
            vocabulary=vocabulary,
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


def tell_of_languages(prepared: Prepared, source: Bundle | None, log: Log) -> None:
    """Warn of what nobody will notice before the model is asked."""
    ways = prepared.directions
    if not all(language for way in ways for language in way):
        log.warn(
            "the text does not say its languages, and BLEU takes it for English; "
            "give --set data.src_lang=… --set data.tgt_lang=…",
            "文本没有说明语言，BLEU会当作英文来分词；"
            "请用--set data.src_lang=… --set data.tgt_lang=…说明",
        )
    elif source and (known := source.facts.get("directions")) and [*ways[0]] not in known:
        was, will = (" → ".join(way) for way in (known[0], ways[0]))
        log.warn(
            f"{source.path} translates {was}, and with this text it becomes {will}",
            f"{source.path}的方向是{was}，用这些文本训练后会变成{will}",
        )


def source_weights(source: Bundle, wanted: ModelConfig) -> dict[str, Tensor]:
    """The weights of the model to go on from, without the layers that are not wanted."""
    weights = read_weights(source)
    for side in ("encoder", "decoder"):
        had, wants = (getattr(model, side)[0] for model in (source.model, wanted))
        if had != wants:
            weights = with_fewer_layers(weights, side, had, wants)
    return weights
