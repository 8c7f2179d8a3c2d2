"""Search and scores by torch: every kind of network, everything that can be asked, any device."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.attention import kernels
from regard.bundle import Bundle
from regard.decode.beam import beam_search
from regard.decode.coverage import Weights, rescored
from regard.decode.engines.memory import give_back_memory
from regard.decode.engines.packed import can_pack, pack
from regard.decode.ensemble import Ensemble, Network
from regard.decode.greedy import greedy
from regard.decode.placing import in_place
from regard.decode.ready import Ready, limit, padded_ids
from regard.decode.rooms import Rooms, is_plain
from regard.decode.sampling import sample
from regard.decode.scoring import attentions, scored
from regard.decode.search import Found, Hear, Hypothesis, Ids, Scored, Search, Sentence, tell
from regard.decode.terms import beams_for, lacking
from regard.errors import ConfigError
from regard.model.build import build_model
from regard.model.transformer import Transformer
from regard.model.weights import load_weights
from regard.tensors import read_tensors
from regard.text.subword import SPACE

SENTENCES = 64  # translated at once on a CPU, where more are not quicker ...
TOKENS = 2048  # ... and source tokens, counted for each hypothesis
MANY = 512  # source tokens after which it pays to give memory back
SCORED = 2048  # tokens of a side that are scored at once
GPU = 8  # times as much is done at once there
SLOTS = 16  # sentences from which on it pays there to record the search and replay it


class TorchEngine:
    """One network, or several as one, with the ids it has to know."""

    def __init__(
        self,
        networks: Sequence[Network],
        *,
        pad: int,
        bos: int,
        eos: int,
        longest: int,
        device: torch.device,
        pieces: Sequence[str] = (),
        silent: Collection[int] = (),
    ) -> None:
        """`pad` fills up sources; `longest` is as far as the positions of all networks go.

        Who is told the `pieces` that words are written with, and what says nothing in a source, can
        put terms in their places.
        """
        self.network = networks[0] if len(networks) == 1 else Ensemble(networks)
        self.pad, self.bos, self.eos = pad, bos, eos
        self.longest = longest
        self.device, self.pieces, self.silent = device, pieces, silent
        self.times = GPU if device.type == "cuda" else 1

    def search(
        self, sentences: Sequence[Sentence], search: Search, hear: Hear | None = None
    ) -> list[Found]:
        """For each sentence its `nbest` hypotheses, the best first.

        Terms are asked for only where the free search does not say them anyway: first whether they
        have a clear place in what it says.
        """
        _check(search, sentences)
        if self._is_in_slots(sentences, search) and not search.wants_attention:
            return self._rooms.search(sentences, search, hear)
        found = self._with_terms(sentences, search)
        if search.wants_attention:
            found = self._with_attention(sentences, found)
        return tell(found, hear)

    def _with_terms(self, sentences: Sequence[Sentence], search: Search) -> list[Found]:
        """The hypotheses of sentences, which say their terms."""
        free = [replace(one, terms=()) if one.terms else one for one in sentences]
        found = self._found(free, search)
        lacks = [
            place
            for place, one in enumerate(sentences)
            if one.terms and any(lacking(each.ids, one.terms) for each in found[place])
        ]
        placed = self._placed(
            [sentences[place] for place in lacks], [found[place] for place in lacks], search
        )
        others = [place for place, own in zip(lacks, placed, strict=True) if own is None]
        again = iter(self._found([sentences[place] for place in others], search))
        for place, own in zip(lacks, placed, strict=True):
            found[place] = next(again) if own is None else own
        return found

    def _placed(
        self, sentences: Sequence[Sentence], found: Sequence[Found], search: Search
    ) -> list[Found | None]:
        """The same hypotheses with their terms in place; None where it is not clear where."""
        has_rules = search.forbidden or search.no_repeat or search.renormalize
        if not self.pieces or has_rules or search.coverage_penalty:
            return [None] * len(sentences)
        placed: list[dict[Ids, bool] | None] = []  # and whether each has come to an end
        weights = self._attentions(sentences, found)
        for one, own, own_weights in zip(sentences, found, weights, strict=True):
            said = {
                in_place(one, hypothesis.ids, each, self.pieces, self.silent): (
                    hypothesis.is_finished
                )
                for hypothesis, each in zip(own, own_weights, strict=True)
            }
            most = limit(one, search, self.longest)
            is_right = len(said) == len(own) and all(
                ids is not None and search.min_len <= len(ids) and len(ids) + ended <= most
                for ids, ended in said.items()
            )
            placed.append({ids: ended for ids, ended in said.items() if ids} if is_right else None)
        return self._judged(sentences, placed, search)

    def _judged(
        self,
        sentences: Sequence[Sentence],
        said: Sequence[Mapping[Ids, bool] | None],
        search: Search,
    ) -> list[Found | None]:
        """Given translations, and whether each has come to an end, the best first."""
        scores = iter(
            self.score(
                [
                    (sentence.ids, (*ids, self.eos) if ended else ids)
                    for sentence, own in zip(sentences, said, strict=True)
                    for ids, ended in (own or {}).items()
                ]
            )
        )

        def judged(ids: Ids, ended: bool) -> Hypothesis:
            log_probs = next(scores).log_probs
            return Hypothesis(ids, sum(log_probs) / len(log_probs) ** search.length_penalty, ended)

        return [
            None
            if own is None
            else sorted((judged(*one) for one in own.items()), key=lambda one: -one.score)
            for own in said
        ]

    def forget(self) -> None:
        """Let go of memory that is kept from search to search."""
        if "_rooms" in self.__dict__:
            self._rooms.forget()

    def score(self, pairs: Sequence[tuple[Ids, Ids]]) -> list[Scored]:
        """How probable each target is after its source; neither of them has its end left out."""
        found: list[Scored] = [Scored(())] * len(pairs)
        for chosen in self._by_length(pairs):
            some = [pairs[place] for place in chosen]
            scores = scored(self.network, some, pad=self.pad, bos=self.bos, device=self.device)
            for place, score in zip(chosen, scores, strict=True):
                found[place] = score
        return found

    @torch.inference_mode()
    def explain(self, src: Ids, tgt: Ids) -> tuple[Weights, Weights | None, Weights | None]:
        """Attention to the source, of the source and of the target, where there are such.

        By layer, head, query and key; the target is given as the network is, from its start on.
        """
        src_ids, tgt_ids = (torch.tensor([side], device=self.device) for side in (src, tgt))
        found = self.network.explain(src_ids, tgt_ids)
        cross, encoder, decoder = (
            None if weights is None else weights[:, 0].float().cpu().numpy()
            for weights in (found.cross, found.encoder, found.decoder)
        )
        assert cross is not None
        return cross, encoder, decoder

    def _found(self, sentences: Sequence[Sentence], search: Search) -> list[Found]:
        """The hypotheses of sentences under their terms."""
        if self._is_in_slots(sentences, search):
            return self._rooms.search(sentences, search)
        beams = [search.nbest if search.temperature else beams_for(s, search) for s in sentences]
        found: list[list[Hypothesis]] = [[] for _ in sentences]
        sizes = [(n, len(one.ids)) for n, one in zip(beams, sentences, strict=True)]
        for chosen in _batches(sizes, SENTENCES * self.times, TOKENS * self.times):
            some = [sentences[place] for place in chosen]
            ready = self._read(some)
            if search.temperature:
                hypotheses = sample(ready, some, search)
            elif beams[chosen[0]] == 1:
                hypotheses = greedy(ready, some, search)
            else:
                hypotheses = beam_search(ready, some, search)
            for place, own in zip(chosen, hypotheses, strict=True):
                found[place] = own
            if max(len(one.ids) for one in some) * len(some) > MANY:
                del ready
                give_back_memory()
        if search.coverage_penalty:
            found = self._covering(sentences, found, search.coverage_penalty)
        return [own[: search.nbest] for own in found]

    def _is_in_slots(self, sentences: Sequence[Sentence], search: Search) -> bool:
        """Whether they are searched for without waiting for the network at every word."""
        return (
            kernels.ARE_HERE
            and self.device.type == "cuda"
            and len(sentences) >= SLOTS
            and isinstance(self.network, Transformer)
            and is_plain(sentences, search, self.eos)
        )

    @cached_property
    def _rooms(self) -> Rooms:
        assert isinstance(self.network, Transformer)
        return Rooms(
            self.network,
            pad=self.pad,
            bos=self.bos,
            eos=self.eos,
            longest=self.longest,
            device=self.device,
        )

    @torch.inference_mode()
    def _read(self, sentences: Sequence[Sentence]) -> Ready[Any]:
        ids, src = padded_ids([one.ids for one in sentences], self.pad, self.device)
        network: Any = self.network  # whose state is its own affair
        state = network.start(network.encode(ids, src))
        return Ready(network.step, state, self.bos, self.eos, self.longest, self.device)

    def _covering(
        self, sentences: Sequence[Sentence], found: Sequence[Sequence[Hypothesis]], penalty: float
    ) -> list[list[Hypothesis]]:
        """The hypotheses of each sentence with their coverage in their scores, the best first."""
        weights = self._attentions(sentences, found)
        return [
            rescored(own, own_weights, penalty, one.terms)
            for one, own, own_weights in zip(sentences, found, weights, strict=True)
        ]

    def _with_attention(
        self, sentences: Sequence[Sentence], found: Sequence[Sequence[Hypothesis]]
    ) -> list[list[Hypothesis]]:
        return [
            [
                replace(one, attention=tuple(map(tuple, weights.tolist())))
                for one, weights in zip(own, own_weights, strict=True)
            ]
            for own, own_weights in zip(found, self._attentions(sentences, found), strict=True)
        ]

    def _by_length(self, pairs: Sequence[tuple[Ids, Ids]]) -> Iterator[list[int]]:
        """Places of the pairs that are scored together."""
        sizes = [(1, max(map(len, pair))) for pair in pairs]
        return _batches(sizes, SENTENCES * self.times, SCORED * self.times)

    def _attentions(
        self, sentences: Sequence[Sentence], found: Sequence[Sequence[Hypothesis]]
    ) -> list[list[Weights]]:
        """The attention of each hypothesis of each sentence, its end counted if it came to it."""
        pairs = [
            (sentence.ids, (*one.ids, self.eos) if one.is_finished else one.ids)
            for sentence, own in zip(sentences, found, strict=True)
            for one in own
        ]
        weights: list[Weights] = [np.zeros((0, 0), np.float32)] * len(pairs)
        for chosen in self._by_length(pairs):
            some = [pairs[place] for place in chosen]
            own = attentions(self.network, some, pad=self.pad, bos=self.bos, device=self.device)
            for place, each in zip(chosen, own, strict=True):
                weights[place] = each
        rest = iter(weights)
        return [[next(rest) for _ in own] for own in found]


def load_network(
    bundle: Bundle, device: torch.device, dtype: torch.dtype = torch.float32
) -> Network:
    """The network of a model directory, ready to translate; on a CPU its matrices are packed."""
    n_src, n_tgt = len(bundle.src_tokenizer.vocab), len(bundle.tgt_tokenizer.vocab)
    network = build_model(bundle.model, n_src, n_tgt)
    load_weights(network, read_weights(bundle))
    if can_pack(device) and dtype == torch.float32:
        pack(network)
    return network.to(device, dtype).eval()


def read_weights(bundle: Bundle) -> dict[str, Tensor]:
    """The weights of a model directory by name."""
    return {name: torch.from_numpy(array) for name, array in read_tensors(bundle.weights).items()}


def torch_engine(
    bundles: Sequence[Bundle], device: torch.device, dtype: torch.dtype = torch.float32
) -> TorchEngine:
    """An engine for the models in these directories, which speak with one voice."""
    src, tgt = bundles[0].src_tokenizer.vocab, bundles[0].tgt_tokenizer.vocab
    return TorchEngine(
        [load_network(bundle, device, dtype) for bundle in bundles],
        pad=src.pad,
        bos=tgt.bos,
        eos=tgt.eos,
        longest=min(bundle.model.max_len for bundle in bundles),
        device=device,
        # of others it is not known where their words begin
        pieces=tgt.pieces if any(one.startswith(SPACE) for one in tgt.pieces) else (),
        silent=src.silent,
    )


def _check(search: Search, sentences: Sequence[Sentence]) -> None:
    if search.temperature and any(one.terms for one in sentences):
        raise ConfigError(
            "words cannot be drawn, as temperature = {temperature} asks, where terms are to be "
            "said; set it to 0, or leave the terms out",
            temperature=search.temperature,
        )
    if search.beam % search.groups:
        raise ConfigError(
            "beam = {beam} is not a multiple of groups = {groups}",
            beam=search.beam,
            groups=search.groups,
        )


def _batches(sizes: Sequence[tuple[int, int]], sentences: int, tokens: int) -> Iterator[list[int]]:
    """Places of what goes together: as many rows each, of like lengths, within these numbers.

    A size is the rows of a sentence and its length.
    """
    batch: list[int] = []
    for place in sorted(range(len(sizes)), key=sizes.__getitem__):
        rows, length = sizes[place]  # the longest so far
        n = len(batch) + 1
        if batch and (rows != sizes[batch[0]][0] or n > sentences or n * rows * length > tokens):
            yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch
