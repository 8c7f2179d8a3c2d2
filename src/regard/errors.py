"""What can go wrong, in classes a caller can tell apart and sentences a person can act on.

A sentence says what is wrong with its value, where, and what would be right: lower case, no full
stop. It is written once, in English, where it is raised; `errors.zh.toml` holds its Chinese, under
the English as the key, and a test holds the two sets equal.
"""

import tomllib
from functools import cache, partial
from importlib import resources


class Word(str):
    """A word of regard's own among the values of a sentence, so it has its Chinese too."""


class RegardError(Exception):
    """An error whose sentence is for the person at the keyboard."""

    exit_code = 1

    def __init__(self, sentence: str, /, **values: object) -> None:
        self.sentence = sentence
        self.values = values
        super().__init__(self.in_language("en"))

    def in_language(self, language: str) -> str:
        """The sentence in "zh" or "en"."""
        sentence = _chinese()["sentences"][self.sentence] if language == "zh" else self.sentence
        return sentence.format_map({k: _said(v, language) for k, v in self.values.items()})

    def __reduce__(self) -> tuple[object, ...]:
        # Exceptions cross process borders by their positional arguments; ours have names.
        return partial(type(self), self.sentence, **self.values), ()


class ConfigError(RegardError, ValueError):
    """A setting, or a combination of them, that cannot be."""

    exit_code = 2


class DataError(RegardError, ValueError):
    """Text, files or ids that are not what they should be."""

    exit_code = 3


class ModelError(RegardError, ValueError):
    """Tensors or weights that do not fit the model they meet."""

    exit_code = 4


class ResourceError(RegardError, RuntimeError):
    """Memory, disk or a port that could not be had."""

    exit_code = 5


def _said(value: object, language: str) -> object:
    """A value as it stands in the sentence; several errors are all their sentences."""
    match value:
        case Word() if language == "zh":
            return _chinese()["words"][value]
        case (RegardError(), *_):
            between = "；" if language == "zh" else "; "
            errors = (error for error in value if isinstance(error, RegardError))
            return between.join(error.in_language(language) for error in errors)
        case _:
            return value


@cache
def _chinese() -> dict[str, dict[str, str]]:
    text = resources.files("regard").joinpath("errors.zh.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)
