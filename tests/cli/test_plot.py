import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ET

import pytest

from regard.cli import plot
from regard.cli.main import main
from regard.view.curves import ENGLISH

LINES = [
    {"step": 50, "loss": 3.2, "lr": 1e-4, "tokens_per_s": 12000, "seconds": 12.3},
    {"step": 100, "loss": 2.8, "lr": 2e-4, "tokens_per_s": 12100, "seconds": 24.5},
    {"step": 100, "dev_loss": 2.9, "dev_bleu": 12.3},
]


@pytest.fixture(autouse=True)
def _in_english_and_elsewhere(monkeypatch, tmp_path):
    monkeypatch.setenv("REGARD_LANG", "en")
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def folder(tmp_path):
    return write(tmp_path / "model.run")


def write(folder):
    folder.mkdir(parents=True)
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in LINES))
    return folder


def run(*arguments):
    with pytest.raises(SystemExit) as left:
        main(["plot", *map(str, arguments)])
    return left.value.code or 0


def texts(path):
    return [part.text for part in ET.parse(path).iter("{http://www.w3.org/2000/svg}text")]


def test_a_run_is_drawn_and_stdout_says_where(folder, tmp_path, capsys):
    assert run(folder) == 0
    said = capsys.readouterr()
    assert (said.out, said.err) == ("curves.svg\n", "")
    shown = texts(tmp_path / "curves.svg")
    assert {"model", ENGLISH["loss"], ENGLISH["lr"], "BLEU", ENGLISH["tokens_per_s"]} <= set(shown)


def test_several_runs_are_compared_and_each_is_drawn_once(folder, tmp_path, capsys):
    other = write(tmp_path / "elsewhere" / "model.run")
    output = tmp_path / "figures" / "both.svg"
    named = (folder, tmp_path / "model", folder / "metrics.jsonl", other)
    assert run(*named, "-o", output) == 0
    assert capsys.readouterr().out == f"{output}\n"
    shown = texts(output)
    assert f"{tmp_path.name}/model" in shown
    assert "elsewhere/model" in shown
    assert sum(text.endswith("model") for text in shown) == 2


def test_the_ending_says_how_it_is_drawn(folder, tmp_path, capsys):
    assert run(folder, "-o", "x.PNG") == 0
    assert capsys.readouterr().out == "x.PNG\n"
    assert (tmp_path / "x.PNG").read_bytes().startswith(b"\x89PNG")


def test_another_ending_is_refused_before_anything_is_read(tmp_path, capsys):
    assert run("nothing", "-o", "curves.pdf") == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == "error: curves.pdf ends in neither .svg nor .png, so name one of them\n"


def test_the_loss_may_be_logarithmic(folder, tmp_path):
    run(folder, "-o", "plain.svg")
    assert run(folder, "--log", "-o", "log.svg") == 0
    assert texts("plain.svg") != texts("log.svg")


def test_the_words_are_chinese_for_chinese_readers(folder, tmp_path, monkeypatch):
    monkeypatch.setenv("REGARD_LANG", "zh")
    assert run(folder) == 0
    shown = texts(tmp_path / "curves.svg")
    assert {"损失（奈特/词元）", "学习率", "更新次数", "训练集", "开发集"} <= set(shown)


def test_every_word_has_its_chinese():
    assert plot.WORDS.keys() == ENGLISH.keys()
    same = {key for key in ENGLISH if ENGLISH[key] == plot.WORDS[key]}
    assert same == {"dev_bleu", "dev_chrf"}


def test_a_run_that_is_not_there_is_a_matter_of_data(tmp_path, capsys):
    assert run("nothing") == 3
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == (
        "error: there is no training run at nothing; name a metrics.jsonl, the folder that holds "
        "one, or the model beside that folder\n"
    )
    assert not (tmp_path / "curves.svg").exists()


def test_a_call_without_runs_is_a_matter_of_usage(capsys):
    assert run() == 2
    assert capsys.readouterr().err == "error: Missing argument 'RUN...'.\n"


def test_without_matplotlib_svg_is_drawn_and_png_says_what_to_install(folder, tmp_path):
    code = (
        "import sys\n"
        "for name in ('matplotlib', 'numpy', 'torch'): sys.modules[name] = None\n"
        "from regard.cli.main import main; main(sys.argv[1:])"
    )

    def python(output):
        return subprocess.run(
            [sys.executable, "-c", code, "plot", str(folder), "-o", output],
            capture_output=True,
            text=True,
            env={**os.environ, "REGARD_LANG": "en"},
        )

    drawn, refused = python("x.svg"), python("x.png")
    assert (drawn.returncode, drawn.stdout, drawn.stderr) == (0, "x.svg\n", "")
    assert (refused.returncode, refused.stdout) == (5, "")
    assert refused.stderr.startswith("error: x.png needs matplotlib, which cannot be imported (")
    assert refused.stderr.endswith(
        "pip install 'regard[plots]', or name a file that ends in .svg\n"
    )


@pytest.mark.parametrize(
    ("language", "said"),
    [
        (
            "en",
            "warning: no font on this machine shows 型模; install Noto Sans CJK, or write an .svg, "
            "which the reader's own fonts show\n",
        ),
        (
            "zh",
            "警告：本机没有能显示型模的字体；请安装Noto Sans CJK，或改用.svg，由读者的字体显示\n",
        ),
    ],
)
def test_characters_without_a_font_are_said_once(folder, capsys, monkeypatch, language, said):
    monkeypatch.setenv("REGARD_LANG", language)
    monkeypatch.setattr("regard.view.png.write_png", lambda *_: "型模")
    assert run(folder, "-o", "x.png") == 0
    out = capsys.readouterr()
    assert (out.out, out.err) == ("x.png\n", said)
