import os
import re
import subprocess
import sys
from collections import Counter
from datetime import date, datetime
from itertools import islice

import pytest

from regard.data.numerals import (
    chinese_amount,
    chinese_date,
    chinese_fraction,
    chinese_integer,
    english_fraction,
    english_integer,
)
from regard.data.tasks import belongs, example, examples
from regard.errors import ConfigError

pytestmark = pytest.mark.plain  # very many small calls, and no shapes to check

TASKS = ("copy", "reverse", "sort", "numerals")
SPLITS = ("train", "dev", "test")
WORDS = {english_integer(n): n for n in (*range(20), *range(20, 100, 10))}
FRACTIONS = {english_fraction(n, d): (n, d) for d in range(2, 21) for n in range(1, d)}
HELD_OUT = {text for text, (n, d) in FRACTIONS.items() if belongs("fraction", f"{n}/{d}", "test")}


def drawn(task, split, n, seed=0):
    return list(islice(examples(task, seed, split), n))


def read(english):
    """An English numeral to its kind, its value and the Chinese of that value."""
    if english in FRACTIONS:
        return "fraction", FRACTIONS[english], chinese_fraction(*FRACTIONS[english])
    if english[0].isupper():
        day = datetime.strptime(english, "%B %d, %Y").date()
        return "date", day, chinese_date(day)
    if english[0].isdigit():
        yuan, fen = re.fullmatch(r"(?:(\d+) yuan ?)?(?:(\d+) fen)?", english).groups("0")
        value = int(yuan) * 100 + int(fen)
        return "amount", value, chinese_amount(value)
    value = read_integer(english)
    return "integer", value, chinese_integer(value)


def read_integer(english):
    total = group = 0
    for word in re.findall(r"[a-z]+", english.replace(" and ", " ")):
        if word == "hundred":
            group *= 100
        elif word in ("thousand", "million"):
            total, group = total + group * {"thousand": 10**3, "million": 10**6}[word], 0
        else:
            group += WORDS[word]
    return total + group


def assert_even(values, expected):
    """The values are those expected, none further from its share than five standard deviations."""
    counts = Counter(values)
    assert sorted(counts) == sorted(expected)
    share = counts.total() / len(counts)
    assert all(abs(count - share) < 5 * share**0.5 for count in counts.values()), counts


@pytest.mark.parametrize(
    ("task", "answer"), [("copy", list), ("reverse", lambda x: x[::-1]), ("sort", sorted)]
)
@pytest.mark.parametrize("split", SPLITS)
def test_sequences_are_digits_and_their_answer(task, answer, split):
    for pair in drawn(task, split, 1000):
        digits = pair.src.split(" ")
        assert all(re.fullmatch(r"\d", digit) for digit in digits)
        assert pair.tgt == " ".join(answer(digits))


def test_lengths_and_digits_of_sequences_are_even():
    sequences = [pair.src.split() for pair in drawn("copy", "train", 10_000)]
    assert_even(map(len, sequences), range(1, 21))
    assert_even((digit for sequence in sequences for digit in sequence), "0123456789")


@pytest.mark.parametrize("split", SPLITS)
def test_both_sides_of_a_numeral_are_one_value(split):
    for pair in drawn("numerals", split, 5000):
        assert pair.src == read(pair.tgt)[2]


@pytest.mark.parametrize("split", SPLITS)
def test_kinds_of_numerals_keep_their_weights(split):
    kinds = Counter(read(pair.tgt)[0] for pair in drawn("numerals", split, 5000))
    for kind, weight in {"integer": 50, "date": 25, "amount": 15, "fraction": 10}.items():
        assert kinds[kind] / 50 == pytest.approx(weight, abs=2.5)


def test_sizes_of_training_numerals_are_even():
    values = {"integer": [], "date": [], "amount": [], "fraction": []}
    for pair in drawn("numerals", "train", 30_000):
        kind, value, _ = read(pair.tgt)
        values[kind].append(value)
    assert_even((len(str(n)) for n in values["integer"]), range(1, 9))
    assert_even((n for n in values["integer"] if n < 10), range(10))
    assert_even((len(str(fen // 100)) * (fen > 99) for fen in values["amount"]), range(6))
    assert_even((d for _, d in values["fraction"]), range(2, 21))
    assert_even((day.year // 10 for day in values["date"]), range(190, 210))


def test_held_out_integers_have_two_digits_or_more_all_alike_likely():
    numerals = (read(pair.tgt) for pair in drawn("numerals", "test", 5000))
    assert_even((len(str(n)) for kind, n, _ in numerals if kind == "integer"), range(2, 9))


@pytest.mark.parametrize("task", TASKS)
def test_no_seed_tests_what_another_trains_on(task):
    seen = {
        split: {pair.src for seed in (0, 1, 17) for pair in drawn(task, split, n, seed)}
        for split, n in {"train": 20_000, "dev": 1000, "test": 1000}.items()
    }
    fractions = {chinese_fraction(*FRACTIONS[text]) for text in HELD_OUT}
    assert not seen["train"] & seen["dev"]
    assert not seen["train"] & seen["test"]
    assert seen["dev"] & seen["test"] == (fractions if task == "numerals" else set())


def test_five_in_a_hundred_values_are_held_out_for_each_of_dev_and_test():
    for kind, values in {
        "sequence": [f"{n:05d}" for n in range(20_000)],
        "integer": [str(n) for n in range(100_000, 120_000)],
        "amount": [str(n) for n in range(100_000, 120_000)],
        "date": [
            date.fromordinal(date(1990, 1, 1).toordinal() + n).isoformat() for n in range(20_000)
        ],
    }.items():
        counts = {split: sum(belongs(kind, v, split) for v in values) for split in SPLITS}
        assert sum(counts.values()) == 20_000
        assert counts["dev"] == pytest.approx(1000, abs=150)
        assert counts["test"] == pytest.approx(1000, abs=150)


def test_training_has_every_integer_of_one_word_and_most_of_two_digits():
    training = {n for n in range(100) if belongs("integer", str(n), "train")}
    assert training >= set(WORDS.values())
    assert len(training) == 93
    for split in ("dev", "test"):
        assert any(belongs("integer", str(n), split) for n in range(10, 100))
        assert any(belongs("amount", str(fen), split) for fen in range(1, 100))


def test_twenty_fractions_are_held_out_and_training_has_all_their_words():
    assert len(HELD_OUT) == 20
    training = FRACTIONS.keys() - HELD_OUT
    assert {w for text in HELD_OUT for w in text.split()} <= {
        w for t in training for w in t.split()
    }
    drawn_fractions = {p.tgt for p in drawn("numerals", "train", 20_000) if p.tgt in FRACTIONS}
    assert drawn_fractions == training


@pytest.mark.parametrize("hash_seed", ["0", "4242"])
def test_another_process_gives_the_same_examples(hash_seed):
    code = (
        "from regard.data.tasks import example\n"
        f"for task in {TASKS}:\n"
        f"    for split in {SPLITS}:\n"
        "        for index in (9, 3, 10**12):\n"
        "            print(ascii(example(task, 5, index, split)))\n"
    )
    other = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=True,
    )
    ours = [
        ascii(example(task, 5, index, split))
        for task in TASKS
        for split in SPLITS
        for index in (9, 3, 10**12)
    ]
    assert other.stdout.splitlines() == ours


@pytest.mark.parametrize("task", TASKS)
def test_examples_start_anywhere_and_differ_by_seed_and_split(task):
    pairs = drawn(task, "train", 50)
    assert list(islice(examples(task, 0, "train", start=20), 30)) == pairs[20:]
    assert [example(task, 0, index) for index in range(50)] == pairs
    assert pairs != drawn(task, "train", 50, seed=1)
    assert pairs != drawn(task, "dev", 50) != drawn(task, "test", 50)


@pytest.mark.parametrize(
    ("task", "split", "message"),
    [
        ("sorted", "train", 'task = "sorted" is not one of copy, reverse, sort, numerals'),
        ("sort", "valid", 'split = "valid" is not one of train, dev, test'),
    ],
)
def test_unknown_names_are_refused_with_the_known(task, split, message):
    with pytest.raises(ConfigError) as error:
        example(task, 0, 0, split)
    assert str(error.value) == message
