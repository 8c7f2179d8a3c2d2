"""Keys and values kept from step to step, so that decoding reads each token once."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.attention.checks import may_look_at
from regard.errors import ModelError


@runtime_checkable
class Cache(Protocol):
    """What self-attention needs to go on from where it was: the keys and values so far."""

    @property
    def key(self) -> Float[Tensor, "N H K E"]:
        """The keys so far, and perhaps room for more."""

    @property
    def value(self) -> Float[Tensor, "N H K E"]:
        """The values so far, and perhaps room for more."""

    def positions(self, n_new: int) -> Int[Tensor, "*N Q"]:
        """The places that the next `n_new` tokens will take, in all rows or in each."""

    def append(self, key: Float[Tensor, "N H Q E"], value: Float[Tensor, "N H Q E"]) -> "Cache":
        """This cache and these after it."""

    def visible(self, n_queries: int) -> Bool[Tensor, "*N Q K"] | None:
        """What the last `n_queries` tokens may attend to: themselves and all before."""

    def reorder(self, rows: Int[Tensor, "N"]) -> "Cache":
        """Row i becomes what row `rows[i]` was: the survivors of a beam search."""


@dataclass(frozen=True, slots=True)
class KVCache:
    """A cache that grows with every step. Nothing in it is ever written to."""

    key: Float[Tensor, "N H K E"]
    value: Float[Tensor, "N H K E"]

    @classmethod
    def empty(cls, like: Float[Tensor, "N H _ E"]) -> "KVCache":
        """No tokens yet, in the rows, heads, width, type and place of `like`."""
        return cls(like[..., :0, :], like[..., :0, :])

    def positions(self, n_new: int) -> Int[Tensor, "Q"]:
        """The places that the next `n_new` tokens will take."""
        n = self.key.shape[-2]
        return torch.arange(n, n + n_new, device=self.key.device)

    def append(self, key: Float[Tensor, "N H Q E"], value: Float[Tensor, "N H Q E"]) -> "KVCache":
        """A longer cache."""
        return KVCache(torch.cat([self.key, key], dim=-2), torch.cat([self.value, value], dim=-2))

    def visible(self, n_queries: int) -> Bool[Tensor, "Q K"] | None:
        """What the last `n_queries` tokens may attend to: themselves and all before."""
        if n_queries == 1:
            return None
        n_keys = self.key.shape[-2]
        keys = torch.arange(n_keys, device=self.key.device)
        return keys <= keys[n_keys - n_queries :, None]

    def reorder(self, rows: Int[Tensor, "N"]) -> "KVCache":
        """Row i becomes what row `rows[i]` was."""
        return KVCache(self.key.index_select(0, rows), self.value.index_select(0, rows))


@dataclass(frozen=True, slots=True)
class FixedKVCache:
    """A cache of one size for ever, filled in place: a compiled step is compiled once.

    `length` is a tensor, because a number would be part of the compiled program. For use without
    gradients: what is written in place cannot be differentiated twice.
    """

    key: Float[Tensor, "N H K E"]
    value: Float[Tensor, "N H K E"]
    length: Int[Tensor, ""]

    @classmethod
    def empty(cls, like: Float[Tensor, "N H _ E"], max_len: int) -> "FixedKVCache":
        """Room for `max_len` tokens, in the rows, heads, width, type and place of `like`."""
        n_rows, n_heads, _, d_head = like.shape
        room = (n_rows, n_heads, max_len, d_head)
        length = torch.zeros((), dtype=torch.int64, device=like.device)
        return cls(like.new_zeros(room), like.new_zeros(room), length)

    def positions(self, n_new: int) -> Int[Tensor, "Q"]:
        """The places that the next `n_new` tokens will take."""
        return self.length + torch.arange(n_new, device=self.key.device)

    def append(
        self, key: Float[Tensor, "N H Q E"], value: Float[Tensor, "N H Q E"]
    ) -> "FixedKVCache":
        """The same memory with these written behind the last; the older cache is used up."""
        places = self.positions(key.shape[-2])
        self._check_room(places)
        self.key.index_copy_(-2, places, key)
        self.value.index_copy_(-2, places, value)
        return FixedKVCache(self.key, self.value, self.length + key.shape[-2])

    def visible(self, n_queries: int) -> Bool[Tensor, "Q K"]:
        """What the last `n_queries` tokens may attend to: themselves and all before."""
        keys = torch.arange(self.key.shape[-2], device=self.key.device)
        queries = self.length - n_queries + torch.arange(n_queries, device=self.key.device)
        return keys <= queries[:, None]

    def reorder(self, rows: Int[Tensor, "N"]) -> "FixedKVCache":
        """Row i becomes what row `rows[i]` was, in the same memory, so there are as many."""
        if len(rows) != len(self.key):
            raise ModelError(
                "a cache of fixed size keeps its {rows} rows, but {asked} were asked for; "
                "start without max_len",
                rows=len(self.key),
                asked=len(rows),
            )
        self.key.copy_(self.key.index_select(0, rows))
        self.value.copy_(self.value.index_select(0, rows))
        return self

    def _check_room(self, places: Int[Tensor, "Q"]) -> None:
        if may_look_at(places) and int(places[-1]) >= self.key.shape[-2]:
            raise ModelError(
                "the cache holds {room} tokens and token {place} was to follow; "
                "start with a larger max_len",
                room=self.key.shape[-2],
                place=int(places[-1]) + 1,
            )


@dataclass(frozen=True, slots=True)
class Lineage:
    """Which row wrote each token that a row has, where every row is at a place of its own.

    When hypotheses go on from one another no key and no value is moved: the rows that share tokens
    know who wrote them. So they are as long as each other, and begin anew together, as those of a
    sentence do. One lineage serves the caches of all layers. The next token is always a row's own.
    """

    owners: Int[Tensor, "N K"]
    lengths: Int[Tensor, "N"]  # tokens of each row; when it is full, without its last

    @classmethod
    def empty(cls, n_rows: int, max_len: int, device: torch.device) -> "Lineage":
        """Room for `max_len` tokens in each of the rows, of which there are none yet."""
        rows = torch.arange(n_rows, dtype=torch.int32, device=device)
        owners = rows[:, None].repeat(1, max_len)
        return cls(owners, torch.zeros(n_rows, dtype=torch.int64, device=device))

    def places(self) -> Int[Tensor, "N 1"]:
        """Where each row's next token goes; rows that are full write over their last."""
        return self.lengths[:, None]

    def follow(self, rows: Int[Tensor, "N"], goes_on: Bool[Tensor, "N"]) -> None:
        """The next tokens have been written, and row i goes on from what row `rows[i]` was.

        Those that do not go on have nothing any more, and nobody spends time on them.
        """
        self.owners.copy_(self.owners.index_select(0, rows))
        lengths = (self.lengths.index_select(0, rows) + 1).clamp(max=self.owners.shape[1] - 1)
        self.lengths.copy_(lengths * goes_on)
        self._own_the_next()

    def begin_anew(self, rows: Int[Tensor, "_"]) -> None:
        """Forget what these rows have."""
        self.lengths.index_fill_(0, rows, 0)
        self._own_the_next()

    def take(self, other: "Lineage", rows: Int[Tensor, "_"], beam: int) -> None:
        """What these rows of another have, which are all `beam` rows of some sentences in order."""
        firsts = torch.arange(len(rows), device=rows.device) // beam * beam
        self.owners[: len(rows)] = other.owners[rows] % beam + firsts[:, None]
        self.lengths[: len(rows)] = other.lengths[rows]

    def _own_the_next(self) -> None:
        rows = torch.arange(len(self.owners), dtype=torch.int32, device=self.owners.device)
        self.owners.scatter_(1, self.places(), rows[:, None])


@dataclass(frozen=True, slots=True)
class SlotKVCache:
    """A layer's cache of one size for rows of a `Lineage`, filled in place, one token at a time.

    For use without gradients, like `FixedKVCache`.
    """

    keys: Float[Tensor, "N H K E"]  # as they were written
    values: Float[Tensor, "N H K E"]
    lineage: Lineage

    @classmethod
    def empty(cls, like: Float[Tensor, "_ H _ E"], lineage: Lineage) -> "SlotKVCache":
        """Room for all tokens of a lineage, heads, width and type as in `like`."""
        n_rows, max_len = lineage.owners.shape
        room = (n_rows, like.shape[1], max_len, like.shape[3])
        return cls(like.new_zeros(room), like.new_zeros(room), lineage)

    @property
    def key(self) -> Float[Tensor, "N H K E"]:
        """The keys that each row has, gathered."""
        return self._gathered(self.keys)

    @property
    def value(self) -> Float[Tensor, "N H K E"]:
        """The values that each row has, gathered."""
        return self._gathered(self.values)

    def _gathered(self, written: Tensor) -> Tensor:
        places = torch.arange(written.shape[2], device=written.device)
        return written[self.lineage.owners, :, places].transpose(1, 2)

    def positions(self, n_new: int) -> Int[Tensor, "N 1"]:
        """The place that each row's next token will take."""
        assert n_new == 1, "one token at a time"
        return self.lineage.places()

    def append(
        self, key: Float[Tensor, "N H 1 E"], value: Float[Tensor, "N H 1 E"]
    ) -> "SlotKVCache":
        """The same memory with these written behind the last of each row."""
        places = self.lineage.places()[:, None, :, None].expand_as(key)
        self.keys.scatter_(-2, places, key)
        self.values.scatter_(-2, places, value)
        return self

    def visible(self, n_queries: int) -> Bool[Tensor, "N 1 K"]:
        """What each row's next token may attend to: itself and all before."""
        assert n_queries == 1, "one token at a time"
        keys = torch.arange(self.keys.shape[-2], device=self.keys.device)
        return keys <= self.lineage.lengths[:, None, None]

    def reorder(self, rows: Int[Tensor, "N"]) -> "SlotKVCache":
        """Itself: `Lineage.follow` does it, once for all layers."""
        return self
