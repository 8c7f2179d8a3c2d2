"""The code of every page runs from top to bottom and prints what the page shows.

The Chinese pages have the same blocks to the letter; tools/docs_parity.py holds that.
"""

import re
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs/en").rglob("*.md"))]

BLOCK = re.compile(r"^```python\n(.*?)^```$", re.M | re.S)
SHOWN = re.compile(r"^#> ?(.*)$", re.M)


def blocks_of(text):
    """Each Python block, pushed down so that its line numbers are those of the page."""
    return ["\n" * text.count("\n", 0, found.start(1)) + found[1] for found in BLOCK.finditer(text)]


def run(text, name, capsys):
    """All blocks of a page in one namespace; one that shows output shows all of it."""
    assert text.count("```py") == len(blocks_of(text)), "a Python block that would not be run"
    torch.manual_seed(0)
    namespace = {"__name__": name}
    for block in blocks_of(text):
        capsys.readouterr()
        exec(compile(block, name, "exec"), namespace)
        printed = capsys.readouterr().out.splitlines()
        if shown := SHOWN.findall(block):
            assert [line.rstrip() for line in printed] == [line.rstrip() for line in shown]


@pytest.fixture
def one_thread():
    """Small networks are quickest on one thread, above all where others compute too."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.plain
@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_the_code_of_a_page_runs_and_prints_what_the_page_shows(page, capsys):
    run(page.read_text(encoding="utf-8"), str(page), capsys)


@pytest.mark.parametrize("name", ["README.md", "attention.md", "model.md", "architecture.md"])
def test_a_page_that_explains_code_has_code(name):
    (page,) = (page for page in PAGES if page.name == name)
    assert blocks_of(page.read_text(encoding="utf-8"))


PAGE = """\
# A page

```sh
this is not Python
```

```python
half = 0.5
```

Some words.

```python
print(half + half)
#> 1.0
```
"""


def test_blocks_share_a_namespace_and_other_languages_are_left_alone(capsys):
    assert len(blocks_of(PAGE)) == 2
    run(PAGE, "page", capsys)


def test_a_false_claim_on_a_page_fails_at_its_line(capsys):
    page = PAGE + "\n```python\nassert half == 1.0\n```\n"
    with pytest.raises(AssertionError) as failure:
        run(page, "page", capsys)
    assert failure.traceback[-1].lineno + 1 == page.splitlines().index("assert half == 1.0") + 1


def test_a_wrong_output_on_a_page_fails(capsys):
    with pytest.raises(AssertionError):
        run(PAGE.replace("#> 1.0", "#> 2.0"), "page", capsys)


def test_a_name_that_no_block_defines_fails(capsys):
    with pytest.raises(NameError):
        run(PAGE.replace("half = 0.5", "whole = 1.0"), "page", capsys)


def test_a_block_that_would_be_passed_over_fails(capsys):
    with pytest.raises(AssertionError, match="a Python block that would not be run"):
        run(PAGE + "\n  ```python\n  half\n  ```\n", "page", capsys)
