"""`regard demo`: the main job on show: translations, where the model looked, the arithmetic."""

from typing import TYPE_CHECKING

import click

from regard.cli.attend import screen
from regard.cli.language import language

if TYPE_CHECKING:
    from regard.decode.translator import Translator

Way = tuple[str, str]
BOTH_WAYS: set[Way] = {("zh", "en"), ("en", "zh")}

CHINESE = (
    "机器学习",
    "你好，世界！",
    "我喜欢喝茶。",
    "我喜歡喝茶。",
    "今天天气很好。",
    "你能帮我一下吗？",
    "他每天早上六点起床。",
    "一个男孩在公园里踢足球。",
    "深度学习是机器学习的一个分支。",
    "删除这个文件之前，请先保存文档。",
    "如果列表为空，则返回 None。",
    "每个 Pod 都有自己的 IP 地址。",
)
ENGLISH = (
    "machine learning",
    "Hello, world!",
    "I like tea.",
    "Where is the station?",
    "The weather is nice today.",
    "Can you help me?",
    "She has lived in Beijing for three years.",
    "A dog is running on the beach.",
    "Deep learning is a branch of machine learning.",
    "Click the button to open the dialog.",
    "Returns a list of all the keys.",
    "Create a new cluster and deploy your application.",
)
NUMERALS = (
    "三十三",
    "六百二十五",
    "三万五千八百零七",
    "七十六万八千五百七十八",
    "一千九百零二万五千八百三十七",
    "三分之二",
    "八分之五",
    "七角五分",
    "四十九元二角五分",
    "三百零五元四角二分",
    "二〇二六年三月五日",
    "一九三八年四月二十六日",
)
LOOKED_AT = {"both": "我喜欢机器学习。", "numerals": "三百零五元四角二分"}

STEPS = (
    "x",
    "w_query",
    "w_key",
    "w_value",
    "query",
    "key",
    "value",
    "dots",
    "scores",
    "weights",
    "output",
)

WORDS = {
    "en": {
        "translations": "From {src} to {tgt}",
        "picture": "Where the model looked",
        "zh": "Chinese",
        "en": "English",
        "title": "Self-attention of three tokens, softmax(Q Kᵀ / √3) V",
        "x": "X, one row for each token",
        "w_query": "W^Q",
        "w_key": "W^K",
        "w_value": "W^V",
        "query": "Q = X W^Q, what each token asks",
        "key": "K = X W^K, what each token answers to",
        "value": "V = X W^V, what each token has to say",
        "dots": "Q Kᵀ, how well each key matches each query",
        "scores": "Q Kᵀ / √3, scaled so that their spread does not grow with the width",
        "weights": "softmax of each row: the weights, which sum to 1",
        "output": "weights V: each token, averaged with those it attends to",
        "terms": "The first row of the output, term by term",
    },
    "zh": {
        "translations": "{src}译{tgt}",
        "picture": "模型看了哪里",
        "zh": "中",
        "en": "英",
        "title": "三个词元的自注意力：softmax(Q Kᵀ / √3) V",
        "x": "X，每个词元一行",
        "w_query": "W^Q",
        "w_key": "W^K",
        "w_value": "W^V",
        "query": "Q = X W^Q，每个词元的查询",
        "key": "K = X W^K，每个词元的键",
        "value": "V = X W^V，每个词元的值",
        "dots": "Q Kᵀ，每个查询与每个键的匹配程度",
        "scores": "Q Kᵀ / √3，缩放后方差不随维度增大",
        "weights": "逐行softmax：注意力权重，每行之和为1",
        "output": "权重乘以V：每个词元都是它所关注的词元的加权平均",
        "terms": "输出的第一行，逐项相加",
    },
}


@click.command()
def command() -> None:
    """Translations, where the model looked, and attention worked out.

    A dozen sentences by the model that comes with regard, each way it goes; one picture of its
    attention; then the self-attention of three tokens with every number.
    """
    # what translates and draws takes a second to import, so the help does not wait for it
    from regard.decode.translator import load

    translator = load()
    goes_both_ways = set(translator.directions) >= BOTH_WAYS
    if goes_both_ways:
        _translate(translator, ("zh", "en"), CHINESE)
        _translate(translator, ("en", "zh"), ENGLISH)
    else:
        _translate(translator, ("zh", "en"), NUMERALS)
    _draw(translator, LOOKED_AT["both" if goes_both_ways else "numerals"])
    _work_out()


def _translate(translator: "Translator", way: Way, texts: tuple[str, ...]) -> None:
    words, (src, tgt) = WORDS[language()], way
    click.echo(words["translations"].format(src=words[src], tgt=words[tgt]) + "\n")
    said = translator.translate(texts, src_lang=src, tgt_lang=tgt)
    for text, one in zip(texts, said, strict=True):
        click.echo(f"  {text} → {one.text}")
    click.echo()


def _draw(translator: "Translator", text: str) -> None:
    from regard.view.captions import words_in
    from regard.view.matrix import Choice
    from regard.view.terminal import show_attention

    click.echo(WORDS[language()]["picture"] + "\n")
    attended = translator.attend(text, tgt_lang="en")
    click.echo(show_attention(attended, Choice(), words_in(language()), screen()), color=True)
    click.echo()


def _work_out() -> None:
    from regard.study.worked import worked_example

    example, words = worked_example(), WORDS[language()]
    click.echo(words["title"])
    for name in STEPS:
        rows = getattr(example, name).tolist()
        click.echo(f"\n{words[name]}\n" + "\n".join(map(_row, rows)))

    weights, values = example.weights[0].tolist(), example.value.tolist()
    products = " + ".join(
        f"{weight:.4f} · [{', '.join(f'{x:g}' for x in value)}]"
        for weight, value in zip(weights, values, strict=True)
    )
    total = ", ".join(f"{x:.4f}" for x in example.output[0].tolist())
    click.echo(f"\n{words['terms']}\n  {products}\n  = [{total}]")


def _row(numbers: list[float]) -> str:
    """Whole numbers as they are, all others to four digits."""
    whole = all(number == int(number) for number in numbers)
    return "".join(f"{number:>4.0f}" if whole else f"{number:>10.4f}" for number in numbers)
