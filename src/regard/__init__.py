"""regard (顾): the Transformer, whole, from the formula in a study note to a served translator.

    import regard

    translator = regard.load()                # or regard.load("my-model")
    translator.translate("三百零五").text       # and .score(source, target), .attend(text)

Importing regard is quick: what a name needs, and torch with it, is loaded when first named.
"""

import importlib
from typing import Any

__version__ = "0.1.0"

_ROOMS = ("attention", "model")
_NAMES = {
    "load": "decode.translator",
    "Translator": "decode.translator",
    "Search": "decode.search",
    "Translation": "decode.results",
    "Alternative": "decode.results",
    "Alignment": "decode.results",
    "Score": "decode.results",
    "Attention": "decode.results",
}

__all__ = sorted(["__version__", *_ROOMS, *_NAMES])


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return importlib.import_module(f"regard.{name}")
    if name in _NAMES:
        return getattr(importlib.import_module(f"regard.{_NAMES[name]}"), name)
    raise AttributeError(f"module 'regard' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
