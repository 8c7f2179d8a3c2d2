"""`regard evaluate`: translations scored against references, with intervals, p and signatures."""

import json
import resource
import time
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
@click.option("--ref", type=FilePath, required=True, help="The true translation.")
@click.option(
    "--compare",
    type=FilePath,
    multiple=True,
    metavar="DIR|FILE",
    help="Another model or other translations, on the same lines; may be repeated.",
)
@click.option("--to", "to_lang", default="", help="The target language, if no name says it.")
@click.option("--beam", type=click.IntRange(1, 64), default=1, help="Hypotheses side by side.")
@click.option("--device", default="cpu", help="cpu or cuda.")
@click.option("--json", "as_json_", is_flag=True, help="All of it as JSON.")
@click.option("--markdown", is_flag=True, help="A table for a page.")
def command(
    model: Path | None,
    hyp: Path | None,
    src: Path | None,
    ref: Path,
    compare: tuple[Path, ...],
    to_lang: str,
    beam: int,
    device: str,
    as_json_: bool,
    markdown: bool,
) -> None:
    """Score translations: BLEU, chrF, TER, exact, with signatures.

    With several systems the first is the baseline, and p says how likely a difference as large is
    by chance (paired bootstrap).
    """
    from regard.evaluate.report import as_json, as_markdown, as_table, report_on

    if (model is None) == (hyp is None):
        raise ConfigError("give --model or --hyp: what is to be scored")
    first = model or hyp
    assert first is not None
    references = lines_of(ref)
    sources = lines_of(src) if src else None
    tgt_lang = to_lang or _language_of(ref, model)
    systems: dict[str, list[str]] = {}
    runs: dict[str, Run] = {}
    for place in (first, *compare):
        name = _name(place, systems)
        if place.is_dir():
            systems[name], runs[name] = _translated(place, sources, beam, device)
        else:
            systems[name] = lines_of(place)
    report = report_on(systems, references, tgt_lang, sources=sources, runs=runs)
    if not report.systems[0].outputs.tokenizer_fits:
        click.echo(_MISFIT[language()].format(language=tgt_lang or "?"), err=True)
    if as_json_:
        click.echo(json.dumps(as_json(report), ensure_ascii=False, indent=1))
    else:
        click.echo((as_markdown if markdown else as_table)(report, language()))


_MISFIT = {
    "en": "warning: BLEU's words do not fit this text; is {language} its language? give --to",
    "zh": "警告：BLEU的分词与这些文本不符；目标语言是{language}吗？请用--to指明",
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
    model: Path, sources: list[str] | None, beam: int, device: str
) -> tuple[list[str], "Run"]:
    from regard.decode.translator import open_translator
    from regard.evaluate.report import Run

    if sources is None:
        raise ConfigError("a model needs --src, the text to translate")
    translator = open_translator(model, device)
    start = time.monotonic()
    said = translator.translate(sources, beam=beam)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return said, Run(time.monotonic() - start, peak)


def _language_of(ref: Path, model: Path | None) -> str:
    """The target language, as the model or the reference's name says."""
    from regard.bundle import open_bundle
    from regard.data.formats import bare_path

    if model is not None and (ways := open_bundle(model).facts.get("directions")):
        return str(ways[0][1])
    return bare_path(ref).suffix.lstrip(".")


def _name(place: Path, taken: dict[str, list[str]]) -> str:
    """A system by its file's name, or by its whole path where that name is taken."""
    return place.name if place.name not in taken else str(place)
