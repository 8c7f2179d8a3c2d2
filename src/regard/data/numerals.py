"""Chinese and English for the same integer, date, amount of money or fraction.

Each is a rule both languages keep without exception, so a translation is right or wrong as a whole.
"""

from datetime import date

from regard.errors import DataError

# fmt: off
MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)
SMALL = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine",
    "ten", "eleven", "twelve", "thirteen", "fourteen",
    "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)
TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
PARTS = (
    "half", "third", "quarter", "fifth", "sixth", "seventh", "eighth", "ninth",
    "tenth", "eleventh", "twelfth", "thirteenth", "fourteenth",
    "fifteenth", "sixteenth", "seventeenth", "eighteenth", "nineteenth", "twentieth",
)
# fmt: on
DIGITS = "零一二三四五六七八九"


def chinese_integer(n: int) -> str:
    """The standard reading of 0 to 99,999,999: 100010 is 十万零一十."""
    _check("n", n, 0, 99_999_999)
    high, low = divmod(n, 10_000)
    text = _chinese_section(high) + "万" if high else ""
    if high and 0 < low < 1000:  # the thousands are a gap; zeros that end a section are not read
        text += "零"
    text += _chinese_section(low)
    return text.removeprefix("一") if text.startswith("一十") else text or "零"


def english_integer(n: int) -> str:
    """The British reading of 0 to 99,999,999: 1005005 is one million, five thousand and five."""
    _check("n", n, 0, 99_999_999)
    if n == 0:
        return "zero"
    groups = [(n // 1_000_000, " million"), (n // 1000 % 1000, " thousand"), (n % 1000, "")]
    *before, last = [_english_group(group) + name for group, name in groups if group]
    # A last group without hundreds lacks an "and" of its own, so it stands in for the comma.
    joint = " and " if 0 < n % 1000 < 100 else ", "
    return ", ".join(before) + joint + last if before else last


def chinese_date(day: date) -> str:
    """The date in words, its year digit by digit: 二〇二四年三月二十一日."""
    _check("year", day.year, 1900, 2099)
    year = "".join(DIGITS[int(digit)] for digit in str(day.year)).replace("零", "〇")
    return f"{year}年{chinese_integer(day.month)}月{chinese_integer(day.day)}日"


def english_date(day: date) -> str:
    """The date as March 21, 2024, whatever the locale."""
    _check("year", day.year, 1900, 2099)
    return f"{MONTHS[day.month - 1]} {day.day}, {day.year}"


def chinese_amount(fen: int) -> str:
    """The amount in 元, tenths 角 and hundredths 分, each left out when 0: 三元零五分."""
    _check("fen", fen, 1, 9_999_999)
    yuan, jiao, rest = fen // 100, fen // 10 % 10, fen % 10
    text = chinese_integer(yuan) + "元" if yuan else ""
    if jiao:
        text += DIGITS[jiao] + "角"
    elif yuan and rest:  # 角 is the gap
        text += "零"
    return text + DIGITS[rest] + "分" if rest else text


def english_amount(fen: int) -> str:
    """The amount in digits, yuan and fen, each left out when 0: 340 is 3 yuan 40 fen."""
    _check("fen", fen, 1, 9_999_999)
    yuan, rest = divmod(fen, 100)
    return " ".join(f"{n} {unit}" for n, unit in ((yuan, "yuan"), (rest, "fen")) if n)


def chinese_fraction(numerator: int, denominator: int) -> str:
    """The fraction, denominator first and not reduced: 2/3 is 三分之二."""
    _check_fraction(numerator, denominator)
    return f"{chinese_integer(denominator)}分之{chinese_integer(numerator)}"


def english_fraction(numerator: int, denominator: int) -> str:
    """The fraction in words, not reduced: 2/3 is two thirds."""
    _check_fraction(numerator, denominator)
    plural = "s" if numerator > 1 else ""  # there is one half only, so "halves" never comes up
    return f"{english_integer(numerator)} {PARTS[denominator - 2]}{plural}"


def _chinese_section(n: int) -> str:
    """Four digits with their units, nothing for 0; a gap inside is one 零, however wide."""
    text = gap = ""
    for digit, unit in zip(f"{n:04d}", ("千", "百", "十", ""), strict=True):
        if digit != "0":
            text += gap + DIGITS[int(digit)] + unit
            gap = ""
        elif text:
            gap = "零"
    return text


def _english_group(n: int) -> str:
    """One to 999 in words."""
    hundreds, rest = divmod(n, 100)
    if rest < 20:
        words = SMALL[rest]
    else:
        words = TENS[rest // 10 - 2] + (f"-{SMALL[rest % 10]}" if rest % 10 else "")
    if hundreds == 0:
        return words
    return f"{SMALL[hundreds]} hundred" + (f" and {words}" if rest else "")


def _check_fraction(numerator: int, denominator: int) -> None:
    _check("denominator", denominator, 2, 20)
    _check("numerator", numerator, 1, denominator - 1)


def _check(name: str, value: int, least: int, greatest: int) -> None:
    if not least <= value <= greatest:
        raise DataError(
            "{name} = {value} is outside {least} to {greatest}",
            name=name,
            value=value,
            least=least,
            greatest=greatest,
        )
