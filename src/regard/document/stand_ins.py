"""Words that stand for what is kept to the letter while a model translates around it.

A model copies what it has often seen copied. Of 30 sentences with one placeholder the small model
of the tests copied %s, {0}, ⟦1⟧ or ABC in none and X1 in 3, but Tom in 29, Nancy in 30 and Linux in
27. Where a number belongs, names spoil the sentence ("wait for Tom a minute"), and 15, 45 or 25
are copied.
"""

import re
from collections.abc import Iterator, Sequence

PEOPLE = ("Tom", "Nancy", "Mary", "Ken", "Jack", "Bill", "John", "Bob", "Jim", "Lucy")
THINGS = ("Linux", "Facebook", "Tatoeba", "USB", "Windows", "Twitter", "Google", "Kubernetes")
NUMBERS = ("15", "45", "25", "19", "90", "24", "80", "40", "50", "16", "35", "18", "30", "13")

_NUMBER = re.compile(
    r"%(?:\(\w+\)|\d+\$)?[-+#0]*\d*(?:\.\d+)?(?:hh|h|ll|l|j|z|t)?[diufFeEgG]"
    r"|[{%$#]{0,2}\{\s*(?:n|num|number|count|cnt|total|size|length|amount|quantity)\s*\}{1,2}"
)
_MEASURES = "个條条次天年月日号時时分秒元块本页頁张張只隻位名项項件岁歲人行字小周倍%％"


class StandIns:
    """Stand-ins for one text, in which none of them occurs; none is given twice."""

    def __init__(self, text: str, names: Sequence[str], numbers: Sequence[str] = NUMBERS) -> None:
        self.names = _unused(text, names)
        self.numbers = (number for number in numbers if number not in text)

    def take(self, raw: str, following: str) -> str:
        """A word for something kept whole, before which character it stands."""
        is_number = _NUMBER.fullmatch(raw) or (following and following in _MEASURES)
        number = next(self.numbers, None) if is_number else None
        return number or next(self.names)


def _unused(text: str, names: Sequence[str]) -> Iterator[str]:
    """Names that do not occur in a text; where there are many, they are numbered."""
    number = 1
    while True:
        for name in names:
            numbered = name if number == 1 else f"{name}{number}"
            if numbered not in text:
                yield numbered
        number += 1
