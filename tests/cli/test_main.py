import errno
import statistics
import subprocess
import sys
import time

import click
import pytest

from regard import __version__
from regard.cli import main as cli
from regard.cli.language import language
from regard.errors import DataError


@pytest.fixture
def _english(monkeypatch):
    for name in ("REGARD_LANG", "LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)


def run(*arguments):
    with pytest.raises(SystemExit) as left:
        cli.main(list(arguments))
    return left.value.code or 0


def failing(error):
    """A command that fails in this way."""

    @click.command()
    def command():
        raise error

    return lambda *_: command


def test_version_says_its_name_and_number(capsys):
    assert run("--version") == 0
    assert capsys.readouterr().out == f"regard {__version__}\n"


@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_help_names_every_command(capsys, flag):
    assert run(flag) == 0
    said = capsys.readouterr().out
    for name, line in cli.COMMANDS.items():
        assert name in said
        assert line in said


def test_the_line_in_the_help_is_the_commands_own():
    for name, line in cli.COMMANDS.items():
        command = cli.regard.get_command(click.Context(cli.regard), name)
        assert command.help.splitlines()[0] == line


def test_help_answers_without_the_heavy_imports():
    code = (
        "import sys\nfrom regard.cli.main import main\n"
        "try: main(['--help'])\nexcept SystemExit: pass\n"
        "print(sorted({'torch', 'numpy', 'rich', 'jaxtyping'} & set(sys.modules)))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.splitlines()[-1] == "[]"


def test_help_answers_within_150_ms_of_bare_python():
    """The median of interleaved pairs, since a busy machine slows both alike."""

    def seconds(*arguments):
        start = time.perf_counter()
        subprocess.run([sys.executable, *arguments], capture_output=True, check=True)
        return time.perf_counter() - start

    extra = [seconds("-m", "regard", "--help") - seconds("-c", "pass") for _ in range(7)]
    assert statistics.median(extra) < 0.150


def test_a_call_without_arguments_shows_the_help_and_counts_as_usage(capsys):
    assert run() == 2
    assert "Commands:" in capsys.readouterr().err


@pytest.mark.usefixtures("_english")
def test_an_unknown_command_is_one_sentence_on_stderr(capsys):
    assert run("trian") == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == "error: No such command 'trian'.\n"


@pytest.mark.usefixtures("_english")
def test_an_error_is_one_sentence_and_its_exit_code(capsys, monkeypatch):
    error = DataError("there is no file {path}", path="train.zh")
    monkeypatch.setattr(cli.CommandsByName, "get_command", failing(error))
    assert run("demo") == 3
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "error: there is no file train.zh\n")


def test_an_error_is_in_chinese_for_chinese_readers(capsys, monkeypatch):
    monkeypatch.setenv("REGARD_LANG", "zh")
    error = DataError("there is no file {path}", path="train.zh")
    monkeypatch.setattr(cli.CommandsByName, "get_command", failing(error))
    assert run("demo") == 3
    assert capsys.readouterr().err == "错误：没有train.zh这个文件\n"


@pytest.mark.usefixtures("_english")
def test_a_traceback_comes_only_when_asked_for(capsys, monkeypatch):
    error = DataError("there is no file {path}", path="train.zh")
    monkeypatch.setattr(cli.CommandsByName, "get_command", failing(error))
    assert run("--debug", "demo") == 3
    said = capsys.readouterr().err
    assert said.startswith("Traceback")
    assert said.endswith("error: there is no file train.zh\n")


@pytest.mark.usefixtures("_english")
def test_a_fault_of_regards_own_is_owned(capsys, monkeypatch):
    monkeypatch.setattr(cli.CommandsByName, "get_command", failing(KeyError("head")))
    assert run("demo") == 1
    assert capsys.readouterr().err == (
        "error: KeyError: 'head' (this is a fault in regard; regard --debug ... shows where)\n"
    )
    with pytest.raises(KeyError):
        cli.main(["--debug", "demo"])


def test_an_interrupted_command_says_so_by_its_code(monkeypatch):
    monkeypatch.setattr(cli.CommandsByName, "get_command", failing(KeyboardInterrupt()))
    assert run("demo") == 130


@pytest.mark.usefixtures("_english")
def test_the_language_is_the_persons_choice_then_the_locales(monkeypatch):
    assert language() == "en"
    monkeypatch.setenv("LANG", "zh_CN.UTF-8")
    assert language() == "zh"
    monkeypatch.setenv("LC_ALL", "en_US.UTF-8")
    assert language() == "en"
    monkeypatch.setenv("REGARD_LANG", "zh")
    assert language() == "zh"


@pytest.mark.usefixtures("_english")
def test_a_full_disk_is_a_matter_of_resources(capsys, monkeypatch):
    error = OSError(errno.ENOSPC, "No space left on device", "model")
    monkeypatch.setattr(cli.CommandsByName, "get_command", failing(error))
    assert run("demo") == 5
    assert capsys.readouterr().err == "error: model: No space left on device\n"


def test_a_reader_who_leaves_early_is_told_nothing():
    code = f"{sys.executable} -m regard demo | head -1"
    out = subprocess.run(["bash", "-c", code], capture_output=True, text=True)
    assert out.stderr == ""
