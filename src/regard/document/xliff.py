"""XLIFF 1.2 and 2.x: a target for every unit that has none, marked for review.

A target that is there stays, unless its state says that it still needs translation. Of a source in
segments every segment is translated alone, and the target has the same segments.
"""

from dataclasses import dataclass, replace
from functools import partial

from regard.document.links import Span
from regard.document.parts import Rules
from regard.document.units import Edit, Lines, Origin, Unit, Wanted
from regard.document.xml import (
    Node,
    blanks_before,
    is_blank,
    opened,
    uncovered,
    walk,
    with_attributes,
)

RULES = Rules(kind="xml", codes=frozenset(("bpt", "ept", "ph", "it")))
# What 1.2 says of a target, by where it comes from.
STATES: dict[Origin, dict[str, str]] = {
    "machine": {"state": "needs-review-translation", "state-qualifier": "leveraged-mt"},
    "memory": {"state": "translated", "state-qualifier": "exact-match"},
}
# What 2.x says of a segment: translated is before reviewed and final.
SEGMENT_STATES: dict[Origin, dict[str, str]] = {
    "machine": {"state": "translated", "subState": "regard:machine"},
    "memory": {"state": "translated"},
}
UNTRANSLATED = ("new", "needs-translation", "initial")


def languages(text: str) -> tuple[str, str]:
    """The languages a file says it goes from and to."""
    for _, around in walk(text):
        node = around[-1]
        if node.name == "xliff" and node.attribute("srcLang"):
            return node.attribute("srcLang"), node.attribute("trgLang")
        if node.name == "file":
            return node.attribute("source-language"), node.attribute("target-language")
    return "", ""


@dataclass
class _Reading:
    """A trans-unit or segment as far as it was read."""

    source: Node | None = None
    segmented: Node | None = None  # <seg-source>
    target: Node | None = None


def units(text: str, wanted: Wanted) -> list[Unit]:
    """Every unit that is to be translated and is not yet."""
    line_of, found = Lines(text), list[Unit]()
    reading, root = _Reading(), None
    for has_ended, around in walk(text):
        node = around[-1]
        parent = around[-2].name if len(around) > 1 else ""
        root = root or node
        if node.name in ("trans-unit", "segment") and not has_ended:
            reading = _Reading()
        elif has_ended and parent in ("trans-unit", "segment"):
            match node.name:
                case "source":
                    reading.source = node
                case "seg-source":
                    reading.segmented = node
                case "target":
                    reading.target = node
        elif node.name in ("trans-unit", "segment") and has_ended and _is_wanted(around):
            made = _unit if node.name == "trans-unit" else _segment
            unit = made(text, reading, around, wanted, root)
            if unit is not None:
                found.append(uncovered(replace(unit, line=line_of(node.start))))
    return found


def _is_wanted(around: list[Node]) -> bool:
    """Whether nothing around a unit says that it is not to be translated."""
    said = [node.attribute("translate") for node in around if node.attribute("translate")]
    return not said or said[-1] != "no"


def _rules(around: list[Node]) -> Rules:
    said = [node.attribute("xml:space") for node in around if node.attribute("xml:space")]
    return replace(RULES, keeps_lines=bool(said) and said[-1] == "preserve")


def _is_open(text: str, target: Node | None, state: str) -> bool:
    """Whether a target is still to be written."""
    return target is None or state in UNTRANSLATED or is_blank(text[slice(*target.content)])


# --- 1.2


@dataclass(frozen=True, slots=True)
class _Hole:
    """Where a translation goes in a template, and the tags it needs if there was one for both."""

    mid: str
    start: int
    end: int
    before: str = ""
    after: str = ""


def _unit(
    text: str, reading: _Reading, around: list[Node], wanted: Wanted, root: Node
) -> Unit | None:
    source, target, node = reading.source, reading.target, around[-1]
    if source is None or is_blank(text[slice(*source.content)]):
        return None
    model = reading.segmented or source
    template = model.content
    asked = holes = _segments(text, template) if reading.segmented else [_Hole("", *template)]
    if not _is_open(text, target, target.attribute("state") if target else ""):
        assert target is not None  # some of its segments may say nothing
        template = target.content
        by_mid = {hole.mid: hole for hole in asked if hole.mid}
        holes = [hole for hole in _segments(text, template) if hole.mid in by_mid]
        holes = [hole for hole in holes if is_blank(text[hole.start : hole.end])]
        asked = [by_mid[hole.mid] for hole in holes]
    sources = tuple(text[hole.start : hole.end] for hole in asked)
    if not any(map(str.strip, sources)):
        return None
    file = next((one for one in around if one.name == "file"), root)
    language = "" if file.attribute("target-language") else wanted.tgt_lang
    lead, start, end, tag = _target_place(text, model, target)
    return Unit(
        0,
        node.attribute("resname") or node.attribute("id"),
        sources,
        (_rules(around),) * len(sources),
        start,
        end,
        partial(_written, text, lead, tag, template, holes, language),
        obstacle="subflow" if any("<sub" in one for one in sources) else None,
    )


def _segments(text: str, content: Span) -> list[_Hole]:
    """The segments within a content."""
    holes = []
    start, end = content
    for has_ended, around in walk(f"<r>{text[start:end]}</r>"):
        node = around[-1]
        name, mid, move = node.opening.name, node.attribute("mid"), start - len("<r>")
        if not has_ended or name.rpartition(":")[2] != "mrk" or node.attribute("mtype") != "seg":
            continue
        if node.is_empty_tag:
            tags = opened(node.opening.raw), f"</{name}>"
            holes.append(_Hole(mid, node.start + move, node.end + move, *tags))
        else:
            holes.append(_Hole(mid, node.content[0] + move, node.content[1] + move))
    return holes


def _target_place(text: str, model: Node, target: Node | None) -> tuple[str, int, int, str]:
    """What stands before a target, where it goes, and the tag that opens it."""
    if target is not None:
        return "", target.start, target.end, opened(target.opening.raw)
    prefix = model.opening.name.rpartition(":")[0]
    name = f"{prefix}:target" if prefix else "target"
    return blanks_before(text, model.start), model.end, model.end, f"<{name}>"


def _written(
    text: str,
    lead: str,
    tag: str,
    template: Span,
    holes: list[_Hole],
    language: str,
    texts: tuple[str, ...],
    origin: Origin,
) -> str:
    """A target: the template with translations in its holes."""
    said, at = "", template[0]
    for hole, one in zip(holes, texts, strict=True):
        said += text[at : hole.start] + hole.before + one + hole.after
        at = hole.end
    said += text[at : template[1]]
    name = tag[1:].split()[0].rstrip(">")
    facts = ({"xml:lang": language} if language else {}) | STATES[origin]
    return f"{lead}{with_attributes(tag, facts)}{said}</{name}>"


# --- 2.x


def _segment(
    text: str, reading: _Reading, around: list[Node], wanted: Wanted, root: Node
) -> Unit | None:
    source, target, node = reading.source, reading.target, around[-1]
    if source is None or is_blank(text[slice(*source.content)]):
        return None
    if not _is_open(text, target, node.attribute("state")):
        return None
    lead, start, end, tag = _target_place(text, source, target)
    name = tag[1:].split()[0].rstrip(">")

    def written(texts: tuple[str, ...], _: Origin) -> str:
        return f"{lead}{tag}{texts[0]}</{name}>"

    def besides(origin: Origin) -> tuple[Edit, ...]:
        opening = node.opening
        tag_of_segment = with_attributes(opening.raw, SEGMENT_STATES[origin])
        edits = [Edit(opening.start, opening.end, tag_of_segment)]
        if not root.attribute("trgLang"):  # 2.x allows no targets without it
            tag_of_root = with_attributes(root.opening.raw, {"trgLang": wanted.tgt_lang})
            edits.append(Edit(root.opening.start, root.opening.end, tag_of_root))
        return tuple(edits)

    names = (one.attribute("name") or one.attribute("id") for one in reversed(around))
    return Unit(
        0,
        next(filter(None, names), ""),
        (text[slice(*source.content)],),
        (_rules(around),),
        start,
        end,
        written,
        besides,
    )
