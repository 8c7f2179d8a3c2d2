"""Makes the pages that are made from something else, in both languages, and says if one is stale.

The reference of the commands (from their help), of the settings (from recipes/reference.toml), of
the attention library (from its public names); the glossary (from docs/glossary.toml); and on any
page the tables between <!-- table FILE N --> and <!-- end -->, from benchmarks/results, and between
<!-- findings NAME --> and <!-- end -->, from experiments.

tools/pages.py           names the pages that are not as they should be
tools/pages.py --write   writes them
"""

import argparse
import inspect
import json
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

import regard.attention
from docs_parity import digest, followed, following, says
from regard.cli.main import COMMANDS
from regard.cli.main import regard as command_line
from regard.study.claim import CHINESE, shown

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
RESULTS = ROOT / "benchmarks" / "results"
WIDTH = 96  # of the help, in columns

CHINESE_COMMANDS = {
    "train": "训练模型；不给配方时，学习中文数字到英文。",
    "translate": "翻译参数、标准输入的各行，或一个文件；逐行进行。",
    "evaluate": "给译文打分：BLEU、chrF、TER、完全正确率，各带签名。",
    "convert": "把模型转成另一种格式，或更少的字节。",
    "inspect": "逐个校验文件之后，说明模型目录里有什么。",
    "doctor": "指出语料库（corpus）的问题：错误、重叠、长度，并给出建议。",
    "attend": "画出模型看着哪里，在终端里或文件里。",
    "serve": "通过HTTP提供模型和网页，LibreTranslate和DeepL的客户端可以直接使用。",
    "study": "把笔记的论断作为实验运行，说明哪些成立。",
    "plot": "画出各次训练的曲线，并作比较。",
    "demo": "三个词元（token）的自注意力（self-attention），每个数都算给你看。",
}
GROUPS = {
    ("Weigh and average", "加权与平均"): (
        *("Attended", "attend", "attend_hard", "masked_softmax"),
    ),
    ("Scores", "评分"): ("dot_scores", "scaled_dot_scores", "additive_scores", "gaussian_scores"),
    ("Fast paths", "快速路径"): (
        *("dot_attention", "scaled_dot_attention", "additive_attention", "gaussian_attention"),
    ),
    ("Masks", "掩码（mask）"): (
        *("Mask", "Causal", "Blocks", "causal_mask", "padding_mask"),
        *("causal_padding_mask", "valid_lens_mask", "dense"),
    ),
    ("Modules", "模块"): (
        *("SelfAttention", "CrossAttention", "AdditiveAttention", "GaussianAttention"),
    ),
    ("Positions", "位置"): (
        *("sinusoidal_positions", "rotation"),
        *("SinusoidalPositions", "LearnedPositions", "RotaryPositions"),
    ),
    ("Layouts and caches", "布局与缓存（cache）"): (
        *("Layout", "Padded", "Packed", "Cache", "KVCache", "FixedKVCache"),
    ),
}
QUALIFIED = re.compile(r"\b[a-z_]+(?:\.[a-z_]+)*\.([A-Z]\w*|device|dtype)")
TABLE = re.compile(r"(<!-- table (\S+) (\d+) -->\n)(.*?)(<!-- end -->)", re.S)
FINDINGS = re.compile(r"(<!-- findings (\S+) -->\n)(.*?)(<!-- end -->)", re.S)
HEADS = {
    "en": "| note | what it says | verdict | number | asked | control |",
    "zh": "| 笔记 | 论断 | 判定 | 数值 | 要求 | 对照 |",
}
RELATIONS = {"at least": "≥", "at most": "≤"}


def commands(is_chinese: bool) -> str:
    """Every command's help, as click writes it."""
    parts = [
        "# 命令\n\n`regard --help`列出各条命令，`regard 命令 --help`说明一条。"
        "下面是它们的帮助原文，由代码生成。\n"
        if is_chinese
        else "# Commands\n\n`regard --help` lists the commands, `regard NAME --help` explains one. "
        "This is what they\nsay, made from the code.\n",
    ]
    outer = click.Context(command_line, info_name="regard")
    for name, line in COMMANDS.items():
        command = command_line.get_command(outer, name)
        assert command is not None
        context = click.Context(command, info_name=name, parent=outer, terminal_width=WIDTH)
        shown = "\n".join(row.rstrip() for row in command.get_help(context).splitlines())
        said = CHINESE_COMMANDS[name] if is_chinese else line
        parts.append(f"## regard {name}\n\n{said}\n\n```text\n{shown}\n```\n")
    return "\n".join(parts)


def settings(is_chinese: bool) -> str:
    """Every setting with its meaning and default, as a recipe."""
    toml = (ROOT / "recipes" / "reference.toml").read_text(encoding="utf-8").strip()
    if is_chinese:
        head = (
            "# 设置\n\n每一项设置、含义和默认值，写成一份配方。"
            "中文的说明见[训练](../training.md)一页的表。\n"
        )
    else:
        head = (
            "# Settings\n\nEvery setting, its meaning and its default, as a recipe. "
            "[Training](../training.md) has them as\ntables and explains how they work together.\n"
        )
    return f"{head}\n```toml\n{toml}\n```\n"


def attention(is_chinese: bool) -> str:
    """The public names of the attention library: how they are called, and what they are."""
    parts = [
        "# 注意力库\n\n`regard.attention`的全部公开名字，由代码生成：怎样调用，是什么。"
        "形状里的字母见`regard/shapes.py`。逐步的讲解见[注意力](../attention.md)。\n"
        if is_chinese
        else "# The attention library\n\nEvery public name of `regard.attention`, made from the "
        "code: how it is called, and what it is. The\nletters of the shapes are those of "
        "`regard/shapes.py`. [Attention](../attention.md) explains them step by step.\n",
    ]
    for title, names in GROUPS.items():
        blocks = "\n\n".join(map(_signed, names))
        parts.append(f"## {title[is_chinese]}\n\n```text\n{blocks}\n```\n")
    return "\n".join(parts)


def glossary(is_chinese: bool) -> str:
    """Every term in both languages, what it means, and the first page that explains it."""
    table = tomllib.loads((DOCS / "glossary.toml").read_text(encoding="utf-8"))
    language = "zh" if is_chinese else "en"
    if is_chinese:
        head = (
            "# 术语表\n\n每个术语的英文、中文和含义，以及最先讲到它的一页。"
            "译法与《动手学深度学习》一致，各页都照此用词。\n\n"
        )
        head += "| 中文 | English | 含义 | 见 |\n|---|---|---|---|\n"
    else:
        head = (
            "# Glossary\n\nEvery term in English and in Chinese, what it means, and the first page "
            "that explains it. The\nChinese is that of 动手学深度学习 (d2l-zh), and every page "
            "keeps to it."
            "\n\n| English | 中文 | meaning | see |\n|---|---|---|---|\n"
        )
    rows = []
    for term, form in sorted(table["terms"].items(), key=lambda pair: pair[0].lower()):
        meaning = table["meanings"].get(term, {}).get(language, "")
        page = first_page(term)
        link = f"[{_title(language, page)}]({page})" if page else ""
        pair = (form, term) if is_chinese else (term, form)
        rows.append(f"| {pair[0]} | {pair[1]} | {meaning} | {link} |\n")
    return head + "".join(rows)


def first_page(term: str) -> str | None:
    """The first of the explaining pages that uses the term."""
    folder = DOCS / "en"
    pages = [
        *sorted((folder / "learn").glob("*-*.md")),
        folder / "attention.md",
        folder / "model.md",
    ]
    for page in pages:
        if says(page.read_text(encoding="utf-8"), term):
            return page.relative_to(folder).as_posix()
    return None


def with_results(text: str, language: str) -> str:
    """The page with its tables as the result files have them."""

    def findings(found: re.Match[str]) -> str:
        result = ROOT / "experiments" / found[2] / "result.json"
        table = json.loads(result.read_text(encoding="utf-8"))
        rows = [_row(finding, language) for finding in table["findings"]]
        return "\n".join(
            [found[1], HEADS[language], "|---|---|---|--:|--:|--:|", *rows, "", found[4]]
        )

    def table(found: re.Match[str]) -> str:
        result = (RESULTS / found[2]).read_text(encoding="utf-8")
        tables = re.findall(r"(?:^\|.*\n?)+", result, re.M)
        return f"{found[1]}\n{tables[int(found[3]) - 1].rstrip()}\n\n{found[5]}"

    return FINDINGS.sub(findings, TABLE.sub(table, text))


def made() -> Iterator[tuple[Path, str]]:
    """Every page that is made, and what it should say."""
    makers = {
        "reference/commands.md": commands,
        "reference/settings.md": settings,
        "reference/library.md": attention,
        "glossary.md": glossary,
    }
    for name, make in makers.items():
        english = make(False)
        yield DOCS / "en" / name, english
        yield DOCS / "zh" / name, f"<!-- follows en: {digest(english)} -->\n" + make(True)
    for page in sorted((DOCS / "en").rglob("*.md")):
        text = page.read_text(encoding="utf-8")
        if TABLE.search(text) or FINDINGS.search(text):
            english = with_results(text, "en")
            yield page, english
            twin = DOCS / "zh" / page.relative_to(DOCS / "en")
            chinese = with_results(twin.read_text(encoding="utf-8"), "zh")
            # A page that kept up goes on keeping up; one that fell behind is still behind.
            yield (
                twin,
                following(english, chinese) if followed(chinese) == digest(text) else chinese,
            )


def main() -> int:
    """Name what is stale, or write it: 1 if something was stale."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", action="store_true", help="write the pages")
    options = parser.parse_args()
    stale = []
    for page, text in list(made()):
        if page.exists() and page.read_text(encoding="utf-8") == text:
            continue
        stale.append(page)
        if options.write:
            page.parent.mkdir(parents=True, exist_ok=True)
            page.write_text(text, encoding="utf-8")
    for page in () if options.write else stale:
        name = page.relative_to(ROOT).as_posix()
        print(f"{name}: not as its source is; run python tools/pages.py --write")
    return int(bool(stale) and not options.write)


def _row(finding: dict[str, Any], language: str) -> str:
    """A claim, its verdict and its numbers."""
    verdict = CHINESE[finding["verdict"]] if language == "zh" else finding["verdict"]
    threshold = finding["threshold"]
    cells = [
        finding["note"],
        finding["claim"][language],
        f"**{verdict}**",
        shown(finding["measured"]["number"]),
        f"{RELATIONS[threshold['relation']]} {shown(threshold['number'])}",
        shown(finding["control"]["number"]),
    ]
    return f"| {' | '.join(cells)} |"


def _signed(name: str) -> str:
    """A name with its signature and the first sentence of its docstring."""
    thing = getattr(regard.attention, name)
    if not callable(thing):
        return f"{name} = {QUALIFIED.sub(_last, str(thing))}"
    lines = (inspect.getdoc(thing) or "").split("\n\n")[0].splitlines()
    signature = QUALIFIED.sub(_last, str(inspect.signature(thing)).removesuffix(" -> None"))
    if name == "Cache":  # a protocol: it is never called
        signature = ""
    return "\n".join([f"{name}{signature}", *(f"    {line}" for line in lines)])


def _last(found: re.Match[str]) -> str:
    return found[1]


def _title(language: str, page: str) -> str:
    """The first heading of a page, as it is or, where it is still to come, the file's name."""
    file = DOCS / language / page
    found = (
        re.search(r"^# (.*)$", file.read_text(encoding="utf-8"), re.M) if file.exists() else None
    )
    return found[1] if found else page


if __name__ == "__main__":
    sys.exit(main())
