"""Every command of a shell block is one that regard knows, with options that it has.

They are read as the command line reads them and not run: most need a corpus, or minutes.
"""

import re
import shlex
from pathlib import Path

import click
import pytest

from regard.cli.main import regard

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs/en").rglob("*.md"))]
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.M | re.S)
SIGNS = re.compile(r"^(?:[<>|&;]+|\d?>&?\d?)$")  # where the words of a command end


def commands_of(text):
    """The words behind `regard` in every command of a page's shell blocks."""
    for block in BLOCK.findall(text):
        for line in block.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            for place, word in enumerate(words):
                if word == "regard" or word.endswith("/regard"):
                    if "docker" in words:
                        break  # there it is the name of an image
                    rest = words[place + 1 :]
                    end = next((i for i, one in enumerate(rest) if SIGNS.match(one)), len(rest))
                    yield rest[:end]
                    break


def refusal(words):
    """What the command line has against these words, or None."""
    outer = click.Context(regard, info_name="regard")
    if not words or words[0].startswith("-"):
        return None
    command = regard.get_command(outer, words[0])
    if command is None:
        return f"no command {words[0]}"
    context = click.Context(command, info_name=words[0], parent=outer)
    try:
        command.make_parser(context).parse_args(list(words[1:]))
    except click.UsageError as error:
        return error.format_message()
    return None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_the_commands_of_a_page_are_commands_of_regard(page):
    refused = {
        " ".join(words): refusal(words) for words in commands_of(page.read_text(encoding="utf-8"))
    }
    assert {words: why for words, why in refused.items() if why} == {}


def test_the_pages_have_many_commands_and_their_ends_are_found():
    found = [words for page in PAGES for words in commands_of(page.read_text(encoding="utf-8"))]
    assert len(found) > 60
    lines = "regard translate --model m < a > b   # said\necho x | .venv/bin/regard attend x"
    text = f"```sh\n{lines}\n```"
    assert list(commands_of(text)) == [["translate", "--model", "m"], ["attend", "x"]]


@pytest.mark.parametrize("line", ["regard translat x", "regard translate --modle m x"])
def test_a_command_or_an_option_that_is_not_there_is_found(line):
    (words,) = commands_of(f"```sh\n{line}\n```")
    assert refusal(words)
