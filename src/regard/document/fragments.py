"""A text in sentences, or in the fragments around what is kept whole, and one text again.

Between two parts that were translated alone stands what the target language writes there: a space,
or nothing in Chinese. A line break, and what stands at a tag that breaks lines, stays as it was.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from regard.document.cells import Whole
from regard.document.links import Link, Span
from regard.document.tags import Parsed
from regard.text.scripts import is_mostly_han, is_unspaced
from regard.text.sentences import split_sentences

_EDGE = re.compile(r"^(\W*)(.*?)(\W*)$", re.DOTALL)
_BREAK = re.compile(r"[\n\r\t\v\f\u2028\u2029]")  # a tab parts a menu from its key
_END = re.compile(r"[.。!！?？…]+$")
_TO_LATIN = str.maketrans("，。！？：；（）、“”‘’", ",.!?:;(),\"\"''")
_TO_CHINESE = str.maketrans(",.!?:;()", "，。！？：；（）")
_OPENING = "([{（【《“‘"


@dataclass(frozen=True, slots=True)
class Chunk:
    """A stretch of the source that is translated alone, and what is said for it, once it is.

    Links are from places in the whole source to places in `text`.
    """

    start: int
    end: int
    text: str | None = None
    links: tuple[Link, ...] = ()
    is_fragment: bool = False

    def saying(self, text: str, links: Sequence[Link]) -> "Chunk":
        """The same stretch with its translation; links are from places in the stretch."""
        return replace(self, text=text, links=tuple(link.moved(self.start, 0) for link in links))


def sentences(parsed: Parsed) -> list[Chunk]:
    """The sentences of a text; those without words say what they say."""
    chunks = []
    for start, end in _lines(parsed):
        at = start
        for sentence in split_sentences(parsed.text[start:end]):
            first, last = _stripped(parsed.text, at, at + len(sentence))
            at += len(sentence)
            if first < last:
                chunks.append(_chunk(parsed, first, last))
    return chunks


def fragments(parsed: Parsed, chunk: Chunk) -> list[Chunk]:
    """A sentence in the fragments between what is kept whole; marks at their edges stand alone."""
    found, at = [], chunk.start
    for atom in parsed.atoms_in(chunk.start, chunk.end):
        found += list(_fragment(parsed, at, atom.start))
        found.append(_copied(parsed, atom.start, atom.end))
        at = atom.end
    return [*found, *_fragment(parsed, at, chunk.end)]


def joined(parsed: Parsed, chunks: Sequence[Chunk], tgt_lang: str) -> Whole:
    """What was said for each chunk, as one text."""
    said = "".join(chunk.text or "" for chunk in chunks)
    unspaced = is_unspaced(tgt_lang) if tgt_lang else is_mostly_han(said)
    text, links = "", list[Link]()
    joints: dict[int, int] = {}
    before: Chunk | None = None
    for chunk in chunks:
        own = _marks(parsed, chunk, unspaced, len(chunks))
        if before is not None:
            text += _gap(parsed, before, chunk, text, own, unspaced)
        joints[chunk.start] = len(text)
        links += [link.moved(0, len(text)) for link in chunk.links]
        text += own
        joints[chunk.end] = len(text)
        before = chunk
    return Whole(text, tuple(links), _between(joints, chunks))


def _lines(parsed: Parsed) -> Iterator[Span]:
    """The lines of a text, cut at its breaks too."""
    text = parsed.text
    cuts = {0, len(text), *parsed.breaks}
    cuts |= {found.start() for found in _BREAK.finditer(text)}
    edges = sorted(cut for cut in cuts if cut <= len(text))
    return pairwise(edges)


def _stripped(text: str, start: int, end: int) -> Span:
    inner = text[start:end]
    return start + len(inner) - len(inner.lstrip()), start + len(inner.rstrip())


def _chunk(parsed: Parsed, start: int, end: int) -> Chunk:
    """A stretch that a model is to be asked for, or that says itself if there is no word in it."""
    words, at = "", start
    for atom in parsed.atoms_in(start, end):
        words += parsed.text[at : atom.start]
        at = atom.end
    words += parsed.text[at:end]
    is_text = any(map(str.isalpha, words))
    return Chunk(start, end) if is_text else _copied(parsed, start, end)


def _copied(parsed: Parsed, start: int, end: int) -> Chunk:
    links = tuple(Link((start + n, start + n + 1), (n, n + 1)) for n in range(end - start))
    return Chunk(start, end, parsed.text[start:end], links)


def _fragment(parsed: Parsed, start: int, end: int) -> Iterator[Chunk]:
    start, end = _stripped(parsed.text, start, end)
    found = _EDGE.match(parsed.text[start:end])
    assert found is not None
    for group in (1, 2, 3):
        first, last = (start + edge for edge in found.span(group))
        first, last = _stripped(parsed.text, first, last)
        if first < last:
            yield replace(_chunk(parsed, first, last), is_fragment=True)


def _marks(parsed: Parsed, chunk: Chunk, unspaced: bool, n_chunks: int) -> str:
    """What is said for a chunk; marks that stand alone are those of the target's script."""
    said, source = chunk.text or "", parsed.text[chunk.start : chunk.end]
    if not chunk.is_fragment:
        return said
    if said != source and not _END.search(source):
        return _END.sub("", said)  # a fragment ends no sentence, whatever the model thinks
    if not any(map(str.isalnum, said)):
        table = _TO_CHINESE if unspaced and not said.startswith("..") else _TO_LATIN
        return said.translate(table)
    return said


def _gap(parsed: Parsed, before: Chunk, chunk: Chunk, text: str, own: str, unspaced: bool) -> str:
    """What stands between two chunks in the target."""
    gap = parsed.text[before.end : chunk.start]
    at = bisect_left(parsed.breaks, before.end)
    is_broken = at < len(parsed.breaks) and parsed.breaks[at] <= chunk.start
    if is_broken or _BREAK.search(gap):
        return gap
    last, first = text[-1:], own[:1]
    if unspaced:
        is_latin = last.isascii() and first.isascii() and last.isalnum() and first.isalnum()
        return " " if is_latin else ""
    if gap:
        return " "
    is_inside = before.is_fragment or chunk.is_fragment
    if is_inside and ((not first.isalnum() and first not in _OPENING) or last in _OPENING):
        return ""
    return " "


def _between(joints: dict[int, int], chunks: Sequence[Chunk]) -> dict[int, int]:
    """The joints, with those of every place in the blanks between two chunks."""
    for before, after in pairwise(chunks):
        for place in range(before.end + 1, after.start):
            joints[place] = joints[after.start]
    return joints
