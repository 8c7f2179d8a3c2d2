"""Each rule of tools/size.py, with a planted fault and without."""

import importlib.util
import textwrap
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "size.py"
spec = importlib.util.spec_from_file_location("size", TOOL)
size = importlib.util.module_from_spec(spec)
spec.loader.exec_module(size)

MODEL = "src/regard/model/layers.py"


def sentences(text: str, path: str = MODEL) -> list[str]:
    return size.faults_of(path, textwrap.dedent(text))


def forward(*statements: str) -> str:
    body = "".join(f"        {statement}\n" for statement in statements)
    return f"class Layer:\n    def forward(self, x):\n{body}"


def test_a_file_of_401_lines_is_named_wherever_it_is():
    assert sentences("x = 1\n" * 400) == []
    for path in (MODEL, "tools/size.py", "tests/test_config.py"):
        fault = f"{path}:401: the file has 401 lines, more than 400"
        assert sentences("x = 1\n" * 401, path) == [fault]


def test_a_function_of_61_lines_is_named_in_the_package_only():
    def function(n_lines: int) -> str:
        return "def f():\n" + "    x = 1\n" * (n_lines - 1)

    assert sentences(function(60)) == []
    assert sentences(function(61)) == [f"{MODEL}:1: f has 61 lines, more than 60"]
    assert sentences("async " + function(61)) == [f"{MODEL}:1: f has 61 lines, more than 60"]
    assert sentences(function(61), "tests/model/test_layers.py") == []


THREE = ("if x: pass", "for y in x: pass", "while x: pass")


@pytest.mark.parametrize(
    "fourth",
    [
        "if x: pass",
        "y = 1 if x else 2",
        "y = [z for z in x if z]",
        "match x:\n            case _: pass",
        "try: pass\n        finally: pass",
        "try: pass\n        except* OSError: pass",
        "def inner():\n            if x: pass",
    ],
)
def test_a_forward_with_four_branches_is_named(fourth):
    assert sentences(forward(*THREE, "return x")) == []
    fault = f"{MODEL}:2: forward has 4 branches, more than 3"
    assert sentences(forward(*THREE, fourth)) == [fault]


def test_each_elif_and_each_case_is_a_branch():
    chain = "if x: pass\n        elif y: pass\n        elif z: pass"
    cases = "match x:\n            case 1: pass\n            case _: pass"
    assert sentences(forward(chain)) == []
    assert sentences(forward(chain, cases)) == [f"{MODEL}:2: forward has 5 branches, more than 3"]


def test_other_methods_may_branch_more():
    assert sentences(forward(*THREE, "if x: pass").replace("forward", "build")) == []


def test_print_is_named_outside_the_command_line_and_the_log():
    fault = f"{MODEL}:1: print is for cli/ and train/log.py"
    assert sentences("print(1)") == [fault]
    for path in ("src/regard/cli/demo.py", "src/regard/train/log.py", "tools/size.py"):
        assert sentences("print(1)", path) == []
    assert sentences("console.print(1)\ndef show(): return 'print(1)'") == []


def test_an_import_inside_a_function_is_named_once():
    late = """\
        def f():
            def g():
                import os
            from pathlib import Path
        """
    sentence = "an import inside a function; it belongs at the top of the file"
    assert sentences(late) == [f"{MODEL}:3: {sentence}", f"{MODEL}:4: {sentence}"]
    assert sentences("import os\nif os.name:\n    import sys\n") == []


@pytest.mark.parametrize(
    "place", ["cli/main.py", "interchange/onnx.py", "data/formats.py", "decode/translator.py"]
)
def test_an_import_may_wait_where_packages_are_heavy_or_optional(place):
    assert sentences("def f():\n    import os\n", f"src/regard/{place}") == []


@pytest.mark.parametrize("word", ["TO" + "DO", "FIX" + "ME"])
def test_work_left_undone_is_named(word):
    fault = f"tests/test_config.py:2: {word} is left in the code; do it, or write it down elsewhere"
    assert sentences(f"x = 1\n# {word}: more\n", "tests/test_config.py") == [fault]
    assert sentences(f"# {word}S, {word.lower()}\n") == []


@pytest.mark.parametrize("name", ["utils", "common", "helpers", "misc", "base", "manager"])
def test_a_name_that_says_nothing_is_named(name):
    sentence = f"the name {name} says nothing about what is in it"
    for path in (f"src/regard/{name}.py", f"tests/{name}/test_masks.py"):
        assert sentences("", path) == [f"{path}:1: {sentence}"]
    assert sentences("", f"src/regard/{name}_of_numbers.py") == []


def test_all_faults_are_reported_in_the_order_of_their_lines():
    found = sentences("def f():\n    import os\nprint(1)\n", "src/regard/misc.py")
    assert [fault.split(":")[1] for fault in found] == ["1", "2", "3"]


def test_main_reports_the_faults_of_all_files_at_once(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(size, "ROOT", tmp_path)
    for name in ("src/regard/misc.py", "tests/base.py"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).touch()
    assert size.main() == 1
    assert capsys.readouterr().out.count("says nothing about what is in it") == 2
    for path in tmp_path.rglob("*.py"):
        path.unlink()
    assert size.main() == 0
