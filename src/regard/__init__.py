"""regard (顾): the Transformer, whole, from the formula in a study note to a served translator.

Importing regard is quick: the attention library, and torch with it, is loaded when first named.
"""

import importlib
from types import ModuleType

__version__ = "0.1.0"

__all__ = ["__version__", "attention", "model"]


def __getattr__(name: str) -> ModuleType:
    if name in ("attention", "model"):
        return importlib.import_module(f"regard.{name}")
    raise AttributeError(f"module 'regard' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
