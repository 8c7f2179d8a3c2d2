"""Every experiment in its quick form, from the seed of the day: verdicts and controls.

What was found in the whole form is in experiments/, and must say the same.
"""

import json
from datetime import date
from pathlib import Path

import pytest

from regard.study.claim import at_least, at_most
from regard.study.conduct import conduct, experiments
from regard.study.contents import CONTENTS

ROOT = Path(__file__).parents[2]
MODEL = ROOT / "tests/models/tatoeba-zh-en"
UNSEEN = date.today().toordinal()  # which no day before has tried, and all workers share

YES, LIMIT, NO = "holds", "holds with a limit", "does not hold"
VERDICTS = {
    "e01_kernel_regression": [YES, YES, NO],
    "e02_addressing": [LIMIT, YES, NO],
    "e03_scores": [YES, YES, YES],
    "e04_root_d": [YES, YES, YES, NO, NO],
    "e05_masks": [YES, YES, YES, NO, NO],
    "e06_alignments": [YES, YES, YES],
    "e07_heads": [YES, YES, NO],
    "e08_three_encoders": [YES, LIMIT, YES, YES, YES, NO],
    "e09_positions": [NO, YES, YES, YES, LIMIT, LIMIT],
    "e10_norms": [YES, YES, YES, LIMIT, NO],
    "e11_teacher_forcing": [YES, LIMIT, NO],
    "e12_arithmetic": [YES, YES, NO, YES, NO, NO],
    "e13_poem": [NO, YES],
    "e14_occlusion": [LIMIT],
    "e15_ablations": [YES],
}
# What the whole form finds: more variants are trained.
WHOLE = {**VERDICTS, "e15_ablations": [YES, YES, YES, NO]}
LOOKS_INTO_A_MODEL = ("e13_poem", "e14_occlusion")
LIGHT = ("e01_kernel_regression", "e02_addressing", "e04_root_d", "e12_arithmetic")


def test_there_is_an_expectation_for_every_experiment():
    assert list(VERDICTS) == list(CONTENTS)


@pytest.mark.plain
@pytest.mark.parametrize("seed", [UNSEEN])
@pytest.mark.parametrize("name", CONTENTS)
def test_verdicts_and_controls_hold_from_a_seed_that_nobody_has_tried(name, seed):
    conducted = conduct(name, experiments(MODEL)[name], seed, quick=True)
    findings = conducted.result.findings
    assert [finding.verdict for finding in findings] == VERDICTS[name]
    for finding in findings:  # conduct has looked already; this is what it looks for
        bound = finding.claim.bound
        assert bound.admits(finding.number) != bound.admits(finding.control)


@pytest.mark.plain
@pytest.mark.parametrize("name", LIGHT)
def test_the_same_seed_gives_the_same_numbers_and_another_seed_others(name):
    run = experiments(MODEL)[name]
    one, again, other = (conduct(name, run, seed, quick=True).result for seed in (1, 1, 2))
    assert one == again
    assert one != other


@pytest.mark.parametrize("name", CONTENTS)
def test_what_was_found_in_the_whole_form_says_what_it_should(name):
    found = json.loads((ROOT / "experiments" / name / "result.json").read_text(encoding="utf-8"))
    assert (found["name"], found["quick"]) == (name, False)
    assert found["processor_seconds"] < 120
    for finding in found["findings"]:
        make = {"at least": at_least, "at most": at_most}[finding["threshold"]["relation"]]
        bound = make(finding["threshold"]["number"])
        holds = bound.admits(finding["measured"]["number"])
        assert holds == (finding["verdict"] != NO)
        assert holds != bound.admits(finding["control"]["number"])
    if name not in LOOKS_INTO_A_MODEL:
        assert [finding["verdict"] for finding in found["findings"]] == WHOLE[name]


def test_every_point_where_the_notes_are_loose_has_its_measurement():
    """Thirteen places, by note, as often as each note has one."""
    notes = []
    for name in CONTENTS:
        text = (ROOT / "experiments" / name / "result.json").read_text(encoding="utf-8")
        notes += [one["note"] for one in json.loads(text)["findings"] if "remark" in one]
    counted = {note: notes.count(note) for note in sorted(set(notes))}
    assert counted == {"000": 1, "001": 5, "002": 4, "003": 1, "004": 3}
