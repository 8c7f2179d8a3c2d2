"""What the quick worker's process runs: CTranslate2 on the CPU, and no torch."""

from collections.abc import Callable
from typing import Any

from regard.bundle import open_bundle
from regard.decode.engines.ctranslate2 import CTranslate2Engine
from regard.decode.search import Search, Sentence
from regard.interchange.ctranslate2 import inexpressible
from regard.processors import n_processors
from regard.serve.worker import Loading


class QuickModels:
    """The engine of each model that CTranslate2 can run."""

    def __init__(self, engines: list[CTranslate2Engine | None]) -> None:
        self.engines = engines

    def answer(self, question: str, arguments: tuple[Any, ...], say: Callable[[Any], None]) -> Any:
        """What is found for sentences, or the scores of pairs; nothing else is asked here."""
        number, *rest = arguments
        engine = self.engines[number]
        assert engine is not None
        match question:
            case "search":
                return engine.search(*rest)
            case "score":
                return engine.score(*rest)
            case _:
                raise ValueError(question)


def open_models(loading: Loading) -> QuickModels:
    """Every model, loaded and asked once, so that the first client need not wait for it."""
    engines: list[CTranslate2Engine | None] = []
    for path in loading.paths:
        bundle = open_bundle(path)
        if inexpressible(bundle.model):
            engines.append(None)
            continue
        engine = CTranslate2Engine(bundle, loading.dtype, threads=n_processors())
        end = Sentence((bundle.src_tokenizer.vocab.eos,))
        for n_sentences in (1, 2 * engine.threads):  # few and many are run in different ways
            engine.search([end] * n_sentences, Search(beam=1, max_len=2))
        engines.append(engine)
    return QuickModels(engines)
