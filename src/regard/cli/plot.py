"""`regard plot`: the curves of training runs, to look at and to compare."""

from pathlib import Path

import click

from regard.cli.language import language

WORDS = {
    "title": "训练曲线",
    "step": "更新次数",
    "train": "训练集",
    "dev": "开发集",
    "loss": "损失（奈特/词元）",
    "dev_bleu": "BLEU",
    "dev_chrf": "chrF",
    "dev_accuracy": "词元预测正确率（%）",
    "dev_exact": "句子完全正确率（%）",
    "lr": "学习率",
    "tokens_per_s": "速度（词元/秒）",
}
"""The Chinese of the words of a drawing, which has its English itself."""

UNSHOWN = {
    "en": "warning: no font on this machine shows {characters}; install Noto Sans CJK, or write "
    "an .svg, which the reader's own fonts show",
    "zh": "警告：本机没有能显示{characters}的字体；请安装Noto Sans CJK，"
    "或改用.svg，由读者的字体显示",
}


@click.command()
@click.argument("run", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    default=Path("curves.svg"),
    show_default=True,
    help="Where to draw; the ending says how, .svg or .png.",
)
@click.option("--log", "is_log", is_flag=True, help="The loss on a logarithmic axis.")
def command(run: tuple[Path, ...], output: Path, is_log: bool) -> None:
    """Draw the curves of training runs, and compare them.

    RUN is a run's folder (MODEL.run), the model directory beside it, or a metrics.jsonl.
    """
    from regard.errors import ConfigError
    from regard.view.curves import ENGLISH, draw_curves
    from regard.view.png import write_png
    from regard.view.runs import read_run
    from regard.view.svg import svg

    kind = output.suffix.lower()
    if kind not in (".svg", ".png"):
        raise ConfigError("{path} ends in neither .svg nor .png, so name one of them", path=output)
    # A wildcard names a model and its folder alike; they are one run.
    runs = {found.path.resolve(): found for found in map(read_run, run)}
    words = WORDS if language() == "zh" else ENGLISH
    drawing = draw_curves(list(runs.values()), words, is_log=is_log)
    output.parent.mkdir(parents=True, exist_ok=True)
    if kind == ".svg":
        output.write_text(svg(drawing), encoding="utf-8")
    elif unshown := write_png(drawing, output):
        click.echo(UNSHOWN[language()].format(characters=unshown), err=True)
    click.echo(output)
