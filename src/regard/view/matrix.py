"""One matrix of attention, chosen among all of a translation and made ready to be shown.

Rows are queries, columns are keys. With words for pieces, weights are summed over the pieces of a
key and averaged over those of a query, so a row still sums to 1.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from regard.errors import ConfigError, Word
from regard.view.pieces import START, Units, as_pieces, as_words

Kind = Literal["cross", "encoder", "decoder"]
Weights = NDArray[np.float32]
KINDS: tuple[Kind, ...] = get_args(Kind)


class Attended(Protocol):
    """Every weight of one translation, by layer, head, query and key; what is not there is None."""

    @property
    def src_pieces(self) -> tuple[str, ...]:
        """The source, its end included."""

    @property
    def tgt_pieces(self) -> tuple[str, ...]:
        """What each step writes, the end included."""

    @property
    def text(self) -> str:
        """The translation."""

    @property
    def cross(self) -> Weights:
        """Each step looks at the source."""

    @property
    def encoder(self) -> Weights | None:
        """The source looks at itself."""

    @property
    def decoder(self) -> Weights | None:
        """Each step looks at the start and at what was written before it."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Which matrix to show and how; layers and heads count from 1.

    Without a layer it is the last, without a head the mean of all.
    """

    kind: Kind = "cross"
    layer: int | None = None
    head: int | None = None
    in_words: bool = False
    hides_sinks: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Matrix:
    """The weights of one head, or the mean of a layer's heads, with their labels.

    `can_see` is False where a step would look at what comes after it. `hidden` has the columns that
    were left out and which share of all attention each has.
    """

    kind: Kind
    layer: int
    n_layers: int
    head: int | None
    n_heads: int
    queries: tuple[str, ...]
    keys: tuple[str, ...]
    weights: Weights
    can_see: NDArray[np.bool_]
    hidden: tuple[tuple[str, float], ...] = ()

    def strongest(self, query: int, most: int = 3, least: float = 0.05) -> list[tuple[str, float]]:
        """The keys that a query looks at most, each with its weight."""
        row = self.weights[query]
        order = np.argsort(-row, kind="stable")[:most]
        found = [(self.keys[key], float(row[key])) for key in order]
        return [pair for rank, pair in enumerate(found) if not rank or pair[1] >= least]


def matrix_of(attended: Attended, choice: Choice = Choice()) -> Matrix:  # noqa: B008 (frozen)
    """The matrix that was chosen."""
    weights = weights_of(attended, choice.kind)
    n_layers, n_heads = weights.shape[:2]
    layer = n_layers if choice.layer is None else choice.layer
    layer = _counted(Word("layer"), layer, n_layers)
    own = weights[layer - 1]
    if choice.head is None:
        shown = own.mean(axis=0)
    else:
        shown = own[_counted(Word("head"), choice.head, n_heads) - 1]
    queries, keys = units_of(attended, choice.kind, as_words if choice.in_words else as_pieces)
    matrix = Matrix(
        choice.kind,
        layer,
        n_layers,
        choice.head,
        n_heads,
        queries.labels,
        keys.labels,
        merged(shown, queries, keys),
        visible(queries, keys, is_causal=choice.kind == "decoder"),
    )
    return _without(matrix, keys.is_sink) if choice.hides_sinks else matrix


def matrices_of(attended: Attended, choice: Choice) -> list[list[Matrix]]:
    """Every head of every layer, or of the one that was chosen: a row for each layer."""
    n_layers, n_heads = weights_of(attended, choice.kind).shape[:2]
    layers = range(1, n_layers + 1) if choice.layer is None else (choice.layer,)
    return [
        [matrix_of(attended, replace(choice, layer=n, head=m)) for m in range(1, n_heads + 1)]
        for n in layers
    ]


def weights_of(attended: Attended, kind: Kind) -> Weights:
    """All weights of a kind."""
    weights: Weights | None = getattr(attended, kind)
    if weights is None:
        known = [name for name in KINDS if getattr(attended, name) is not None]
        raise ConfigError(
            "this network has no {kind} attention; it has {known}",
            kind=kind,
            known=", ".join(known),
        )
    return weights


def units_of(
    attended: Attended, kind: Kind, cut: Callable[[Sequence[str]], Units]
) -> tuple[Units, Units]:
    """What the rows and the columns of a kind stand for."""
    src, tgt = attended.src_pieces, attended.tgt_pieces
    if kind == "encoder":
        return cut(src), cut(src)
    if kind == "cross":
        return cut(tgt), cut(src)
    # A step is named by what it writes, but has been given only what was written before.
    return cut(tgt), cut((START, *tgt[:-1]))


def merged(weights: Weights, queries: Units, keys: Units) -> Weights:
    """Weights of pieces as weights of units: summed over keys, averaged over queries."""
    summed = np.add.reduceat(weights, keys.starts, axis=-1)
    total: Weights = np.add.reduceat(summed, queries.starts, axis=-2)
    return total / np.asarray(queries.sizes, np.float32)[:, None]


def visible(queries: Units, keys: Units, *, is_causal: bool) -> NDArray[np.bool_]:
    """Where a query may look: in a decoder, at units that begin no later than it ends."""
    if not is_causal:
        return np.ones((len(queries), len(keys)), np.bool_)
    last_query = np.add(queries.starts, queries.sizes) - 1
    return np.asarray(keys.starts) <= last_query[:, None]


def _without(matrix: Matrix, is_sink: Sequence[bool]) -> Matrix:
    """The matrix without its sinks; what stays keeps its weight, and what went is told."""
    sinks = np.asarray(is_sink, np.bool_)
    if sinks.all():
        return matrix  # a comma by itself, of which nothing would be left
    shares: dict[str, float] = {}
    for key in np.flatnonzero(sinks):
        share = float(matrix.weights[:, key].mean())
        shares[matrix.keys[key]] = shares.get(matrix.keys[key], 0.0) + share
    return replace(
        matrix,
        keys=tuple(np.array(matrix.keys, object)[~sinks]),
        weights=matrix.weights[:, ~sinks],
        can_see=matrix.can_see[:, ~sinks],
        hidden=tuple(sorted(shares.items(), key=lambda sink: -sink[1])),
    )


def _counted(name: Word, number: int, most: int) -> int:
    if not 1 <= number <= most:
        raise ConfigError(
            "there is no {name} {number}; they count from 1 to {most}",
            name=name,
            number=number,
            most=most,
        )
    return number
