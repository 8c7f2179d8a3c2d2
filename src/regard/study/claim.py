"""A claim, the number that tests it, and the control without which the number would say nothing.

A verdict is computed, never written: the number is within its bound or not, and the control must
come out the other way. If it does not, the measurement cannot tell true from false, and the run
fails.
"""

import math
from dataclasses import dataclass, replace
from typing import Literal

from regard.errors import ModelError, Word
from regard.view.panels import Figure, Words

Verdict = Literal["holds", "holds with a limit", "does not hold"]

CHINESE: dict[Verdict, str] = {
    "holds": "成立",
    "holds with a limit": "有条件地成立",
    "does not hold": "不成立",
}
BEYOND = "–"  # the note of a claim that no note makes


@dataclass(frozen=True, slots=True)
class Bound:
    """What a number is held to."""

    relation: Literal["at least", "at most"]
    value: float

    def admits(self, number: float) -> bool:
        """Whether the number is within the bound."""
        return number >= self.value if self.relation == "at least" else number <= self.value


def at_least(value: float) -> Bound:
    """The number must be no smaller."""
    return Bound("at least", value)


def at_most(value: float) -> Bound:
    """The number must be no larger."""
    return Bound("at most", value)


@dataclass(frozen=True, slots=True)
class Limit:
    """Where a claim comes to its end: so it does, if another number is within this bound."""

    measured: Words
    bound: Bound


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What a note says, restated, and how it is put to the test.

    `note` is its number; `remark` says, kindly, where the note's own words are loose. Where the
    answer is open, a number within the bound is held against a control with nothing to find, and
    one outside it against `otherwise`, with something to find that must then have been seen.
    """

    note: str
    words: Words
    measured: Words
    bound: Bound
    control: Words
    otherwise: Words | None = None
    limit: Limit | None = None
    remark: Words | None = None

    def found(
        self,
        number: float,
        control: float,
        limit: float | None = None,
        *,
        otherwise: float | None = None,
    ) -> "Finding":
        """The claim with its numbers: what was measured, the control's, and the limit's."""
        assert (limit is None) == (self.limit is None)
        assert (otherwise is None) == (self.otherwise is None)
        if self.otherwise is None or otherwise is None or self.bound.admits(number):
            return Finding(self, float(number), float(control), limit)
        return Finding(replace(self, control=self.otherwise), float(number), otherwise, limit)


@dataclass(frozen=True, slots=True)
class Finding:
    """A claim and what came of it."""

    claim: Claim
    number: float
    control: float
    limit: float | None = None

    @property
    def verdict(self) -> Verdict:
        """From the numbers alone."""
        if not self.claim.bound.admits(self.number):
            return "does not hold"
        limit = self.claim.limit
        if limit is not None and self.limit is not None and limit.bound.admits(self.limit):
            return "holds with a limit"
        return "holds"

    def check(self, experiment: str) -> None:
        """Refuse a finding whose control came out as its number did."""
        bound = self.claim.bound
        is_known = math.isfinite(self.number) and math.isfinite(self.control)
        if not is_known or bound.admits(self.number) == bound.admits(self.control):
            raise ModelError(
                "{experiment} shows nothing, for its control came out as its number did: {number} "
                "and {control}, where {relation} {bound} was asked of: {measured}",
                experiment=experiment,
                number=shown(self.number),
                control=shown(self.control),
                relation=Word("at least" if bound.relation == "at least" else "at most"),
                bound=shown(bound.value),
                measured=self.claim.measured.english,
            )


@dataclass(frozen=True, slots=True)
class Result:
    """What an experiment gives back: its findings and the figure that shows them.

    `model` says in words what was looked into, where that was a trained model.
    """

    findings: tuple[Finding, ...]
    figure: Figure
    model: str = ""


def shown(number: float) -> str:
    """A number as people write it: three digits that count, no more."""
    if number == 0 or not math.isfinite(number):
        return f"{number:g}"
    size = abs(number)
    if not 1e-3 <= size < 1e6:
        return f"{number:.1e}".replace(".0e", "e")
    if size >= 100:
        return f"{number:,.0f}"
    return f"{number:.3g}"
