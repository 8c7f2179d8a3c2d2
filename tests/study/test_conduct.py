import json
import xml.etree.ElementTree as ET

import pytest
import torch

from regard.errors import ModelError
from regard.study.claim import Claim, Limit, Result, at_least, at_most
from regard.study.conduct import as_table, conduct, write
from regard.view.panels import Figure, Heat, Words

WORDS = Words("words", "话")
CLAIM = Claim(
    note="002",
    words=WORDS,
    measured=WORDS,
    bound=at_least(0.5),
    control=WORDS,
    limit=Limit(WORDS, at_most(0.0)),
    remark=WORDS,
)
FIGURE = Figure(WORDS, (Heat(WORDS, ((0.123456, 1.0), (0.5, 0.0)), WORDS, WORDS),))
NAME = "e01_kernel_regression"


def drawing(seed, quick):
    """An experiment whose number is the first that is drawn."""
    return Result((CLAIM.found(1.0 + float(torch.rand(())), 0.0, 0.0),), FIGURE, "a model")


def test_a_run_is_seeded_and_leaves_the_callers_numbers_alone():
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    one, again = (conduct(NAME, drawing, 1).result for _ in range(2))
    assert one == again
    assert conduct(NAME, drawing, 2).result != one
    assert torch.equal(torch.rand(3), expected)


def test_a_run_has_one_thread_and_gives_back_those_there_were():
    threads = []

    def looking(seed, quick):
        threads.append(torch.get_num_threads())
        return drawing(seed, quick)

    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        conduct(NAME, looking, 1)
        assert (threads, torch.get_num_threads()) == ([1], 2)
    finally:
        torch.set_num_threads(before)


def test_a_failed_control_fails_the_run():
    with pytest.raises(ModelError, match="e01_kernel_regression shows nothing"):
        conduct(NAME, lambda s, q: Result((CLAIM.found(1.0, 2.0, 0.0),), FIGURE), 1)


def test_a_result_is_written_down_whole_and_drawn_in_both_languages(tmp_path):
    conducted = conduct(NAME, drawing, 7, quick=True)
    place = write(conducted, tmp_path)
    assert place == tmp_path / NAME
    table = json.loads((place / "result.json").read_text(encoding="utf-8"))
    assert table == as_table(conducted)
    assert (table["name"], table["seed"], table["quick"]) == (NAME, 7, True)
    assert table["model"] == "a model"
    (finding,) = table["findings"]
    assert finding["verdict"] == "holds with a limit"
    assert finding["measured"]["number"] == pytest.approx(
        conducted.result.findings[0].number, rel=1e-5
    )
    assert finding["threshold"] == {"relation": "at least", "number": 0.5}
    assert finding["limit"]["threshold"] == {"relation": "at most", "number": 0.0}
    assert finding["remark"] == {"en": "words", "zh": "话"}
    assert table["figure"]["plots"][0]["values"] == [[0.123, 1.0], [0.5, 0.0]]
    for name, word in (("figure.svg", "words"), ("figure.zh.svg", "话")):
        texts = [part.text for part in ET.parse(place / name).iter() if part.tag.endswith("text")]
        assert word in texts


def test_rows_of_numbers_stand_in_one_line_each(tmp_path):
    text = (write(conduct(NAME, drawing, 1), tmp_path) / "result.json").read_text(encoding="utf-8")
    assert "[0.123, 1.0]" in text
