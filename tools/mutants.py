"""Plants one-line faults into src/regard/attention and src/regard/model: do the tests notice?

A mutant is the source with one line changed. Most are made from the syntax tree (an operator, a
number, an argument, a call in a chain); mutants.toml lists some made by hand, which are always
planted, and those known to be equivalent: they change nothing that anyone can see.

No fault is planted where a test should not look: docstrings, annotations, imports, decorators,
`__all__`, protocols, names of types, `raise` statements, default dropouts, initial weights.

Each mutant is tried in a fork of this process, which has torch loaded: 2 at a time, nearest tests
first. It is killed when a test fails, when the process dies and when it does not end in time.
"""

import argparse
import ast
import importlib
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE, FOLDERS = "src/regard", ("attention", "model")
LISTS = Path(__file__).with_suffix(".toml")

SAMPLE, SECONDS, JOBS, EXAMPLES, ENOUGH = 120, 90, 2, "5", 90.0
SURVIVED, KILLED, BROKEN = 0, 1, 70  # how the process of a mutant ends
PRELOADED = ("torch", "torch._dynamo.testing", "jaxtyping", "hypothesis", "pytest_timeout")
PYTEST = (  # other plugins would take longer to load than most mutants live
    "-x -q -p no:cacheprovider -W ignore::pytest.PytestAssertRewriteWarning "
    "--disable-plugin-autoload -p pytest_timeout -p _hypothesis_pytestplugin"
)

EXCHANGES = dict(
    re.findall(
        r"(\S.*?) : (.+?);",
        "+ : -; - : +; * : /; / : *; ** : *; // : *; % : //; & : |; | : &; and : or; or : and; "
        "< : <=; <= : <; > : >=; >= : >; == : !=; != : ==; is : is not; is not : is; "
        "in : not in; not in : in;",
    )
)
OPERATOR = re.compile(rb"[-+*/%&|<>=!@]+|\b(?:and|or|is not|is|not in|in)\b")
LINKS = re.compile(  # x.f(...) becomes x
    "clamp|contiguous|cpu|diff|flatten|float|masked_fill|movedim|square|squeeze|to|"
    "transpose|tril|unflatten|unsqueeze"
)
WRAPPERS = re.compile("dense|dropout|enter|norm|pad|rotary|tanh")  # f(x, ...) becomes x
ATOMS = ast.Name | ast.Attribute | ast.Call | ast.Subscript

Edit = tuple[int, int, str]  # bytes from here to there become this
Keys = set[tuple[str, str, str]]


@dataclass(frozen=True, slots=True)
class Mutant:
    """One line of one file, changed."""

    path: str  # from src/regard
    line: int
    old: str
    new: str
    text: str  # the whole file
    function: str = ""  # the innermost around the line
    name: str = ""  # if made by hand

    @property
    def key(self) -> tuple[str, str, str]:
        """What makes it the same mutant when line numbers have moved."""
        return self.path, self.old, self.new

    def __str__(self) -> str:
        head = f"{SOURCE}/{self.path}:{self.line}:" + (f" {self.name}" if self.name else "")
        return f"{head}\n    - {self.old}\n    + {self.new}"


class _Spans:
    """Where the nodes of a tree are in their text, in bytes."""

    def __init__(self, text: str) -> None:
        self.data = text.encode()
        self.starts = [0, *accumulate(map(len, self.data.splitlines(keepends=True)))]

    def start(self, node: ast.expr | ast.stmt) -> int:
        return self.starts[node.lineno - 1] + node.col_offset

    def end(self, node: ast.expr | ast.stmt) -> int:
        return self.starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)

    def text(self, node: ast.expr) -> str:
        """The node as written, in brackets if something might bind more tightly."""
        text = self.data[self.start(node) : self.end(node)].decode()
        return text if isinstance(node, ATOMS | ast.Constant) else f"({text})"

    def swapped(self, left: ast.expr, right: ast.expr) -> Edit:
        between = self.data[self.end(left) : self.start(right)].decode()
        return self.start(left), self.end(right), self.text(right) + between + self.text(left)

    def exchanged(self, left: ast.expr, right: ast.expr) -> Edit:
        """Another operator between them; for a product of matrices, the other order."""
        found = OPERATOR.search(self.data, self.end(left), self.start(right))
        assert found, "operands have an operator between them"
        if found[0] == b"@":
            return self.swapped(left, right)
        return *found.span(), EXCHANGES[found[0].decode()]


def mutants_of(path: str, text: str) -> list[Mutant]:
    """Every mutant of one file that compiles, once, in the order of the lines."""
    tree, spans = ast.parse(text), _Spans(text)
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    found = {}
    for start, end, new in sorted({edit for node in _live(tree) for edit in _edits(node, spans)}):
        before, cut = spans.data[:start], spans.data[start:end]
        after = (before + new.encode() + spans.data[end:]).decode()
        if b"\n" in cut or before.endswith(b"dropout: float = ") or not _is_python(after):
            continue
        line = before.count(b"\n") + 1
        around = [f.name for f in functions if f.lineno <= line <= (f.end_lineno or 0)]
        old, new = (whole.split("\n")[line - 1].strip() for whole in (text, after))
        if old != new:
            found[line, new] = Mutant(path, line, old, new, after, "".join(around[-1:]))
    return list(found.values())


def _is_python(text: str) -> bool:
    try:
        return bool(ast.parse(text))
    except SyntaxError:
        return False


def _live(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes that say what is computed."""
    if _is_apart(node):
        return
    yield node
    for name, value in ast.iter_fields(node):
        if name not in ("annotation", "returns", "decorator_list"):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from _live(child)


def _is_apart(node: ast.AST) -> bool:
    match node:
        case ast.Raise() | ast.Import() | ast.ImportFrom() | ast.Expr(ast.Constant(str())):
            return True
        case ast.ClassDef(bases=bases):
            return any(ast.unparse(each) == "Protocol" for each in bases)
        case ast.Call(func=func):
            return ast.unparse(func).startswith(("nn.init.", "super"))
        case ast.Assign(targets=[ast.Name(name)]):
            return name == "__all__" or (name[0].isupper() and not name.isupper())
    return False


def _edits(node: ast.AST, spans: _Spans) -> Iterator[Edit]:
    """The faults that can be made of one node, leaving its children to themselves."""
    match node:
        case ast.BinOp(left=left, right=right):
            yield spans.exchanged(left, right)
        case ast.Compare(left=left, comparators=right):
            yield from (spans.exchanged(*pair) for pair in pairwise([left, *right]))
        case ast.BoolOp(values=values):
            yield from (spans.exchanged(*pair) for pair in pairwise(values))
        case ast.UnaryOp(ast.USub(), ast.Constant(value=int())):
            pass  # an axis: its number becomes another, which is enough
        case ast.UnaryOp(operand=operand):
            yield spans.start(node), spans.start(operand), ""
        case ast.Constant(value=bool() | int() as value):
            new = not value if isinstance(value, bool) else value + 1
            yield spans.start(node), spans.end(node), str(new)
        case ast.Constant(value=float() as value):
            yield spans.start(node), spans.end(node), repr(2 * value or 1.0)
        case ast.IfExp(body=body, orelse=orelse):
            yield spans.swapped(body, orelse)
        case ast.Slice(lower, upper, step):
            lower = None if lower and ast.unparse(lower) == "0" else lower  # 0 says nothing
            bounds = [bound for bound in (lower, upper, step) if bound]
            yield from ((spans.start(bound), spans.end(bound), "") for bound in bounds)
        case ast.List(elements) | ast.Tuple(elements, ast.Load()):
            yield from _order_edits(elements, spans)
        case ast.Match(cases=cases):
            nodes = [node for case in cases for node in ast.walk(case.pattern)]
            texts = [n for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)]
            for one, other in zip(texts, texts[1:] + texts[:1], strict=True):
                yield spans.start(one), spans.end(one), spans.text(other)
        case ast.Call():
            yield from _call_edits(node, spans)
        case ast.Attribute(attr="mT"):
            yield spans.end(node) - len(".mT"), spans.end(node), ""
        case ast.Expr(ast.Call() as call) if not _is_apart(call):
            yield spans.start(node), spans.end(node), "pass"
        case ast.Assign(targets=[ast.Name(name)], value=ast.Call() as call):
            if any(isinstance(each, ast.Name) and each.id == name for each in ast.walk(call)):
                yield spans.start(call), spans.end(call), name


def _order_edits(elements: Sequence[ast.expr], spans: _Spans) -> Iterator[Edit]:
    """Neighbours of one kind exchanged."""
    for left, right in pairwise(elements):
        if type(left) is type(right) and isinstance(left, ATOMS | ast.BinOp):
            yield spans.swapped(left, right)


def _call_edits(call: ast.Call, spans: _Spans) -> Iterator[Edit]:
    name = ast.unparse(call.func).rpartition(".")[2]
    if name != "isinstance":  # the other way round it only crashes
        yield from _order_edits(call.args, spans)
    if isinstance(call.func, ast.Attribute) and LINKS.fullmatch(name):
        yield spans.end(call.func) - len(name) - 1, spans.end(call), ""
    if WRAPPERS.fullmatch(name) and call.args:
        yield spans.start(call), spans.end(call), spans.text(call.args[0])


def named_mutants(entries: Iterable[dict[str, str]], texts: dict[str, str]) -> list[Mutant]:
    """Those made by hand: `old` stands in exactly one line of the file, and becomes `new`."""
    found = []
    for entry in entries:
        name, path, old, new = entry["name"], entry["path"], entry["old"], entry["new"]
        lines = texts.get(path, "").split("\n")
        places = [i for i, line in enumerate(lines) if old in line]
        if len(places) != 1:
            raise LookupError(
                f'{LISTS.name}: "{name}" looks for {old!r} in {path}, '
                f"which is in {len(places)} lines and must be in one"
            )
        before, after = lines[places[0]].strip(), lines[places[0]].strip().replace(old, new)
        text = texts[path].replace(old, new)
        found.append(Mutant(path, places[0] + 1, before, after, text, name=name))
    return found


def tests_for(path: str, tests: Path) -> list[str]:
    """All test files that may notice, the likeliest first."""
    folder, _, name = path.rpartition("/")
    nearest = tests / folder / f"test_{name}"
    files = [nearest] if nearest.exists() else []
    for place in ("reference", folder, *(each for each in FOLDERS if each != folder)):
        files += sorted(set((tests / place).glob("test_*.py")) - {nearest})
    return [str(file) for file in files]


def outcomes(mutants: Sequence[Mutant], top: Path) -> Iterator[tuple[Mutant, bool]]:
    """Each mutant as it is done, and whether it survived; `top` is an empty folder."""
    waiting = list(enumerate(mutants))[::-1]
    running: dict[int, tuple[Mutant, Path, float]] = {}
    try:
        while waiting or running:
            while waiting and len(running) < JOBS:
                number, mutant = waiting.pop()
                folder = top / str(number)
                running[_start(mutant, folder)] = mutant, folder, time.monotonic() + SECONDS
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid:
                mutant, folder, _ = running.pop(pid)
                code = os.waitstatus_to_exitcode(status)
                if code == BROKEN or (code and mutant.old == mutant.new):
                    said = (folder / "said.txt").read_text(encoding="utf-8", errors="replace")
                    raise RuntimeError(f"the tests do not run, or fail without a fault\n{said}")
                yield mutant, code == SURVIVED
                shutil.rmtree(folder)
                continue
            for late in (each for each, (*_, end) in running.items() if time.monotonic() > end):
                os.kill(late, signal.SIGKILL)
            time.sleep(0.02)
    finally:
        for pid in running:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def _start(mutant: Mutant, folder: Path) -> int:
    """A process that tries one mutant on a copy of the package in a folder of its own."""
    copy = folder / SOURCE
    shutil.copytree(ROOT / SOURCE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    (copy / mutant.path).write_text(mutant.text, encoding="utf-8")
    if pid := os.fork():
        return pid
    try:
        said = os.open(folder / "said.txt", os.O_WRONLY | os.O_CREAT)
        os.dup2(said, 1)
        os.dup2(said, 2)
        os.chdir(folder)
        os._exit(_try(mutant, copy))
    finally:
        os._exit(BROKEN)


def _try(mutant: Mutant, copy: Path) -> int:
    import pytest
    from hypothesis import Phase, settings

    os.environ.setdefault("REGARD_EXAMPLES", EXAMPLES)
    os.environ.update(PYTEST_ADDOPTS=PYTEST, HYPOTHESIS_STORAGE_DIRECTORY=str(copy))
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(copy.parent))
    # What tests/conftest.py does not set comes from here: no chance, no files, nothing shortened.
    phases = (Phase.explicit, Phase.generate)
    settings.register_profile("mutants", derandomize=True, database=None, phases=phases)
    settings.load_profile("mutants")
    options = ["-c", str(ROOT / "pyproject.toml"), f"--rootdir={ROOT}"]
    code = pytest.main([*options, *tests_for(mutant.path, ROOT / "tests")])
    origin = getattr(sys.modules.get("regard"), "__file__", None) or str(copy)
    if code > pytest.ExitCode.INTERRUPTED or not origin.startswith(str(copy)):
        return BROKEN
    return KILLED if code else SURVIVED


def main(arguments: Sequence[str] | None = None) -> int:
    """Plant, try, report: 1 if too many survive, or one made by hand."""
    options = _options(arguments)
    root = ROOT / SOURCE
    files = sorted(file for folder in FOLDERS for file in (root / folder).glob("*.py"))
    texts = {file.relative_to(root).as_posix(): file.read_text(encoding="utf-8") for file in files}
    lists = tomllib.loads(LISTS.read_text(encoding="utf-8"))
    named = named_mutants(lists["named"], texts)
    generated = [mutant for path, text in texts.items() for mutant in mutants_of(path, text)]
    equivalent = {(each["path"], each["old"], each["new"]) for each in lists["equivalent"]}
    for path, old, new in sorted(equivalent - {mutant.key for mutant in generated}):
        print(f"stale: {LISTS.name} has a mutant of {path} that is no longer made: {old} -> {new}")
    if options.only:
        wanted = [path for path in texts if f"{SOURCE}/{path}".endswith(options.only)]
        named, generated = ([m for m in ms if m.path in wanted] for ms in (named, generated))
    by_hand = {mutant.key for mutant in named}
    generated = [mutant for mutant in generated if mutant.key not in by_hand]
    torch, *_ = (importlib.import_module(module) for module in PRELOADED)
    torch.set_num_threads(1)
    if not torch.cuda.is_available():
        gpu = {(each["path"], each["text"]) for each in lists["gpu"]}
        here = [m for m in generated if not {(m.path, s) for s in (m.function, m.old, m.new)} & gpu]
        print(f"mutants: {len(generated) - len(here)} are left to a machine with a GPU")
        generated = here
    if not options.all and len(generated) > SAMPLE:
        print(f"mutants: {SAMPLE} of {len(generated)}, chosen by seed {options.seed}")
        generated = random.Random(options.seed).sample(generated, SAMPLE)
    mutants = sorted([*named, *generated], key=lambda mutant: (mutant.path, mutant.line))
    if options.list or not mutants:
        print("\n".join(str(mutant) for mutant in mutants) or "error: no mutants there")
        return int(not mutants)
    return _report(mutants, _survivors(mutants, equivalent), equivalent)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seed", type=int, default=0, help="chooses the sample")
    parser.add_argument("--all", action="store_true", help="every mutant, not a sample")
    parser.add_argument("--only", metavar="PATH", help="those of one file")
    parser.add_argument("--list", action="store_true", help="show them and try none")
    return parser.parse_args(arguments)


def _survivors(mutants: Sequence[Mutant], equivalent: Keys) -> list[Mutant]:
    """Those no test notices, shown as they are found."""
    survivors: list[Mutant] = []
    tried = [mutant for mutant in mutants if mutant.key not in equivalent]
    sound = Mutant(mutants[0].path, 1, "", "", (ROOT / SOURCE / mutants[0].path).read_text("utf-8"))
    with tempfile.TemporaryDirectory() as top:
        for n_done, (mutant, survived) in enumerate(outcomes([sound, *tried], Path(top))):
            if survived and mutant is not sound:
                survivors.append(mutant)
                print(f"survived: {mutant}", flush=True)
            if sys.stderr.isatty():
                status = f"\rmutants: {n_done} of {len(tried)} tried, {len(survivors)} survived "
                print(status, end="" if n_done < len(tried) else "\n", file=sys.stderr)
    return survivors


def _report(mutants: Sequence[Mutant], survivors: Sequence[Mutant], equivalent: Keys) -> int:
    planted = Counter(mutant.path for mutant in mutants)
    same = Counter(mutant.path for mutant in mutants if mutant.key in equivalent)
    survived = Counter(mutant.path for mutant in survivors)
    print(f"{'file':32}{'planted':>10}{'killed':>10}{'equivalent':>12}{'survived':>10}")
    for path, n in planted.items():
        killed = n - same[path] - survived[path]
        print(f"{path:32}{n:10}{killed:10}{same[path]:12}{survived[path]:10}")
    print(*sorted(map(str, survivors)), sep="\n")
    n_planted, n_same, n_survived = planted.total(), same.total(), survived.total()
    n_killed = n_planted - n_same - n_survived
    share = 100 * n_killed / max(n_planted - n_same, 1)
    print(
        f"mutants: {n_planted} planted, {n_killed} killed, {n_same} equivalent, "
        f"{n_survived} survived ({share:.1f} % of the non-equivalent killed)"
    )
    return int(share < ENOUGH or any(mutant.name for mutant in survivors))


if __name__ == "__main__":
    sys.exit(main())
