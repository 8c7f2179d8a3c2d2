"""Where a run stands: the numbers that must survive a restart, beside the tensors."""

from dataclasses import asdict, dataclass, field
from typing import Any

from regard.data.feed import Place


@dataclass
class TrainState:
    """Where a run stands."""

    step: int = 0
    place: Place = field(default_factory=Place)
    ranks: int = 0  # among which the place is counted; 0 if it was not written down
    n_tokens: int = 0
    skipped: int = 0
    skipped_in_a_row: int = 0
    mean_loss: float | None = None  # running, of the last hundred updates or so
    lowest_mean: float | None = None
    score: float | None = None  # of the last validation, by the run's metric
    score_step: int = 0
    best: float | None = None
    best_step: int = 0
    stale: int = 0  # validations since the best one
    split_above: int | None = None  # batches of more target tokens did not fit in memory

    def table(self) -> dict[str, Any]:
        """As JSON holds it."""
        return asdict(self)

    @classmethod
    def from_table(cls, table: dict[str, Any]) -> "TrainState":
        """From what `table` gave."""
        return cls(**{**table, "place": Place(**table["place"])})
