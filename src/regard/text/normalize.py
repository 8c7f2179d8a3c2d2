"""One spelling for one text, so that what looks alike is tokenised alike.

NFC is the default, and NFKC is never applied unasked: it would rewrite ，：①㎏ as ,:1kg. Every
setting is idempotent: normalising twice changes nothing more.
"""

import unicodedata
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from functools import cache
from itertools import groupby
from typing import Any, Literal, get_args

from regard.errors import ConfigError

Form = Literal["nfc", "nfkc", "none"]
Width = Literal["keep", "half"]
Han = Literal["keep", "simplified", "traditional"]


@dataclass(frozen=True)
class Normalizer:
    """A function from text to normalised text, and the settings that make it.

    form: the Unicode normal form. width: "half" folds Ａ to A and １ to 1 and leaves Chinese
    punctuation alone. han: OpenCC's conversion, to simplified or to traditional characters.

    Half a surrogate pair has no UTF-8 and becomes U+FFFD; two halves that meet become one
    character.
    """

    form: Form = "nfc"
    width: Width = "keep"
    han: Han = "keep"

    def __post_init__(self) -> None:
        for f in fields(self):
            value = getattr(self, f.name)
            if value not in get_args(f.type):
                raise ConfigError(
                    "{name} = {value} is not one of {choices}",
                    name=f"normalizer.{f.name}",
                    value=f'"{value}"',
                    choices=", ".join(get_args(f.type)),
                )

    def __call__(self, text: str) -> str:
        """The normalised text."""
        if text.isascii():  # no setting changes ASCII
            return text
        text = _without_surrogates(text)
        if self.han == "keep":
            return self._formed(text)
        seen = []
        while text not in seen:
            seen.append(text)
            text = self._converted(self._formed(text))
        # OpenCC alone is not idempotent: it makes 苧 of 薴, and then 苎 of 苧. Were it ever to go
        # in a circle instead of settling, the least text of the circle would stand for all.
        return min(seen[seen.index(text) :])

    def leaves(self, text: str) -> bool:
        """Whether the text is normalised already: a quick look, and False in doubt."""
        if text.isascii():
            return True
        if self.width != "keep" or self.han != "keep" or _without_surrogates(text) is not text:
            return False
        return self.form == "none" or unicodedata.is_normalized(self.form.upper(), text)  # type: ignore[arg-type]

    def as_table(self) -> dict[str, str]:
        """The settings, for saving."""
        return asdict(self)

    @classmethod
    def from_table(cls, table: Mapping[str, Any]) -> "Normalizer":
        """A normaliser from saved settings; those left out are the defaults."""
        for name in table:
            if name not in {f.name for f in fields(cls)}:
                raise ConfigError("unknown setting {name}", name=f"normalizer.{name}")
        return cls(**table)

    def _formed(self, text: str) -> str:
        if self.width == "half":  # first, for an accent may join the folded letter
            text = text.translate(_HALF_WIDTH)
        match self.form:
            case "nfc":
                return _composed("NFC", text)
            case "nfkc":
                return _composed("NFKC", text)
            case "none":
                return text

    def _converted(self, text: str) -> str:
        converter = _opencc("t2s" if self.han == "simplified" else "s2t")
        return self._formed(converter.convert(text))


_HALF_WIDTH = {
    full: full - 0xFEE0
    for first, last in ("０９", "ＡＺ", "ａｚ")
    for full in range(ord(first), ord(last) + 1)
}


def _without_surrogates(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def _composed(form: Literal["NFC", "NFKC"], text: str) -> str:
    if unicodedata.is_normalized(form, text):
        return text
    if len(text) > 4096:  # Python orders marks by insertion: a million on one letter take minutes
        text = _with_marks_in_order(text)
    return unicodedata.normalize(form, text)


def _with_marks_in_order(text: str) -> str:
    """Canonically equivalent text whose marks are decomposed and stand in canonical order."""
    parts: list[str] = []
    for is_mark, group in groupby(text, _is_mark):
        if is_mark:
            marks = "".join(unicodedata.normalize("NFD", mark) for mark in group)
            parts += sorted(marks, key=unicodedata.combining)
        else:
            parts += group
    return "".join(parts)


def _is_mark(char: str) -> bool:
    # The three Tibetan vowels are of class 0 by themselves but decompose to marks.
    return unicodedata.combining(char) > 0 or char in "\u0f73\u0f75\u0f81"


@cache
def _opencc(config: str) -> Any:
    from opencc import OpenCC  # only for those who ask: most text is left in its own script

    return OpenCC(config)
