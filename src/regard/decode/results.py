"""What a translator gives back: small frozen objects that show themselves in a notebook."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.view.html import html_frame

Link = tuple[int, int]
Share = tuple[int, int, float]

LEAST_SHARE = 0.05  # of a piece's attention that is worth telling


@dataclass(frozen=True, slots=True)
class Alignment:
    """Which piece of the source each piece of the target looked at most, counted from 0.

    `shares` has every piece that it looked at, with its share of the attention.
    """

    src_pieces: tuple[str, ...]
    tgt_pieces: tuple[str, ...]
    links: tuple[Link, ...]
    shares: tuple[Share, ...] = field(default=(), compare=False, repr=False)

    def __str__(self) -> str:
        """Pharaoh's form: source-target pairs."""
        return " ".join(f"{src}-{tgt}" for src, tgt in self.links)


@dataclass(frozen=True, slots=True)
class Alternative:
    """One translation among several, and its score; a text of several parts has their mean."""

    text: str
    score: float
    is_finished: bool
    alignment: Alignment | None = None


@dataclass(frozen=True, slots=True)
class Translation:
    """The translation of a text: the best alternative, and the others asked for behind it."""

    source: str
    src_lang: str
    tgt_lang: str
    alternatives: tuple[Alternative, ...]

    @property
    def text(self) -> str:
        """The best translation."""
        return self.alternatives[0].text

    @property
    def score(self) -> float:
        """Its score: Σ log p / length^penalty, 0 where there was nothing to translate."""
        return self.alternatives[0].score

    @property
    def is_finished(self) -> bool:
        """Whether it came to an end before the most words that it may have."""
        return self.alternatives[0].is_finished

    @property
    def alignment(self) -> Alignment | None:
        """Its alignment, where asked for."""
        return self.alternatives[0].alignment

    def __str__(self) -> str:
        return self.text

    def as_table(self) -> dict[str, Any]:
        """All of it, for JSON."""
        return {
            "source": self.source,
            "text": self.text,
            "from": self.src_lang,
            "to": self.tgt_lang,
            "score": self.score,
            "finished": self.is_finished,
            "alternatives": [_alternative_table(one) for one in self.alternatives],
        }

    def _repr_html_(self) -> str:
        rows = [[one.text, f"{one.score:.3f}"] for one in self.alternatives]
        return _html_table([[self.source, ""], *rows])


@dataclass(frozen=True, slots=True)
class Score:
    """How probable a model holds a given translation, piece by piece, its end included."""

    source: str
    target: str
    pieces: tuple[str, ...]
    log_probs: tuple[float, ...]

    @property
    def log_prob(self) -> float:
        """Of the whole translation."""
        return sum(self.log_probs)

    @property
    def perplexity(self) -> float:
        """exp of the mean negative log-probability of a piece."""
        return float(np.exp(-self.log_prob / len(self.log_probs)))

    def __str__(self) -> str:
        return f"{self.log_prob:.4f}"

    def _repr_html_(self) -> str:
        numbers = [f"{value:.3f}" for value in self.log_probs]
        return _html_table([list(self.pieces), numbers])


@dataclass(frozen=True, slots=True, eq=False)
class Attention:
    """Every weight of one translation, by layer, head, query and key.

    `encoder` and `decoder` are None for a network that has no self-attention.
    """

    src_pieces: tuple[str, ...]
    tgt_pieces: tuple[str, ...]
    text: str
    cross: NDArray[np.float32]
    encoder: NDArray[np.float32] | None
    decoder: NDArray[np.float32] | None

    def __str__(self) -> str:
        layers, heads, n_tgt, n_src = self.cross.shape
        return f"{self.text} ({layers} layers, {heads} heads, {n_tgt} pieces from {n_src})"

    def _repr_html_(self) -> str:
        return html_frame(self)


def links_of(attention: Sequence[Sequence[float]], n_src: int, n_tgt: int) -> tuple[Link, ...]:
    """For each target piece the source piece it attends to most; the ends stand aside."""
    return tuple(
        (max(range(n_src), key=row.__getitem__), place)
        for place, row in enumerate(attention[:n_tgt])
        if n_src
    )


def shares_of(attention: Sequence[Sequence[float]], n_src: int, n_tgt: int) -> tuple[Share, ...]:
    """All links with their shares, but for the faintest; the ends stand aside."""
    return tuple(
        (src, tgt, float(row[src]))
        for tgt, row in enumerate(attention[:n_tgt])
        for src in range(n_src)
        if row[src] >= LEAST_SHARE
    )


def _alternative_table(one: Alternative) -> dict[str, Any]:
    table = {name: value for name, value in asdict(one).items() if value is not None}
    if one.alignment is not None:
        del table["alignment"]["shares"]  # too many to be read
    return {"finished" if name == "is_finished" else name: v for name, v in table.items()}


def _html_table(rows: Sequence[Sequence[str]]) -> str:
    cells = ("".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows)
    return "<table>" + "".join(f"<tr>{row}</tr>" for row in cells) + "</table>"
