"""The table of results in the READMEs."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TABLES = """# Both

## small

| search | batch | sent/s | ratio |
|---|--:|--:|--:|
| greedy | 1 | 14.7 | **1.72** (0.36–1.85) |
| greedy | 32 / 16 | 154.6 | **2.12** (1.85–2.29) |

## base

| search | batch | sent/s | ratio |
|---|--:|--:|--:|
| greedy | 1 | 4.5 | **1.65** |
"""


@pytest.fixture
def results(tmp_path, monkeypatch):
    spec = importlib.util.spec_from_file_location("results", ROOT / "tools" / "results.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    (tmp_path / "both.md").write_text(TABLES, encoding="utf-8")
    monkeypatch.setattr(module, "RESULTS", tmp_path)
    return module


def test_a_number_is_found_by_section_row_and_column(results):
    assert results.cell("both.md", "greedy | 32 / 16", "ratio", section="small") == "2.12"
    assert results.cell("both.md", "greedy | 1", "sent/s", section="base") == "4.5"
    assert results.cell("both.md", "greedy", "ratio") == "1.72"


def test_a_number_that_is_not_there_stops_it(results):
    with pytest.raises(SystemExit) as stopped:
        results.cell("both.md", "beam 5", "ratio", section="base")
    assert str(stopped.value) == "error: both.md has no row 'beam 5' with a column 'ratio'"


def test_a_readme_with_another_number_is_noticed_and_written_anew(results, tmp_path, monkeypatch):
    row = {"en": "| speed | 2.12 |", "zh": "| 速度 | 2.12 |"}
    monkeypatch.setattr(results, "ROOT", tmp_path)
    monkeypatch.setattr(results, "rows", lambda: [row])
    for name in ("README.md", "README.zh.md"):
        text = "# regard\n<!-- results -->\n| speed | 9.99 |\n<!-- /results -->\nrest\n"
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.setattr("sys.argv", ["results.py"])
    assert results.main() == 1
    monkeypatch.setattr("sys.argv", ["results.py", "--write"])
    assert results.main() == 0
    monkeypatch.setattr("sys.argv", ["results.py"])
    assert results.main() == 0
    made = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert "2.12" in made
    assert "9.99" not in made
    assert made.endswith("<!-- /results -->\nrest\n")
