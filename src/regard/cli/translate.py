"""`regard translate`: text in, text out, one line each."""

import sys
from pathlib import Path

import click

BUNDLED = Path(__file__).parents[1] / "bundled" / "model"


@click.command()
@click.argument("text", nargs=-1)
@click.option(
    "--model",
    type=click.Path(path_type=Path),
    default=BUNDLED,
    help="A model directory; without one, the model that comes with regard.",
)
@click.option("--beam", type=click.IntRange(1, 64), default=1, help="Hypotheses side by side.")
@click.option("--device", default="cpu", help="cpu or cuda.")
def command(text: tuple[str, ...], model: Path, beam: int, device: str) -> None:
    """Translate arguments, or lines from stdin, one line out for each."""
    from regard.decode.translator import open_translator

    translator = open_translator(model, device)
    lines = list(text) or [line.rstrip("\n") for line in sys.stdin]
    for line in translator.translate(lines, beam=beam):
        click.echo(line)
