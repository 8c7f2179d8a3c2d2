"""A network as a search sees it: a step, a state that can reorder its rows, and no more."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Generic, Protocol, Self, TypeVar

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from regard.attention.layout import Padded
from regard.decode.search import Ids, Search, Sentence

MULTIPLE = 16  # of tokens in a packed row


class State(Protocol):
    """What a network remembers of each row; the rows of a sentence stand together."""

    def reorder(self, rows: Int[Tensor, "N"], sentences: Int[Tensor, "B"] | None = None) -> Self:
        """Row i becomes what row `rows[i]` was, and of the sentences those given stay, or all."""
        ...


S = TypeVar("S", bound=State)
Step = Callable[[Int[Tensor, "N"], S], tuple[Float[Tensor, "N V"], S]]


@dataclass(frozen=True, slots=True)
class Ready(Generic[S]):
    """A network that has read its sentences and is ready to write: a row for each of them."""

    step: Step[S]
    state: S
    bos: int
    eos: int
    longest: int  # as far as the network's positions go
    device: torch.device

    def limit(self, sentence: Sentence, search: Search) -> int:
        """How many words a translation may have."""
        return limit(sentence, search, self.longest)

    def tensor(self, numbers: NDArray[np.int64]) -> Int[Tensor, "_"]:
        """These numbers on the network's device."""
        return torch.from_numpy(numbers).to(self.device)


def limit(sentence: Sentence, search: Search, longest: int) -> int:
    """How many words a translation may have; it is the sentence's own, in any batch."""
    return min(search.max_len or 2 * len(sentence.ids) + 20, longest)


def is_worth_leaving(n_stay: int, n_sentences: int) -> bool:
    """Whether so many have ended that it pays to copy what is remembered of the others."""
    return n_stay <= 0.875 * n_sentences


def padded_ids(
    rows: Sequence[Ids], pad: int, device: torch.device
) -> tuple[Int[Tensor, "B T"], Padded]:
    """Rows of ids as one tensor, and their lengths."""
    ids, lens = _end_to_end(rows)
    is_id = np.arange(lens.max()) < lens[:, None]
    table = np.full(is_id.shape, pad, dtype=np.int64)
    table[is_id] = ids
    table_ids, table_lens = moved([table.ravel(), lens], device)
    return table_ids.view(is_id.shape), Padded(table_lens)


def packed_ids(
    rows: Sequence[Ids], pad: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Rows of ids end to end, the offsets at which each begins and ends, and their lengths.

    Behind them stand sentences of one `pad` each, up to a multiple for which kernels are compiled.
    """
    ids, lens = _end_to_end(rows)
    fill = np.ones(-len(ids) % MULTIPLE, dtype=np.int64)
    return np.concatenate([ids, fill * pad]), np.concatenate([[0], lens, fill]).cumsum(), lens


def moved(numbers: Sequence[NDArray[Any]], device: torch.device) -> tuple[Int[Tensor, "_"], ...]:
    """The same numbers on a device, in one copy that nobody waits for."""
    together = torch.from_numpy(np.concatenate(numbers))
    if device.type == "cuda":
        together = together.pin_memory()  # else all that is queued would be waited for
    return together.to(device, non_blocking=True).split([len(own) for own in numbers])


def _end_to_end(rows: Sequence[Ids]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The ids of all rows, and the length of each."""
    lens = np.fromiter(map(len, rows), np.int64, len(rows))
    return np.fromiter(chain.from_iterable(rows), np.int64, lens.sum()), lens
