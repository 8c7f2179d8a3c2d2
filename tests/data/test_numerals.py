import random
import re
from datetime import date, timedelta

import pytest
from num2words import num2words

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
from regard.errors import DataError

pytestmark = pytest.mark.plain  # very many small calls, and no shapes to check

UNITS = {"十": 10, "百": 100, "千": 1000}
SMALL_AND_RANDOM = [*range(20_001), *random.Random(0).choices(range(100_000_000), k=20_000)]
# Where the rules about gaps, "and" and commas meet: every pattern of zeros in eight digits.
PATTERNS = [int(f"{n:08b}") * digit for n in range(256) for digit in (1, 2, 9)]
DAYS = [date(1900, 1, 1) + timedelta(days) for days in range(73_049)]
FRACTIONS = [(n, d) for d in range(2, 21) for n in range(1, d)]


def read_integer(text):
    """Chinese to int: digits wait for their unit, sections wait for 万."""
    total = section = digit = 0
    for character in text:
        if character in UNITS:
            section += (digit or 1) * UNITS[character]
            digit = 0
        elif character == "万":
            total, section, digit = (section + digit) * 10_000, 0, 0
        else:
            digit = "零一二三四五六七八九".index(character)
    return total + section + digit


def read_amount(text):
    yuan, jiao, fen = re.fullmatch(r"(?:(.+)元)?(?:(.)角)?(?:零?(.)分)?", text).groups()
    return sum(read_integer(part or "零") * v for part, v in ((yuan, 100), (jiao, 10), (fen, 1)))


@pytest.mark.parametrize(
    ("n", "chinese"),
    [
        (0, "零"),
        (5, "五"),
        (10, "十"),
        (12, "十二"),
        (20, "二十"),
        (22, "二十二"),
        (100, "一百"),
        (101, "一百零一"),
        (110, "一百一十"),
        (123, "一百二十三"),
        (202, "二百零二"),
        (1001, "一千零一"),
        (1010, "一千零一十"),
        (1100, "一千一百"),
        (2222, "二千二百二十二"),
        (10_000, "一万"),
        (10_010, "一万零一十"),
        (100_000, "十万"),
        (100_005, "十万零五"),
        (100_010, "十万零一十"),
        (100_500, "十万零五百"),
        (105_000, "十万五千"),
        (120_012, "十二万零一十二"),
        (1_100_000, "一百一十万"),
        (10_010_000, "一千零一万"),
        (10_001_000, "一千万一千"),
        (10_010_001, "一千零一万零一"),
        (99_999_999, "九千九百九十九万九千九百九十九"),
    ],
)
def test_chinese_integers_are_the_standard_reading(n, chinese):
    assert chinese_integer(n) == chinese


def test_every_chinese_integer_can_be_read_back():
    for n in SMALL_AND_RANDOM + PATTERNS:
        assert read_integer(chinese_integer(n)) == n


def test_chinese_integers_keep_the_rules_of_zero_one_and_two():
    for n in SMALL_AND_RANDOM + PATTERNS:
        text = chinese_integer(n)
        assert "零零" not in text
        assert "零万" not in text
        assert "两" not in text
        assert n == 0 or not text.endswith("零")
        assert not text.startswith(("一十", "零一", "零十"))
        assert not re.search(r"[百千万零]十", text)  # 十 without 一 stands at the very start only


def test_chinese_integers_say_zero_once_for_each_gap_that_does_not_end_a_section():
    for n in SMALL_AND_RANDOM[1:] + PATTERNS[3:]:
        high, low = (section.rstrip("0") for section in (f"{n:08d}"[:4], f"{n:08d}"[4:]))
        gaps = re.findall("0+", high.lstrip("0")) + re.findall(
            "0+", low if high else low.lstrip("0")
        )
        assert chinese_integer(n).count("零") == len(gaps)


@pytest.mark.parametrize(
    ("n", "english"),
    [
        (0, "zero"),
        (123, "one hundred and twenty-three"),
        (1005, "one thousand and five"),
        (1_000_005, "one million and five"),
        (1_005_000, "one million, five thousand"),
        (2_300_001, "two million, three hundred thousand and one"),
    ],
)
def test_english_integers_are_british(n, english):
    assert english_integer(n) == english == num2words(n, lang="en_GB")


def test_english_integers_equal_num2words():
    for n in SMALL_AND_RANDOM + PATTERNS:
        assert english_integer(n) == num2words(n, lang="en_GB")


def test_a_date_is_words_in_chinese_and_digits_in_english():
    assert chinese_date(date(2024, 3, 21)) == "二〇二四年三月二十一日"
    assert english_date(date(2024, 3, 21)) == "March 21, 2024"
    assert chinese_date(date(1900, 10, 10)) == "一九〇〇年十月十日"
    assert english_date(date(1900, 10, 1)) == "October 1, 1900"


def test_every_date_of_two_centuries_can_be_read_back():
    assert (DAYS[0], DAYS[-1]) == (date(1900, 1, 1), date(2099, 12, 31))
    assert date(2000, 2, 29) in DAYS
    for day in DAYS:
        year, month, number = re.fullmatch(r"(.{4})年(.+)月(.+)日", chinese_date(day)).groups()
        digits = int("".join(str("〇一二三四五六七八九".index(digit)) for digit in year))
        assert date(digits, read_integer(month), read_integer(number)) == day


def test_every_english_date_equals_the_formatted_one():
    for day in DAYS:
        assert english_date(day) == day.strftime(f"%B {day.day}, %Y")


@pytest.mark.parametrize(
    ("fen", "chinese", "english"),
    [
        (30_542, "三百零五元四角二分", "305 yuan 42 fen"),
        (1, "一分", "1 fen"),
        (5, "五分", "5 fen"),
        (10, "一角", "10 fen"),
        (12, "一角二分", "12 fen"),
        (300, "三元", "3 yuan"),
        (305, "三元零五分", "3 yuan 5 fen"),
        (340, "三元四角", "3 yuan 40 fen"),
        (1000, "十元", "10 yuan"),
        (1201, "十二元零一分", "12 yuan 1 fen"),
        (1_000_010, "一万元一角", "10000 yuan 10 fen"),
        (9_999_999, "九万九千九百九十九元九角九分", "99999 yuan 99 fen"),
    ],
)
def test_amounts_leave_out_what_is_zero(fen, chinese, english):
    assert chinese_amount(fen) == chinese
    assert english_amount(fen) == english


def test_every_amount_can_be_read_back():
    for fen in [*range(1, 20_001), *random.Random(1).choices(range(1, 10_000_000), k=10_000)]:
        chinese, english = chinese_amount(fen), english_amount(fen)
        assert read_amount(chinese) == fen
        assert ("元零" in chinese) == (fen > 100 and 0 < fen % 100 < 10)
        yuan, rest = re.fullmatch(r"(?:(\d+) yuan)? ?(?:(\d+) fen)?", english).groups("0")
        assert (int(yuan), int(rest)) == divmod(fen, 100)
        assert english == english.strip()


def test_every_fraction_is_its_two_numbers():
    assert len(FRACTIONS) == 190
    for n, d in FRACTIONS:
        denominator, numerator = chinese_fraction(n, d).split("分之")
        assert (read_integer(numerator), read_integer(denominator)) == (n, d)
        # English halves and quarters; all other parts are the ordinal number.
        part = {2: "half", 4: "quarter"}.get(d) or num2words(d, to="ordinal")
        assert english_fraction(n, d) == f"{num2words(n)} {part}{'s' if n > 1 else ''}"


@pytest.mark.parametrize(
    ("n", "d", "chinese", "english"),
    [
        (2, 3, "三分之二", "two thirds"),
        (1, 2, "二分之一", "one half"),
        (3, 4, "四分之三", "three quarters"),
        (2, 4, "四分之二", "two quarters"),
        (1, 12, "十二分之一", "one twelfth"),
        (19, 20, "二十分之十九", "nineteen twentieths"),
    ],
)
def test_fractions_are_not_reduced(n, d, chinese, english):
    assert chinese_fraction(n, d) == chinese
    assert english_fraction(n, d) == english


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: chinese_integer(-1), "n = -1 is outside 0 to 99999999"),
        (lambda: english_integer(10**8), "n = 100000000 is outside 0 to 99999999"),
        (lambda: chinese_date(date(1899, 12, 31)), "year = 1899 is outside 1900 to 2099"),
        (lambda: english_date(date(2100, 1, 1)), "year = 2100 is outside 1900 to 2099"),
        (lambda: chinese_amount(0), "fen = 0 is outside 1 to 9999999"),
        (lambda: english_amount(10**7), "fen = 10000000 is outside 1 to 9999999"),
        (lambda: chinese_fraction(3, 3), "numerator = 3 is outside 1 to 2"),
        (lambda: english_fraction(1, 21), "denominator = 21 is outside 2 to 20"),
    ],
)
def test_what_has_no_reading_here_is_named(call, message):
    with pytest.raises(DataError) as error:
        call()
    assert str(error.value) == message


def test_what_has_no_reading_is_named_in_chinese_too():
    with pytest.raises(DataError) as error:
        chinese_integer(-1)
    assert error.value.in_language("zh") == "n = -1不在0到99999999之间"
