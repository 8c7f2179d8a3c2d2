"""Writes the card of the model that comes with regard: src/regard/bundled/model/README.md.

    tools/card.py           says whether the card is as its sources are
    tools/card.py --write   writes it, and its sums into the model's manifest

What it says comes from the model's own config.json, from recipes/zh-en.toml, and from the tables
that benchmarks/bench_quality.py wrote; the words around them are here, in both languages. The logs
of both trainings, benchmarks/results/zh-en*.metrics.jsonl, are told where they are there.
A model of one direction keeps the card that its training wrote.
"""

import json
import re
import sys
from pathlib import Path
from typing import Any, NamedTuple

from regard.bundle import open_bundle
from regard.recipe import read_config
from regard.storage import sha256, write_json
from regard.tensors import n_stored, stored_dtype

ROOT = Path(__file__).resolve().parent.parent
MODEL = ROOT / "src" / "regard" / "bundled" / "model"
RESULTS = ROOT / "benchmarks" / "results" / "bundled_2-core-cpu_202611.md"
RECIPE, LOGS = "zh-en.toml", ("zh-en.metrics.jsonl", "zh-en-tuned.metrics.jsonl")
BOTH_WAYS = {("zh", "en"), ("en", "zh")}


class Corpus(NamedTuple):
    """What a recipe does not say of a corpus: its training pairs, what it is, whose work it is."""

    pairs: str
    what: str
    by: str


CORPORA = {
    "tatoeba-challenge-zh-en": Corpus(
        "49,776",
        "everyday sentences 日常语句",
        "the contributors of Tatoeba; collected in the Tatoeba Translation Challenge",
    ),
    "3am-zh-en": Corpus("23,931", "captions 图片说明", "the authors of 3AM"),
    "k8s-docs-zh-en": Corpus("63,260", "Kubernetes' documentation 文档", "The Kubernetes Authors"),
    "python-docs-zh-en": Corpus(
        "76,181",
        "Python's documentation 文档",
        "Python Software Foundation; the translators of python-docs-zh-cn",
    ),
    "libreoffice-help-zh-en": Corpus(
        "28,074",
        "LibreOffice's help 帮助",
        "LibreOffice contributors; The Document Foundation",
    ),
    "d2l-zh-en": Corpus(
        "5,889", "a textbook 教材", "the authors of Dive into Deep Learning 《动手学深度学习》"
    ),
    "terms": Corpus(
        "6,821",
        "words and terms found in the text above 从以上文本中找出的词与术语",
        "as above 同上",
    ),
}

LIMITS = [
    (
        "It was trained on a quarter of a million pairs: everyday sentences, captions, technical "
        "documentation. News, law, medicine, poetry and dialect are not among them, and what it "
        "says there may be fluent and wrong.",
        "训练只用了二十几万对句子：日常语句、图片说明、技术文档。新闻、法律、医学、诗歌和方言都不在其中，"
        "遇到这些内容，译文可能通顺而错误。",
    ),
    (
        "Names, numbers and units can be changed or left out; long sentences lose parts. Have a "
        "person look at whatever matters.",
        "人名、数字和单位可能被改动或漏掉，长句可能丢失片段。重要的内容请由人核对。",
    ),
    (
        "It understands simplified and traditional script and writes simplified. It translates "
        "sentence by sentence, so a pronoun may lose the one it stands for.",
        "简体和繁体都能读，写出的是简体。逐句翻译，所以代词可能失去所指。",
    ),
    (
        "It repeats what its text says, with the prejudices in it. It is not for decisions about "
        "people.",
        "它会重复语料里的说法，连同其中的偏见。不可用来对人作出决定。",
    ),
]


def card(model: Path, recipes: Path, results: Path) -> str:
    """The whole text."""
    return "\n".join(
        [
            *_head(model),
            *_scores(results),
            *_data(recipes / RECIPE),
            "## Limits 局限",
            "",
            *(f"- {english}\n  {chinese}" for english, chinese in LIMITS),
            "",
            *_again(model, recipes, results),
        ]
    )


def _head(model: Path) -> list[str]:
    bundle = open_bundle(model)
    weights, n_words = bundle.weights, len(bundle.tgt_tokenizer.vocab)
    millions, megabytes = n_stored(weights) / 1e6, weights.stat().st_size / 1e6
    size = f"{millions:.1f} M", stored_dtype(weights), f"{megabytes:.1f} MB"
    return [
        "# Chinese and English, both ways 中英互译",
        "",
        f"The model that comes with regard: {bundle.model.in_words}, {size[0]} parameters, a joint "
        f"vocabulary of {n_words:,} pieces, stored in {size[1]}, {size[2]}. One network for both "
        "directions: a token before the source asks for a language. "
        "`regard translate` uses it where no `--model` is named.",
        "",
        f"随regard附带的模型：{bundle.model.in_words}，参数{size[0]}，共用词表{n_words:,}个词元，"
        f"以{size[1]}存储，{size[2]}。一个网络管两个方向：源文之前的一个词元指明目标语言。"
        "不写`--model`时，`regard translate`用的就是它。",
        "",
    ]


def _scores(results: Path) -> list[str]:
    """The tables of bench_quality.py, one level lower."""
    text = results.read_text(encoding="utf-8")
    _title, told, tables = text.split("\n\n", 2)
    return [
        "## Scores 成绩",
        "",
        told,
        "",
        "Raw text in and out; pairs of the test text were dropped from training. "
        "原始文本输入输出；测试集里的句对已从训练数据中去掉。",
        "",
        re.sub(r"^## ", "### ", tables, flags=re.MULTILINE),
    ]


def _data(recipe: Path) -> list[str]:
    """Each corpus with its licence, where it comes from, and whose work it is."""
    data = read_config(recipe).data
    rows = []
    for place, known in data.source.items():
        corpus = CORPORA.get(Path(place).name)
        if corpus is None:
            raise SystemExit(f"error: tools/card.py has no attribution for {place}")
        rows.append(
            f"| [{Path(place).name}]({known['address']}) | {corpus.pairs} | {corpus.what} | "
            f"{known['licence']} | {corpus.by} |"
        )
    return [
        "## Data, licences, attribution 数据、许可与署名",
        "",
        "| corpus 语料 | training pairs 训练句对 | what 内容 | licence 许可 | by 作者 |",
        "|---|--:|---|---|---|",
        *rows,
        "",
        "The corpora were cut into pairs of lines, cleaned, and used for training; none of their "
        "text is in this directory, beyond the pieces of the vocabulary. The weights are under "
        "regard's own licence, Apache-2.0.",
        "",
        "语料切成逐行的句对，经过清洗，用于训练；除词表中的词元外，本目录不含其文本。"
        "权重采用regard自己的许可：Apache-2.0。",
        "",
    ]


def _again(model: Path, recipes: Path, results: Path) -> list[str]:
    """The recipe's own words, what came of it, and its log."""
    facts: dict[str, Any] = json.loads((model / "config.json").read_text(encoding="utf-8"))
    head = (recipes / RECIPE).read_text(encoding="utf-8").split("\n\n")[0]
    lines = [
        "## Train it again 重新训练",
        "",
        f"regard {facts['regard']}; the second training 第二次训练: {facts['updates']:,} updates, "
        f"{facts['target_tokens']:,} target tokens; weights 权重: {facts['weights']}. "
        f"recipes/{RECIPE}:",
        "",
        "```text",
        *(line.removeprefix("#").removeprefix(" ") for line in head.splitlines()[1:]),
        "```",
        "",
    ]
    logs = [results.parent / name for name in LOGS]
    rows = [row for n, log in enumerate(logs, 1) if log.is_file() for row in _log(n, log)]
    if not rows:
        return lines
    return [
        *lines,
        "Their logs 日志:",
        "",
        "| training | update | minutes | loss | dev loss | dev BLEU |",
        "|--:|--:|--:|--:|--:|--:|",
        *rows,
        "",
    ]


def _log(training: int, place: Path) -> list[str]:
    """What each validation of a run said."""
    rows, seconds, loss = [], 0.0, 0.0
    for line in place.read_text(encoding="utf-8").splitlines():
        told = json.loads(line)
        seconds, loss = told.get("seconds", seconds), told.get("loss", loss)
        if "dev_loss" in told:
            rows.append(
                f"| {training} | {told['step']:,} | {seconds / 60:.1f} | {loss:.3f} | "
                f"{told['dev_loss']:.3f} | {told['dev_bleu']:.1f} |"
            )
    return rows


def write_card(model: Path, text: str) -> None:
    """The card and, in the manifest, what the card's sums are now."""
    place = model / "README.md"
    place.write_text(text, encoding="utf-8")
    manifest = json.loads((model / "MANIFEST.json").read_text(encoding="utf-8"))
    manifest["files"]["README.md"] = {"size": place.stat().st_size, "sha256": sha256(place)}
    write_json(model / "MANIFEST.json", manifest)


def main() -> int:
    """Say whether the card is stale, or write it."""
    ways = {tuple(way) for way in open_bundle(MODEL).facts.get("directions", [])}
    if not ways >= BOTH_WAYS:
        return 0
    if not RESULTS.is_file():
        print(
            f"{RESULTS.name} is missing\nrun: python benchmarks/bench_quality.py --write --data DIR"
        )
        return 1
    text = card(MODEL, ROOT / "recipes", RESULTS)
    if (MODEL / "README.md").read_text(encoding="utf-8") == text:
        return 0
    if "--write" in sys.argv:
        write_card(MODEL, text)
        return 0
    print("the bundled model's card is not as its sources are\nrun: python tools/card.py --write")
    return 1


if __name__ == "__main__":
    sys.exit(main())
