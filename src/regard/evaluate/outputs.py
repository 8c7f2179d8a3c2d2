"""What a score does not show: outputs too short, empty or left untranslated, and misread words."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from regard.errors import DataError
from regard.evaluate.metrics import Score, bleu, bleu_metric, bleu_tokenizer, check_lines
from regard.text.scripts import is_han

BOUNDS = (0, 11, 21, 31, 41, 61)  # lengths in BLEU's words at which a bucket begins

# First and last letter of scripts that put no space between words, besides Chinese characters.
UNSPACED = (("\u3041", "\u30ff"), ("\u0e00", "\u109f"), ("\u1780", "\u17ff"))
HANGUL = ("\uac00", "\ud7a3")


@dataclass(frozen=True)
class Outputs:
    """Facts of a system's outputs beside their references; lines are counted from 1.

    length_ratio: words of the outputs over words of the references, as BLEU counts them.
    empty: nothing came where the reference has something. empty_references: lines that no system
    can get right. copied: the source came back as it was and the reference is different; None
    without sources. tokenized: a space before the last full stop, so words were not joined again.
    """

    lines: int
    length_ratio: float
    empty: tuple[int, ...]
    empty_references: tuple[int, ...]
    copied: tuple[int, ...] | None
    tokenized: tuple[int, ...]
    tokenizer_fits: bool


@dataclass(frozen=True)
class Bucket:
    """The lines whose references have `least` to `most` words (None: no limit), and their BLEU."""

    least: int
    most: int | None
    lines: int
    score: Score


def examine(
    hypotheses: Sequence[str],
    references: Sequence[str],
    tgt_lang: str,
    sources: Sequence[str] | None = None,
) -> Outputs:
    """The facts that belong beside a score."""
    check_lines(hypotheses, references)
    pairs = [(h.strip(), r.strip()) for h, r in zip(hypotheses, references, strict=True)]
    n_words = sum(n_bleu_words(references, tgt_lang))
    return Outputs(
        lines=len(references),
        length_ratio=sum(n_bleu_words(hypotheses, tgt_lang)) / n_words if n_words else 0.0,
        empty=_lines(not h and bool(r) for h, r in pairs),
        empty_references=_lines(not r for _, r in pairs),
        copied=None if sources is None else _copied(pairs, sources),
        tokenized=_lines(h.endswith((" .", " 。")) for h, _ in pairs),
        tokenizer_fits=tokenizer_fits(references, tgt_lang),
    )


def by_length(
    hypotheses: Sequence[str],
    references: Sequence[str],
    tgt_lang: str,
    bounds: Sequence[int] = BOUNDS,
) -> tuple[Bucket, ...]:
    """BLEU of short and of long sentences apart; buckets without a line are left out."""
    check_lines(hypotheses, references)
    lengths = n_bleu_words(references, tgt_lang)
    buckets = []
    for least, most in zip(bounds, [*bounds[1:], None], strict=True):
        rows = [i for i, n in enumerate(lengths) if n >= least and (most is None or n < most)]
        if rows:
            chosen = [hypotheses[i] for i in rows], [references[i] for i in rows]
            last = None if most is None else most - 1
            buckets.append(Bucket(least, last, len(rows), bleu(*chosen, tgt_lang)))
    return tuple(buckets)


def n_bleu_words(lines: Sequence[str], tgt_lang: str) -> list[int]:
    """How many words each line has for BLEU."""
    tokenize = bleu_metric(tgt_lang).tokenizer
    return [len(tokenize(line.rstrip()).split()) for line in lines]


def tokenizer_fits(references: Sequence[str], tgt_lang: str) -> bool:
    """Whether the text is of a script that the language's tokenizer can take apart.

    13a needs spaces between words; the others are for Chinese, Japanese and Korean, of which there
    should be at least one letter.
    """
    letters = [c for line in references for c in line if c.isalpha()]
    if bleu_tokenizer(tgt_lang) == "13a":
        return 2 * sum(map(_is_unspaced, letters)) <= len(letters)
    return not letters or any(_is_unspaced(c) or HANGUL[0] <= c <= HANGUL[1] for c in letters)


def _copied(pairs: Sequence[tuple[str, str]], sources: Sequence[str]) -> tuple[int, ...]:
    if len(sources) != len(pairs):
        raise DataError(
            "there are {sources} sources but {references} references; lines are pairs, so they "
            "must match",
            sources=len(sources),
            references=len(pairs),
        )
    lines = zip(pairs, (source.strip() for source in sources), strict=True)
    return _lines(bool(h) and h == source != r for (h, r), source in lines)


def _is_unspaced(letter: str) -> bool:
    return is_han(letter) or any(first <= letter <= last for first, last in UNSPACED)


def _lines(found: Iterable[bool]) -> tuple[int, ...]:
    return tuple(line for line, yes in enumerate(found, 1) if yes)
