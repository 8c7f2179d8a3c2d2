"""The variants of tools/ablations.py are settings that regard knows, each another than the base."""

import importlib.util
from itertools import pairwise
from pathlib import Path

import pytest

from regard.recipe import read_config

TOOL = Path(__file__).parents[2] / "tools" / "ablations.py"
spec = importlib.util.spec_from_file_location("ablations", TOOL)
ablations = importlib.util.module_from_spec(spec)
spec.loader.exec_module(ablations)


def config(settings):
    words = ablations.command(Path("data"), Path("model"), settings, seed=2, steps=50)
    overrides = [word for before, word in pairwise(words) if before == "--set"]
    return read_config(Path(words[4]), overrides)


@pytest.mark.parametrize("name", ablations.VARIANTS)
def test_a_variant_is_the_recipe_with_its_own_change(name):
    base, changed = config(()), config(ablations.VARIANTS[name])
    assert (changed.train.seed, changed.train.steps) == (2, 50)
    assert changed.data.train == ("data",)
    assert (base == changed) == (name == "base")


def test_a_row_has_the_mean_and_its_interval_over_the_seeds():
    assert ablations.row("base", [40.0, 41.0, 42.0]) == "| base | 41.0 ± 2.5 | 40.0, 41.0, 42.0 |"
    assert ablations.row("base", [40.0]) == "| base | 40.0 | |"
