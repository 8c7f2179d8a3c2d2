"""`regard evaluate`: translations scored against references, with intervals, p and signatures."""

import json
import resource
import time
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from regard.cli.language import language
from regard.errors import ConfigError, DataError

if TYPE_CHECKING:
    from regard.evaluate.report import Run

FilePath = click.Path(path_type=Path)


@click.command()
@click.option("--model", type=FilePath, help="A model directory, which translates SRC.")
@click.option("--hyp", type=FilePath, help="Translations that are there already, line by line.")
@click.option("--src", type=FilePath, help="The source text.")
@click.option("--ref", type=FilePath, help="The true translation.")
@click.option(
    "--compare",
    type=FilePath,
    multiple=True,
    metavar="DIR|FILE",
    help="Another model or other translations, on the same lines; may be repeated.",
)
@click.option("--to", "to_lang", default="", help="The target language, if no name says it.")
@click.option(
    "--beam",
    type=click.IntRange(1, 64),
    help="Hypotheses side by side; without it, what suits the model.",
)
@click.option("--device", default="cpu", help="cpu or cuda.")
@click.option("--alignments", type=FilePath, help="Instead: links of words (Pharaoh), to judge.")
@click.option(
    "--gold", type=FilePath, help="The true links; without --alignments, MODEL's are judged."
)
@click.option("--moses", is_flag=True, help="Say why, if BLEU of Moses' words is left out.")
@click.option("--json", "as_json_", is_flag=True, help="All of it as JSON.")
@click.option("--markdown", is_flag=True, help="A table for a page.")
def command(
    model: Path | None,
    hyp: Path | None,
    src: Path | None,
    ref: Path | None,
    compare: tuple[Path, ...],
    to_lang: str,
    beam: int | None,
    device: str,
    alignments: Path | None,
    gold: Path | None,
    moses: bool,
    as_json_: bool,
    markdown: bool,
) -> None:
    """Score translations: BLEU, chrF, TER, exact, with signatures.

    With several systems the first is the baseline, and p says how likely a difference as large is
    by chance (paired bootstrap). With --gold: the error rate of alignments (AER).
    """
    from regard.data.formats import bare_path
    from regard.evaluate.report import as_json, as_markdown, as_table, report_on

    if alignments or gold:
        from regard.cli.alignments import judge_alignments

        judge_alignments(model, alignments, gold, src, ref, as_json=as_json_)
        return
    if ref is None:
        raise ConfigError("there is no --ref to score against")
    if (model is None) == (hyp is None):
        raise ConfigError("give --model or --hyp: what is to be scored")
    first = model or hyp
    assert first is not None
    references = lines_of(ref)
    sources = lines_of(src) if src else None
    systems: dict[str, list[str]] = {}
    runs: dict[str, Run] = {}
    named = to_lang or bare_path(ref).suffix.lstrip(".")
    spoken = ""
    for place in (first, *compare):
        name = _name(place, systems)
        if place == model or place.is_dir():
            systems[name], runs[name], to = _translated(place, sources, named, beam, device)
            spoken = spoken or to
        else:
            systems[name] = lines_of(place)
    tgt_lang = to_lang or spoken or named
    report = report_on(systems, references, tgt_lang, sources=sources, runs=runs)
    if not report.systems[0].outputs.tokenizer_fits:
        click.echo(_MISFIT[language()].format(language=tgt_lang or "?"), err=True)
    if moses and "bleu_moses" not in report.signatures:
        reason = "language" if find_spec("sacremoses") else "package"
        click.echo(_NO_MOSES[language()][reason].format(language=tgt_lang or "?"), err=True)
    if as_json_:
        click.echo(json.dumps(as_json(report), ensure_ascii=False, indent=1))
    else:
        click.echo((as_markdown if markdown else as_table)(report, language()))


_MISFIT = {
    "en": "warning: BLEU's words do not fit this text; is {language} its language? give --to",
    "zh": "警告：BLEU的分词与这些文本不符；目标语言是{language}吗？请用--to指明",
}

_NO_MOSES = {
    "en": {
        "package": "BLEU of lower-cased Moses words is left out: pip install 'regard[moses]'",
        "language": "BLEU of lower-cased Moses words is left out: Moses has no rules for "
        "{language}; --to names another language, such as de",
    },
    "zh": {
        "package": "没有小写Moses分词的BLEU：请pip install 'regard[moses]'",
        "language": "没有小写Moses分词的BLEU：Moses没有{language}的规则；可用--to另指语言，例如de",
    },
}


def lines_of(path: Path) -> list[str]:
    """Every line of a file, empty ones too; a line that is no text stops here."""
    from regard.data.streams import BadText, read_lines

    lines = []
    for number, line in enumerate(read_lines(path), start=1):
        if isinstance(line, BadText):
            raise DataError(
                "{file}, line {line} is no text: {detail}; correct it first",
                file=path,
                line=number,
                detail=f"{line.kind}, {line.detail}",
            )
        lines.append(line)
    return lines


def _translated(
    model: Path, sources: list[str] | None, tgt_lang: str, beam: int | None, device: str
) -> tuple[list[str], "Run", str]:
    """What a model says, what that took, and the language it spoke, if it knows."""
    from regard.decode.translator import load
    from regard.evaluate.report import Run

    if sources is None:
        raise ConfigError("a model needs --src, the text to translate")
    translator = load(model, device=device)
    to = tgt_lang if tgt_lang in {way[1] for way in translator.directions} else ""
    translator.translate(sources[:1], beam=beam, tgt_lang=to)  # starting is no part of the speed
    start = time.monotonic()
    found = translator.translate(sources, beam=beam, tgt_lang=to)
    seconds = time.monotonic() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return [one.text for one in found], Run(seconds, peak), found[0].tgt_lang if found else ""


def _name(place: Path, taken: dict[str, list[str]]) -> str:
    """A system by its file's name, or by its whole path where that name is taken."""
    return place.name if place.name not in taken else str(place)
