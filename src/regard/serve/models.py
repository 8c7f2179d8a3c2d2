"""The models of a server side by side, and which of them goes from one language to another.

No network is loaded here: tokenizers and settings are enough to choose, to split and to count.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from regard.bundle import Bundle, open_bundle
from regard.decode.search import Search
from regard.decode.translator import BUNDLED, Translator
from regard.decode.wording import Direction, Wording
from regard.errors import ConfigError, DataError
from regard.serve.languages import TRADITIONAL, canonical, detect
from regard.serve.refusals import Refused

PART = 128  # tokens: a sentence that comes to no end takes about a second for as many


@dataclass(frozen=True, slots=True)
class Served:
    """A model of the server: its number is its place among those that a worker holds."""

    number: int
    name: str
    bundle: Bundle
    wording: Wording  # cuts what is long, so that no sentence takes a worker for long
    whole: Wording  # takes what the model takes, for looking at it
    search: Search  # as it was judged best
    directions: tuple[Direction, ...]


@dataclass(frozen=True, slots=True)
class Way:
    """The model that a text goes through, and from which language to which."""

    served: Served
    direction: Direction
    confidence: float  # from 0 to 100, that the text is in that language; 100 where it was said


class Models:
    """All models of a server; where several go the same way the first one does."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self.all: list[Served] = []
        for number, path in enumerate(paths or [BUNDLED]):
            translator = Translator([open_bundle(path)])  # checks it; no engine is started
            name = self._new_name("bundled" if path == BUNDLED else path.resolve().name)
            self.all.append(
                Served(
                    number,
                    name,
                    translator.bundle,
                    _cutting(translator),
                    translator.wording,
                    translator.search,
                    translator.directions,
                )
            )

    @property
    def directions(self) -> list[Direction]:
        """All ways that have names, each once."""
        ways = (way for served in self.all for way in served.directions if all(way))
        return list(dict.fromkeys(ways))

    def sources(self) -> list[str]:
        """Languages that can be translated from."""
        return list(dict.fromkeys(src for src, _ in self.directions))

    def targets(self, source: str | None = None) -> list[str]:
        """Languages that can be translated to; where there is Chinese, in both its scripts."""
        found = [tgt for src, tgt in self.directions if source in (None, src)]
        more = [TRADITIONAL] if "zh" in map(canonical, found) else []
        return list(dict.fromkeys([*found, *more]))

    def way(self, text: str, source: str, target: str, model: str = "") -> Way:
        """Where a text goes; both languages may be left open, and are then told by its script."""
        src, tgt = (_written(code) for code in (source, target))
        ways = [
            (served, way)
            for served in self.all
            if model in ("", served.name)
            for way in served.directions
            if src in ("", canonical(way[0])) and tgt in ("", canonical(way[1]))
        ]
        if not ways:
            raise self._no_way(source, target, model)
        if src or not all(ways[0][1]):
            return Way(*ways[0], 100.0)
        found = detect(text)
        if not found.language:
            # Digits and names have no script of their own; letters of one that is not known have.
            if any(char.isalpha() for char in text):
                raise _unknown_script()
            return Way(*ways[0], 0.0)
        for served, way in ways:
            if canonical(way[0]) == found.language:
                return Way(served, way, found.confidence)
        raise self._already_there(found.language, target)

    def _no_way(self, source: str, target: str, model: str) -> Refused:
        if model and model not in (served.name for served in self.all):
            names = ", ".join(served.name for served in self.all)
            reason = ConfigError(
                "there is no model {name}; there is {known}", name=model, known=names
            )
            return Refused(400, "unknown_model", reason, field="model")
        known = {canonical(code) for way in self.directions for code in way} | {""}
        code = source if _written(source) not in known else target
        if _written(code) not in known:
            reason = ConfigError("{code} is not supported", code=code)
            return Refused(400, "language", reason, field="source" if code is source else "target")
        reason = ConfigError(
            "{source} to {target} is not supported; this server goes {known}",
            source=source or "auto",
            target=target or "auto",
            known=", ".join(" → ".join(way) for way in self.directions),
        )
        return Refused(400, "pair", reason, field="target")

    def _already_there(self, language: str, target: str) -> Refused:
        reason = DataError(
            "the text is written in {language}, and no model here goes from that to {target}; "
            "nothing was translated",
            language=language,
            target=target or "auto",
        )
        return Refused(400, "pair", reason, field="source")

    def _new_name(self, name: str) -> str:
        names = {served.name for served in self.all}
        numbered = (f"{name}-{n}" for n in range(2, 2 + len(names)))
        return name if name not in names else next(one for one in numbered if one not in names)


def _cutting(translator: Translator) -> Wording:
    tokenizers = translator.bundle.src_tokenizer, translator.bundle.tgt_tokenizer
    longest = min(PART, translator.wording.longest)
    return Wording(*tokenizers, translator.directions, longest)


def _written(code: str) -> str:
    """A language without its script: traditional Chinese goes the way of simplified."""
    found = canonical(code)
    return "zh" if found == TRADITIONAL else found


def _unknown_script() -> Refused:
    reason = DataError("the language of the text cannot be told by its script; name the source")
    return Refused(400, "language", reason, field="source")
