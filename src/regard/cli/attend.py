"""`regard attend`: where a model looks while it translates, drawn."""

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from regard.cli.language import language
from regard.cli.plot import UNSHOWN
from regard.errors import ConfigError

if TYPE_CHECKING:
    from regard.view.matrix import Attended, Choice
    from regard.view.terminal import Depth, Screen

FilePath = click.Path(path_type=Path, dir_okay=False)


@click.command()
@click.argument("text")
@click.option("--model", type=click.Path(path_type=Path),
              help="A model directory; without one, the model that comes with regard.")  # fmt: skip
@click.option("--kind", type=click.Choice(["cross", "encoder", "decoder"]), default="cross",
              show_default=True,
              help="cross: translation to source; encoder: source to source; decoder: "
                   "translation to what was written before.")  # fmt: skip
@click.option("--layer", type=int, metavar="N", help="Counted from 1; without it, the last.")
@click.option("--head", type=int, metavar="N",
              help="Counted from 1; without it, the mean of all heads.")  # fmt: skip
@click.option("--all-heads", is_flag=True,
              help="Every head as a thumbnail: of all layers, or of the one named.")  # fmt: skip
@click.option("--words", "in_words", is_flag=True,
              help="Pieces joined to words: summed over those looked at, averaged over those "
                   "that look.")  # fmt: skip
@click.option("--hide-sinks", "hides_sinks", is_flag=True,
              help="Leave out ends and punctuation, and say how much attention they have.",
              )  # fmt: skip
@click.option("--target", metavar="TEXT",
              help="The translation to look at; without it, the model's own.")  # fmt: skip
@click.option("--to", "tgt_lang", default="", metavar="LANG", help="The language to translate to.")
@click.option("--html", type=FilePath, metavar="FILE",
              help="One page with every layer and head, to explore; it needs no network.",
              )  # fmt: skip
@click.option("--svg", type=FilePath, metavar="FILE", help="A picture whose text is text.")
@click.option("--png", type=FilePath, metavar="FILE", help="A picture; needs matplotlib.")
@click.option("--device", default="cpu", help="cpu or cuda.")
def command(text: str, **options: Any) -> None:
    """Draw where a model looks, in the terminal or in a file.

    Without --html, --svg or --png it is drawn in the terminal: the mean of the last layer's heads,
    or any layer and head, which count from 1.
    """
    from regard.decode.translator import load
    from regard.view.captions import words_in
    from regard.view.matrix import Choice

    places = {name: options[name] for name in ("html", "svg", "png") if options[name]}
    if options["all_heads"] and options["head"] is not None:
        raise ConfigError(
            "the option --head names one head, and --all-heads asks for all; choose one"
        )
    translator = load(options["model"], device=options["device"])
    attended = translator.attend(text, options["target"], tgt_lang=options["tgt_lang"])
    choice = Choice(
        *(options[name] for name in ("kind", "layer", "head", "in_words", "hides_sinks"))
    )
    if not places:
        from regard.view.terminal import show_attention, show_heads

        show = show_heads if options["all_heads"] else show_attention
        click.echo(show(attended, choice, words_in(language()), screen()), color=True)
    for kind, path in places.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        _write(kind, path, attended, choice, all_heads=options["all_heads"])
        click.echo(path)


def _write(
    kind: str, path: Path, attended: "Attended", choice: "Choice", *, all_heads: bool
) -> None:
    if kind == "html":
        from regard.view.html import html_page

        path.write_text(html_page(attended, choice, language()), encoding="utf-8")
        return
    from regard.view.captions import words_in
    from regard.view.heatmap import draw_attention, draw_heads
    from regard.view.png import write_png
    from regard.view.svg import svg

    draw = draw_heads if all_heads else draw_attention
    drawing = draw(attended, choice, words_in(language()))
    if kind == "svg":
        path.write_text(svg(drawing), encoding="utf-8")
    elif unshown := write_png(drawing, path):
        click.echo(UNSHOWN[language()].format(characters=unshown), err=True)


def screen() -> "Screen":
    """What the terminal that this runs in can show."""
    from regard.view.terminal import Screen

    return Screen(shutil.get_terminal_size().columns, _depth(), _is_light())


def _depth() -> "Depth":
    """How many colours the terminal has; none where NO_COLOR is set or nobody is looking."""
    forced = os.environ.get("FORCE_COLOR", "0") not in ("", "0")
    terminal = os.environ.get("TERM", "")
    if os.environ.get("NO_COLOR") or not (forced or sys.stdout.isatty()) or terminal == "dumb":
        return "none"
    if os.environ.get("COLORTERM") in ("truecolor", "24bit") or "direct" in terminal:
        return "truecolor"
    return "256" if "256" in terminal or forced else "none"


def _is_light() -> bool:
    """Whether the terminal says that its background is light, as some do."""
    return os.environ.get("COLORFGBG", "").rpartition(";")[2] in ("7", "15")
