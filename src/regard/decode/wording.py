"""Between texts and the ids an engine takes: which direction, which parts, and back again."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, repeat
from typing import NamedTuple

from regard.decode.passage import Passage, is_blank, passage, spellings
from regard.decode.results import Alignment, Alternative, Share, Translation, links_of, shares_of
from regard.decode.search import Hypothesis, Ids, Place, Sentence
from regard.errors import ConfigError, DataError, Word
from regard.processors import n_processors
from regard.text.scripts import is_mostly_han, standing_in, stands_in
from regard.text.tokenizer import Tokenizer

Direction = tuple[str, str]
Spellings = tuple[Ids, ...]

NO_GAPS = ("", "")
A_THREAD = 500  # texts, for which it pays to begin one more

_ASKS = re.compile(r"\s*>>([^<>]+)<<\s*")


class Asked(NamedTuple):
    """One text on its way: where it goes, and its parts that hold something to translate."""

    text: str
    direction: Direction
    passage: Passage
    sentences: tuple[Sentence | None, ...]  # None: a blank part, which stays as it is


class Wording:
    """The tokenizers of a model, the directions it goes, and the most tokens it can take."""

    def __init__(
        self, src: Tokenizer, tgt: Tokenizer, directions: Sequence[Direction], longest: int
    ) -> None:
        self.src, self.tgt = src, tgt
        self.directions = tuple(directions)
        self.longest = longest
        # Beside its own tokens a source has its end, and maybe the language that is asked for.
        self.asking = frozenset(src.vocab.languages.values())
        self.room = longest - 1 - bool(self.asking)

    def asked(
        self,
        texts: Sequence[str],
        wanted: Sequence[Direction],
        *,
        prefix: str = "",
        terms: Mapping[str, str] | None = None,
    ) -> list[Asked]:
        """The texts in sentences; `wanted` has a direction for each, and may leave it open."""
        begun = tuple(self.tgt.encode(prefix)) if prefix else ()
        said = {
            word: spellings(term, self.tgt) for word, term in (terms or {}).items() if word and term
        }
        bare_texts, wanted = self._asking_in_text(texts, wanted)
        stripped = [text.strip() for text in bare_texts]
        # One look at all texts together is much faster than one at each.
        encoded = self.src.encode_all(stripped, min(1 + len(texts) // A_THREAD, n_processors()))
        ways = {way: self._ways(way) for way in dict.fromkeys(wanted)}
        asked = []
        for text, bare, ids, way in zip(texts, stripped, encoded, wanted, strict=True):
            direction = _written_in(text, ways[way])
            if is_blank(bare):
                asked.append(Asked(text, direction, Passage(("",), NO_GAPS), (None,)))
            elif len(ids) <= self.room and len(bare.splitlines()) == 1:  # as almost always
                one = self._sentence(bare, ids, direction, begun, said)
                asked.append(Asked(text, direction, Passage((bare,), NO_GAPS), (one,)))
            else:
                asked.append(self._in_parts(text, bare, direction, begun, said))
        return asked

    def _in_parts(
        self, text: str, bare: str, direction: Direction, begun: Ids, said: Mapping[str, Spellings]
    ) -> Asked:
        """A text of several lines, or longer than the model can take."""
        encode = self.src.encode
        parts = passage(bare, lambda part: len(encode(part)) <= self.room)
        sentences = (
            None if is_blank(part) else self._sentence(part, encode(part), direction, prefix, said)
            for part, prefix in zip(parts.parts, chain([begun], repeat(())))  # noqa: B905
        )
        return Asked(text, direction, parts, tuple(sentences))

    def _sentence(
        self,
        part: str,
        ids: Sequence[int],
        direction: Direction,
        prefix: Ids,
        said: Mapping[str, Spellings],
    ) -> Sentence:
        source = self._source(ids, direction)
        words = [word for word in said if stands_in(word, part)]
        if not words:
            return Sentence(source, prefix)
        ends = [len(self.src.decode(ids[:n])) for n in range(len(ids) + 1)]
        first = len(source) - 1 - len(ids)
        text = self.src.decode(ids)
        bare = map(self.src.normalizer, words)
        places = tuple(tuple(_places(word, text, ends, first)) for word in bare)
        return Sentence(source, prefix, tuple(said[word] for word in words), places)

    def _asking_in_text(
        self, texts: Sequence[str], wanted: Sequence[Direction]
    ) -> tuple[Sequence[str], Sequence[Direction]]:
        """The texts without a >>language<< before them, as Marian's are asked, which is wanted."""
        if not self.asking:
            return texts, wanted
        bare, ways = [], []
        for text, way in zip(texts, wanted, strict=True):
            one = _ASKS.match(text)
            asks = one is not None and one[1] in self.src.vocab.languages
            bare.append(text[one.end() :] if one and asks else text)
            ways.append((way[0], one[1]) if one and asks else way)
        return bare, ways

    def _source(self, ids: Sequence[int], direction: Direction) -> Ids:
        vocab = self.src.vocab
        # A model of others may also go to the language that it has no token for.
        asks = (vocab.languages[direction[1]],) if direction[1] in vocab.languages else ()
        return (*asks, *ids, vocab.eos)

    def pair(self, src: str, tgt: str, tgt_lang: str) -> tuple[Ids, Ids]:
        """The ids of a source and a given translation, both with their ends."""
        [src], [way] = self._asking_in_text([src], [("", tgt_lang)])
        direction = _written_in(src, self._ways(way))
        ids = (
            self._source(self.src.encode(src.strip()), direction),
            (*self.tgt.encode(tgt.strip()), self.tgt.vocab.eos),
        )
        for side, row in zip((Word("source"), Word("translation")), ids, strict=True):
            if len(row) > self.longest:
                raise DataError(
                    "a {side} of {tokens} tokens is longer than the {most} that this model has "
                    "positions for; give it in parts",
                    side=side,
                    tokens=len(row),
                    most=self.longest,
                )
        return ids

    def _ways(self, wanted: Direction) -> list[Direction]:
        """The directions that are as asked for."""
        ways = [
            way
            for way in self.directions
            if all(not asked or asked == one for asked, one in zip(wanted, way, strict=True))
        ]
        if not ways:
            raise ConfigError(
                "this model does not go {asked}; it goes {known}",
                asked=_arrow(wanted),
                known=", ".join(map(_arrow, self.directions)),
            )
        return ways

    def forbidden(self, words: Iterable[str]) -> tuple[Ids, ...]:
        """What must not be said, so that none of the words is."""
        return tuple(chain.from_iterable(spellings(word, self.tgt) for word in words if word))

    def translations(
        self, asked: Sequence[Asked], found: Sequence[list[Hypothesis]]
    ) -> list[Translation]:
        """The texts again, of the hypotheses for each of their sentences."""
        rest = iter(found)
        return [self.translation(one, rest) for one in asked]

    def translation(self, asked: Asked, found: Iterator[list[Hypothesis]]) -> Translation:
        """A text again, of the hypotheses for each of its sentences."""
        match asked.sentences:
            case (Sentence() as sentence,):  # as almost always: there is nothing to put together
                alternatives = [self._alone(sentence, one) for one in next(found)]
            case sentences:
                parts = [[None] if one is None else next(found) for one in sentences]
                n_best = max(map(len, parts))
                # A part with fewer hypotheses than another has its last in all that follow.
                ranks = zip(*[own + own[-1:] * (n_best - len(own)) for own in parts], strict=True)
                alternatives = [self._together(asked, rank) for rank in ranks]
        return Translation(asked.text, *asked.direction, tuple(alternatives))

    def _alone(self, sentence: Sentence, said: Hypothesis) -> Alternative:
        """A text of one part."""
        alignment = None if said.attention is None else self._alignment([(sentence, said)])
        return Alternative(self._said(said), said.score, said.is_finished, alignment)

    def _together(self, asked: Asked, parts: Sequence[Hypothesis | None]) -> Alternative:
        """A text of several, or of none that says anything."""
        texts = ["" if part is None else self._said(part) for part in parts]
        pairs = zip(asked.sentences, parts, strict=True)
        real = [(one, part) for one, part in pairs if one is not None and part is not None]
        scores = [part.score for _, part in real]
        return Alternative(
            asked.passage.joined(texts, asked.direction[1]),
            sum(scores) / len(scores) if scores else 0.0,
            all(part.is_finished for _, part in real),
            self._alignment(real) if any(p.attention is not None for _, p in real) else None,
        )

    def _said(self, hypothesis: Hypothesis) -> str:
        """The text of a part: one line, even if a network has spelled a line break."""
        return " ".join(self.tgt.decode(hypothesis.ids).splitlines())

    def _alignment(self, parts: Sequence[tuple[Sentence, Hypothesis]]) -> Alignment:
        """The links of all parts, counted through."""
        src: list[str] = []
        tgt: list[str] = []
        links: list[tuple[int, int]] = []
        shares: list[Share] = []
        for sentence, hypothesis in parts:
            first = int(sentence.ids[0] in self.asking)
            ids = sentence.ids[first:-1]
            rows = [row[first : first + len(ids)] for row in hypothesis.attention or ()]
            links += [
                (a + len(src), b + len(tgt))
                for a, b in links_of(rows, len(ids), len(hypothesis.ids))
            ]
            shares += [
                (a + len(src), b + len(tgt), share)
                for a, b, share in shares_of(rows, len(ids), len(hypothesis.ids))
            ]
            src += pieces_of(self.src, ids)
            tgt += pieces_of(self.tgt, hypothesis.ids)
        return Alignment(tuple(src), tuple(tgt), tuple(links), tuple(shares))


def sentences_of(asked: Iterable[Asked]) -> list[Sentence]:
    """All that is to be translated, in order."""
    return [one for text in asked for one in text.sentences if one is not None]


def pieces_of(tokenizer: Tokenizer, ids: Iterable[int]) -> tuple[str, ...]:
    """Ids as the vocabulary writes them."""
    return tuple(tokenizer.vocab.pieces[id] for id in ids)


def _written_in(text: str, ways: Sequence[Direction]) -> Direction:
    """The one direction, or else that whose source is written in the text's script."""
    if len(ways) == 1:
        return ways[0]
    is_chinese = is_mostly_han(text)
    return next((way for way in ways if way[0].startswith("zh") == is_chinese), ways[0])


def _places(word: str, text: str, ends: Sequence[int], first: int) -> Iterator[Place]:
    """Where a word stands in a text, each time.

    Piece n stands between `ends[n]` and the next; the first is counted as `first`.
    """
    for start, end in standing_in(word, text):
        own = [n for n in range(len(ends) - 1) if ends[n] < end and start < ends[n + 1]]
        if own:
            head, tail = text[ends[own[0]] : start].strip(), text[end : ends[own[-1] + 1]].strip()
            n_letters = len(head) + (end - start) + len(tail)
            parts = len(head) / n_letters, 1.0 - len(tail) / n_letters
            yield Place(tuple(n + first for n in own), *parts)


def _arrow(direction: Direction) -> str:
    return " → ".join(side or "?" for side in direction)
