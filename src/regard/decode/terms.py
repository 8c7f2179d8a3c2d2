"""Terms: spellings of which one must stand, word after word, somewhere in the translation.

A hypothesis lacks so many words: those of each term that it does not have, by the shortest
spelling, but for what its end has said of one. Of one alone, since what begins like two terms can
go on as one of them only; so some word always leaves less to say.

Hypotheses that lack the same number form a bank, and a beam is dealt out bank by bank, so that the
likely ones that lack much do not push out the unlikely ones that lack little (dynamic beam
allocation, Post and Vilar 2018). Then as many banks as there are words to say, and one more, must
have a place in the beam.
"""

from collections.abc import Iterable, Sequence

from regard.decode.search import Hypothesis, Ids, Search, Sentence

Term = tuple[Ids, ...]

WIDEST = 24  # beams of a group, at most, that the terms of a sentence ask for


def lacking(ids: Ids, terms: Iterable[Term]) -> int:
    """How many words of its terms a hypothesis lacks."""
    return _to_say(ids, [term for term in terms if not _has(ids, term)])


def lacking_after(ids: Ids, words: Sequence[int], terms: Sequence[Term]) -> list[int]:
    """`lacking` of the hypothesis with each of these words behind it, for many words at once."""
    missing = [term for term in terms if not _has(ids, term)]
    of_any = words_of(missing)
    afresh = _to_say((), missing)
    return [lacking((*ids, word), missing) if word in of_any else afresh for word in words]


def words_of(terms: Iterable[Term]) -> frozenset[int]:
    """All words of all spellings."""
    return frozenset(word for term in terms for spelling in term for word in spelling)


def beams_for(sentence: Sentence, search: Search) -> int:
    """How many beams a sentence is searched with: more if it has many words to say."""
    n = search.beam // search.groups
    to_say = lacking((), sentence.terms)
    return search.groups * max(n, min(1 + to_say, WIDEST) if to_say else 0)


def deal(banks: Sequence[int]) -> list[int]:
    """Places of candidates, given from the likeliest down, in the order they come to the beam.

    First the likeliest of each bank, then the second of each, and so on; of those the ones that
    lack least come first.
    """
    n_before: dict[int, int] = {}
    keys = []
    for place, bank in enumerate(banks):
        n_before[bank] = n_before.get(bank, -1) + 1
        keys.append((n_before[bank], bank, place))
    return [place for _, _, place in sorted(keys)]


def best_first(hypotheses: Iterable[Hypothesis], terms: Sequence[Term]) -> list[Hypothesis]:
    """First those that lack no term, then by their scores."""
    return sorted(hypotheses, key=lambda one: (lacking(one.ids, terms) > 0, -one.score))


def _has(ids: Ids, term: Term) -> bool:
    return any(
        ids[start : start + len(spelling)] == spelling
        for spelling in term
        for start in range(len(ids) - len(spelling) + 1)
    )


def _to_say(ids: Ids, missing: Sequence[Term]) -> int:
    said = max((_shortest(term) - _to_come(ids, term) for term in missing), default=0)
    return sum(map(_shortest, missing)) - said


def _shortest(term: Term) -> int:
    return min(map(len, term))


def _to_come(ids: Ids, term: Term) -> int:
    """Words that are left of the spelling whose beginning stands at the end of the hypothesis."""
    return min(
        len(spelling) - n
        for spelling in term
        for n in range(len(spelling) + 1)
        if ids[len(ids) - n :] == spelling[:n] and n <= len(ids)
    )
