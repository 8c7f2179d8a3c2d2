"""From text to text with a model directory: what translate, evaluate, serve and Python call.

text -> wording (direction, parts that fit, ids) -> engine (search) -> wording -> text

Torch is not imported here, and not at all where CTranslate2 can do what is asked.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Literal, overload

from regard.bundle import Bundle, open_bundle
from regard.decode.answers import Answers
from regard.decode.engines.ctranslate2 import CTranslate2Engine, cannot
from regard.decode.passage import is_blank
from regard.decode.results import Attention, Score, Translation
from regard.decode.search import Engine, Search, Sentence
from regard.decode.wording import Direction, Wording, pieces_of, sentences_of
from regard.errors import ConfigError, DataError, ModelError

if TYPE_CHECKING:
    from regard.decode.engines.torch import TorchEngine

EngineName = Literal["auto", "torch", "ctranslate2"]
Dtype = Literal["auto", "float32", "bf16", "int8"]
Texts = list[str] | tuple[str, ...]  # not any sequence of texts, which one text is too
BUNDLED = Path(__file__).parents[1] / "bundled" / "model"


def load(
    path: str | Path | Sequence[str | Path] | None = None,
    *,
    engine: EngineName = "auto",
    device: str = "cpu",
    dtype: Dtype = "auto",
    threads: int = 0,
) -> "Translator":
    """The translator in a model directory, or the one that comes with regard.

    Several directories, of one vocabulary, translate together: an ensemble. `threads`: of the
    ctranslate2 engine; 0 for as many as there are processors.
    """
    places = [path or BUNDLED] if path is None or isinstance(path, str | Path) else path
    bundles = [open_bundle(Path(place)) for place in places]
    return Translator(bundles, engine=engine, device=device, dtype=dtype, threads=threads)


class Translator:
    """A model ready to translate; several of one vocabulary are asked together."""

    def __init__(
        self,
        bundles: Sequence[Bundle],
        *,
        engine: EngineName = "auto",
        device: str = "cpu",
        dtype: Dtype = "auto",
        threads: int = 0,
    ) -> None:
        if not bundles:
            raise ConfigError("there is no model to load; name at least one")
        self.bundles = tuple(bundles)
        self.bundle = bundles[0]
        self.engine, self.device, self.dtype, self.threads = engine, device, dtype, threads
        self.wording = Wording(
            self.bundle.src_tokenizer,
            self.bundle.tgt_tokenizer,
            self.directions,
            longest=min(bundle.model.max_len for bundle in bundles),
        )
        self.search = self._own_search()
        self._check_vocabularies()
        self._check_engine()

    @property
    def directions(self) -> tuple[Direction, ...]:
        """From which language to which this model goes."""
        ways = self.bundle.facts.get("directions") or [("", "")]
        return tuple((str(src), str(tgt)) for src, tgt in ways)

    @overload
    def translate(
        self,
        text: str,
        /,
        *,
        src_lang: str = "",
        tgt_lang: str = "",
        beam: int | None = None,
        nbest: int | None = None,
        prefix: str = "",
        terms: Mapping[str, str] | None = None,
        forbidden: Iterable[str] = (),
        search: Search | None = None,
    ) -> Translation: ...
    @overload
    def translate(
        self,
        text: Texts,
        /,
        *,
        src_lang: str = "",
        tgt_lang: str = "",
        beam: int | None = None,
        nbest: int | None = None,
        prefix: str = "",
        terms: Mapping[str, str] | None = None,
        forbidden: Iterable[str] = (),
        search: Search | None = None,
    ) -> list[Translation]: ...

    def translate(
        self,
        text: str | Texts,
        /,
        *,
        src_lang: str = "",
        tgt_lang: str = "",
        beam: int | None = None,
        nbest: int | None = None,
        prefix: str = "",
        terms: Mapping[str, str] | None = None,
        forbidden: Iterable[str] = (),
        search: Search | None = None,
    ) -> Translation | list[Translation]:
        """The translation of a text, or of each of several; a blank one stays empty.

        Args:
            src_lang, tgt_lang: for a model of several directions; without them it goes by script.
            beam, nbest: the same as in `search`, for short.
            prefix: what each translation begins with.
            terms: words of a source, and what its translation must say for them.
            forbidden: words that no translation says.
            search: everything else that can be asked; without it, as the model was judged best.
        """
        search = _search(search or self.search, beam, nbest)
        if more := self.wording.forbidden(forbidden):
            search = replace(search, forbidden=search.forbidden + more)
        texts = [text] if isinstance(text, str) else text
        wanted = [(src_lang, tgt_lang)] * len(texts)
        asked = self.wording.asked(texts, wanted, prefix=prefix, terms=terms)
        sentences = sentences_of(asked)
        answers = Answers(self.wording, asked)
        self._engine_for(search, sentences).search(sentences, search, answers.hear)
        translations = answers.all()
        return translations[0] if isinstance(text, str) else translations

    @overload
    def score(self, src: str, tgt: str, /, *, tgt_lang: str = "") -> Score: ...
    @overload
    def score(self, src: Texts, tgt: Texts, /, *, tgt_lang: str = "") -> list[Score]: ...

    def score(
        self, src: str | Texts, tgt: str | Texts, /, *, tgt_lang: str = ""
    ) -> Score | list[Score]:
        """How probable a translation is, or each of several, piece by piece."""
        if isinstance(src, str) != isinstance(tgt, str):
            raise DataError("a source and a translation are two texts, or two lists of texts")
        if isinstance(src, str):
            assert isinstance(tgt, str)
            return self.score([src], [tgt], tgt_lang=tgt_lang)[0]
        if len(src) != len(tgt):
            raise DataError(
                "there are {sources} sources but {targets} translations; they are scored in pairs",
                sources=len(src),
                targets=len(tgt),
            )
        pairs = [self.wording.pair(a, b, tgt_lang) for a, b in zip(src, tgt, strict=True)]
        scored = self._engine_for(Search(beam=1), []).score(pairs)
        return [
            Score(a, b, pieces_of(self.wording.tgt, ids), one.log_probs)
            for a, b, (_, ids), one in zip(src, tgt, pairs, scored, strict=True)
        ]

    def attend(self, text: str, /, target: str | None = None, *, tgt_lang: str = "") -> Attention:
        """Every attention weight of the translation of a text, its own or the one given."""
        if is_blank(text):
            raise DataError("there is nothing to attend to in a blank text")
        if target is None:
            target = self.translate(text, tgt_lang=tgt_lang).text
        src, tgt = self.wording.pair(text, target, tgt_lang)
        bos = self.wording.tgt.vocab.bos
        cross, encoder, decoder = self._torch.explain(src, (bos, *tgt[:-1]))
        return Attention(
            pieces_of(self.wording.src, src),
            pieces_of(self.wording.tgt, tgt),
            target,
            cross,
            encoder,
            decoder,
        )

    # --- engines

    def _engine_for(self, search: Search, sentences: Sequence[Sentence]) -> Engine:
        """CTranslate2 where it can do what is asked, else torch; or the one that was named."""
        if self.engine == "torch":
            return self._torch
        reason = self._why_not_ctranslate2(search, sentences)
        if reason is None:
            return self._ctranslate2
        if self.engine == "auto":
            return self._torch
        raise ConfigError(
            "the ctranslate2 engine cannot do {what}; choose the torch engine", what=reason
        )

    def _why_not_ctranslate2(self, search: Search, sentences: Sequence[Sentence]) -> str | None:
        if len(self.bundles) > 1:
            return "ensembles"
        if self.device != "cpu":
            return f"device = {self.device}"
        if find_spec("ctranslate2") is None:
            return "anything, for it is not installed"
        if self.dtype == "bf16":
            return "bf16"
        return cannot(self.bundle.model, search, sentences)

    @cached_property
    def _ctranslate2(self) -> Engine:
        assert self.dtype != "bf16"  # torch was chosen then
        return CTranslate2Engine(self.bundle, self.dtype, threads=self.threads)

    @cached_property
    def _torch(self) -> "TorchEngine":
        import torch

        from regard.decode.engines.torch import torch_engine
        from regard.model.device import device_named

        if self.dtype == "int8":
            raise ConfigError("int8 is for the ctranslate2 engine; torch has float32 and bf16")
        dtype = torch.bfloat16 if self.dtype == "bf16" else torch.float32
        return torch_engine(self.bundles, device_named(self.device), dtype)

    def _own_search(self) -> Search:
        """How this model is to be asked, as it says itself; else greedily."""
        try:
            own = {"beam": 1, **self.bundle.facts.get("decode", {})}
            own["forbidden"] = tuple(tuple(words) for words in own.get("forbidden", ()))
            return Search(**own)
        except TypeError:
            raise ModelError(
                '{path} has no valid "{name}"', path=self.bundle.path / "config.json", name="decode"
            ) from None

    def _check_engine(self) -> None:
        """What can be known before a text is there is said before one is waited for."""
        if self.engine == "ctranslate2":
            self._engine_for(Search(beam=1), [])

    def _check_vocabularies(self) -> None:
        for other in self.bundles[1:]:
            if (other.src_tokenizer.vocab, other.tgt_tokenizer.vocab) != (
                self.wording.src.vocab,
                self.wording.tgt.vocab,
            ):
                raise ModelError(
                    "{first} and {second} have different vocabularies; an ensemble needs one",
                    first=self.bundle.path,
                    second=other.path,
                )


def _search(search: Search, beam: int | None, nbest: int | None) -> Search:
    """The search with its shorthands; asking for n translations asks for as wide a beam."""
    if nbest is not None:
        search = replace(search, nbest=nbest, beam=max(search.beam, nbest))
    if beam is not None:
        search = replace(search, beam=beam)
    if search.nbest > search.beam and not search.temperature:
        raise ConfigError(
            "nbest = {nbest} translations need as many hypotheses, but beam = {beam}",
            nbest=search.nbest,
            beam=search.beam,
        )
    return search
