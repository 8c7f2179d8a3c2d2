"""Keeps the READMEs' table of results equal to the files it comes from.

    python tools/results.py [--write]

Every number is looked up in a table of benchmarks/results, by file, section, row and column; the
words around it are here. Without --write it only says where a README differs.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
PLACE = re.compile(r"(?<=<!-- results -->\n).*?(?=<!-- /results -->)", re.S)

H200, TRAIN, TRAIN_XEON, TRAIN_ZEN5 = (
    f"{name}_202611.md"
    for name in ("train_h200", "train_2-core-cpu", "train_2-core-xeon", "train_2-core-zen5")
)
TRANSLATE, TRANSLATE_GPU, NUMERALS, MULTI30K = (
    f"{name}_202611.md"
    for name in ("translate_2-core-cpu", "translate_h200", "numerals_2-core-cpu", "multi30k_h200")
)
BUNDLED, PEER, HISTORY, FRENCH, TASKS = (
    f"{name}_202611.md"
    for name in ("bundled_2-core-cpu", "multi30k-marianmt_h200", "multi30k-history_h200",
                 "tatoeba-fra_h200", "tasks_h200")
)  # fmt: skip

HEAD = {
    "en": "| what | hardware | result |\n|---|---|---|\n",
    "zh": "| 名称 | 硬件 | 结果 |\n|---|---|---|\n",
}
CORES = {"en": "2 CPU cores", "zh": "2个CPU核"}
GPU = {"en": "one NVIDIA H200", "zh": "一块NVIDIA H200"}


def cell(file: str, row: str, column: str, section: str = "") -> str:
    """What stands in a table, without the marks of bold type and the spread behind it."""
    text = (RESULTS / file).read_text(encoding="utf-8")
    if section:
        text = text.split(f"\n## {section}\n", 1)[1].split("\n## ", 1)[0]
    tables = [
        [[part.strip() for part in line.strip("|").split("|")] for line in block.splitlines()]
        for block in re.findall(r"(?:^\|.*\n?)+", text, re.M)
    ]
    for head, _, *rows in tables:
        for cells in rows:
            if " | ".join(cells).startswith(row) and column in head:
                return cells[head.index(column)].split(" (")[0].strip("*")
    raise SystemExit(f"error: {file} has no row {row!r} with a column {column!r}")


def rows() -> list[dict[str, str]]:
    """The table's rows in both languages: what, where, and what came out."""
    seen = {BUNDLED: _bundled, MULTI30K: _multi30k, PEER: _peer, HISTORY: _history,
            FRENCH: _french, TASKS: _tasks}  # fmt: skip
    quality = [row() for file, row in seen.items() if (RESULTS / file).is_file()]
    on_gpu = [_train_gpu(), _translate_gpu()]
    return [*quality, _numerals(), *on_gpu, _translate(), _translate_int8(), _train_cpu()]


def _bundled() -> dict[str, str]:
    to_en, to_zh = (cell(BUNDLED, "mean", f"{way} BLEU", "test") for way in ("zh→en", "en→zh"))
    speed = _found(BUNDLED, r"([\d,]+) sentences/s")
    return {
        "en": "| the model that comes with regard, mean of six test sets, beam 5 | "
        f"{CORES['en']} | zh→en BLEU {to_en}, en→zh BLEU {to_zh}; greedily {speed} sentences/s"
        f"{_link(BUNDLED, 'en')} |",
        "zh": f"| 随regard附带的模型，六个测试集的平均，束宽5 | {CORES['zh']} | "
        f"中译英BLEU {to_en}，英译中BLEU {to_zh}；贪心每秒{speed}句{_link(BUNDLED, 'zh')} |",
    }


def _multi30k() -> dict[str, str]:
    text = (RESULTS / MULTI30K).read_text(encoding="utf-8").split("## German")[0]
    n_seeds = len(re.findall(r"^\| \d \|", text, re.M))
    score = cell(MULTI30K, "1 |" if n_seeds == 1 else "mean |", "test, lc Moses")
    seeds = {"en": "one seed", "zh": "一个种子"}
    if n_seeds > 1:
        seeds = {"en": f"mean of {n_seeds} seeds", "zh": f"{n_seeds}个种子的平均"}
    return {
        "en": f"| Multi30k en→de, test 2016, no images | {GPU['en']} | BLEU {score} lower-cased, "
        f"Moses tokens, beam 5, {seeds['en']} (published: 41.02){_link(MULTI30K, 'en')} |",
        "zh": f"| Multi30k英译德，2016测试集，不用图像 | {GPU['zh']} | BLEU {score}，"
        f"小写，Moses分词，束宽5，{seeds['zh']}（已发表：41.02）{_link(MULTI30K, 'zh')} |",
    }


def _peer() -> dict[str, str]:
    ours, theirs = (cell(PEER, "test at its minutes", who) for who in ("regard", "MarianMT"))
    minutes, its = (cell(PEER, "minutes to its dev", who) for who in ("regard", "MarianMT"))
    return {
        "en": f"| the same beside MarianMT in a plain loop, as many minutes | {GPU['en']} | BLEU "
        f"{ours} against {theirs}; past its score on dev after {minutes} minutes, of its {its}"
        f"{_link(PEER, 'en')} |",
        "zh": f"| 同上，与普通训练循环里的MarianMT相比，用时相同 | {GPU['zh']} | "
        f"BLEU {ours}对{theirs}；{minutes}分钟后在开发集上已超过它{its}分钟的成绩"
        f"{_link(PEER, 'zh')} |",
    }


def _history() -> dict[str, str]:
    gru, transformer = (
        [cell(HISTORY, name, column) for column in ("test, lc Moses", "minutes")]
        for name in ("GRU", "Transformer")
    )
    return {
        "en": f"| the same text, GRU with additive attention, then Transformer | {GPU['en']} | "
        f"BLEU {gru[0]} after {gru[1]} minutes, {transformer[0]} after {transformer[1]}"
        f"{_link(HISTORY, 'en')} |",
        "zh": f"| 同样的文本，加性注意力的GRU与Transformer | {GPU['zh']} | BLEU {gru[0]}"
        f"（{gru[1]}分钟）与{transformer[0]}（{transformer[1]}分钟）{_link(HISTORY, 'zh')} |",
    }


def _french() -> dict[str, str]:
    score = cell(FRENCH, "test", "cased 13a")
    return {
        "en": f"| Tatoeba en→fr, 160,550 pairs, 2,000 held out | {GPU['en']} | BLEU {score}, beam 5"
        f"{_link(FRENCH, 'en')} |",
        "zh": f"| Tatoeba英译法，160,550对，留出2,000对 | {GPU['zh']} | BLEU {score}，束宽5"
        f"{_link(FRENCH, 'zh')} |",
    }


def _tasks() -> dict[str, str]:
    exact = cell(TASKS, "restored", "exact")
    return {
        "en": f"| not translation: capitals and punctuation put back | {GPU['en']} | "
        f"{exact} % of sentences exact{_link(TASKS, 'en')} |",
        "zh": f"| 不是翻译：恢复大小写和标点 | {GPU['zh']} | "
        f"{exact} %的句子完全正确{_link(TASKS, 'zh')} |",
    }


def _numerals() -> dict[str, str]:
    exact, took = (cell(NUMERALS, "numerals", name) for name in ("exact", "time"))
    chinese = took.replace(" min ", "分").replace(" s", "秒")
    return {
        "en": f"| `regard train`, Chinese numerals from nothing | {CORES['en']} | {exact} of 2,000 "
        f"unseen values exact after {took}, start, evaluation and saving included"
        f"{_link(NUMERALS, 'en')} |",
        "zh": f"| `regard train`，从零学会中文数字 | {CORES['zh']} | 2,000个没见过的值"
        f"有{exact}完全正确，连同启动、评估和保存共{chinese}"
        f"{_link(NUMERALS, 'zh')} |",
    }


def _train_gpu() -> dict[str, str]:
    ours = int(cell(H200, "regard", "tokens/s (median)").replace(",", ""))
    found = re.search(r"Ratio: \*\*([\d.]+)\*\*", (RESULTS / H200).read_text(encoding="utf-8"))
    if not found:
        raise SystemExit(f"error: {H200} has no ratio")
    return {
        "en": f"| training, base model, bf16, packed and compiled | "
        f"{GPU['en']} | {ours / 1e6:.2f} million tokens/s, {found[1]} times Hugging Face MarianMT"
        f"{_link(H200, 'en')} |",
        "zh": f"| 训练，基础模型，bf16，紧排并编译 | {GPU['zh']} | "
        f"每秒{ours / 1e4:.0f}万词元，是Hugging Face MarianMT的{found[1]}倍{_link(H200, 'zh')} |",
    }


def _translate_gpu() -> dict[str, str]:
    (greedy, times), (beam, beam_times) = (
        tuple(
            cell(TRANSLATE_GPU, "", column, section=f"Speed, bf16, {search}")
            for column in ("regard, sent/s (of)", "regard ÷ generate")
        )
        for search in ("greedy", "beam 5")
    )
    return {
        "en": f"| translating, base model, bf16, from text to text | {GPU['en']} | {greedy} "
        f"sentences/s greedily, {beam} with beam 5; {times} and {beam_times} times Hugging Face "
        f"`generate` from ids to ids at its best batch{_link(TRANSLATE_GPU, 'en')} |",
        "zh": f"| 翻译，基础模型，bf16，从文本到文本 | {GPU['zh']} | 贪心每秒{greedy}句，"
        f"束宽5为{beam}句；是Hugging Face的`generate`（从编号到编号，最好的批量大小）的"
        f"{times}倍和{beam_times}倍{_link(TRANSLATE_GPU, 'zh')} |",
    }


def _translate() -> dict[str, str]:
    found = {
        (size, search): _best_batch(size, search, "torch ÷ generate")
        for size in ("small", "base")
        for search in ("greedy", "beam 5")
    }
    return {
        "en": f"| translating, torch float32, against Hugging Face `generate`: same weights, same "
        f"output | {CORES['en']} | d 256, 3+3 layers: greedy {found['small', 'greedy']} times, "
        f"beam 5 {found['small', 'beam 5']} times; base size {found['base', 'greedy']} and "
        f"{found['base', 'beam 5']}{_link(TRANSLATE, 'en')} |",
        "zh": f"| 翻译，torch，float32，与Hugging Face的`generate`相比：权重相同，输出相同 | "
        f"{CORES['zh']} | d 256、3+3层：贪心{found['small', 'greedy']}倍，束宽5为"
        f"{found['small', 'beam 5']}倍；基础大小{found['base', 'greedy']}倍和"
        f"{found['base', 'beam 5']}倍{_link(TRANSLATE, 'zh')} |",
    }


def _translate_int8() -> dict[str, str]:
    speed = _best_batch("small", "greedy", "regard, ctranslate2 int8, sent/s").split(".")[0]
    small, base = (_best_batch(size, "greedy", "int8 ÷ generate") for size in ("small", "base"))
    return {
        "en": f"| the same on CTranslate2 in int8 | {CORES['en']} | {speed} sentences/s greedily, "
        f"{small} times `generate`; base size {base} times{_link(TRANSLATE, 'en')} |",
        "zh": f"| 同上，用CTranslate2，int8 | {CORES['zh']} | 贪心每秒{speed}句，"
        f"是`generate`的{small}倍；基础大小{base}倍{_link(TRANSLATE, 'zh')} |",
    }


def _train_cpu() -> dict[str, str]:
    (small, base), (xeon_small, xeon_base), (zen5_small, zen5_base) = (
        [cell(file, size, "ratio (median, spread)") for size in ("small", "base")]
        for file in (TRAIN, TRAIN_XEON, TRAIN_ZEN5)
    )
    return {
        "en": f"| training, float32, against MarianMT on the same padded batches | {CORES['en']} | "
        f"AMD EPYC of 2024: d 256, 3+3 layers {zen5_small} times, base {zen5_base} times"
        f"{_link(TRAIN_ZEN5, 'en')}; Intel Xeon: {xeon_small} and {xeon_base} times"
        f"{_link(TRAIN_XEON, 'en')}; an older EPYC: {small} and {base} times{_link(TRAIN, 'en')} |",
        "zh": f"| 训练，float32，与MarianMT相比，填充批量相同 | {CORES['zh']} | 2024年的AMD EPYC："
        f"d 256、3+3层{zen5_small}倍，基础模型{zen5_base}倍{_link(TRAIN_ZEN5, 'zh')}；Intel Xeon："
        f"{xeon_small}倍和{xeon_base}倍{_link(TRAIN_XEON, 'zh')}；较旧的EPYC："
        f"{small}倍和{base}倍{_link(TRAIN, 'zh')} |",
    }


def _best_batch(size: str, search: str, column: str) -> str:
    """Of the two rows of a search the second: not one sentence at a time, but the best batch."""
    text = (RESULTS / TRANSLATE).read_text(encoding="utf-8")
    batches = re.findall(
        rf"^\| {search} \| (\S+(?: / \S+)?) \|", text.split(f"\n## {size}\n")[1], re.M
    )
    return cell(TRANSLATE, f"{search} | {batches[1]}", column, section=size)


def _found(file: str, pattern: str) -> str:
    """What a sentence of a file says."""
    found = re.search(pattern, (RESULTS / file).read_text(encoding="utf-8"))
    if not found:
        raise SystemExit(f"error: {file} says nothing like {pattern!r}")
    return found[1]


def _link(file: str, language: str) -> str:
    where = f"benchmarks/results/{file}"
    return f" ([details]({where}))" if language == "en" else f"（[详情]({where})）"


def main() -> int:
    """Write the tables with --write; else say which README differs."""
    made, stale = rows(), []
    for language, name in (("en", "README.md"), ("zh", "README.zh.md")):
        path = ROOT / name
        text = path.read_text(encoding="utf-8")
        table = HEAD[language] + "\n".join(row[language] for row in made) + "\n"
        if not PLACE.search(text):
            stale.append(f"{name} has no <!-- results --> and <!-- /results -->")
        elif (new := PLACE.sub(lambda _, table=table: table, text)) != text:  # type: ignore[misc]
            if "--write" in sys.argv:
                path.write_text(new, encoding="utf-8")
            else:
                stale.append(f"{name}: results are not those of benchmarks/results")
    if stale:
        print("\n".join([*stale, "run: python tools/results.py --write"]))
    return bool(stale)


if __name__ == "__main__":
    sys.exit(main())
