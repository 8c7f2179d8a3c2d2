"""Terms and their translations, found in parallel text: what a model says of a word by itself.

    python benchmarks/make_terms.py data

reads the training text of the corpora of recipes/zh-en.toml under data and writes data/terms/
train.zh.gz and train.en.gz. A model that has read sentences and headings alone takes a lone word
for a heading, "Machine Learning". Inside its sentences stands how the word is written.

An English phrase and a run of Chinese characters are a term where each is the other's best by Dice,
2 n(both) / (n(phrase) + n(run)), counted in pairs of lines of one corpus. Where d2l's own list of
terms has a phrase, the list is right.
"""

import argparse
import gzip
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

CORPORA = (
    "tatoeba-challenge-zh-en",
    "3am-zh-en",
    "k8s-docs-zh-en",
    "python-docs-zh-en",
    "libreoffice-help-zh-en",
    "d2l-zh-en",
)
LIST = "d2l-zh-en/terms.tsv.gz"  # English, tab, Chinese
LEAST, MOST = 5, 2000  # lines that a phrase is in: fewer prove nothing, more are no terms
LEAST_DICE = 0.7
MOST_WORDS, HAN_CHARACTERS = 3, range(2, 8)
WORD = re.compile(r"[A-Za-z]+|[^\sA-Za-z]+")
HAN = re.compile(r"[\u4e00-\u9fff]+")
PLAIN = re.compile(r"[a-z]+")  # a name, which has a capital everywhere, is no term
# with one of these at its end a phrase is a piece of a sentence
SMALL_WORDS = """
    a an and any are as at be been but by can could did do does each for from had has have he her
    him his how i if in into is it its me more most my no nor not of on one only or other our out
    she should so some such than that the their them then there these they this those to too us was
    we were what when where which who why will with would you your
"""
SMALL = frozenset(SMALL_WORDS.split())
SMALL_HAN = frozenset(
    "的地得了着过个一不是在有和与或及以为于从到对把被将会能可中上下里来去这那其所我你他她它"
)

Term = tuple[str, str]  # Chinese, English


def phrases(line: str) -> set[str]:
    """The runs of words in lower case that could be a term."""
    words = WORD.findall(line)
    found = set()
    for n in range(1, MOST_WORDS + 1):
        for first in range(len(words) - n + 1):
            own = words[first : first + n]
            if all(map(PLAIN.fullmatch, own)) and not SMALL & {own[0], own[-1]}:
                found.add(" ".join(own))
    return found


def runs(line: str) -> set[str]:
    """The runs of characters that could be one."""
    return {
        run[first : first + n]
        for run in HAN.findall(line)
        for n in HAN_CHARACTERS
        for first in range(len(run) - n + 1)
        if not SMALL_HAN & {run[first], run[first + n - 1]}
    }


def terms(chinese: Iterable[str], english: Iterable[str]) -> Iterator[Term]:
    """Each phrase with its run, where both have no better one."""
    en_lines, n_en = _counted(english, phrases)
    zh_lines, n_zh = _counted(chinese, runs)
    lines_of: dict[str, list[int]] = defaultdict(list)
    for number, own in enumerate(en_lines):
        for phrase in own:
            lines_of[phrase].append(number)
    best_run: dict[str, tuple[float, int, str]] = {}
    best_phrase: dict[str, tuple[float, int, str]] = {}
    for phrase, numbers in lines_of.items():
        for run, both in Counter(run for i in numbers for run in zh_lines[i]).items():
            dice = 2 * both / (n_en[phrase] + n_zh[run])
            if dice >= LEAST_DICE:  # of equals the longer: what always stands together is one term
                best_run[phrase] = max(best_run.get(phrase, (0, 0, "")), (dice, len(run), run))
                own = dice, len(phrase), phrase
                best_phrase[run] = max(best_phrase.get(run, (0, 0, "")), own)
    for phrase, (_, _, run) in best_run.items():
        if best_phrase[run][-1] == phrase:
            yield run, phrase


def _counted(
    lines: Iterable[str], found_in: Callable[[str], set[str]]
) -> tuple[list[list[str]], Counter[str]]:
    """What is found in each line often enough, and in how many lines each is."""
    found = list(map(found_in, lines))
    counts = Counter(one for own in found for one in own)
    is_kept = {one for one, n in counts.items() if LEAST <= n <= MOST}
    return [sorted(own & is_kept) for own in found], counts


def listed(text: str) -> Iterator[Term]:
    """The lines of d2l's list; what has brackets or a choice is a remark."""
    for line in text.splitlines():
        english, chinese = line.split("\t")
        if not set("(/") & set(english + chinese):
            yield chinese, english


def lines_of(file: Path) -> list[str]:
    return gzip.decompress(file.read_bytes()).decode().split("\n")[:-1]


def main() -> None:
    """Mine each corpus, let the list have the last word, and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    data = parser.parse_args().data
    found: dict[str, Term] = {}
    for corpus in CORPORA:
        own = list(terms(*(lines_of(data / corpus / f"train.{side}.gz") for side in ("zh", "en"))))
        print(f"{corpus}: {len(own):,} terms")
        found |= {english: (chinese, english) for chinese, english in own}
    by_hand = list(listed(gzip.decompress((data / LIST).read_bytes()).decode()))
    found |= {english: (chinese, english) for chinese, english in by_hand}
    place = data / "terms"
    place.mkdir(exist_ok=True)
    for side, texts in zip(("zh", "en"), zip(*found.values(), strict=True), strict=True):
        text = "".join(f"{one}\n" for one in texts)
        (place / f"train.{side}.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
    print(f"{place}: {len(found):,} terms, {len(by_hand)} of them from the list")


if __name__ == "__main__":
    main()
