"""The pages of the study are made from the results, and say every number as they do."""

import importlib.util
import json
import re
from pathlib import Path

import pytest

from regard.study.claim import shown

ROOT = Path(__file__).parents[2]
spec = importlib.util.spec_from_file_location("study_pages", ROOT / "tools" / "study_pages.py")
study_pages = importlib.util.module_from_spec(spec)
spec.loader.exec_module(study_pages)

PAGES = study_pages.pages(ROOT)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.parent.name)
def test_a_page_is_as_the_results_are(path):
    assert path.read_text(encoding="utf-8") == PAGES[path], "run tools/study_pages.py --write"


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.parent.name)
def test_a_page_shows_every_claim_figure_number_and_remark(path):
    text, language = PAGES[path], path.parent.name
    for file in sorted((ROOT / "experiments").glob("*/result.json")):
        result = json.loads(file.read_text(encoding="utf-8"))
        assert f"experiments/{result['name']}/figure" in text
        for finding in result["findings"]:
            assert text.count(finding["claim"][language]) >= 2  # in the table and in its section
            for part in ("measured", "control"):
                assert f"**{shown(finding[part]['number'])}**" in text
            if "remark" in finding:
                assert finding["remark"][language] in text


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.parent.name)
def test_every_link_inside_a_page_leads_to_a_place_on_it(path):
    text = PAGES[path]
    places = set(re.findall(r'<a id="([^"]+)"', text))
    assert set(re.findall(r"\(#([^)]+)\)", text)) == places


def test_another_number_in_a_result_makes_the_page_stale():
    results = [
        json.loads((ROOT / "experiments" / name / "result.json").read_text(encoding="utf-8"))
        for name in study_pages.CONTENTS
    ]
    before = study_pages.page("en", results)
    results[3]["findings"][0]["measured"]["number"] = 0.123
    assert "**0.123**" in study_pages.page("en", results)
    assert study_pages.page("en", results) != before


def test_ablations_on_real_text_stand_with_their_experiment_once_there_are_any():
    results = [
        json.loads((ROOT / "experiments" / name / "result.json").read_text(encoding="utf-8"))
        for name in study_pages.CONTENTS
    ]
    names = study_pages.CHINESE_VARIANTS
    rows = [f"| {name} | 4{n}.0 ± 0.5 | +{n}.0 ± 0.1 | 1, 2 |" for n, name in enumerate(names)]
    table = "\n".join(["# Ablations", "", "| variant | BLEU | less the base | by seed |",
                       "|---|--:|--:|---|", *rows, ""])  # fmt: skip
    for language, shown_name in (("en", "1 head"), ("zh", "1个头")):
        before = study_pages.page(language, results)
        text = study_pages.page(language, results, table)
        number = list(names).index("1 head")
        row = f"| {shown_name} | 4{number}.0 ± 0.5 | +{number}.0 ± 0.1 |"
        assert row in text.split('<a id="e15')[1].split("<a id=")[0]
        assert row not in before
        assert text.count("± 0.5") == len(names)


def test_every_row_of_the_ablations_has_a_chinese_name():
    tool = importlib.util.spec_from_file_location("ablations", ROOT / "tools" / "ablations.py")
    ablations = importlib.util.module_from_spec(tool)
    tool.loader.exec_module(ablations)
    assert list(study_pages.CHINESE_VARIANTS) == list(ablations.ROWS)
