"""The guide is whole: its links lead somewhere, its parts are all there, nothing in it is stale."""

import importlib
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [*ROOT.glob("README*.md"), *sorted(DOCS.glob("??/**/*.md"))]
LESSONS = sorted((DOCS / "en/learn").glob("*-*.md"))
LABELS = {
    "en": ("**The note", "**The formula.**", "**The code.**", "**The number.**", "**Exercise.**"),
    "zh": ("**笔记", "**公式**", "**代码**", "**数值**", "**练习**"),
}
FENCED = re.compile(r"^ *(`{3,}).*?^ *\1 *$", re.M | re.S)
LINK = re.compile(r"\]\(<?([^)\s>]+)\)")


@pytest.fixture
def tool(monkeypatch):
    """A file of tools/, imported."""
    monkeypatch.syspath_prepend(ROOT / "tools")
    return importlib.import_module


def prose(page):
    return re.sub(r"`[^`\n]+`", "", FENCED.sub("", page.read_text(encoding="utf-8")))


def anchors(page):
    """The names that GitHub and the site give to the headings of a page, and its own."""
    text = FENCED.sub("", page.read_text(encoding="utf-8"))
    titles = re.findall(r"^#+ (.*)$", text, re.M)
    named = set(re.findall(r'<a id="([^"]+)">', text))
    return named | {
        re.sub(r"[^\w\- ]", "", one.lower()).strip().replace(" ", "-") for one in titles
    }


def lost(page):
    """The links of a page that lead nowhere."""
    for target in LINK.findall(prose(page)):
        if re.match(r"[a-z][a-z0-9+.-]*:", target):
            continue
        name, _, anchor = target.partition("#")
        file = (page.parent / name) if name else page
        if not file.exists() or (anchor and anchor not in anchors(file)):
            yield target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_leads_to_a_file_and_a_heading(page):
    assert list(lost(page)) == []


def test_a_link_to_a_page_or_a_heading_that_is_not_there_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# One thing\n[a](page.md#one-thing) [b](#two) [c](no.md) [d](https://x.y)\n")
    assert list(lost(page)) == ["#two", "no.md"]


def test_every_page_is_in_a_section_of_the_site_and_has_its_twin(tool):
    site = tool("guide_site")
    assert site.left_out() == set()
    assert {path.relative_to(DOCS / "en") for path in (DOCS / "en").rglob("*.md")} == {
        path.relative_to(DOCS / "zh") for path in (DOCS / "zh").rglob("*.md")
    }


def test_a_page_that_is_staged_for_the_site_links_to_copies_of_what_lies_outside(tool, tmp_path):
    site = tool("guide_site")
    page = DOCS / "zh/learn/01-pooling.md"
    copy = tmp_path / "learn/01-pooling.md"
    copy.parent.mkdir()
    text = site.with_files(page, copy, DOCS / "zh", tmp_path)
    assert text.startswith("# 1. ")  # the navigation takes its words from the first heading
    targets = [target for target in LINK.findall(text) if "figure" in target]
    assert targets
    assert all((copy.parent / target).is_file() for target in targets)
    assert "](02-scores.md)" in text


def test_pages_that_are_made_are_as_their_sources():
    """In a process of its own: the help of a command shows defaults that other tests may change."""
    done = subprocess.run([sys.executable, ROOT / "tools" / "pages.py"], capture_output=True)
    assert done.returncode == 0, done.stdout.decode()


def test_the_reference_has_every_public_name_of_the_attention_library(tool):
    import regard.attention

    named = [name for names in tool("pages").GROUPS.values() for name in names]
    assert sorted(named) == sorted(regard.attention.__all__)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_number_of_the_page_on_performance_stands_in_a_result_file(language):
    results = "\n".join(
        file.read_text(encoding="utf-8") for file in (ROOT / "benchmarks/results").glob("*.md")
    )
    page = (DOCS / language / "performance.md").read_text(encoding="utf-8")
    rows = [row for row in page.splitlines() if row.startswith("|")]
    assert len(rows) > 20
    assert [row for row in rows if row not in results] == []


def test_the_teaching_pages_cover_all_parts_of_the_notes():
    index = (DOCS / "en/learn/index.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| \[.*?\]\((.*?)\) \| (.*?) \|", index, re.M)
    assert [name for name, _ in rows] == [page.name for page in LESSONS]
    parts = [int(number) for _, words in rows for number in re.findall(r"\b(\d+) ", words)]
    assert sorted(parts) == list(range(1, 25))


@pytest.mark.parametrize("language", LABELS)
@pytest.mark.parametrize("name", [page.name for page in LESSONS])
def test_a_teaching_page_goes_from_note_to_exercise(name, language):
    text = (DOCS / language / "learn" / name).read_text(encoding="utf-8")
    for label in LABELS[language]:
        assert label in text, label
    assert text.count("<details") == text.count("</details>") == text.count(LABELS[language][-1])
    pictures = re.findall(r"!\[.*?\]\(\.\./\.\./figures/(\S+?)\)", text)
    assert pictures
    for picture in pictures:
        if picture.startswith("learn/"):
            assert picture.endswith(".zh.svg") == (language == "zh")
    if language == "en":
        assert "\n#> " in text  # a number that was printed


def test_every_picture_of_the_teaching_pages_is_drawn_by_the_tool_and_shown(tool):
    names = set(tool("learn_figures").FIGURES)
    drawn = {file.name for file in (DOCS / "figures/learn").glob("*.svg")}
    assert drawn == {f"{name}{end}" for name in names for end in (".svg", ".zh.svg")}
    for language, end in (("en", ".svg"), ("zh", ".zh.svg")):
        pages = (DOCS / language / "learn").glob("*.md")
        text = "".join(page.read_text(encoding="utf-8") for page in pages)
        assert {name for name in names if f"figures/learn/{name}{end})" in text} == names


def test_a_picture_of_numbers_that_need_no_training_is_as_it_would_be_drawn_now(tool):
    from regard.view.figures import draw_figure
    from regard.view.svg import svg

    for name in ("worked", "terms", "shifted", "addressing", "pooled", "rotated"):
        figure = tool("learn_figures").FIGURES[name]()
        for language, end in (("en", ".svg"), ("zh", ".zh.svg")):
            drawn = (DOCS / f"figures/learn/{name}{end}").read_text(encoding="utf-8")
            assert drawn == svg(draw_figure(figure, language)), "run python tools/learn_figures.py"


def test_the_glossary_has_every_term_in_both_languages_and_every_meaning_twice():
    table = tomllib.loads((DOCS / "glossary.toml").read_text(encoding="utf-8"))
    assert set(table["meanings"]) <= set(table["terms"])
    assert all(set(meaning) == {"en", "zh"} for meaning in table["meanings"].values())
    for language in ("en", "zh"):
        page = (DOCS / language / "glossary.md").read_text(encoding="utf-8")
        for term, form in table["terms"].items():
            pair = f"| {form} | {term} |" if language == "zh" else f"| {term} | {form} |"
            assert pair in page
