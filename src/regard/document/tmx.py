"""TMX: a variant in the target language for every unit that has none."""

from dataclasses import dataclass, field
from xml.sax.saxutils import quoteattr

from regard import __version__
from regard.data.xml import best_language
from regard.document.parts import Rules
from regard.document.units import Lines, Obstacle, Origin, Unit, Wanted, Written
from regard.document.xml import Node, blanks_before, is_blank, opened, uncovered, walk

RULES = Rules(kind="xml", codes=frozenset(("bpt", "ept", "ph", "it", "ut")))
MACHINE = '<prop type="x-machine-translated">yes</prop>'


@dataclass
class _Variant:
    """One language of a unit: its element, and the one that holds its text."""

    language: str
    node: Node
    segment: Node


@dataclass
class _Reading:
    """A unit as far as it was read."""

    variants: list[_Variant] = field(default_factory=list)
    segment: Node | None = None


def languages(text: str) -> tuple[str, str]:
    """The languages a file says it goes from and to."""
    for _, around in walk(text):
        if around[-1].name == "header":
            said = around[-1].attribute("srclang")
            return ("" if said == "*all*" else said), ""
    return "", ""


def units(text: str, wanted: Wanted) -> list[Unit]:
    """Every unit that has the source language and has nothing in the target language."""
    line_of, found = Lines(text), []
    reading = _Reading()
    for has_ended, around in walk(text):
        node = around[-1]
        if node.name == "tu" and not has_ended:
            reading = _Reading()
        elif node.name == "seg" and has_ended and around[-2].name == "tuv":
            reading.segment = node
        elif node.name == "tuv" and has_ended and reading.segment is not None:
            language = node.attribute("xml:lang") or node.attribute("lang")
            reading.variants.append(_Variant(language, node, reading.segment))
            reading.segment = None
        elif node.name == "tu" and has_ended:
            unit = _unit(text, node, reading.variants, wanted, line_of(node.start))
            found += [uncovered(unit)] if unit else []
    return found


def _unit(
    text: str, node: Node, variants: list[_Variant], wanted: Wanted, line: int
) -> Unit | None:
    have = [variant.language for variant in variants]
    src = best_language(have, wanted.src_lang)
    tgt = best_language(have, wanted.tgt_lang, without=src)
    if src is None or is_blank(text[slice(*variants[src].segment.content)]):
        return None
    content = text[slice(*variants[src].segment.content)]
    if tgt is None:
        start = end = variants[-1].node.end
        written = _added(text, variants[src], wanted)
    else:
        segment = variants[tgt].segment
        if not is_blank(text[slice(*segment.content)]):
            return None
        start, end, written = segment.start, segment.end, _in_place(text, segment)
    obstacle: Obstacle | None = "subflow" if "<sub" in content else None
    name = node.attribute("tuid")
    return Unit(line, name, (content,), (RULES,), start, end, written, obstacle=obstacle)


def _added(text: str, model: _Variant, wanted: Wanted) -> Written:
    """A variant set in as the source's is, with the same attribute for its language."""
    before = blanks_before(text, model.node.start)
    inner = text[model.segment.end : model.node.content[1]]
    within = blanks_before(text, model.segment.start)
    attribute = "xml:lang" if model.node.attribute("xml:lang") else "lang"

    def written(texts: tuple[str, ...], origin: Origin) -> str:
        facts = {attribute: wanted.tgt_lang, "creationtool": "regard"}
        facts |= {"creationtoolversion": __version__, "creationdate": wanted.date}
        said = "".join(f" {key}={quoteattr(value)}" for key, value in facts.items() if value)
        machine = within + MACHINE if origin == "machine" else ""
        return f"{before}<tuv{said}>{machine}{within}<seg>{texts[0]}</seg>{inner}</tuv>"

    return written


def _in_place(text: str, segment: Node) -> Written:
    """The text of a variant that is there and says nothing."""
    within = blanks_before(text, segment.start)

    def written(texts: tuple[str, ...], origin: Origin) -> str:
        machine = MACHINE + within if origin == "machine" else ""
        return f"{machine}{opened(segment.opening.raw)}{texts[0]}</seg>"

    return written
