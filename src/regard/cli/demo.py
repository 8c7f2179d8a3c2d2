"""`regard demo`: the main job, on show."""

import click

from regard.cli.language import language

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
    """Self-attention of three tokens, worked through with every number."""
    # torch takes two seconds to import, so the help does not wait for it
    from regard.study.worked import worked_example

    example = worked_example()
    words = WORDS[language()]
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
