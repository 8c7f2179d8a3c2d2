"""Writes recipes/reference.toml: every setting, its meaning and its default.

tools/reference.py           says whether the file is as the settings are
tools/reference.py --write   writes it
"""

import sys
from dataclasses import fields
from pathlib import Path
from typing import get_args

from regard.config import Config, DataConfig, ModelConfig, TrainConfig
from regard.settings import as_toml

PLACE = Path(__file__).parents[1] / "recipes" / "reference.toml"
SECTIONS = {"model": ModelConfig, "data": DataConfig, "train": TrainConfig}
HEAD = """\
# Every setting of regard, what it means, and its default. Written by tools/reference.py.
# A recipe names those it changes; `--set section.name=value` changes one more.
# Files whose origin a recipe knows are listed so, and checked before they are read:
#   [data.source."corpus/train.zh"]
#   address = "https://..."
#   sha256 = "..."
#   licence = "..."

"""


def reference() -> str:
    """The file as it should be."""
    words = {
        f"{section}.{f.name}": _words(f.metadata["words"], f.type)
        for section, kind in SECTIONS.items()
        for f in fields(kind)
        if "words" in f.metadata
    }
    return HEAD + as_toml(Config().as_table(), words)


def _words(words: str, kind: object) -> str:
    choices = [choice for choice in get_args(kind) if isinstance(choice, str)]
    return f"{words} ({' | '.join(choices)})" if len(choices) > 1 else words


def main() -> int:
    """Write the file, or say that it is stale."""
    if "--write" in sys.argv:
        PLACE.parent.mkdir(exist_ok=True)
        PLACE.write_text(reference(), encoding="utf-8")
        return 0
    if not PLACE.exists() or PLACE.read_text(encoding="utf-8") != reference():
        print("recipes/reference.toml is not as the settings are; run tools/reference.py --write")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
