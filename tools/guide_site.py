"""Builds the guide as a static site that needs no network: `make docs`, into build/site.

The pages of each language become a site of their own, each with a link to the other. What a page
links to outside its folder (pictures, results, recipes) is copied beside it. Formulas become
MathML, which browsers draw by themselves. A warning of MkDocs is a fault.
"""

import logging
import os
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from latex2mathml.converter import convert
from mkdocs.commands.build import build
from mkdocs.config import load_config
from mkdocs.exceptions import Abort
from pymdownx.slugs import slugify

from docs_parity import ELSEWHERE, FENCED, FOLLOWS, INLINE, LINK

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build"
LANGUAGES = {"en": "English", "zh": "中文"}
SEPARATOR = r"[\s\-，。：；、！？（）]+|(?<=[\u4e00-\u9fff])|(?=[\u4e00-\u9fff])"
"""Where the search cuts text: at spaces and marks, and around every Chinese character."""

Section = tuple[str, str, tuple[str, ...]]
NAVIGATION: tuple[Section, ...] = (
    ("Start", "开始", ("index", "install", "tour")),
    (
        "Learn",
        "学习",
        (
            "learn/index",
            "learn/01-pooling",
            "learn/02-scores",
            "learn/03-masks",
            "learn/04-bahdanau",
            "learn/05-self-attention",
            "learn/06-heads",
            "learn/07-three-encoders",
            "learn/08-positions",
            "learn/09-layers",
            "learn/10-encoder-decoder",
            "learn/11-translation",
            "learn/12-context",
            "study",
        ),
    ),
    (
        "Use",
        "使用",
        (
            "training",
            "data",
            "translating",
            "documents",
            "machines",
            "serving",
            "attend",
            "interchange",
        ),
    ),
    ("Understand", "理解", ("attention", "model", "architecture", "performance", "reliability")),
    (
        "Look up",
        "查阅",
        ("reference/commands", "reference/settings", "reference/library", "glossary"),
    ),
    ("Take part", "参与", ("contributing",)),
)
ENTRANCE = """\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>regard 顾</title>
<script>
location.replace((navigator.language || "en").startsWith("zh") ? "zh/index.html" : "en/index.html")
</script>
<p><a href="en/index.html">English</a></p>
<p lang="zh"><a href="zh/index.html">中文</a></p>
</html>
"""


def main() -> int:
    """Build both languages; 1 if a page is in no section or MkDocs warns."""
    logging.basicConfig(format="%(levelname)s: %(message)s", level=logging.WARNING)
    if forgotten := left_out():
        print(f"tools/guide_site.py: in no section of NAVIGATION: {', '.join(sorted(forgotten))}")
        return 1
    shutil.rmtree(BUILD / "site", ignore_errors=True)
    for language in LANGUAGES:
        stage(language)
        try:
            build(load_config(**settings(language)))
        except Abort as stop:
            print(f"{language}: {stop}", file=sys.stderr)
            return 1
    (BUILD / "site" / "index.html").write_text(ENTRANCE, encoding="utf-8")
    print(f"{BUILD / 'site' / 'index.html'}")
    return 0


def left_out() -> set[str]:
    """The pages that no section names."""
    folder = ROOT / "docs" / "en"
    pages = {page.relative_to(folder).with_suffix("").as_posix() for page in folder.rglob("*.md")}
    return pages - {name for _, _, names in NAVIGATION for name in names}


def stage(language: str) -> None:
    """Copy the pages of a language, and whatever they link to, to where MkDocs reads them."""
    source, place = ROOT / "docs" / language, BUILD / "pages" / language
    shutil.rmtree(place, ignore_errors=True)
    for page in sorted(source.rglob("*.md")):
        copy = place / page.relative_to(source)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(with_files(page, copy, source, place), encoding="utf-8")


def settings(language: str) -> dict[str, Any]:
    """What mkdocs.yml would say."""
    config = BUILD / f"mkdocs.{language}.yml"
    config.write_text("", encoding="utf-8")
    return {
        "config_file": str(config),
        "site_name": "regard 顾",
        "docs_dir": str(BUILD / "pages" / language),
        "site_dir": str(BUILD / "site" / language),
        "strict": True,
        "use_directory_urls": False,
        "nav": _navigation(language),
        "theme": {
            "name": "material",
            "language": language,
            "font": False,  # nothing is fetched
            "features": ["navigation.sections", "navigation.footer", "content.code.copy"],
            "palette": [
                _palette("(prefers-color-scheme: light)", "default", "slate"),
                _palette("(prefers-color-scheme: dark)", "slate", "default"),
            ],
        },
        "extra": {
            "generator": False,
            "alternate": [
                {"name": name, "link": f"../{code}/index.html", "lang": code}
                for code, name in LANGUAGES.items()
            ],
        },
        "plugins": [{"search": {"lang": [language], "separator": SEPARATOR}}],
        "validation": {"anchors": "warn", "absolute_links": "warn"},
        "markdown_extensions": [
            "md_in_html",
            "tables",
            {"toc": {"slugify": slugify(case="lower")}},
            "pymdownx.highlight",
            {"pymdownx.superfences": {"custom_fences": [_math_fence()]}},
        ],
    }


def math(
    source: str, language: str, css_class: str, options: object, md: object, **_: object
) -> str:
    """A formula as MathML."""
    return f'<div class="{css_class}">{convert(source, display="block")}</div>'


def _math_fence() -> dict[str, str | Callable[..., str]]:
    return {"name": "math", "class": "math", "format": math}


def _palette(media: str, scheme: str, other: str) -> dict[str, Any]:
    icon = "material/weather-night" if other == "slate" else "material/weather-sunny"
    return {"media": media, "scheme": scheme, "toggle": {"icon": icon, "name": "☀ ☾"}}


def _navigation(language: str) -> list[dict[str, list[str]]]:
    """The sections, less the pages that are not written yet."""
    folder = ROOT / "docs" / language
    return [
        {
            chinese if language == "zh" else english: [
                f"{name}.md" for name in names if (folder / f"{name}.md").exists()
            ]
        }
        for english, chinese, names in NAVIGATION
    ]


def with_files(page: Path, copy: Path, source: Path, place: Path) -> str:
    """The text of a page, its links to files outside its folder led to copies of them."""

    def led(found: re.Match[str]) -> str:
        target = next(filter(None, found.groups()))
        if ELSEWHERE.match(target):
            return found[0]
        name, *anchor = target.split("#")
        file = (page.parent / unquote(name)).resolve()
        if file.is_relative_to(source):
            return found[0]
        beside = place / "files" / file.relative_to(ROOT)
        if beside.suffix == ".md":  # to be read as it is, not as a page
            beside = beside.with_suffix(".md.txt")
        beside.parent.mkdir(parents=True, exist_ok=True)
        if file.is_file():
            shutil.copy(file, beside)
        led_to = Path(os.path.relpath(beside, copy.parent)).as_posix()
        return found[0].replace(target, "#".join([led_to, *anchor]))

    parts, end = [], 0
    text = FOLLOWS.sub("", page.read_text(encoding="utf-8"))  # the heading must come first
    for code in re.finditer(f"{FENCED.pattern}|{INLINE.pattern}", text, re.M | re.S):
        parts += [LINK.sub(led, text[end : code.start()]), code[0]]
        end = code.end()
    return "".join([*parts, LINK.sub(led, text[end:])])


if __name__ == "__main__":
    sys.exit(main())
