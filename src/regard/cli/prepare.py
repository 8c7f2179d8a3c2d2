"""What a run begins with: its data, prepared in sight of who waits, and another model's weights."""

from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from torch import Tensor

from regard.bundle import Bundle
from regard.cli.language import language
from regard.config import Config, DataConfig, ModelConfig
from regard.data.files import held_out_files
from regard.data.prepare import Prepared, prepare
from regard.decode.engines.torch import read_weights
from regard.model.weights import with_fewer_layers
from regard.processors import n_processors
from regard.train.log import Log

REASONS = {  # why a pair is left out, in Chinese
    "dedup": "重复",
    "drop_overlap": "与开发集或测试集相同",
    "empty": "没有内容",
    "empty-both": "两边都空",
    "empty-source": "原文为空",
    "empty-target": "译文为空",
    "fuzzy": "译文未定稿",
    "invalid-json": "不是JSON",
    "invalid-utf8": "不是UTF-8",
    "max_len": "过长",
    "max_ratio": "长短悬殊",
    "missing-column": "没有第二列",
    "missing-language": "缺少一种语言",
    "missing-segment": "缺少句段",
    "nul": "含有NUL",
    "obsolete": "已作废",
    "script": "文字不符",
    "too-long": "行过长",
    "untranslated": "未翻译",
}


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


def tell_of_data(prepared: Prepared, config: DataConfig, log: Log, *, is_new: bool) -> None:
    """What there is to learn from, and that nothing can be judged if that is so."""
    log.say(*data_line(prepared, config))
    if not prepared.dev and is_new:  # it cannot be given on the way
        log.warn(
            "there is no pair to judge by: the run will not stop early, and its weights are not "
            "scored; give some with --set data.dev=dev.zh,dev.en",
            "没有可供评判的句对：训练不会提前停止，权重也不会有分数；"
            "请用--set data.dev=dev.zh,dev.en给出一些",
        )


def data_line(prepared: Prepared, config: DataConfig) -> tuple[str, str]:
    """What there is to learn from, and what was left out, in English and in Chinese."""
    pairs, (dropped, chinese_dropped) = len(prepared.dataset), _dropped(prepared)
    dev, chinese_dev = _judged_by(prepared, config)
    src, tgt = (tokenizer.vocab for tokenizer in (prepared.src_tokenizer, prepared.tgt_tokenizer))
    words, chinese_words = f"one vocabulary of {len(src):,}", f"共用词表{len(src):,}"
    if src != tgt:
        words = f"vocabularies of {len(src):,} and {len(tgt):,}"
        chinese_words = f"词表{len(src):,}和{len(tgt):,}"
    return (
        f"{pairs:,} pair{'' if pairs == 1 else 's'}{dropped}, {dev}; {words}",
        f"{pairs:,}个句对{chinese_dropped}，{chinese_dev}；{chinese_words}",
    )


def _dropped(prepared: Prepared) -> tuple[str, str]:
    """What was left out and why, in brackets; a pair to judge by is not lost."""
    reasons = dict(sorted(prepared.dataset.dropped.items()))
    copies = reasons.pop("held_out", 0) - len(prepared.dev)
    words = [f"{n:,} by {reason}" for reason, n in reasons.items()]
    chinese = [f"{REASONS.get(reason, '其他')}（{reason}）{n:,}个" for reason, n in reasons.items()]
    if copies > 0:
        words.append(f"{copies:,} as copies of those held out")
        chinese.append(f"与留出的句对相同{copies:,}个")
    return (
        f" (dropped {', '.join(words)})" if words else "",
        f"（丢弃：{'，'.join(chinese)}）" if chinese else "",
    )


def _judged_by(prepared: Prepared, config: DataConfig) -> tuple[str, str]:
    """How many pairs there are to judge by, and where they are from."""
    n = len(prepared.dev)
    found = [] if config.task != "none" else held_out_files(config, "dev")
    paths = [path for files in found for path in (files.src, files.tgt, files.both) if path]
    names = dict.fromkeys(path.name for path in paths)
    if not n:
        return "none to judge by", "没有可供评判的句对"
    if names:
        return f"{n:,} of {','.join(names)} to judge by", f"用{'、'.join(names)}的{n:,}个句对评判"
    if config.task != "none":
        return f"{n:,} more to judge by", f"另有{n:,}个用于评判"
    return f"{n:,} more held out to judge by", f"另留出{n:,}个用于评判"


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
    elif source and (known := [way for way in source.facts.get("directions", []) if all(way)]):
        new = [way for way in ways if [*way] not in known]
        if not new:
            return
        was, will = (" → ".join(way) for way in (known[0], new[0]))
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
