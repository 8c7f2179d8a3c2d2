"""Glossaries that clients keep on the server: of each key its own, in memory while it runs."""

import csv
import io
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from regard.errors import DataError, Word
from regard.serve.keys import Owner
from regard.serve.languages import TRADITIONAL, canonical
from regard.serve.limits import Limits
from regard.serve.refusals import Refused, not_found, too_many

LONGEST = 1024  # bytes of one side of an entry
TOGETHER = 5  # glossaries in one request


@dataclass(frozen=True, slots=True)
class Glossary:
    """Words of one language and what they are called in another."""

    id: str
    name: str
    source: str
    target: str
    entries: dict[str, str]
    created: str

    def as_tsv(self) -> str:
        """A line for each entry, a tab in it."""
        return "\n".join(f"{word}\t{term}" for word, term in self.entries.items())


class Glossaries:
    """All glossaries, by the name of their owner and their id."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.by_owner: dict[str, dict[str, Glossary]] = {}

    def of(self, owner: Owner) -> dict[str, Glossary]:
        """Those of one owner."""
        return self.by_owner.setdefault(owner.name, {})

    def get(self, owner: Owner, id: str) -> Glossary:
        """One of them."""
        found = self.of(owner).get(id)
        if found is None:
            raise not_found(Word("glossary"))
        return found

    def create(
        self, owner: Owner, name: str, source: str, target: str, entries: dict[str, str]
    ) -> Glossary:
        """A new one."""
        own = self.of(owner)
        if len(own) >= self.limits.glossaries:
            raise too_many(Word("the number of glossaries"), len(own) + 1, self.limits.glossaries)
        now = datetime.now(UTC).isoformat(timespec="microseconds")
        made = Glossary(str(uuid.uuid4()), name, source, target, entries, now)
        own[made.id] = made
        return made

    def delete(self, owner: Owner, id: str) -> None:
        """No longer one of them."""
        self.get(owner, id)
        del self.of(owner)[id]

    def terms(
        self, owner: Owner, ids: Sequence[str], source: str, target: str, texts: Iterable[str]
    ) -> dict[str, str]:
        """What some glossaries say of words that stand in these texts; the first to say it counts.

        A word within a longer one that is in the glossary too is that one's part, and not asked.
        """
        if len(ids) > TOGETHER:
            raise too_many(Word("the number of glossaries"), len(ids), TOGETHER)
        text = "\n".join(texts)
        found: dict[str, str] = {}
        for id in ids:
            glossary = self.get(owner, id)
            if (glossary.source, glossary.target) != (_base(source), _base(target)):
                reason = DataError(
                    "the glossary goes from {source} to {target}, not as is asked for",
                    source=glossary.source,
                    target=glossary.target,
                )
                raise Refused(400, "glossary", reason, field="glossary_id")
            for word, term in glossary.entries.items():
                if word in text:
                    found.setdefault(word, term)
        return found


def entries_of(text: str, kind: str) -> dict[str, str]:
    """The entries of a TSV or CSV text."""
    if kind == "tsv":
        rows = [line.split("\t") for line in text.splitlines() if line.strip()]
    else:
        rows = [row for row in csv.reader(io.StringIO(text)) if row]
    entries: dict[str, str] = {}
    for number, row in enumerate(rows, start=1):
        sides = [side.strip() for side in row[:2]]
        is_long = any(len(side.encode("utf-8", "surrogatepass")) > LONGEST for side in sides)
        if len(sides) < 2 or not all(sides) or is_long or sides[0] in entries:
            reason = DataError(
                "entry {number} of the glossary is none: two texts of at most {most} bytes, and "
                "no first one twice",
                number=number,
                most=LONGEST,
            )
            raise Refused(400, "glossary", reason, field="entries")
        entries[sides[0]] = sides[1]
    if not entries:
        reason = DataError("the glossary has no entries")
        raise Refused(400, "glossary", reason, field="entries")
    return entries


def _base(code: str) -> str:
    found = canonical(code)
    return "zh" if found == TRADITIONAL else found
