"""HTML: the text of every block, with its inline tags, and the attributes that are read.

Scripts, styles, code, and what says translate="no" stay as they are. The lang attribute of the page
follows its text.
"""

import html
from collections.abc import Iterator
from dataclasses import dataclass, field

from regard.data.xml import language_rank
from regard.document.elements import CODE, INLINE, UNSEEN, VOID
from regard.document.parts import HTML, TEXT, Rules
from regard.document.scan import Token, attribute_span, element_ends, scan
from regard.document.units import Edit, Lines, Origin, Unit, Wanted

READ = ("alt", "title", "placeholder", "aria-label", "aria-description")
META = ("description", "keywords", "og:title", "og:description", "twitter:title")
BUTTONS = ("submit", "button", "reset")

_IN_LINE = INLINE | UNSEEN | (VOID - {"br", "hr", "meta", "link", "base"})


@dataclass
class _Run:
    """Text and inline tags between two blocks, and the tags in it with attributes to read."""

    start: int
    end: int
    has_words: bool = False
    tags: list[Token] = field(default_factory=list)


def languages(text: str) -> tuple[str, str]:
    """The language a page says it is in."""
    for token in scan(text, is_html=True):
        if token.name == "html":
            said = token.attributes
            return said.get("lang") or said.get("xml:lang", ""), ""
        if token.name == "body":
            break
    return "", ""


def units(text: str, wanted: Wanted) -> list[Unit]:
    """Every run of text between blocks, and every attribute of a block that is read."""
    line_of = Lines(text)
    page = _page_language(text, wanted)
    return [_unit(text, run, line_of(run.start), page) for run in _runs(text)]


def _runs(text: str) -> Iterator[_Run]:
    tokens = list(scan(text, is_html=True))
    ends = element_ends(tokens)
    run, skip = _Run(0, 0), -1
    for place, token in enumerate(tokens):
        if place <= skip:
            run.end = token.end
            continue
        is_tag = token.role in ("open", "close", "alone")
        is_kept = token.role == "open" and _is_kept(token)
        if is_tag and token.name not in _IN_LINE:
            if run.has_words or run.tags:
                yield run
            if not is_kept and token.role != "close" and _read(token):
                yield _Run(token.start, token.end, False, [token])
            run = _Run(token.end, token.end)
            if is_kept:
                skip = ends.get(place, len(tokens) - 1)
                run.start = tokens[skip].end
            continue
        run.end = token.end
        if is_kept:
            skip = ends.get(place, place)
        elif token.role == "text":
            run.has_words |= any(map(str.isalpha, html.unescape(token.raw)))
        elif token.role in ("open", "alone") and _read(token):
            run.tags.append(token)
    if run.has_words or run.tags:
        yield run


def _is_kept(token: Token) -> bool:
    """Whether an element stays as it is, with all that is in it."""
    if token.name in CODE | UNSEEN | {"noscript"}:
        return True
    if "=" not in token.raw:
        return False
    attributes = token.attributes
    is_named = "notranslate" in attributes.get("class", "").split()
    return is_named or attributes.get("translate") == "no"


def _read(token: Token) -> list[tuple[int, int]]:
    """Where the values of attributes stand that a reader comes to read, within the tag."""
    if "=" not in token.raw or token.name == "html":
        return []
    attributes = {name.lower(): value for name, value in token.attributes.items()}
    if attributes.get("translate") == "no":
        return []
    names = [name for name in READ if name in attributes]
    if token.name == "meta":
        named = attributes.get("name", attributes.get("property", "")).lower()
        names = ["content"] if named in META else []
    if token.name == "input" and attributes.get("type", "").lower() in BUTTONS:
        names.append("value")
    spans = [attribute_span(token, name) for name in names if _has_letters(attributes.get(name))]
    return sorted(span for span in spans if span is not None)


def _has_letters(text: str | None) -> bool:
    return text is not None and any(map(str.isalpha, text))


def _unit(text: str, run: _Run, line: int, page: tuple[Edit, ...]) -> Unit:
    body = text[run.start : run.end]
    values = [(tag, span) for tag in run.tags for span in _read(tag)]
    texts = [html.unescape(tag.raw[slice(*span)]) for tag, span in values]
    rules: list[Rules] = [TEXT] * len(texts)
    if run.has_words:
        texts, rules = [body, *texts], [HTML, *rules]

    def written(said: tuple[str, ...], _: Origin) -> str:
        whole, rest = (said[0], said[1:]) if run.has_words else (body, said)
        for tag in run.tags:
            own = [span for other, span in values if other is tag]
            new, rest = _with_values(tag.raw, own, rest), rest[len(own) :]
            whole = whole.replace(tag.raw, new, 1)
        return whole

    return Unit(line, "", tuple(texts), tuple(rules), run.start, run.end, written, lambda _: page)


def _with_values(tag: str, spans: list[tuple[int, int]], values: tuple[str, ...]) -> str:
    """A tag with other values in the places of its own."""
    for (start, end), value in reversed(list(zip(spans, values, strict=False))):
        quote = tag[start - 1]
        value = html.escape(" ".join(value.splitlines()), quote=False)
        value = value.replace("'", "&#39;") if quote == "'" else value.replace('"', "&quot;")
        value = value if quote in "\"'" else f'"{value}"'
        tag = tag[:start] + value + tag[end:]
    return tag


def _page_language(text: str, wanted: Wanted) -> tuple[Edit, ...]:
    """The page's own language changed to the target's, if it is the source's."""
    for token in scan(text, is_html=True):
        if token.name == "html" and token.role == "open":
            spans = (attribute_span(token, name) for name in ("lang", "xml:lang"))
            return tuple(
                Edit(token.start + span[0], token.start + span[1], wanted.tgt_lang)
                for span in spans
                if span and language_rank(token.raw[slice(*span)], wanted.src_lang) > 1
                if wanted.tgt_lang
            )
        if token.name == "body":
            break
    return ()
