"""What tools/mutants.py plants, and where it does not. That it is noticed is seen by running it."""

import importlib.util
import sys
import textwrap
import tomllib
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "mutants.py"
spec = importlib.util.spec_from_file_location("mutants", TOOL)
mutants = importlib.util.module_from_spec(spec)
sys.modules["mutants"] = mutants  # where a dataclass with slots looks for its module
spec.loader.exec_module(mutants)


def planted(text: str) -> set[str]:
    """The new lines."""
    return {mutant.new for mutant in mutants.mutants_of("model/x.py", textwrap.dedent(text))}


@pytest.mark.parametrize(
    ("line", "faults"),
    [
        ("a + b", {"a - b"}),
        ("a - b", {"a + b"}),
        ("a * b", {"a / b"}),
        ("a / b", {"a * b"}),
        ("a ** b", {"a * b"}),
        ("a // b", {"a * b"}),
        ("a % b", {"a // b"}),
        ("(a + b) @ c", {"(c) @ (a + b)", "(a - b) @ c"}),
        ("a & b", {"a | b"}),
        ("a and b or c", {"a or b or c", "a and b and c"}),
        ("a < b <= c", {"a <= b <= c", "a < b < c"}),
        ("a == b", {"a != b"}),
        ("a is None", {"a is not None"}),
        ("a is not None", {"a is None"}),
        ("a not in b", {"a in b"}),
        ("~a", {"a"}),
        ("not a", {"a"}),
        ("-a", {"a"}),
        ("-1", {"-2"}),
        ("-0.5", {"-1.0", "0.5"}),
        ("0.0", {"1.0"}),
        ("True", {"False"}),
        ("a[1:b]", {"a[2:b]", "a[:b]", "a[1:]"}),
        ("a[..., 0::2]", {"a[..., 1::2]", "a[..., 0::]", "a[..., 0::3]"}),
        ("f(a, b, c.d, 'e')", {"f(b, a, c.d, 'e')"}),
        ("isinstance(a, b)", set()),
        ("a, b", {"b, a"}),
        ("[a + b, c - d]", {"[(c - d), (a + b)]", "[a - b, c - d]", "[a + b, c + d]"}),
        ("b if a else c", {"c if a else b"}),
        ("a.transpose(b, 'c')", {"a"}),
        ("(a @ b).mT", {"(a @ b)", "(b @ a).mT"}),
        ("a.masked_fill(~b, c).softmax(d)", {"a.softmax(d)", "a.masked_fill(b, c).softmax(d)"}),
        ("self.dropout(a)", {"a"}),
        ("'é' + b", {"'é' - b"}),
    ],
)
def test_an_expression_becomes(line, faults):
    assert planted(f"def f():\n    return {line}\n") == {f"return {fault}" for fault in faults}


def test_a_call_for_its_effect_is_left_out_and_a_changed_name_is_left_unchanged():
    assert planted("check(x)\nx = f(x)\ny = f(x)\n") == {"pass", "x = x"}


def test_a_string_of_a_case_becomes_that_of_another():
    text = """\
        match name:
            case "a": f()
            case "b" | "c": f()
        """
    assert planted(text) == {
        'case "b": f()',
        'case "c" | "c": f()',
        'case "b" | "a": f()',
        'case "a": pass',
        'case "b" | "c": pass',
    }


@pytest.mark.parametrize(
    "text",
    [
        '"""Not a + b."""',
        "import a.b",
        '__all__ = ["a", "b"]',
        "Mask = A | B",
        "x: Float[A, B] | None",
        "def f(x: A | B, *, dropout: float = 0.1) -> C | None: ...",
        "@dataclass(frozen=True)\nclass A: ...",
        "class A(Protocol):\n    def f(self, x=1): return x + 1",
        "raise ModelError('a' + b, n=1 if c else 2)",
        "nn.init.normal_(x, std=1.0)",
        "super().__init__()",
    ],
)
def test_nothing_is_planted_where_a_test_should_not_look(text):
    assert planted(text) == set()


def test_a_fault_is_one_line_and_known_by_its_text():
    text = "def f(x):\n    def g(y):\n        return (x +\n y)\n    return f(x,\n g)\n"
    (mutant,) = mutants.mutants_of("model/x.py", text)
    assert (mutant.line, mutant.function) == (3, "g")
    assert mutant.key == ("model/x.py", "return (x +", "return (x -")
    assert mutant.text == text.replace("+", "-")


def test_faults_made_by_hand_all_find_their_line():
    named = tomllib.loads(mutants.LISTS.read_text(encoding="utf-8"))["named"]
    root = mutants.ROOT / mutants.SOURCE
    texts = {entry["path"]: (root / entry["path"]).read_text(encoding="utf-8") for entry in named}
    found = mutants.named_mutants(named, texts)
    assert len({mutant.key for mutant in found}) == len(named)
    for mutant in found:
        compile(mutant.text, mutant.path, "exec")


@pytest.mark.parametrize(("text", "n"), [("y = 1", 0), ("x = 1\nif a:\n    x = 1", 2)])
def test_a_fault_made_by_hand_that_fits_no_line_or_two_is_named(text, n):
    entry = {"name": "no x", "path": "model/x.py", "old": "x = 1", "new": "x = 2"}
    message = (
        f"mutants.toml: \"no x\" looks for 'x = 1' in model/x.py, "
        f"which is in {n} lines and must be in one"
    )
    with pytest.raises(LookupError) as caught:
        mutants.named_mutants([entry], {"model/x.py": text})
    assert caught.value.args == (message,)


def test_every_equivalent_mutant_has_its_reason():
    lists = tomllib.loads(mutants.LISTS.read_text(encoding="utf-8"))
    keys = [(entry["path"], entry["old"], entry["new"]) for entry in lists["equivalent"]]
    assert len(keys) == len(set(keys))
    assert all(entry["reason"] for entry in lists["equivalent"])


def test_the_nearest_tests_come_first_and_each_once(tmp_path):
    for name in (
        "attention/test_masks",
        "attention/test_cache",
        "model/test_a",
        "reference/test_b",
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / f"{name}.py").touch()
    (tmp_path / "model" / "conftest.py").touch()
    files = [Path(file).stem for file in mutants.tests_for("attention/masks.py", tmp_path)]
    assert files == ["test_masks", "test_b", "test_cache", "test_a"]
    files = [Path(file).stem for file in mutants.tests_for("model/decoder.py", tmp_path)]
    assert files == ["test_b", "test_a", "test_cache", "test_masks"]
