"""What the thorough worker's process runs: torch, for everything that can be asked of a model.

It is imported in that process alone, since torch takes seconds to import.
"""

import os
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from regard.bundle import Bundle, open_bundle
from regard.decode.coverage import Weights
from regard.decode.engines.torch import TorchEngine, torch_engine
from regard.decode.greedy import write
from regard.decode.inside import Head, Kind, head_of
from regard.decode.ready import Ready, padded_ids
from regard.decode.search import Hypothesis, Ids, Scored, Search, Sentence
from regard.decode.trace import Traced, trace
from regard.errors import ConfigError
from regard.model.device import device_named
from regard.model.transformer import Transformer
from regard.serve.worker import Loading

Say = Callable[[Any], None]


class ThoroughModel:
    """One model in torch, loaded when it is first asked."""

    def __init__(self, bundle: Bundle, device: str) -> None:
        self.bundle, self.device = bundle, device

    @cached_property
    def engine(self) -> TorchEngine:
        """Its engine."""
        return torch_engine([self.bundle], device_named(self.device))

    def search(self, sentences: list[Sentence], search: Search) -> list[list[Hypothesis]]:
        """For each sentence its hypotheses, the best first."""
        return self.engine.search(sentences, search)

    def score(self, pairs: list[tuple[Ids, Ids]]) -> list[Scored]:
        """How probable each target is after its source."""
        return self.engine.score(pairs)

    def attend(self, src: Ids, tgt: Ids) -> tuple[Weights, Weights | None, Weights | None]:
        """Every weight: to the source, of the source, of the target."""
        return self.engine.explain(src, (self.engine.bos, *tgt[:-1]))

    def head(self, src: Ids, tgt: Ids, kind: Kind, layer: int, head: int) -> Head:
        """One head, and what it computed with."""
        return head_of(self.engine, src, (self.engine.bos, *tgt[:-1]), kind, layer, head)

    @torch.inference_mode()
    def embed(self, src: Ids) -> NDArray[np.float32]:
        """The vectors of a source's tokens, before it is added where they stand."""
        network = self.engine.network
        if not isinstance(network, Transformer):
            raise ConfigError("only a Transformer has an embedding to show")
        embedding = network.source
        ids = torch.tensor(src, device=self.engine.device)
        vectors: NDArray[np.float32] = (
            (embedding.scale * embedding.weight[ids]).float().cpu().numpy()
        )
        return vectors

    def trace(self, sentence: Sentence, search: Search) -> Traced:
        """Every candidate of a beam search."""
        return trace(self._ready(sentence), sentence, search)

    def write(self, sentence: Sentence, say: Say) -> Hypothesis:
        """The greedy translation; each word is said as soon as it is chosen."""

        def choose(log_p: torch.Tensor, n_said: int, rows: Any) -> torch.Tensor:
            word = log_p.argmax(-1)
            say(int(word[0]))
            return word

        [[found]] = write(self._ready(sentence), [sentence], Search(beam=1), choose)
        return found

    @torch.inference_mode()
    def _ready(self, sentence: Sentence) -> Ready[Any]:
        engine = self.engine
        network: Any = engine.network
        ids, layout = padded_ids([sentence.ids], engine.pad, engine.device)
        state = network.start(network.encode(ids, layout))
        return Ready(network.step, state, engine.bos, engine.eos, engine.longest, engine.device)


class ThoroughModels:
    """All models."""

    def __init__(self, models: list[ThoroughModel]) -> None:
        self.models = models

    def answer(self, question: str, arguments: tuple[Any, ...], say: Say) -> Any:
        """The answer to one question about the model of a number."""
        number, *rest = arguments
        model = self.models[number]
        match question:
            case "search":
                return model.search(*rest)
            case "score":
                return model.score(*rest)
            case "attend":
                return model.attend(*rest)
            case "head":
                return model.head(*rest)
            case "embed":
                return model.embed(*rest)
            case "trace":
                return model.trace(*rest)
            case "write":
                return model.write(*rest, say)
            case _:
                raise ValueError(question)


def open_models(loading: Loading) -> ThoroughModels:
    """The models, of which the first is loaded: that is what the first question is about."""
    os.nice(5)  # who wants a translation comes first
    models = [ThoroughModel(open_bundle(path), loading.device) for path in loading.paths]
    models[0].search([_shortest(models[0].bundle)], Search(beam=1, max_len=2))
    return ThoroughModels(models)


def _shortest(bundle: Bundle) -> Sentence:
    return Sentence((bundle.src_tokenizer.vocab.eos,))
