"""Marked texts through a translator: what is text is translated, and all else comes back.

marked text -> plain sentences (tags.py) -> the model -> one text, its tags placed (placing.py)

The model reads no markup. Tags are placed by the alignment of what it said. What is kept to the
letter is a name to it, which it copies; where it does not, it is asked again with other names, and
at last for the fragments around what is kept. A text of which something would be lost, or whose
translation comes to no end, is not translated: it comes back with the reason.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from regard.decode.results import Translation
from regard.document.fragments import Chunk, fragments, joined, sentences
from regard.document.links import links_between
from regard.document.parts import Rules, check_xml, kept_in, rules_for
from regard.document.placeholders import is_message_format
from regard.document.rendering import with_tags
from regard.document.stand_ins import PEOPLE, THINGS, StandIns
from regard.document.tags import parsed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from regard.decode.translator import Translator

Translate = Callable[[list[str]], list[Translation]]
Reason = Literal["endless", "empty", "unaligned", "lost", "message"]

_WORD = re.compile(r"[A-Za-z0-9]+")


@dataclass(frozen=True, slots=True)
class Marked:
    """A marked text and its translation, or the reason why it has none."""

    source: str
    text: str | None
    reason: Reason | None = None
    src_lang: str = ""
    tgt_lang: str = ""


def translate_marked(
    texts: Sequence[str],
    translate: Translate,
    rules: Rules = Rules(),  # noqa: B008 (frozen)
) -> list[Marked]:
    """Each text with its markup, translated; or the reason why it is not.

    Args:
        translate: gives translations with their alignments, as `aligned_by` makes it.
        rules: how the markup is read; XML that is not well-formed is refused.
    """
    return translate_all([(text, rules) for text in texts], translate)


def translate_all(texts: Sequence[tuple[str, Rules]], translate: Translate) -> list[Marked]:
    """The same for texts that are not all marked in one way; the model is asked for all at once."""
    for text, rules in texts:
        if rules.kind == "xml":
            check_xml(text)
    asked = [_Asked(text, rules, PEOPLE) for text, rules in texts]
    _ask(asked, translate)
    again = {
        number: _Asked(*texts[number], THINGS) for number, one in enumerate(asked) if one.has_lost
    }
    _ask(again.values(), translate)
    for number, one in again.items():
        if not one.has_lost and one.reason is None:
            asked[number] = one
    for one in asked:
        one.take_apart()
    _ask(asked, translate)
    return [one.answer() for one in asked]


def aligned_by(
    translator: "Translator",
    *,
    src_lang: str = "",
    tgt_lang: str = "",
    beam: int | None = None,
    terms: "Mapping[str, str] | None" = None,
) -> Translate:
    """What a translator says, with alignments: what `translate_marked` asks."""
    search = replace(translator.search, wants_attention=True)

    def translate(texts: list[str]) -> list[Translation]:
        return translator.translate(
            texts, src_lang=src_lang, tgt_lang=tgt_lang, beam=beam, terms=terms, search=search
        )

    return translate


def _ask(asked: Iterable["_Asked"], translate: Translate) -> None:
    """Ask for all that is wanted, each text once."""
    asked = list(asked)
    wanted = list(dict.fromkeys(text for one in asked for text in one.wanted()))
    if not wanted:
        return
    answers = dict(zip(wanted, translate(wanted), strict=True))
    for one in asked:
        one.hear(answers)


class _Asked:
    """One text on its way: its sentences, or fragments of them, and what was said for each."""

    def __init__(self, source: str, rules: Rules, names: Sequence[str]) -> None:
        self.source, self.rules = source, rules_for(source, rules)
        self.parsed = parsed(source, self.rules, StandIns(source, names))
        self.names = {atom.stand_in for atom in self.parsed.atoms}
        self.chunks = sentences(self.parsed)
        self.languages = ("", "")
        self.reason: Reason | None = "message" if is_message_format(source) else None
        self.has_lost = False  # a sentence with something in it that is to be kept

    def wanted(self) -> Iterator[str]:
        """What the model is still to be asked."""
        if self.reason is None:
            yield from (self._source(chunk) for chunk in self.chunks if chunk.text is None)

    def hear(self, answers: dict[str, Translation]) -> None:
        """Take what was said, where it will do."""
        for number, chunk in enumerate(self.chunks):
            answer = answers.get(self._source(chunk)) if chunk.text is None else None
            if answer is None or self.reason is not None:
                continue
            self.languages = (answer.src_lang, answer.tgt_lang)
            fault = self._fault(chunk, answer)
            if fault is None:
                self.chunks[number] = self._said(chunk, answer)
            elif self.parsed.atoms_in(chunk.start, chunk.end):
                self.has_lost = True
            else:
                self.reason = fault

    def take_apart(self) -> None:
        """Put fragments in the places of sentences that lost something."""
        if not self.has_lost:
            return
        chunks: list[Chunk] = []
        for chunk in self.chunks:
            chunks += [chunk] if chunk.text is not None else fragments(self.parsed, chunk)
        self.chunks = chunks

    def answer(self) -> Marked:
        """The text with its markup again, if all of it is there."""
        if self.reason is not None:
            return Marked(self.source, None, self.reason, *self.languages)
        text = with_tags(self.parsed, joined(self.parsed, self.chunks, self.languages[1]))
        if kept_in(text, self.rules) != kept_in(self.source, self.rules):
            return Marked(self.source, None, "lost", *self.languages)
        return Marked(self.source, text, None, *self.languages)

    def _source(self, chunk: Chunk) -> str:
        return self.parsed.text[chunk.start : chunk.end]

    def _fault(self, chunk: Chunk, answer: Translation) -> Reason | None:
        """Why an answer will not do."""
        if not answer.is_finished:
            return "endless"
        if not answer.text.strip():
            return "empty"
        if self.parsed.root.children and answer.alignment is None:
            return "unaligned"
        words = Counter(_WORD.findall(answer.text))
        wanted = {atom.stand_in for atom in self.parsed.atoms_in(chunk.start, chunk.end)}
        is_whole = all(words[name] == 1 for name in wanted)
        return None if is_whole and self.names.isdisjoint(words.keys() - wanted) else "lost"

    def _said(self, chunk: Chunk, answer: Translation) -> Chunk:
        links = (
            links_between(answer.alignment, self._source(chunk), answer.text)
            if answer.alignment is not None
            else []
        )
        return chunk.saying(answer.text, links)
