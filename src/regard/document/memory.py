"""A translation memory: texts that were translated before, word for word, are not translated again.

Text is compared without its markup, a run of blanks counting as one. A match is used where it can
be used whole: with the same placeholders, and tags around all of the text or none.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

from regard.data.streams import BadText
from regard.data.xml import read_xml
from regard.document.parts import Part, Rules, parts_of, rules_for
from regard.document.placeholders import count_placeholders


class Memory:
    """Sources and their translations."""

    def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
        self.known = {_key(source): target.strip() for source, target in pairs if target.strip()}

    def __len__(self) -> int:
        return len(self.known)

    def find(self, marked: str, rules: Rules) -> str | None:
        """The translation of a marked text, with its markup; None if there is none to be used."""
        rules = rules_for(marked, rules)
        parts = parts_of(marked, rules)
        inner = [n for n, part in enumerate(parts) if part.role in ("text", "atom") and _said(part)]
        if not inner:
            return None
        first, last = inner[0], inner[-1] + 1
        if any(part.role not in ("text", "atom") for part in parts[first:last]):
            return None
        text = "".join(_said(part) for part in parts[first:last])
        found = self.known.get(_key(text))
        if found is None or count_placeholders(found) != count_placeholders(text):
            return None
        said = found if rules.kind == "text" else escape(found)
        lead = text[: len(text) - len(text.lstrip())]
        tail = text[len(text.rstrip()) :]
        return _raw(parts[:first]) + lead + said + tail + _raw(parts[last:])


def read_memory(paths: Sequence[Path], src_lang: str, tgt_lang: str) -> Memory:
    """The pairs of TMX files; of two translations of one text the later is remembered."""
    return Memory(
        (source, target)
        for path in paths
        for source, target in read_xml(path, src_lang, tgt_lang)
        if not isinstance(source, BadText) and not isinstance(target, BadText)
    )


def _said(part: Part) -> str:
    """What a part says; a placeholder says itself."""
    return part.text if part.role == "text" else part.raw


def _raw(parts: Sequence[Part]) -> str:
    return "".join(part.raw for part in parts)


def _key(text: str) -> str:
    return " ".join(text.split())
