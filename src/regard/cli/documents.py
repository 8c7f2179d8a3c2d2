"""Documents through `regard translate`: written whole, resumable, and what is left is named."""

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from regard.cli.bulk import clear, write_chunks
from regard.cli.language import language
from regard.cli.translate import translating
from regard.data.formats import bare_path
from regard.data.streams import read_blocks
from regard.decode.results import Alternative, Translation
from regard.document.document import (
    MAX_BYTES,
    Document,
    Format,
    Outcome,
    format_of,
    open_document,
)
from regard.document.markup import Marked, Translate, translate_marked
from regard.document.memory import read_memory
from regard.document.parts import TEXT, kept_in, rules_for
from regard.document.placeholders import is_message_format
from regard.document.units import Said, Unit
from regard.storage import sha256
from regard.text.scripts import stands_in

if TYPE_CHECKING:
    from regard.cli.translate import Options
    from regard.decode.translator import Translator

CHUNK = 64  # units translated and written together

_REASONS = {
    "en": {
        "endless": "the translation came to no end",
        "empty": "the model said nothing",
        "unaligned": "there is no alignment to place its tags by",
        "lost": "a tag or placeholder would have been lost",
        "message": "it is a message with plural or select branches",
        "subflow": "there is text within a code (<sub>)",
        "charset": "the file's encoding has no such characters",
    },
    "zh": {
        "endless": "译文没有结束",
        "empty": "模型没有给出译文",
        "unaligned": "没有可用来放置标签的对齐",
        "lost": "会丢失标签或占位符",
        "message": "是带plural或select分支的消息",
        "subflow": "代码中嵌有文本（<sub>）",
        "charset": "文件的编码没有这些字符",
    },
}
_LEFT = {
    "en": "{file}, line {line}{name}: left untranslated: {reason}",
    "zh": "{file}第{line}行{name}：没有翻译：{reason}",
}
_LEFT_LINE = {
    "en": "left untranslated: {text}: {reason}",
    "zh": "没有翻译：{text}：{reason}",
}
_NOT_SAID = {
    "en": "{file}, line {line}{name}: the term {term} was not said",
    "zh": "{file}第{line}行{name}：没有用译名{term}",
}
_COUNTED = {
    "en": "{done} of {total} units translated, {memory} of them from the memory; {left} left",
    "zh": "{total}个单元中翻译了{done}个，其中{memory}个来自翻译记忆；{left}个没有翻译",
}


def document_format(source: Path, asked: str | None) -> Format | None:
    """What a file is, if it is a document; text and TSV are translated line by line."""
    head = b""
    if asked is None and bare_path(source).suffix.lower() == ".xml" and source.is_file():
        head = next(read_blocks(source), b"")
    known = asked or format_of(bare_path(source).name, head)
    return None if known in (None, "txt", "tsv") else known  # type: ignore[return-value]


def translate_document_file(
    asked: "Options", kind: Format, translator: "Translator", terms: Mapping[str, str]
) -> None:
    """Translate a document to a file or to stdout; say what was left, and how much was not."""
    assert asked.source is not None
    document = open_document(
        _whole(asked.source),
        kind,
        translator.directions,
        src_lang=asked.src_lang,
        tgt_lang=asked.tgt_lang,
        file=str(asked.source),
    )
    memory = read_memory(asked.memory, *document.direction) if asked.memory else None
    translate = translating(translator, asked, terms, direction=document.direction, is_aligned=True)

    def said(units: Sequence[Unit], _: int) -> Iterator[str]:
        return map(_line, document.outcomes(units, translate, memory))

    work = [document.units[at : at + CHUNK] for at in range(0, len(document.units), CHUNK)]
    if asked.target is None:
        outcomes = [one for units in work for one in document.outcomes(units, translate, memory)]
        sys.stdout.buffer.write(document.filled(outcomes).content)
        sys.stdout.buffer.flush()
    else:
        part = asked.target.with_name(asked.target.name + ".part")
        facts = _facts(asked, translator, len(document.units))
        write_chunks(part, facts, work, said, resume=asked.resume)
        outcomes = [_outcome(line) for line in part.read_text(encoding="ascii").splitlines()]
        _write(asked.target, document.filled(outcomes).content)
        clear(part)
    _report(asked.source, document, outcomes, terms)


def guarded(translate: Translate, translate_aligned: Translate) -> Translate:
    """A translator of lines that keeps tags and placeholders, or says nothing for a line."""

    def guard(texts: list[str]) -> list[Translation]:
        is_marked = [
            is_message_format(text) or bool(kept_in(text, rules_for(text, TEXT))) for text in texts
        ]
        plain = [text for text, marked in zip(texts, is_marked, strict=True) if not marked]
        others = [text for text, marked in zip(texts, is_marked, strict=True) if marked]
        said = iter(translate(plain))
        kept = iter(translate_marked(others, translate_aligned, TEXT))
        return [_unmarked(next(kept)) if marked else next(said) for marked in is_marked]

    return guard


def _unmarked(one: Marked) -> Translation:
    if one.reason is not None:
        reason = _REASONS[language()][one.reason]
        click.echo(_LEFT_LINE[language()].format(text=one.source, reason=reason), err=True)
    alternative = Alternative(one.text or "", 0.0, is_finished=True)
    return Translation(one.source, one.src_lang, one.tgt_lang, (alternative,))


def _facts(asked: "Options", translator: "Translator", n_units: int) -> dict[str, Any]:
    """All that the output depends on."""
    assert asked.source is not None
    files = {"terms": [asked.terms] if asked.terms else [], "memory": asked.memory}
    return {
        "input": sha256(asked.source),
        "units": n_units,
        "models": [sha256(bundle.path / "MANIFEST.json") for bundle in translator.bundles],
        **asked.facts(),
        **{name: [sha256(path) for path in paths] for name, paths in files.items()},
    }


def _whole(source: Path) -> bytes:
    """The bytes of a file, unpacked; of one that is too large, enough to see that it is."""
    if source.stat().st_size == 0:
        return b""
    content = bytearray()
    for block in read_blocks(source):
        content += block
        if len(content) > MAX_BYTES:
            break
    return bytes(content)


def _line(outcome: Outcome) -> str:
    """An outcome as a line of the unfinished file."""
    if outcome.said is None:
        return json.dumps({"reason": outcome.reason})
    return json.dumps({"texts": outcome.said.texts, "origin": outcome.said.origin})


def _outcome(line: str) -> Outcome:
    table = json.loads(line)
    if "reason" in table:
        return Outcome(None, table["reason"])
    return Outcome(Said(tuple(table["texts"]), table["origin"]))


def _write(target: Path, content: bytes) -> None:
    """Put a file in its place whole."""
    draft = target.with_name(target.name + ".draft")
    with draft.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(draft, target)


def _report(
    source: Path, document: Document, outcomes: Sequence[Outcome], terms: Mapping[str, str]
) -> None:
    """Say which units were left and why, which terms were not said, and how many of each."""
    words, said = language(), [one.said for one in outcomes if one.said is not None]
    for unit, outcome in zip(document.units, outcomes, strict=True):
        place = {"file": source, "line": unit.line, "name": f" ({unit.name})" if unit.name else ""}
        if outcome.reason is not None:
            reason = _REASONS[words][outcome.reason]
            click.echo(_LEFT[words].format(**place, reason=reason), err=True)
        elif outcome.said is not None and outcome.said.origin == "machine":
            for term in _not_said(unit.sources, outcome.said.texts, terms):
                click.echo(_NOT_SAID[words].format(**place, term=term), err=True)
    n_memory = sum(one.origin == "memory" for one in said)
    total = len(document.units)
    counted = {"done": len(said), "total": total, "left": total - len(said), "memory": n_memory}
    click.echo(_COUNTED[words].format(**counted), err=True)


def _not_said(
    sources: Sequence[str], texts: Sequence[str], terms: Mapping[str, str]
) -> Iterator[str]:
    for source, text in zip(sources, texts, strict=True):
        for word, term in terms.items():
            if stands_in(word, source) and term.lower() not in text.lower():
                yield term
