"""Tasks that generate their own examples: copy, reverse, sort, and Chinese numerals to English.

An example is a function of its task, seed, index and split alone, so a corpus needs no file and any
process can make any part of it. Which split a value belongs to is decided by the value alone, so
what one seed tests no other seed trains on.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from hashlib import blake2b
from itertools import count, islice
from typing import Literal, get_args

from regard.data.numerals import (
    chinese_amount,
    chinese_date,
    chinese_fraction,
    chinese_integer,
    english_amount,
    english_date,
    english_fraction,
    english_integer,
)
from regard.errors import ConfigError

TaskName = Literal["copy", "reverse", "sort", "numerals"]
Split = Literal["train", "dev", "test"]
Kind = Literal["sequence", "integer", "date", "amount", "fraction"]

# The kinds of a hundred numerals.
NUMERALS: tuple[Kind, ...] = (
    *("integer",) * 50,
    *("date",) * 25,
    *("amount",) * 15,
    *("fraction",) * 10,
)
ONE_WORD = frozenset(str(n) for n in (*range(20), *range(20, 100, 10)))
FIRST_DAY, LAST_DAY = date(1900, 1, 1).toordinal(), date(2099, 12, 31).toordinal()


@dataclass(frozen=True, slots=True)
class Example:
    """A text and its translation."""

    src: str
    tgt: str


def example(task: TaskName, seed: int, index: int, split: Split = "train") -> Example:
    """The example at this index, the same in every process."""
    if task not in get_args(TaskName):
        raise ConfigError('task = "{name}" is not one of copy, reverse, sort, numerals', name=task)
    if split not in get_args(Split):
        raise ConfigError('split = "{name}" is not one of train, dev, test', name=split)
    numbers = _numbers(f"{task}/{split}/{seed}/{index}")
    kind = NUMERALS[next(numbers) % 100] if task == "numerals" else "sequence"
    return _in_words(task, kind, _draw(kind, split, numbers))


def examples(task: TaskName, seed: int, split: Split, start: int = 0) -> Iterator[Example]:
    """The examples from index `start` on, without end."""
    return (example(task, seed, index, split) for index in count(start))


def belongs(kind: Kind, value: str, split: Split) -> bool:
    """Whether a value may occur in a split: 90 in 100 train, 5 develop and 5 test.

    A value is written 123 (integer, sequence of digits, fen), 2024-03-21 or 2/3. What is too simple
    to be put together from other values always trains: one digit, and integers of one English word.
    Fractions are few, so dev and test have the same 20.
    """
    if kind == "fraction":
        return (value in _held_out_fractions()) == (split != "train")
    if len(value) == 1 or (kind == "integer" and value in ONE_WORD):
        return split == "train"
    place = _hash(f"{kind}/{value}") % 100
    return split == ("test" if place < 5 else "dev" if place < 10 else "train")


def _draw(kind: Kind, split: Split, numbers: Iterator[int]) -> str:
    """A value that belongs to the split; redraws keep the size, so sizes stay even."""
    sizes = _sizes(kind, split)
    size = sizes[next(numbers) % len(sizes)]
    # At worst one draw in 30 belongs; the bound is there to end a mistake.
    draws = (_value(kind, size, number) for number in islice(numbers, 10_000))
    return next(value for value in draws if belongs(kind, value, split))


def _sizes(kind: Kind, split: Split) -> Sequence[int]:
    """The sizes that a value of this kind can have in a split."""
    first = 1 if split == "train" else 2
    match kind:
        case "sequence":
            return range(first, 21)
        case "integer":
            return range(first, 9)
        case "date":
            return (0,)  # dates are all of one size
        case "amount":
            return range(6)  # digits of its yuan; none when there are only fen
        case "fraction":
            return range(2, 21) if split == "train" else _held_out_denominators()


def _value(kind: Kind, size: int, number: int) -> str:
    """The value of this size that a random number picks, all alike likely."""
    match kind:
        case "sequence":
            return f"{number % 10**size:0{size}d}"
        case "integer":
            return _picked(number, 10 ** (size - 1) if size > 1 else 0, 10**size)
        case "date":
            days = LAST_DAY - FIRST_DAY + 1
            return date.fromordinal(FIRST_DAY + number % days).isoformat()
        case "amount":
            return _picked(number, 10 ** (size + 1) if size else 1, 10 ** (size + 2))
        case "fraction":
            return f"{_picked(number, 1, size)}/{size}"


def _picked(number: int, start: int, stop: int) -> str:
    return str(start + number % (stop - start))


def _in_words(task: TaskName, kind: Kind, value: str) -> Example:
    """The value as the texts of an example."""
    match kind:
        case "sequence":
            return Example(" ".join(value), " ".join(_answer(task, value)))
        case "integer":
            return Example(chinese_integer(int(value)), english_integer(int(value)))
        case "date":
            day = date.fromisoformat(value)
            return Example(chinese_date(day), english_date(day))
        case "amount":
            return Example(chinese_amount(int(value)), english_amount(int(value)))
        case "fraction":
            numerator, denominator = map(int, value.split("/"))
            return Example(
                chinese_fraction(numerator, denominator), english_fraction(numerator, denominator)
            )


def _answer(task: TaskName, digits: str) -> Sequence[str]:
    match task:
        case "reverse":
            return digits[::-1]
        case "sort":
            return sorted(digits)
        case _:
            return digits


@cache
def _held_out_fractions() -> frozenset[str]:
    """Twenty fractions n/d; never 1/d or (d-1)/d, so that training has all their words."""
    candidates = [f"{n}/{d}" for d in range(2, 21) for n in range(2, d - 1)]
    return frozenset(sorted(candidates, key=lambda value: _hash(f"fraction/{value}"))[:20])


@cache
def _held_out_denominators() -> tuple[int, ...]:
    return tuple(sorted({int(value.split("/")[1]) for value in _held_out_fractions()}))


def _numbers(key: str) -> Iterator[int]:
    """Endless random numbers that depend on the key alone, whatever Python's version."""
    # With 128 bits the remainder by 10**20, the largest taken, is even to one part in 10**18.
    return (_hash(f"{key}/{place}") for place in count())


def _hash(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=16).digest(), "big")
