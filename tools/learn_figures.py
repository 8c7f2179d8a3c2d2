"""Draws the pictures of the pages in docs/*/learn, each in English and in Chinese.

tools/learn_figures.py            draws all of them into docs/figures/learn
tools/learn_figures.py masks ...  draws these
"""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

import figures_of_attention as attention
import figures_of_networks as networks
from regard.view.figures import draw_figure
from regard.view.panels import Figure
from regard.view.svg import svg

PLACE = Path(__file__).resolve().parents[1] / "docs" / "figures" / "learn"
FIGURES: dict[str, Callable[[], Figure]] = {
    "pooled": attention.pooled,
    "addressing": attention.addressing,
    "kernel": attention.kernel,
    "additive": attention.additive,
    "sharpness": attention.sharpness,
    "root-d": attention.root_d,
    "masks": attention.masks,
    "alignment": attention.alignment,
    "worked": attention.worked,
    "terms": attention.terms,
    "heads": attention.heads,
    "reach": networks.reach,
    "positions": networks.positions,
    "rotated": networks.rotated,
    "scaled": networks.scaled,
    "mixing": networks.mixing,
    "norms": networks.norms,
    "stacked": networks.stacked,
    "dependence": networks.dependence,
    "shifted": networks.shifted,
    "pieces": networks.pieces,
    "asked": networks.asked,
    "sorting": networks.sorting,
}


def main(names: Sequence[str]) -> None:
    """Draw the pictures of these names, or all."""
    PLACE.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    for name in names or FIGURES:
        figure = FIGURES[name]()
        (PLACE / f"{name}.svg").write_text(svg(draw_figure(figure, "en")), encoding="utf-8")
        (PLACE / f"{name}.zh.svg").write_text(svg(draw_figure(figure, "zh")), encoding="utf-8")
        print(name)


if __name__ == "__main__":
    main(sys.argv[1:])
