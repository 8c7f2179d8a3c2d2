"""What is said beside a picture of attention, in English or Chinese, from the page's own words."""

import json
from collections.abc import Mapping
from functools import cache
from importlib import resources

from regard.view.matrix import Choice, Matrix
from regard.view.pieces import readable

Words = Mapping[str, str]
LANGUAGES = ("en", "zh")


@cache
def words_in(language: str) -> Words:
    """Every word of the page and the pictures, by its name."""
    page = resources.files("regard.view").joinpath("page")
    words: Words = json.loads(page.joinpath(f"text.{language}.json").read_text(encoding="utf-8"))
    return words


def title(matrix: Matrix, words: Words) -> str:
    """Which matrix it is."""
    if matrix.head is None:
        head = words["mean_of"].format(heads=matrix.n_heads)
    else:
        head = words["head_of"].format(head=matrix.head, heads=matrix.n_heads)
    layer = words["layer_of"].format(layer=matrix.layer, layers=matrix.n_layers)
    return words["comma"].join((words[matrix.kind], layer, head))


def title_of_all(choice: Choice, n_layers: int, words: Words) -> str:
    """Which matrices they are."""
    name = "all_heads_of" if choice.layer is None else "one_layer_of"
    shown = words[name].format(layer=choice.layer, layers=n_layers)
    return words["comma"].join((words[choice.kind], shown))


def axes(matrix: Matrix, words: Words) -> str:
    """What rows and columns are."""
    return words[f"{matrix.kind}_axes"]


def hidden(matrix: Matrix, words: Words) -> str:
    """Which share of the attention is on the columns that were left out; nothing if none were."""
    if not matrix.hidden:
        return ""
    whole = sum(share for _, share in matrix.hidden)
    sinks = [
        words["sink"].format(label=label, share=percent(share, words))
        for label, share in matrix.hidden
    ]
    if len(sinks) == 1:
        sinks = [matrix.hidden[0][0]]
    said = words["hidden"].format(share=percent(whole, words), sinks=words["and"].join(sinks))
    return readable(said)


def looked_at(matrix: Matrix, query: int, most: int = 3) -> str:
    """The keys that a query looks at most, with their weights: model 0.71, the 0.12."""
    return ", ".join(f"{key} {weight:.2f}" for key, weight in matrix.strongest(query, most))


def percent(share: float, words: Words) -> str:
    """A share in whole percent."""
    return words["share"].format(percent=round(100 * share))


def shortened(text: str, most: int) -> str:
    """The text, or its beginning and a sign that there is more."""
    return text if len(text) <= most else text[: most - 1] + "…"
