"""Holds the code to sizes that can be read, and to a few habits that no linter knows.

Everywhere (src/regard, tools, tests): a file has at most 400 lines, no note of work left undone,
and a name that says what is in it. In src/regard besides:

- a function has at most 60 lines, from its `def` to its last line;
- a `forward` has at most 3 branches, where each of these is one: `if` and `elif`, `for`, `while`,
  a `case`, a ternary, a `try`, an `if` of a comprehension; functions inside it count with it;
- only `cli/` and `train/log.py` print;
- imports stand at the top, except where heavy or optional packages have to wait.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("src/regard", "tools", "tests")

FILE_LINES, FUNCTION_LINES, FORWARD_BRANCHES = 400, 60, 3
EMPTY_NAMES = {"utils", "common", "helpers", "misc", "base", "manager"}
MAY_PRINT = ("src/regard/cli/", "src/regard/train/log.py")
MAY_IMPORT_LATE = (
    "src/regard/cli/",
    "src/regard/interchange/",
    "src/regard/data/formats.py",
    "src/regard/data/streams.py",
    "src/regard/evaluate/metrics.py",
    "src/regard/text/normalize.py",
    "src/regard/decode/translator.py",
)

UNDONE = re.compile(r"\b(TO" + r"DO|FIX" + r"ME)\b")  # in pieces, so as not to find itself
BRANCHES = ast.If | ast.For | ast.While | ast.match_case | ast.IfExp | ast.Try
Function = ast.FunctionDef | ast.AsyncFunctionDef


def faults_of(path: str, text: str) -> list[str]:
    """All that is wrong with one file, as `path:line: sentence`; `path` starts at the root."""
    faults = list(_text_faults(path, text))
    if path.startswith("src/regard/"):
        faults += _code_faults(path, ast.parse(text, path))
    return [f"{path}:{line}: {sentence}" for line, sentence in sorted(faults)]


def _text_faults(path: str, text: str) -> Iterator[tuple[int, str]]:
    lines = text.splitlines()
    if len(lines) > FILE_LINES:
        yield FILE_LINES + 1, f"the file has {len(lines)} lines, more than {FILE_LINES}"
    for name in EMPTY_NAMES.intersection(Path(path).with_suffix("").parts):
        yield 1, f"the name {name} says nothing about what is in it"
    for number, line in enumerate(lines, start=1):
        if found := UNDONE.search(line):
            yield number, f"{found[0]} is left in the code; do it, or write it down elsewhere"


def _code_faults(path: str, tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, Function):
            yield from _function_faults(node)
        elif isinstance(node, ast.Call) and _is_print(node) and not path.startswith(MAY_PRINT):
            yield node.lineno, "print is for cli/ and train/log.py"
    if not path.startswith(MAY_IMPORT_LATE):
        for line in sorted(_late_imports(tree)):
            yield line, "an import inside a function; it belongs at the top of the file"


def _function_faults(function: Function) -> Iterator[tuple[int, str]]:
    n_lines = (function.end_lineno or function.lineno) - function.lineno + 1
    if n_lines > FUNCTION_LINES:
        yield function.lineno, f"{function.name} has {n_lines} lines, more than {FUNCTION_LINES}"
    n_branches = sum(_branches(node) for node in ast.walk(function))
    if function.name == "forward" and n_branches > FORWARD_BRANCHES:
        yield function.lineno, f"forward has {n_branches} branches, more than {FORWARD_BRANCHES}"


def _is_print(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Name) and call.func.id == "print"


def _branches(node: ast.AST) -> int:
    if isinstance(node, ast.comprehension):
        return len(node.ifs)
    return int(isinstance(node, BRANCHES | ast.TryStar))


def _late_imports(tree: ast.Module) -> set[int]:
    """Lines of imports inside functions; a set, because functions nest."""
    functions = (node for node in ast.walk(tree) if isinstance(node, Function))
    inside = (node for function in functions for node in ast.walk(function))
    return {node.lineno for node in inside if isinstance(node, ast.Import | ast.ImportFrom)}


def main() -> int:
    """Report every fault at once: 1 if there is one."""
    files = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
    faults = [
        fault
        for path in files
        for fault in faults_of(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8"))
    ]
    print("\n".join(faults) if faults else f"size: {len(files)} files, all of a readable size")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
