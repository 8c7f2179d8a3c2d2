import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from regard.cli import attend
from regard.cli.main import main
from regard.decode.results import Attention

TATOEBA = Path(__file__).parents[1] / "models" / "tatoeba-zh-en"
SENTENCE = "机器学习是人工智能的一个分支。"
POEM = "……梦里若有，梦是反的：梦里若无，唯梦闲人不梦君……"
WORDS = ("▁a", "b", "▁c", ".", "</s>")


def weights(*shape):
    random = np.random.default_rng(0).random(shape, np.float32)
    return random / random.sum(axis=-1, keepdims=True)


@pytest.fixture(autouse=True)
def _in_english_without_colour(monkeypatch, tmp_path):
    monkeypatch.setenv("REGARD_LANG", "en")
    monkeypatch.setenv("COLUMNS", "100")
    for name in ("NO_COLOR", "FORCE_COLOR", "COLORTERM", "COLORFGBG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def asked(monkeypatch):
    """A translator that knows one sentence, and what was asked of it."""
    asked = {}

    class Known:
        def attend(self, text, target, *, tgt_lang):
            asked.update(text=text, target=target, tgt_lang=tgt_lang)
            return Attention(
                ("▁", "好", "</s>"), WORDS, "ab c.",
                weights(2, 3, 5, 3), weights(2, 3, 3, 3), np.tril(weights(2, 3, 5, 5)),
            )  # fmt: skip

    def load(path, *, device):
        asked.update(model=path, device=device)
        return Known()

    monkeypatch.setattr("regard.decode.translator.load", load)
    return asked


def run(*arguments):
    with pytest.raises(SystemExit) as left:
        main(["attend", *map(str, arguments)])
    return left.value.code or 0


def texts(path):
    return [part.text for part in ET.parse(path).iter("{http://www.w3.org/2000/svg}text")]


def test_both_sentences_are_drawn_in_all_four_forms_by_a_real_model(tmp_path, capsys):
    for text, kind in ((SENTENCE, "cross"), (POEM, "encoder")):
        files = [tmp_path / f"{kind}.{ending}" for ending in ("html", "svg", "png")]
        options = ("--model", TATOEBA, "--kind", kind)
        places = [part for path in files for part in (f"--{path.suffix[1:]}", path)]
        assert run(text, *options, *places) == 0
        assert capsys.readouterr().out.splitlines() == [str(path) for path in files]
        page, picture, pixels = files
        assert text in page.read_text(encoding="utf-8")
        assert text in texts(picture)
        assert pixels.read_bytes().startswith(b"\x89PNG")
    assert run(SENTENCE, "--model", TATOEBA) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"{SENTENCE}\n→ ")
    assert "cross-attention, layer 3 of 3, mean of 4 heads" in shown
    assert "\x1b" not in shown


def test_without_a_file_it_is_drawn_on_stdout_and_with_one_only_its_name_is(asked, capsys):
    assert run("好") == 0
    said = capsys.readouterr()
    assert "cross-attention, layer 2 of 2, mean of 3 heads" in said.out
    assert said.err == ""
    assert run("好", "--svg", "pictures/x.svg") == 0
    assert capsys.readouterr().out == "pictures/x.svg\n"
    assert "cross-attention, layer 2 of 2, mean of 3 heads" in texts("pictures/x.svg")


def test_what_is_asked_reaches_the_translator(asked, tmp_path):
    assert run("好", "--model", "m", "--target", "good", "--to", "en", "--device", "cuda") == 0
    assert asked == {
        "text": "好", "target": "good", "tgt_lang": "en", "model": Path("m"), "device": "cuda",
    }  # fmt: skip
    run("好")
    assert (asked["model"], asked["target"], asked["tgt_lang"]) == (None, None, "")


def test_kind_layer_head_words_and_sinks_are_chosen(asked, capsys):
    run("好", "--kind", "decoder", "--layer", "1", "--head", "3", "--words", "--hide-sinks")
    said = capsys.readouterr().out
    assert "decoder self-attention, layer 1 of 2, head 3 of 3" in said
    assert re.search(r"^ +ab ", said, re.M)
    assert re.search(r"\d+ % of the attention is on <s>", said)


def test_all_heads_are_thumbnails_in_the_terminal_and_in_pictures(asked, capsys):
    assert run("好", "--all-heads") == 0
    assert len(re.findall(r"head \d", capsys.readouterr().out)) == 6
    assert run("好", "--all-heads", "--layer", "2", "--svg", "x.svg") == 0
    assert "cross-attention, every head of layer 2" in texts("x.svg")


def test_words_are_chinese_for_chinese_readers(asked, capsys, monkeypatch):
    monkeypatch.setenv("REGARD_LANG", "zh")
    run("好", "--html", "x.html", "--svg", "x.svg")
    assert '"language":"zh"' in Path("x.html").read_text(encoding="utf-8")
    assert "交叉注意力，第2层（共2层），3个头的平均" in texts("x.svg")
    capsys.readouterr()
    run("好")
    assert "交叉注意力，第2层（共2层），3个头的平均" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--layer", "3"), "error: there is no layer 3; they count from 1 to 2\n"),
        (("--layer", "0"), "error: there is no layer 0; they count from 1 to 2\n"),
        (
            ("--head", "4", "--html", "x.html"),
            "error: there is no head 4; they count from 1 to 3\n",
        ),
        (
            ("--head", "1", "--all-heads"),
            "error: the option --head names one head, and --all-heads asks for all; choose one\n",
        ),
        (
            ("--kind", "self"),
            "error: Invalid value for '--kind': 'self' is not one of 'cross', 'encoder', "
            "'decoder'.\n",
        ),
    ],
)
def test_what_is_not_there_is_a_matter_of_usage_and_nothing_is_written(
    asked, capsys, tmp_path, arguments, said
):
    assert run("好", *arguments) == 2
    out = capsys.readouterr()
    assert (out.out, out.err) == ("", said)
    assert list(tmp_path.iterdir()) == []


def test_a_blank_text_is_a_matter_of_data(capsys):
    assert run(" ", "--model", TATOEBA) == 3
    assert capsys.readouterr().err == "error: there is nothing to attend to in a blank text\n"


def test_a_text_is_needed(capsys):
    assert run() == 2
    assert capsys.readouterr().err == "error: Missing argument 'TEXT'.\n"


def test_characters_without_a_font_are_said_once(asked, capsys, monkeypatch):
    monkeypatch.setattr("regard.view.png.write_png", lambda *_: "好")
    assert run("好", "--png", "x.png") == 0
    said = capsys.readouterr()
    assert said.out == "x.png\n"
    assert said.err == (
        "warning: no font on this machine shows 好; install Noto Sans CJK, or write an .svg, "
        "which the reader's own fonts show\n"
    )


@pytest.mark.parametrize(
    ("variables", "is_terminal", "depth"),
    [
        ({"TERM": "xterm-256color", "COLORTERM": "truecolor"}, True, "truecolor"),
        ({"TERM": "xterm-256color"}, True, "256"),
        ({"TERM": "xterm-direct"}, True, "truecolor"),
        ({"TERM": "vt100"}, True, "none"),
        ({"TERM": "dumb", "COLORTERM": "truecolor"}, True, "none"),
        ({"TERM": "xterm-256color", "COLORTERM": "truecolor", "NO_COLOR": "1"}, True, "none"),
        ({"TERM": "xterm-256color", "COLORTERM": "truecolor"}, False, "none"),
        ({"TERM": "xterm", "COLORTERM": "24bit", "FORCE_COLOR": "1"}, False, "truecolor"),
        ({"TERM": "", "FORCE_COLOR": "1"}, False, "256"),
        ({"TERM": "", "FORCE_COLOR": "1", "NO_COLOR": "1"}, False, "none"),
    ],
)
def test_colours_are_for_terminals_that_have_them_and_people_who_want_them(
    monkeypatch, variables, is_terminal, depth
):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "stdout", SimpleNamespace(isatty=lambda: is_terminal))
    assert attend._depth() == depth


def test_colour_reaches_stdout_where_it_is_forced(asked, capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLORTERM", "truecolor")
    run("好")
    assert "\x1b[48;2;" in capsys.readouterr().out


def test_the_width_is_the_terminals(asked, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "30")
    run("好", "--kind", "decoder")
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 30


def test_help_says_that_layers_count_from_one_and_loads_nothing_heavy():
    code = (
        "import sys\nfrom regard.cli.main import main\n"
        "try: main(['attend', '--help'])\nexcept SystemExit: pass\n"
        "print(sorted({'torch', 'numpy', 'matplotlib'} & set(sys.modules)))"
    )
    environment = {**os.environ, "COLUMNS": "100"}
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    ).stdout
    assert "any layer and head, which count from 1" in " ".join(out.split())
    assert out.splitlines()[-1] == "[]"
