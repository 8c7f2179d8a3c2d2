import ast
import re
from pathlib import Path

import regard
from regard.shapes import DIMENSIONS

SOURCE = Path(regard.__file__).parent
JAXTYPING = {"Bool", "Float", "Int", "Shaped"}


def shapes():
    """Every shape written in the source, with its place."""
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Subscript) and getattr(node.value, "id", "") in JAXTYPING:
                yield f"{path.name}:{node.lineno}", node.slice.elts[1].value


def test_every_shape_is_written_in_the_projects_letters():
    seen = set()
    for place, shape in shapes():
        for part in shape.split():
            name = part.lstrip("*#")
            seen.add(name)
            assert name in {"...", "_", "1"} or name in DIMENSIONS, f"{place}: {shape!r}"
    assert len(seen & DIMENSIONS.keys()) > 10


def test_suffixes_of_tensors_are_the_projects_letters():
    suffix = re.compile(r"\b[a-z]\w*_([A-Z]+)\b")
    for path in SOURCE.rglob("*.py"):
        for letters in suffix.findall(path.read_text(encoding="utf-8")):
            assert set(letters) <= DIMENSIONS.keys(), f"{path.name}: _{letters}"
