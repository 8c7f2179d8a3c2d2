"""What is asked of a search, and what it finds: words that both engines speak. No torch here."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

Ids = tuple[int, ...]


class Place(NamedTuple):
    """Where a word stands in a source: in which of its tokens, and in which part of their letters.

    The part goes from 0 to 1, unless a token is more than the word.
    """

    tokens: tuple[int, ...]
    start: float = 0.0
    end: float = 1.0


@dataclass(frozen=True, slots=True)
class Sentence:
    """One source, its language token and its end included, and what its translation must say."""

    ids: Ids
    prefix: Ids = ()  # the translation begins so
    terms: tuple[tuple[Ids, ...], ...] = ()  # one spelling of each of these stands somewhere in it
    places: tuple[tuple[Place, ...], ...] = ()  # of the words that they are for, each time


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """How translations are looked for.

    A hypothesis is scored by  Σ log p / length^length_penalty + coverage_penalty × coverage,  the
    end counted in both sum and length; coverage is Σ over source tokens of log min(attention, 1).
    """

    beam: int = 5  # hypotheses side by side; 1 is greedy
    nbest: int = 1  # how many of them are wanted
    length_penalty: float = 1.0
    coverage_penalty: float = 0.0
    groups: int = 1  # diverse beam: groups of beams that avoid one another's words ...
    diversity: float = 0.5  # ... by this much of a log-probability
    temperature: float = 0.0  # above 0: words are drawn, not searched for
    top_k: int = 0  # drawn among so many likeliest words; 0: all
    top_p: float = 1.0  # drawn among the likeliest words that have this probability together
    seed: int = 1  # of the drawing
    no_repeat: int = 0  # no so many words in a row are said twice; 0: they may be
    forbidden: tuple[Ids, ...] = ()  # sequences that are never said
    min_len: int = 0  # fewest words before the end
    max_len: int = 0  # most words; 0: as many as twice the source and twenty
    renormalize: bool = False  # the allowed words share the probability of those that are not
    wants_attention: bool = False


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """A translation: its words without the end, its score, and whether it came to an end.

    `attention`, where asked for, has a row for each word and, if it came, the end: the weight of
    each source token, the mean over the heads of the decoder's last layer.
    """

    ids: Ids
    score: float
    is_finished: bool
    attention: tuple[tuple[float, ...], ...] | None = None


@dataclass(frozen=True, slots=True)
class Scored:
    """Log-probability of each word of a given translation, its end included."""

    log_probs: tuple[float, ...]


Found = list[Hypothesis]  # for one sentence, the best first
Hear = Callable[[int, Found], None]


def tell(found: list[Found], hear: Hear | None) -> list[Found]:
    """What was found, of which somebody may want to hear, when all of it is there."""
    if hear is not None:
        for number, own in enumerate(found):
            hear(number, own)
    return found


class Engine(Protocol):
    """Something that can run a model."""

    def search(
        self, sentences: Sequence[Sentence], search: Search, hear: Hear | None = None
    ) -> list[Found]:
        """For each sentence its `nbest` hypotheses, the best first.

        Somebody may `hear` the number of each and what was found while others are searched for, but
        must not ask the same engine meanwhile.
        """

    def score(self, pairs: Sequence[tuple[Ids, Ids]]) -> list[Scored]:
        """How probable each target is after its source; neither of them has its end left out."""
