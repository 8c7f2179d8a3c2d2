"""Languages as clients call them, and which one a text is written in, as its script tells."""

import unicodedata
from dataclasses import dataclass
from functools import lru_cache

from regard.text.scripts import HAN_WEIGHT, is_han

TRADITIONAL = "zh-Hant"
_CHINESE = {"zh", "zho", "chi", "cmn", "zh-hans", "zh-cn", "zh-sg", "zh-my", "zh-chs", "zhs"}
_TRADITIONAL = {"zh-hant", "zh-tw", "zh-hk", "zh-mo", "zh-cht", "zht", "zt"}
_THREE = {"eng": "en", "deu": "de", "ger": "de", "fra": "fr", "fre": "fr", "spa": "es",
          "jpn": "ja", "kor": "ko", "rus": "ru", "ita": "it", "por": "pt", "ara": "ar",
          "nld": "nl", "vie": "vi", "tha": "th", "ind": "id", "tur": "tr"}  # fmt: skip
_NAMES = {
    "zh": ("Chinese", "中文"), "zh-Hant": ("Chinese (traditional)", "中文（繁体）"),
    "en": ("English", "英语"), "de": ("German", "德语"), "fr": ("French", "法语"),
    "es": ("Spanish", "西班牙语"), "ja": ("Japanese", "日语"), "ko": ("Korean", "韩语"),
    "ru": ("Russian", "俄语"), "it": ("Italian", "意大利语"), "pt": ("Portuguese", "葡萄牙语"),
    "ar": ("Arabic", "阿拉伯语"), "nl": ("Dutch", "荷兰语"), "vi": ("Vietnamese", "越南语"),
    "th": ("Thai", "泰语"), "id": ("Indonesian", "印尼语"), "tr": ("Turkish", "土耳其语"),
}  # fmt: skip
_SAMPLE = 2000  # characters, which are enough to tell a script
_KANA = ("HIRAGANA", "KATAKANA")


@dataclass(frozen=True, slots=True)
class Detected:
    """A language, empty if it cannot be told, and how sure that is, from 0 to 100."""

    language: str
    confidence: float


@lru_cache(maxsize=1024)
def canonical(code: str) -> str:
    """A language's own code, of the many that clients send; empty for "auto" and nothing."""
    low = code.strip().replace("_", "-").lower()
    if low in ("", "auto", "autodetect", "auto-detect"):
        return ""
    if low in _CHINESE:
        return "zh"
    if low in _TRADITIONAL:
        return TRADITIONAL
    first = low.split("-")[0]
    return _THREE.get(first, first)


def name_of(code: str, in_chinese: bool = False) -> str:
    """What people call a language."""
    return _NAMES[code][in_chinese] if code in _NAMES else code


def detect(text: str) -> Detected:
    """Chinese by its characters, Japanese by its kana, English for Latin letters; no other.

    A script is not a language: Latin letters are called English because a server of Chinese and
    English has no other use for them.
    """
    weights: dict[str, float] = {}
    for char in text[:_SAMPLE]:
        script = _script(char)
        weights[script] = weights.get(script, 0.0) + (HAN_WEIGHT if script == "HAN" else 1.0)
    weights.pop("", None)
    total = sum(weights.values())
    if not total:
        return Detected("", 0.0)
    kana = sum(weights.pop(script, 0.0) for script in _KANA)
    if kana > 0.1 * total:
        return Detected("ja", round(100 * (kana + weights.get("HAN", 0.0)) / total, 1))
    best = max(weights, key=weights.__getitem__)
    share = round(100 * weights[best] / total, 1)
    language = {"HAN": "zh", "LATIN": "en", "HANGUL": "ko"}.get(best, "")
    return Detected(language, share if language else 0.0)


def has_words(text: str) -> bool:
    """Whether there is anything to translate: a letter or a digit of any script."""
    return any(char.isalnum() for char in text)


@lru_cache(maxsize=8192)
def _script(char: str) -> str:
    """The script of a letter; empty for all that is no letter."""
    if is_han(char):
        return "HAN"
    if not char.isalpha():
        return ""
    if char.isascii():
        return "LATIN"
    name = unicodedata.name(char, "").split()
    return "LATIN" if name[:2] == ["FULLWIDTH", "LATIN"] else (name or [""])[0]
