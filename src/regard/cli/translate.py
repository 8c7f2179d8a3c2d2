"""`regard translate`: text in, text out, one line each."""

import json
import sys
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from regard.errors import ConfigError, DataError

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence

    from regard.cli.shards.chunks import Chunk
    from regard.cli.shards.job import Shard
    from regard.decode.results import Translation
    from regard.decode.search import Search
    from regard.decode.translator import Translator
    from regard.document.document import Format

FilePath = click.Path(path_type=Path)
FORMATS = ("txt", "tsv", "tmx", "xliff", "po", "srt", "vtt", "html")


@dataclass(frozen=True, kw_only=True)
class Options:
    """What is on the command line; None leaves it to the model."""

    text: tuple[str, ...]
    model: tuple[Path, ...]
    engine: Literal["auto", "torch", "ctranslate2"]
    dtype: Literal["auto", "float32", "bf16", "int8"]
    device: str
    src_lang: str
    tgt_lang: str
    source: Path | None
    target: Path | None
    resume: bool
    beam: int | None
    nbest: int | None
    alignments: bool
    as_json: bool
    length_penalty: float | None
    coverage_penalty: float | None
    no_repeat: int | None
    groups: int | None
    temperature: float | None
    top_k: int | None
    top_p: float | None
    seed: int | None
    prefix: str
    terms: Path | None
    memory: tuple[Path, ...]
    format: str | None
    forbid: tuple[str, ...]
    on_bad: Literal["replace", "empty", "stop"]
    ray: str | None = None
    workers: int | None = None

    @property
    def is_tsv(self) -> bool:
        """Whether lines have columns, of which the first is translated."""
        if self.source is None or self.format is not None:
            return self.format == "tsv"
        suffixes = [suffix.lower() for suffix in self.source.suffixes[-2:]]
        return ".tsv" in suffixes  # the other one is of an archive

    def search(self, own: "Search") -> "Search":
        """The model's own search, but for what is asked otherwise."""
        names = ("length_penalty", "coverage_penalty", "no_repeat", "groups", "temperature",
                 "top_k", "top_p", "seed")  # fmt: skip
        asked = {name: value for name in names if (value := getattr(self, name)) is not None}
        return replace(own, **asked, wants_attention=self.alignments)

    def facts(self) -> dict[str, Any]:
        """All that the output depends on beside the text and the weights, as JSON has it."""
        places = ("text", "model", "source", "target", "resume", "ray", "workers")
        facts = {name: value for name, value in asdict(self).items() if name not in places}
        table: dict[str, Any] = json.loads(json.dumps(facts, default=str))
        return table

    def lines(self, translation: "Translation", number: int) -> list[str]:
        """How a translation is written: one line, or with --nbest one for each alternative."""
        if self.as_json:
            return [json.dumps(translation.as_table(), ensure_ascii=False)]
        lines = []
        for one in translation.alternatives:
            fields = [one.text]
            if self.nbest is not None:
                fields = [str(number), one.text, f"{one.score:.4f}"]
            if self.alignments:
                fields.append(str(one.alignment or ""))
            lines.append(" ||| ".join(fields))
        return lines


@click.command()
@click.argument("text", nargs=-1)
@click.option("--model", type=FilePath, multiple=True,
              help="A model directory; without one, the model that comes with regard. Several "
                   "of one vocabulary translate together.")  # fmt: skip
@click.option("--engine", type=click.Choice(["auto", "torch", "ctranslate2"]), default="auto",
              help="auto: ctranslate2 where it can do what is asked, else torch.")  # fmt: skip
@click.option("--dtype", type=click.Choice(["auto", "float32", "bf16", "int8"]), default="auto",
              help="int8 is faster on a CPU and nearly as good, bf16 on a GPU.")  # fmt: skip
@click.option("--device", default="cpu", help="cpu or cuda.")
@click.option("--from", "src_lang", default="", help="The language to translate from.")
@click.option("--to", "tgt_lang", default="", help="The language to translate to.")
@click.option("-i", "--input", "source", type=click.Path(),
              help="A file of lines, TSV, TMX, XLIFF, PO, SRT, VTT or HTML; or many files of "
                   "lines: a pattern in quotes, or an address such as s3://...")  # fmt: skip
@click.option(
    "--format", type=click.Choice(FORMATS), help="What FILE is, if its name does not say."
)
@click.option("-o", "--output", "target", type=click.Path(),
              help="Where to; written whole or not. For many files, a folder.")  # fmt: skip
@click.option("--resume", is_flag=True, help="Go on with a file that was not finished.")
@click.option("--ray", metavar="auto|ADDRESS",
              help="Translate files on this Ray cluster, a model for each worker.")  # fmt: skip
@click.option("--workers", type=click.IntRange(1), metavar="N",
              help="So many on Ray; without it, one for each CPU, or GPU.")  # fmt: skip
@click.option("--beam", type=click.IntRange(1, 64),
              help="Hypotheses side by side; without it, what suits the model.")  # fmt: skip
@click.option("--nbest", type=click.IntRange(1, 64), help="So many translations of each line.")
@click.option("--alignments", is_flag=True, help="Which piece comes from which (Pharaoh).")
@click.option("--json", "as_json", is_flag=True, help="Each translation as a line of JSON.")
@click.option("--length-penalty", type=float, help="Above 1 for longer translations.")
@click.option("--coverage-penalty", type=float, help="Above 0 against words left out.")
@click.option("--no-repeat", type=click.IntRange(0), metavar="N",
              help="Say no N pieces in a row twice.")  # fmt: skip
@click.option("--groups", type=click.IntRange(1),
              help="Groups of hypotheses that differ: diverse beam search.")  # fmt: skip
@click.option("--temperature", type=click.FloatRange(0.0),
              help="Above 0: draw words instead of searching.")  # fmt: skip
@click.option("--top-k", type=click.IntRange(0), help="Draw among K words; 0: all.")
@click.option("--top-p", type=click.FloatRange(0.0, 1.0, min_open=True),
              help="Draw among the likeliest words, of this probability together.")  # fmt: skip
@click.option("--seed", type=int, help="Of what is drawn.")
@click.option("--prefix", default="", help="What the translation begins with.")
@click.option("--terms", "--glossary", "terms", type=FilePath, metavar="TSV|CSV|TBX",
              help="Source words and what they must be called.")  # fmt: skip
@click.option("--memory", type=FilePath, multiple=True, metavar="TMX",
              help="Of a document: texts that stand there are not translated again.")  # fmt: skip
@click.option("--forbid", multiple=True, metavar="WORD", help="Never say this; may be repeated.")
@click.option("--on-bad", type=click.Choice(["replace", "empty", "stop"]), default="replace",
              help="What to do about bytes that are no text.")  # fmt: skip
def command(**options: Any) -> None:
    """Translate arguments, lines from stdin, or a file; line by line.

    One line out for each line in, in order; an empty line stays empty. With --nbest: number |||
    text ||| score; with --alignments a last field of source-target pieces, counted from 0. Of a
    document only the text is translated, and what cannot be is named.
    """
    from regard.decode.translator import load

    source, target = options.pop("source"), options.pop("target")
    asked = Options(**options, source=_path(source), target=_path(target))
    _check_ray(asked)
    if asked.ray or _are_many(source, target):
        _translate_many(asked, source, target)
        return
    kind = _document(asked)
    _check(asked, kind)
    translator = load(
        list(asked.model) or None, engine=asked.engine, device=asked.device, dtype=asked.dtype
    )
    terms = _terms(asked, translator) if asked.terms else {}
    if kind is not None:
        from regard.cli.documents import translate_document_file

        translate_document_file(asked, kind, translator, terms)
        return
    translate = line_by_line(translator, asked, terms)
    if asked.source and asked.target:
        from regard.cli import bulk

        models = [bundle.path for bundle in translator.bundles]
        bulk.translate_file(asked.source, asked.target, translate, asked, models)
    else:
        _stream(translate, asked)


def _path(place: str | None) -> Path | None:
    return Path(place) if place is not None else None


def _check_ray(asked: Options) -> None:
    """What can be seen to be wrong with asking for a cluster."""
    if asked.workers is not None and asked.ray is None:
        raise ConfigError("the option --workers needs --ray")
    if asked.ray is not None and not (asked.source and asked.target):
        raise ConfigError("the option --ray needs -i FILES and -o FOLDER")


def _are_many(source: str | None, target: str | None) -> bool:
    """Whether this is a pattern or an address, and not the name of one local file."""
    if source is None or target is None:
        return False
    is_pattern = any(sign in source for sign in "*?[") and not Path(source).exists()
    return is_pattern or "://" in source or "://" in target


def _translate_many(asked: Options, source: str, target: str) -> None:
    """Translate shards, by this process or on a cluster; the output is the same."""
    from regard.cli.shards.chunks import said_here, saying
    from regard.cli.shards.job import find_shards
    from regard.cli.shards.output import write_shards
    from regard.decode.translator import load

    if asked.text:
        raise ConfigError("give a text or -i FILE, not both")
    if asked.memory:
        raise ConfigError("the option --memory is for documents, not for lines of text")
    translator = load(
        list(asked.model) or None, engine=asked.engine, device=asked.device, dtype=asked.dtype
    )
    terms = _terms(asked, translator) if asked.terms else {}
    job = find_shards(source, target, asked, translator)
    models = [bundle.path for bundle in translator.bundles]

    def said(shards: "Sequence[Shard]") -> "Generator[Chunk]":
        if asked.ray is not None:
            from regard.cli.shards.cluster import said_on_cluster

            return said_on_cluster(shards, asked, terms, models)
        return said_here(
            shards, asked, saying(translator, asked, terms, [shard.name for shard in shards])
        )

    write_shards(job, job.facts(models, asked), said, resume=asked.resume)


def _document(asked: Options) -> "Format | None":
    """What document is to be translated, if it is one and not lines."""
    if asked.source is None:
        if asked.format is not None:
            raise ConfigError("the option --format needs -i FILE")
        return None
    from regard.cli.documents import document_format

    return document_format(asked.source, asked.format)


def _check(asked: Options, kind: "Format | None") -> None:
    """What can be seen to be wrong before a model is loaded."""
    if asked.text and asked.source:
        raise ConfigError("give a text or -i FILE, not both")
    if asked.resume and not (asked.source and asked.target):
        raise ConfigError("the option --resume needs -i FILE and -o FILE")
    if asked.memory and kind is None:
        raise ConfigError("the option --memory is for documents, not for lines of text")
    if kind is not None:
        for_lines = {"--nbest": asked.nbest, "--alignments": asked.alignments,
                     "--json": asked.as_json, "--prefix": asked.prefix}  # fmt: skip
        for option in (option for option, value in for_lines.items() if value):
            raise ConfigError(
                "{option} is for lines of text, not for a document; leave it out", option=option
            )
    if asked.target or asked.source:
        from regard.cli import bulk

        is_known = kind is not None or asked.format is not None
        bulk.check_places(asked.source, asked.target, is_document=is_known)


def line_by_line(
    translator: "Translator", asked: Options, terms: "Mapping[str, str]"
) -> "Callable[[list[str]], list[Translation]]":
    """What translates lines; of columns, so that tags and placeholders keep their places."""
    translate = translating(translator, asked, terms)
    if asked.is_tsv and not asked.as_json and not asked.alignments and asked.nbest is None:
        from regard.cli.documents import guarded

        return guarded(translate, translating(translator, asked, terms, is_aligned=True))
    return translate


def translating(
    translator: "Translator",
    asked: Options,
    terms: "Mapping[str, str]",
    *,
    direction: tuple[str, str] | None = None,
    is_aligned: bool = False,
) -> "Callable[[list[str]], list[Translation]]":
    """What a translator says, asked as the command line asks."""
    search = asked.search(translator.search)
    search = replace(search, wants_attention=search.wants_attention or is_aligned)
    src_lang, tgt_lang = direction or (asked.src_lang, asked.tgt_lang)

    def translate(texts: list[str]) -> "list[Translation]":
        return translator.translate(
            texts,
            src_lang=src_lang,
            tgt_lang=tgt_lang,
            beam=asked.beam,
            nbest=asked.nbest,
            prefix=asked.prefix,
            terms=terms,
            forbidden=asked.forbid,
            search=search,
        )

    return translate


def _stream(translate: "Callable[[list[str]], list[Translation]]", asked: Options) -> None:
    """Lines as they come, answered as soon as they can be."""
    from regard.cli.lines import arriving, readable, written

    number = 0
    place = asked.target.open("w", encoding="utf-8") if asked.target else nullcontext(sys.stdout)
    with place as out:
        for chunk in arriving(asked.text, asked.source):
            lines = [readable(line, number + n, asked.on_bad) for n, line in enumerate(chunk, 1)]
            for line in written(lines, number, translate, asked):
                out.write(line + "\n")
            out.flush()
            number += len(lines)


def _terms(asked: Options, translator: "Translator") -> dict[str, str]:
    """Source words and their translations."""
    from regard.document.glossary import read_glossary

    assert asked.terms is not None
    if not asked.terms.is_file():
        raise DataError("there is no file {path}", path=asked.terms)
    ways = translator.directions
    src, tgt = ways[0] if len(ways) == 1 else ("", "")
    return read_glossary(
        asked.terms.read_bytes(),
        str(asked.terms),
        src_lang=asked.src_lang or src,
        tgt_lang=asked.tgt_lang or tgt,
    )
