"""What can go wrong, in classes a caller can tell apart and sentences a person can act on.

A sentence says what is wrong with its value, where, and what would be right: lower case, no full
stop. It is written once, in English, where it is raised; `errors.zh.toml` holds its Chinese, under
the English as the key, and a test holds the two sets equal.
"""

import tomllib
from functools import cache, partial
from importlib import resources


class RegardError(Exception):
    """An error whose sentence is for the person at the keyboard."""

    exit_code = 1

    def __init__(self, sentence: str, /, **values: object) -> None:
        self.sentence = sentence
        self.values = values
        super().__init__(self.in_language("en"))

    def in_language(self, language: str) -> str:
        """The sentence in "zh" or "en"; a value that is several errors is all their sentences."""
        sentences = _chinese_sentences() if language == "zh" else {}
        values = {
            name: ("；" if language == "zh" else "; ").join(
                error.in_language(language) for error in value
            )
            if isinstance(value, tuple) and all(isinstance(error, RegardError) for error in value)
            else value
            for name, value in self.values.items()
        }
        return sentences.get(self.sentence, self.sentence).format_map(values)

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


@cache
def _chinese_sentences() -> dict[str, str]:
    text = resources.files("regard").joinpath("errors.zh.toml").read_text(encoding="utf-8")
    sentences: dict[str, str] = tomllib.loads(text)
    return sentences
