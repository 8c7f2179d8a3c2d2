"""The tables of all settings, in both languages, say what the code says."""

import json
import re
from dataclasses import MISSING, fields
from pathlib import Path
from typing import get_args

import pytest

from regard.config import DataConfig, ModelConfig, TrainConfig

DOCS = Path(__file__).parents[2] / "docs"
SECTIONS = {"model": ModelConfig, "data": DataConfig, "train": TrainConfig}
ROW = re.compile(r"^\| `(\w+)` \| `?(.*?)`? \| (.*) \|$", re.M)


def table(language, section):
    """The rows under the heading of a section: each setting's default and meaning."""
    page = (DOCS / language / "training.md").read_text(encoding="utf-8")
    _, under = page.split(f"\n### [{section}]\n")
    rows = ROW.findall(under.split("\n#")[0])
    return {name: (default, meaning) for name, default, meaning in rows}


def default_of(f):
    return json.dumps(f.default_factory() if f.default is MISSING else f.default)


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("section", SECTIONS)
def test_the_table_has_every_setting_in_its_order_with_its_default_and_choices(language, section):
    rows, settings = table(language, section), fields(SECTIONS[section])
    shown = {name: default for name, (default, _) in rows.items()}
    assert shown == {f.name: default_of(f) for f in settings}
    assert list(rows) == [f.name for f in settings]
    for f in settings:
        choices = [choice for choice in get_args(f.type) if isinstance(choice, str)]
        if len(choices) > 1:
            assert re.findall(r'`"(\w+)"`', rows[f.name][1]) == choices


@pytest.mark.parametrize("section", SECTIONS)
def test_the_english_meaning_is_the_comment_of_a_written_recipe(section):
    rows = table("en", section)
    for f in fields(SECTIONS[section]):
        assert rows[f.name][1].startswith(f.metadata.get("words", ""))
