"""`regard`: finds the command, and turns errors into one sentence and an exit code.

Nothing heavy is imported here: help and version answer at once.
"""

import importlib
import os
import sys
import traceback
from collections.abc import Sequence

import click

from regard import __version__
from regard.cli.language import language
from regard.errors import RegardError, ResourceError

COMMANDS = {
    "train": "Train a model; without a recipe, Chinese numerals to English.",
    "translate": "Translate arguments, lines from stdin, or a file; line by line.",
    "evaluate": "Score translations: BLEU, chrF, TER, exact, with signatures.",
    "convert": "Turn a model into another format, or into fewer bytes.",
    "inspect": "What is in a model directory, after every file was checked.",
    "doctor": "What is wrong with a corpus: faults, overlap, lengths, advice.",
    "attend": "Draw where a model looks, in the terminal or in a file.",
    "serve": "Serve models over HTTP, to a page and to translation clients.",
    "study": "Run the notes' claims as experiments, and say which of them hold.",
    "plot": "Draw the curves of training runs, and compare them.",
    "demo": "Translations, where the model looked, and attention worked out.",
}
"""Each command's line in the help; the command itself is `command` in the file of its name."""

INTERRUPTED = 130
UNEXPECTED = {
    "en": "this is a fault in regard; regard --debug ... shows where",
    "zh": "这是regard自身的缺陷；用regard --debug …查看位置",
}


class CommandsByName(click.Group):
    """Commands that are imported only when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command itself."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"regard.cli.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The table as it stands: click would import every command for its first line."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=CommandsByName, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="regard", message="%(prog)s %(version)s")
@click.option("--debug", is_flag=True, help="Show the whole traceback of an error.")
def regard(debug: bool) -> None:
    """Regard (顾): the Transformer, whole, and its attention in view."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command; results go to stdout, everything else to stderr."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    # Before torch is loaded: its threads soon sleep when they wait for each other. By default they
    # spin for long, and beside another busy program an update takes fifty times as long.
    os.environ.setdefault("GOMP_SPINCOUNT", "3000")
    # oneDNN keeps a program for each shape it meets, and text comes in thousands of shapes.
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "32")
    try:
        sys.exit(regard.main(args=arguments, prog_name="regard", standalone_mode=False))
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        sys.exit(error.exit_code)
    except click.ClickException as error:
        _fail(error.format_message(), error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(INTERRUPTED)
    except BrokenPipeError:  # whoever reads has seen enough; nor is there anybody to be told
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except RegardError as error:
        if "--debug" in arguments:
            traceback.print_exc()
        _fail(error.in_language(language()), error.exit_code)
    except OSError as error:
        if "--debug" in arguments:
            traceback.print_exc()
        place = f"{error.filename}: " if error.filename else ""
        _fail(f"{place}{error.strerror or error}", ResourceError.exit_code)
    except Exception as error:
        if "--debug" in arguments:
            raise
        _fail(f"{type(error).__name__}: {error} ({UNEXPECTED[language()]})", exit_code=1)


def _fail(sentence: str, exit_code: int) -> None:
    word = "错误：" if language() == "zh" else "error: "
    click.echo(f"{word}{sentence}", err=True)
    sys.exit(exit_code)
