"""Attention as one HTML file: it asks no network and no other file for anything.

Weights go into it in 255ths, as bytes, deflated and in base64. The browser's side is the ES modules
of `page/`, which are put together here into one script; the page's own rule, a Content Security
Policy, lets this script run and nothing else, and forbids every request.
"""

import json
import re
import zlib
from base64 import b64encode
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from html import escape
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.view.captions import LANGUAGES, words_in
from regard.view.matrix import KINDS, Attended, Choice, Weights, matrix_of
from regard.view.pieces import START, Units, as_pieces, as_words, readable, text_of

SIDES = {"cross": ("tgt", "src"), "encoder": ("src", "src"), "decoder": ("tgt", "given")}
"""Whose pieces are the rows and the columns; `given` is what a decoder is given at each step."""

MODULES = (
    "elements", "memory", "controls", "colours", "reader", "files", "weights", "units", "matrix",
    "sentence", "heads", "table", "panel", "attend",
)  # fmt: skip
"""The modules of the page, each behind those it imports."""

_IMPORT = re.compile(r'^import (\{[^}]+\}) from "\./(\w+)\.js";$', re.M)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|const) (\w+))", re.M)
_HOLE = re.compile(r"\{\{(\w+)\}\}")


def html_page(attended: Attended, choice: Choice = Choice(), language: str = "") -> str:  # noqa: B008
    """The whole file, which starts with what was chosen; without a language, in the reader's."""
    matrix_of(attended, choice)  # so that what is not there is refused now, and in words
    texts = {name: words_in(name) for name in LANGUAGES}
    table = {**as_table(attended, is_deflated=True), "start": _start(choice), "language": language}
    script = (
        f"{_script()}\nconst texts = {_json(texts)};\n"
        "attend.start(document, JSON.parse(document.getElementById('data').textContent), texts);\n"
    )
    style = _page("attend.css")
    parts = {
        "lang": "zh-CN" if language == "zh" else "en",
        "policy": f"default-src 'none'; script-src {_digest(script)}; style-src {_digest(style)}; "
        "base-uri 'none'; form-action 'none'",
        "title": escape(table["source"]),
        "source": escape(table["source"]),
        "target": escape(table["target"]),
        "no_script": escape(words_in(language or "en")["no_script"]),
        "style": style,
        "script": script,
        "data": _json(table),
    }
    return _HOLE.sub(lambda hole: parts[hole[1]], _page("attend.html"))


def html_frame(attended: Attended) -> str:
    """The file as a frame in a page of others, such as a notebook, which it cannot touch."""
    height = min(1400, 620 + 30 * len(attended.tgt_pieces))
    return (
        f'<iframe srcdoc="{escape(html_page(attended))}" title="attention" loading="lazy" '
        'sandbox="allow-scripts allow-downloads" '
        f'style="width:100%;height:{height}px;border:0;border-radius:12px"></iframe>'
    )


def as_table(attended: Attended, *, is_deflated: bool) -> dict[str, Any]:
    """All that the browser's side needs, for JSON; a server deflates by itself."""
    sides = {
        "src": attended.src_pieces,
        "tgt": attended.tgt_pieces,
        "given": (START, *attended.tgt_pieces[:-1]),
    }
    return {
        "source": text_of(attended.src_pieces),
        "target": readable(attended.text),
        "sides": {name: _side(pieces) for name, pieces in sides.items()},
        "kinds": {
            kind: {
                "layers": weights.shape[0],
                "heads": weights.shape[1],
                "queries": SIDES[kind][0],
                "keys": SIDES[kind][1],
                "causal": kind == "decoder",
                "deflated": is_deflated,
                "weights": packed(weights, is_deflated=is_deflated),
            }
            for kind in KINDS
            if (weights := getattr(attended, kind)) is not None
        },
    }


def packed(weights: Weights, *, is_deflated: bool) -> str:
    """Weights as bytes in base64: four characters for three of them, or fewer if deflated."""
    data = in_255ths(weights).tobytes()
    return b64encode(zlib.compress(data, 9) if is_deflated else data).decode()


def in_255ths(weights: Weights) -> NDArray[np.uint8]:
    """Whole 255ths whose rows have the sums that they had: what rounding takes, it gives back.

    Each is less than 1/255 off. Rounded by itself, a row of sixty small weights would lose 6 %.
    """
    exact = weights.astype(np.float64) * 255
    whole = np.floor(exact + 1e-6)
    missing = np.rint((exact - whole).sum(axis=-1, keepdims=True))
    rank = np.argsort(np.argsort(whole - exact, axis=-1, kind="stable"), axis=-1, kind="stable")
    return np.clip(whole + (rank < missing), 0, 255).astype(np.uint8)


def _side(pieces: Sequence[str]) -> dict[str, Any]:
    return {"pieces": _units(as_pieces(pieces)), "words": _units(as_words(pieces))}


def _units(units: Units) -> dict[str, Any]:
    return {
        "labels": units.labels,
        "sizes": units.sizes,
        "sinks": [int(is_sink) for is_sink in units.is_sink],
    }


def _start(choice: Choice) -> dict[str, Any]:
    """What the page shows first; it counts layers and heads from 0, and the mean is -1."""
    return {
        "kind": choice.kind,
        "layer": None if choice.layer is None else choice.layer - 1,
        "head": -1 if choice.head is None else choice.head - 1,
        "words": choice.in_words,
        "sinks": choice.hides_sinks,
    }


@cache
def _script() -> str:
    """The modules as one script: each becomes a function that gives back what it exports."""
    parts = []
    for name in MODULES:
        source = _page(f"{name}.js")
        exports = ", ".join(_EXPORT.findall(source))
        body = _EXPORT.sub("", _IMPORT.sub(r"const \1 = \2;", source))
        parts.append(f"const {name} = (() => {{\n{body}return {{ {exports} }};\n}})();")
    return "\n".join(parts)


@cache
def _page(name: str) -> str:
    return resources.files("regard.view").joinpath("page", name).read_text(encoding="utf-8")


def _json(table: object) -> str:
    """JSON that may stand in a script: no text in it can end the script."""
    text = json.dumps(table, ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _digest(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
