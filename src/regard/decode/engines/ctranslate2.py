"""Search and scores by CTranslate2, the quick way on a CPU; equal to `reference.py`. No torch here.

Where CTranslate2's own search is another than ours it is asked otherwise, or not at all:

- at its limit it counts what has not ended as found, even if as many as the beam have. So a search
  goes one word past its limit; who is not done there is searched for once more, up to the limit.
- without a length penalty it stops at the first end. So none is a very small one.
- it scores the words of a prefix 0, and others, where some are forbidden, as if those had no
  probability. So `score` is asked for the scores. In a beam of 1 the words are the same; in a wider
  one they are not, for hypotheses are compared by such scores, and `cannot` says so. Where it is
  asked to be so, by `renormalize`, all is as it should be.
- the first word of a beam it gives the attention of another sentence. So that is asked for by
  itself.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import groupby
from typing import Any, Literal

import numpy as np

from regard.bundle import Bundle
from regard.config import ModelConfig
from regard.decode.coverage import rescored
from regard.decode.search import Found, Hear, Hypothesis, Ids, Scored, Search, Sentence, tell
from regard.errors import ConfigError, DataError, ModelError, Word
from regard.interchange.ctranslate2 import (
    Dtype,
    inexpressible,
    open_converted,
    source_word,
    target_word,
)
from regard.processors import n_processors
from regard.tensors import stored_dtype
from regard.text.vocab import Vocabulary

FEWEST, ENOUGH, MOST = 16, 32, 64  # sentences in a batch: more are no quicker, fewer are slower
TOKENS = 1024  # of a batch, its rows filled up to the longest ...
ROWS = 320  # ... and hypotheses, each of which has a number for every word of the vocabulary
NO_PENALTY = 1e-30  # every length to the power of this is 1


def cannot(model: ModelConfig, search: Search, sentences: Sequence[Sentence]) -> str | None:
    """The first thing asked for that this engine cannot do as it is defined; None if it can."""
    if what := inexpressible(model):
        return what
    if any(sentence.terms for sentence in sentences):
        return "terms"
    if search.temperature > 0.0:
        return f"temperature = {search.temperature}"
    if search.groups > 1:
        return f"groups = {search.groups}"
    if search.beam > 1:
        are_other = not search.renormalize
        rules = {
            "prefix": any(sentence.prefix for sentence in sentences),
            "forbidden": are_other and search.forbidden,
            f"no_repeat = {search.no_repeat}": are_other and search.no_repeat,
            f"min_len = {search.min_len}": are_other and search.min_len,
        }
        asked = (f"{name}, beam = {search.beam}" for name, is_asked in rules.items() if is_asked)
        return next(asked, None)
    return None


class CTranslate2Engine:
    """A bundle that runs in CTranslate2, on the CPU.

    Where there are many batches each has one thread, and as many run at once as there are
    processors: threads that share a batch wait for one another at every product. A few sentences
    have all threads to themselves, in float32: one takes half the time on two. In int8, where
    CTranslate2's products share badly, it would take six times as long.
    """

    def __init__(
        self, bundle: Bundle, dtype: Dtype | Literal["auto"] = "auto", *, threads: int = 0
    ) -> None:
        if dtype == "auto":  # as the weights are stored, except that halves are no gain
            dtype = "int8" if stored_dtype(bundle.weights) == "int8" else "float32"
        self.model = bundle.model
        self.src, self.tgt = bundle.src_tokenizer.vocab, bundle.tgt_tokenizer.vocab
        self.threads = threads or n_processors()
        self.bundle, self.dtype = bundle, dtype
        self.src_words = [source_word(id) for id in range(len(self.src))]
        self.tgt_words = [target_word(id) for id in range(len(self.tgt))]

    @cached_property
    def _side_by_side(self) -> Any:
        return open_converted(self.bundle, self.dtype, parallel=self.threads, threads=1)

    @cached_property
    def _together(self) -> Any:
        return open_converted(self.bundle, self.dtype, parallel=1, threads=self.threads)

    def _translator(self, n_batches: int) -> Any:
        are_enough = n_batches >= self.threads or self.dtype == "int8"
        return self._side_by_side if are_enough else self._together

    def search(
        self, sentences: Sequence[Sentence], search: Search, hear: Hear | None = None
    ) -> list[Found]:
        """For each sentence its `nbest` hypotheses, the best first, heard of when all are there."""
        return tell(self._searched(sentences, search), hear)

    def _searched(self, sentences: Sequence[Sentence], search: Search) -> list[Found]:
        if what := cannot(self.model, search, sentences):
            raise ConfigError(
                "the ctranslate2 engine cannot do {what}; choose the torch engine", what=what
            )
        self._check([one.ids for one in sentences], self.src, "source")
        _check_ids([*search.forbidden, *(one.prefix for one in sentences)], self.tgt, "target")
        found = self._found(sentences, search)
        has_rules = search.forbidden or search.no_repeat or search.min_len
        has_rules = has_rules or any(one.prefix for one in sentences)
        if has_rules and not search.renormalize:
            found = self._rescored(sentences, found, search.length_penalty)
        if search.coverage_penalty:
            weights = [[np.array(one.attention, np.float32) for one in own] for own in found]
            pairs = zip(found, weights, strict=True)
            found = [rescored(own, each, search.coverage_penalty) for own, each in pairs]
        found = [own[: search.nbest] for own in found]
        if search.wants_attention or not search.coverage_penalty:
            return found
        return [[replace(one, attention=None) for one in own] for own in found]

    def score(self, pairs: Sequence[tuple[Ids, Ids]]) -> list[Scored]:
        """How probable each target is after its source; neither of them has its end left out."""
        self._check([source for source, _ in pairs], self.src, "source")
        self._check([target for _, target in pairs], self.tgt, "target", least=0)
        end = (self.tgt.eos,)
        batches = list(self._batches(range(len(pairs)), [max(map(len, p)) for p in pairs], 1))
        translator = self._translator(len(batches))
        running = [
            (
                places,
                translator.score_batch(
                    [self._source(pairs[place][0]) for place in places],
                    [
                        # CTranslate2 adds an end, wanted or not.
                        self._target(target[:-1] if target[-1:] == end else target)
                        for target in (pairs[place][1] for place in places)
                    ],
                    max_input_length=0,
                    asynchronous=True,
                ),
            )
            for places in batches
        ]
        scored = [Scored(())] * len(pairs)
        for places, results in running:
            for place, result in zip(places, results, strict=True):
                log_probs = result.result().log_probs
                scored[place] = Scored(tuple(log_probs[: len(pairs[place][1])]))
        return scored

    def _found(self, sentences: Sequence[Sentence], search: Search) -> list[list[Hypothesis]]:
        """As many hypotheses as the beam for each sentence, by CTranslate2's own scores."""
        lens = [len(one.ids) for one in sentences]
        limits = [min(search.max_len or 2 * n + 20, self.model.max_len) for n in lens]
        found: list[list[Hypothesis]] = [[] for _ in sentences]
        batches = list(self._batches(range(len(sentences)), lens, search.beam))
        past = [max(limits[place] for place in batch) + 1 for batch in batches]
        for place, own in self._run(sentences, search, zip(batches, past, strict=True)):
            found[place] = own
        # A search that did not end in time has at least one hypothesis that is too long.
        late = [place for place, n in enumerate(limits) if max(map(_steps, found[place])) > n]
        again = [
            (batch, limit)
            for limit, places in groupby(sorted(late, key=limits.__getitem__), limits.__getitem__)
            for batch in self._batches(list(places), lens, search.beam)
        ]
        for place, own in self._run(sentences, search, again):
            found[place] = own
        if search.beam > 1 and _wants_attention(search):
            first = Search(beam=1, wants_attention=True)
            for place, [one] in self._run(sentences, first, [(batch, 1) for batch in batches]):
                found[place] = [_with_first(one, own) for own in found[place]]
        return found

    def _run(
        self,
        sentences: Sequence[Sentence],
        search: Search,
        batches: Iterable[tuple[Sequence[int], int]],
    ) -> Iterator[tuple[int, list[Hypothesis]]]:
        """What CTranslate2 finds for batches, each with the most words it may say."""
        batches = list(batches)
        if not batches:
            return  # and no engine is opened for nothing
        translator = self._translator(len(batches))
        running = [
            (batch, self._start(translator, [sentences[place] for place in batch], search, limit))
            for batch, limit in batches
        ]
        for batch, results in running:
            for place, result in zip(batch, results, strict=True):
                yield place, self._hypotheses(result.result())

    def _start(
        self, translator: Any, sentences: Sequence[Sentence], search: Search, limit: int
    ) -> list[Any]:
        prefixes = [self._target(one.prefix) for one in sentences]
        results: list[Any] = translator.translate_batch(
            [self._source(one.ids) for one in sentences],
            target_prefix=prefixes if any(prefixes) else None,
            asynchronous=True,
            beam_size=search.beam,
            num_hypotheses=search.beam,
            length_penalty=search.length_penalty or NO_PENALTY,
            no_repeat_ngram_size=search.no_repeat,
            suppress_sequences=[self._target(words) for words in search.forbidden] or None,
            return_end_token=True,
            max_input_length=0,
            max_decoding_length=limit,
            min_decoding_length=min(search.min_len, limit),
            return_scores=True,
            return_attention=_wants_attention(search),
        )
        return results

    def _hypotheses(self, result: Any) -> list[Hypothesis]:
        end = self.tgt_words[self.tgt.eos]
        hypotheses = []
        for place, words in enumerate(result.hypotheses):
            is_finished = words[-1] == end
            ids = tuple(map(int, words[:-1] if is_finished else words))
            attention = tuple(map(tuple, result.attention[place])) if result.attention else None
            hypotheses.append(Hypothesis(ids, result.scores[place], is_finished, attention))
        return hypotheses

    def _rescored(
        self, sentences: Sequence[Sentence], found: Sequence[Sequence[Hypothesis]], penalty: float
    ) -> list[list[Hypothesis]]:
        """The same hypotheses with the scores that the network gives them, the best first."""
        pairs = [
            (sentence.ids, (*one.ids, self.tgt.eos) if one.is_finished else one.ids)
            for sentence, own in zip(sentences, found, strict=True)
            for one in own
        ]
        scores = (sum(one.log_probs) / len(one.log_probs) ** penalty for one in self.score(pairs))
        return [
            sorted((replace(one, score=next(scores)) for one in own), key=lambda one: -one.score)
            for own in found
        ]

    def _batches(
        self, places: Sequence[int], lens: Sequence[int], beam: int
    ) -> Iterator[list[int]]:
        """Places of like lengths, the longest first: as they end, the short ones fill threads."""
        rows = min(self._rows(len(places)), max(ROWS // beam, 1))
        batch: list[int] = []
        for place in sorted(places, key=lens.__getitem__, reverse=True):
            n = len(batch) + 1
            if batch and (n > rows or n * lens[batch[0]] > TOKENS):
                yield batch
                batch = []
            batch.append(place)
        if batch:
            yield batch

    def _rows(self, n: int) -> int:
        """Of n sentences, how many to a batch: two batches for every thread, of about one size.

        Who has the longest then has the shortest, and all are done together. Where that would
        leave too few to a batch there is one for every thread.
        """
        each = -(-n // self.threads)
        rows = max(-(-each // 2), min(each, ENOUGH), FEWEST)
        n_batches = max(-(-n // min(rows, MOST)), 1)
        return -(-n // n_batches)

    def _source(self, ids: Ids) -> list[str]:
        return [self.src_words[id] for id in ids]

    def _target(self, ids: Ids) -> list[str]:
        return [self.tgt_words[id] for id in ids]

    def _check(self, rows: Sequence[Ids], vocab: Vocabulary, side: str, least: int = 1) -> None:
        """Refuse what CTranslate2 would read as something else, or fail at without a word."""
        _check_ids(rows, vocab, side)
        lens = [len(row) for row in rows]
        if lens and min(lens) < least:
            raise DataError(
                "{side} has a sentence of length {length}", side=Word(side), length=min(lens)
            )
        if lens and max(lens) > self.model.max_len:
            raise ModelError(
                "the text has {longest} tokens but the model's positions end at {max_len}; "
                "split it, or build the model with a larger max_len",
                longest=max(lens),
                max_len=self.model.max_len,
            )


def _check_ids(rows: Sequence[Ids], vocab: Vocabulary, side: str) -> None:
    for row in rows:
        for id in row:
            if not 0 <= id < len(vocab):
                raise DataError(
                    "{side} id {id} is outside the vocabulary, whose {n_words} ids are 0 to {last}",
                    side=Word(side),
                    id=id,
                    n_words=len(vocab),
                    last=len(vocab) - 1,
                )


def _steps(hypothesis: Hypothesis) -> int:
    """How many words it took to find it, its end counted."""
    return len(hypothesis.ids) + hypothesis.is_finished


def _wants_attention(search: Search) -> bool:
    return search.wants_attention or search.coverage_penalty != 0.0


def _with_first(first: Hypothesis, hypothesis: Hypothesis) -> Hypothesis:
    """A hypothesis whose first word looks where `first` looks: both have the start before it."""
    assert first.attention is not None
    assert hypothesis.attention is not None
    return replace(hypothesis, attention=(first.attention[0], *hypothesis.attention[1:]))
