"""Writes docs/en/study.md and docs/zh/study.md from what `regard study` found in experiments/.

tools/study_pages.py           says whether the pages are as the results are
tools/study_pages.py --write   writes them

Every number on the pages comes from a result.json; the words around them are here.
"""

import hashlib
import json
import re
import sys
from pathlib import Path
from typing import Any, Literal

from regard.study.claim import BEYOND, CHINESE, shown
from regard.study.contents import CONTENTS

ROOT = Path(__file__).resolve().parent.parent
Language = Literal["en", "zh"]

WORDS = {
    "en": {
        "title": "# The notes, run",
        "intro": """\
The five study notes make claims. `regard study` runs them, with the same classes that train the
real translator, and says of each whether it **holds**, **holds with a limit** or **does not hold**.
""",
        "how": """\
A claim is put to the test by one number and a threshold, the same for every seed. Beside it stands
a **control**, a measurement that must come out the other way: without the mask, without the scale,
with shuffled keys. If it does not, the run fails, because then the number shows nothing. No verdict
is written by hand. Each run leaves `result.json` and a figure in `experiments/`; this page is made
from those files by `tools/study_pages.py`, down to the last number.
""",
        "counted": """\
Of the {n} claims below {yes} hold, {limit} hold with a limit and {no} do not hold; {loose} of the
last are sentences of the notes taken by the letter, [listed at the end](#loose). All were run from
seed {seed}, in {seconds} seconds of one processor.
""",
        "table": "## All claims",
        "head": "| experiment | note | claim | verdict |\n|---|---|---|---|",
        "figure": "figure.svg",
        "beyond": "beyond the notes",
        "note": "note {note}",
        "at least": "at least",
        "at most": "at most",
        "colon": ": ",
        "claim": "- **{verdict}** ({note}): {claim}",
        "measured": "Measured: {words}: **{number}** ({relation} {bound}). Control: {control}: "
        "**{control_number}**.",
        "limit": "Limit: {words}: **{number}**.",
        "model": "Looked into: `{model}`.",
        "on_text": """\
The same on real text, Multi30k from English to German, on a GPU ([how it was run]({file})): cased
BLEU, the mean over the seeds with its 95 % interval; the difference from the base is taken seed by
seed.
""",
        "text_head": "| variant | BLEU | less the base |\n|---|--:|--:|",
        "text_says": """\
These are short runs: three seeds, 1,600 updates, half of them warm-up, no R-Drop. At a constant
rate nothing is learned without a warm-up ({constant rate, no warm-up}), and little without √d
({no √d}); without positions much is lost ({no positions}), with learned ones some
({learned positions}). One head or eight in place of four, additive scores and the smoothing of
labels make no difference that exceeds its interval. Rotary positions ({rotary positions}), pre-norm
({pre-norm}) and Gaussian scores ({Gaussian scores}) are ahead. Greedy search is worse than a beam
of 5 ({base, greedy}). The last checkpoint alone is better than the mean of ten
({base, not averaged}), which go back over more than half of so short a run.

On the numerals above one head was worse and the warm-up hardly mattered; here one head is as good,
and without a warm-up nothing is learned. So those two verdicts are about that task and that size.
The paper trained for 100,000 updates: it found one head worse, learned positions as good, and label
smoothing better. Runs as short as these cannot say whether that order comes with time.
""",
        "loose": '<a id="loose"></a>\n\n## Where the notes are loose',
        "loose_intro": """\
Whoever writes study notes in their own words will here and there say a thing loosely; these did so
seldom, and what they meant is nearly always right there on the same page. So that nobody stumbles
over the same places, here they are, with what was measured.
""",
        "loose_head": "**Note {note}**, [{title}](#{anchor}). {remark}",
        "numbers": "{words}: {number}; {control}: {control_number}.",
    },
    "zh": {
        "title": "# 把笔记跑一遍",
        "intro": """\
五篇学习笔记提出了许多论断。`regard study`用训练真正翻译模型的那些类把它们逐条跑一遍，
并给出结论：**成立**、**有条件地成立**或**不成立**。
""",
        "how": """\
每条论断由一个数和一个阈值来检验，阈值对所有种子都相同。旁边还有一个**对照**，它必须得出相反的结果：
去掉掩码、去掉缩放、打乱键。如果对照没有得出相反的结果，这次运行就算失败，因为那个数说明不了什么。
结论都是算出来的，没有一条是手写的。每次运行在`experiments/`里留下`result.json`和一张图；
本页由`tools/study_pages.py`根据这些文件生成，每一个数都来自那里。
""",
        "counted": """\
下面共{n}条论断：{yes}条成立，{limit}条有条件地成立，{no}条不成立；不成立的论断中有{loose}条是照笔记的字面来检验的，
[列在文末](#loose)。全部以种子{seed}运行，共用单个处理器{seconds}秒。
""",
        "table": "## 所有论断",
        "head": "| 实验 | 笔记 | 论断 | 结论 |\n|---|---|---|---|",
        "figure": "figure.zh.svg",
        "beyond": "笔记之外",
        "note": "笔记{note}",
        "at least": "至少",
        "at most": "至多",
        "colon": "：",
        "claim": "- **{verdict}**（{note}）：{claim}",
        "measured": "测量：{words}：**{number}**（要求{relation}{bound}）。对照：{control}："
        "**{control_number}**。",
        "limit": "条件：{words}：**{number}**。",
        "model": "所看的模型：`{model}`。",
        "on_text": """\
真实文本上的同样对比：Multi30k英译德，在GPU上（[怎样运行的]({file})）。表中是区分大小写的BLEU，各种子的均值及其95%区间；
与基准之差按种子逐个相减。
""",
        "text_head": "| 改动 | BLEU | 与基准之差 |\n|---|--:|--:|",
        "text_says": """\
这些都是短训练：三个种子，各1,600次更新，其中一半是预热，不用R-Drop。
学习率不变而又没有预热，什么也学不到（{constant rate, no warm-up}）；
不除以√d，几乎学不到什么（{no √d}）；没有位置编码，损失很大（{no positions}），
学习的位置也差一些（{learned positions}）。
把四个头换成一个或八个、加性评分、去掉标签平滑，差别都没有超出区间。旋转位置（{rotary positions}）、
前置规范化（{pre-norm}）和高斯评分（{Gaussian scores}）领先。贪心搜索不如束宽5（{base, greedy}）；
单取最后一个检查点，胜过十个的平均（{base, not averaged}）：训练这么短，那十个横跨了一大半的路程。

在上面的数字任务里，一个头更差，预热几乎无关紧要；这里一个头并不差，没有预热却什么也学不到。
可见那两条结论只属于那个任务和那个规模。
论文训练了100,000次更新：一个头更差，学习的位置不相上下，标签平滑有好处。这样短的训练说不出，时间长了名次会不会变成那样。
""",
        "loose": '<a id="loose"></a>\n\n## 笔记说得不够严格的地方',
        "loose_intro": """\
用自己的话写学习笔记，难免有几处说得不够严格；这几篇笔记里这样的地方很少，
而且本意几乎总能在同一页上找到。为了让后来的读者不在同一处绊倒，这里把它们列出来，并附上测量结果。
""",
        "loose_head": "**笔记{note}**，[{title}](#{anchor})。{remark}",
        "numbers": "{words}：{number}；{control}：{control_number}。",
    },
}  # fmt: skip
ABLATIONS = "benchmarks/results/ablations_h200_202611.md"  # by tools/ablations.py, if it was run
CHINESE_VARIANTS = {
    "base": "基准",
    "base, greedy": "基准，贪心",
    "base, not averaged": "基准，不平均",
    "no √d": "不除以√d",
    "additive scores": "加性评分",
    "Gaussian scores": "高斯评分",
    "1 head": "1个头",
    "8 heads": "8个头",
    "no positions": "无位置编码",
    "learned positions": "学习的位置",
    "rotary positions": "旋转位置",
    "pre-norm": "前置规范化",
    "no label smoothing": "无标签平滑",
    "constant rate": "学习率不变",
    "constant rate, no warm-up": "学习率不变，无预热",
}
COMMANDS = """\
```sh
regard study                           # the experiments, listed
regard study e04 e05                   # two of them, by number or by name
regard study --all                     # all of them
regard study e04 --seed 7 --out mine   # from another seed, its results into another folder
```
"""


def page(language: Language, results: list[dict[str, Any]], ablations: str = "") -> str:
    """The whole page in one language; `ablations` is the file of those on real text."""
    words = WORDS[language]
    findings = [one for result in results for one in result["findings"]]
    verdicts = [one["verdict"] for one in findings]
    counted = words["counted"].format(
        n=len(verdicts),
        yes=verdicts.count("holds"),
        limit=verdicts.count("holds with a limit"),
        no=verdicts.count("does not hold"),
        loose=sum("remark" in one and one["verdict"] == "does not hold" for one in findings),
        seed=results[0]["seed"],
        seconds=f"{sum(result['processor_seconds'] for result in results):.0f}",
    )
    parts = [
        words["title"],
        words["intro"].strip(),
        COMMANDS.strip(),
        words["how"].strip(),
        counted.strip(),
    ]
    parts += [words["table"], _table(language, results)]
    for result in results:
        parts.append(_section(language, result))
        if ablations and result["name"] == "e15_ablations":
            parts += _on_text(language, ablations)
    parts += [words["loose"], words["loose_intro"].strip(), *_loose(language, results)]
    return "\n\n".join(parts) + "\n"


def pages(root: Path) -> dict[Path, str]:
    """Both pages as they should be; the Chinese one names the English text it follows."""
    results = [
        json.loads((root / "experiments" / name / "result.json").read_text(encoding="utf-8"))
        for name in CONTENTS
    ]
    file = root / ABLATIONS
    ablations = file.read_text(encoding="utf-8") if file.is_file() else ""
    english, chinese = page("en", results, ablations), page("zh", results, ablations)
    digest = hashlib.sha256(english.encode()).hexdigest()[:12]
    return {
        root / "docs/en/study.md": english,
        root / "docs/zh/study.md": f"<!-- follows en: {digest} -->\n{chinese}",
    }


def _table(language: Language, results: list[dict[str, Any]]) -> str:
    rows = [
        f"| [{result['name'][:3]}](#{anchor(result['name'])}) | {_note(language, finding, '')} "
        f"| {finding['claim'][language]} | {_verdict(language, finding)} |"
        for result in results
        for finding in result["findings"]
    ]
    return "\n".join((WORDS[language]["head"], *rows))


def _section(language: Language, result: dict[str, Any]) -> str:
    words, name, title = WORDS[language], result["name"], result["title"][language]
    image = f"../../experiments/{name}/{words['figure']}"
    parts = [
        f'<a id="{anchor(name)}"></a>\n\n## {name[:3]}{words["colon"]}{title}',
        f"![{title}]({image})",
    ]
    if "model" in result:
        parts.append(words["model"].format(model=result["model"]))
    parts += [_claim(language, finding) for finding in result["findings"]]
    return "\n\n".join(parts)


def _on_text(language: Language, ablations: str) -> list[str]:
    """The ablations on real text, as their file has them, and what they say.

    The numbers come from the file, the order in words does not: read it again with new runs.
    """
    words = WORDS[language]
    _, *rows = re.findall(r"^\| (.+?) \| (.*?) \| (.*?) \|", ablations, re.M)
    lines = [
        f"| {name if language == 'en' else CHINESE_VARIANTS[name]} | {bleu} | {less} |"
        for name, bleu, less in rows
    ]
    intro = words["on_text"].format(file=f"../../{ABLATIONS}")
    says = words["text_says"].format_map({name: less for name, _, less in rows})
    return [intro.strip(), "\n".join((words["text_head"], *lines)), says.strip()]


def _claim(language: Language, finding: dict[str, Any]) -> str:
    words = WORDS[language]
    lines = [
        words["claim"].format(
            verdict=_verdict(language, finding),
            note=_note(language, finding),
            claim=finding["claim"][language],
        ),
        words["measured"].format(
            words=finding["measured"][language],
            number=shown(finding["measured"]["number"]),
            relation=words[finding["threshold"]["relation"]],
            bound=shown(finding["threshold"]["number"]),
            control=finding["control"][language],
            control_number=shown(finding["control"]["number"]),
        ),
    ]
    if finding["verdict"] == "holds with a limit":
        limit = finding["limit"]
        lines.append(words["limit"].format(words=limit[language], number=shown(limit["number"])))
    return "\n  ".join(lines)


def _loose(language: Language, results: list[dict[str, Any]]) -> list[str]:
    """Each remark with its measurement, in the order of the notes."""
    found = [
        (finding["note"], result, finding)
        for result in results
        for finding in result["findings"]
        if "remark" in finding
    ]
    words = WORDS[language]
    return [
        "- "
        + words["loose_head"].format(
            note=note,
            title=result["title"][language],
            anchor=anchor(result["name"]),
            remark=finding["remark"][language],
        )
        + "\n  "
        + _begun(
            language,
            words["numbers"].format(
                words=finding["measured"][language],
                number=shown(finding["measured"]["number"]),
                control=finding["control"][language],
                control_number=shown(finding["control"]["number"]),
            ),
        )
        for note, result, finding in sorted(found, key=lambda one: one[0])
    ]


def anchor(name: str) -> str:
    """Where an experiment stands on the page."""
    return name.replace("_", "-")


def _begun(language: Language, text: str) -> str:
    """A sentence; in English it starts with a capital."""
    return text[:1].upper() + text[1:] if language == "en" else text


def _verdict(language: Language, finding: dict[str, Any]) -> str:
    verdict = finding["verdict"]
    return CHINESE[verdict] if language == "zh" else str(verdict)


def _note(language: Language, finding: dict[str, Any], form: str | None = None) -> str:
    words, note = WORDS[language], finding["note"]
    if note == BEYOND:
        return words["beyond"] if form is None else BEYOND
    return words["note"].format(note=note) if form is None else note


def main() -> int:
    """Write the pages, or say which are stale."""
    stale = 0
    for path, text in pages(ROOT).items():
        if "--write" in sys.argv:
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            print(f"{path.relative_to(ROOT)} is not as the results are; run {__file__} --write")
            stale = 1
    return stale


if __name__ == "__main__":
    sys.exit(main())
