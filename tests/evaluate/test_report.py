import json

import pytest
from rich.cells import cell_len

from regard.evaluate import Run, as_json, as_markdown, as_table, compare, examine, report_on

REFERENCES = ["the cat sat on the mat", "it rains again today", "goodbye to all of you"]
SOURCES = ["猫坐在垫子上", "今天又下雨了", "大家再见"]
SYSTEMS = {
    "old": ["the cat sat on a mat", "", "goodbye to all of you"],
    "新|系统": ["the cat sat on the mat", "今天又下雨了", "goodbye to you all"],
}


@pytest.fixture(scope="module")
def report():
    runs = {"old": Run(seconds=1.5, peak_bytes=3 * 2**20)}
    return report_on(SYSTEMS, REFERENCES, "en", sources=SOURCES, runs=runs, samples=50, seed=3)


def test_a_report_holds_what_its_parts_say_of_each_system(report):
    assert (report.tgt_lang, report.lines) == ("en", 3)
    estimates = compare(SYSTEMS, REFERENCES, "en", samples=50, seed=3)
    assert report.systems[0].estimates + report.systems[1].estimates == estimates
    for system in report.systems:
        assert system.outputs == examine(SYSTEMS[system.name], REFERENCES, "en", SOURCES)
    assert report.systems[0].run.seconds == 1.5
    assert report.systems[1].run is None


def test_the_table_is_aligned_also_where_characters_are_wide(report):
    for language, last in (("en", "copied"), ("zh", "照抄")):
        head, *rows = as_table(report, language).split("\n\n")[0].splitlines()
        assert [row.split()[0] for row in rows] == list(SYSTEMS)
        assert [row.split()[-1] for row in rows] == ["0", "1"]
        start = cell_len(head[: head.index(last)])
        assert {cell_len(row[:-1]) for row in rows} == {start}


def test_cells_show_the_score_its_interval_and_p_against_the_first(report):
    base, other = (system.estimates[0] for system in report.systems)
    first, second = as_table(report).splitlines()[1:3]
    assert f"  {base.score.value:.1f} ± {base.interval:.1f}  " in first
    assert "p " not in first
    assert f"  {other.score.value:.1f} ± {other.interval:.1f}, p {other.p:.3f}  " in second


def test_copies_are_not_claimed_to_be_none_without_sources():
    report = report_on(SYSTEMS, REFERENCES, "en", samples=5)
    assert as_table(report).splitlines()[1].endswith("  -")
    assert as_json(report)["systems"]["old"]["outputs"]["copied"] is None


@pytest.mark.parametrize("shown", [as_table, as_markdown])
def test_every_metric_is_shown_with_its_signature(report, shown):
    assert list(report.signatures) == ["bleu", "chrf", "ter", "exact", "bleu_lc", "bleu_moses"]
    titles = {
        "bleu": "BLEU",
        "bleu_moses": "BLEU (lc, Moses tokens)",
        "chrf": "chrF",
        "ter": "TER",
        "exact": "exact",
    }
    last = shown(report).split("\n\n")[-1].splitlines()
    for line, (name, title) in zip(last, titles.items(), strict=True):
        assert line.removeprefix("- ").startswith(title)
        assert report.signatures[name] in line


@pytest.mark.parametrize("shown", [as_table, as_markdown])
@pytest.mark.parametrize(("language", "column"), [("en", "Moses) ↑"), ("zh", "Moses） ↑")])
def test_the_figure_in_moses_words_stands_beside_bleu_where_there_is_one(shown, language, column):
    spaced, unspaced = (
        report_on({"it": lines}, lines, tag, samples=5)
        for tag, lines in (("en", ["a cat", "a dog"]), ("zh", ["一只猫", "一条狗"]))
    )
    head = shown(spaced, language).splitlines()[0]
    assert head.index("BLEU ↑") < head.index(column) < head.index("chrF ↑")
    assert "Moses" not in shown(unspaced, language)
    scores = as_json(unspaced)["systems"]["it"]["scores"]
    assert (scores["bleu_moses"], scores["bleu_lc"]) == (None, None)
    scores = as_json(spaced)["systems"]["it"]["scores"]
    assert "|case:lc|eff:no|tok:13a|" in scores["bleu_lc"]["signature"]
    assert "|case:lc|eff:no|tok:sacremoses-" in scores["bleu_moses"]["signature"]


def test_markdown_has_as_many_cells_in_every_row(report):
    table = as_markdown(report).split("\n\n")[0].replace(r"\|", "")
    assert {line.count("|") for line in table.splitlines()} == {10}
    assert table.splitlines()[1] == "| --- |" + " ---: |" * 8


@pytest.mark.parametrize(
    ("language", "buckets", "took"),
    [
        ("en", "old: BLEU by words of the reference (lines): 0–10: {:.1f} (3)",
         "old: 1.5 s, 2.0 sentences/s, 3 MiB at most"),
        ("zh", "old: 按参考译文词数的BLEU（行数）: 0–10: {:.1f} (3)",
         "old: 1.5秒，每秒2.0句，内存最多3 MiB"),
    ],
)  # fmt: skip
def test_lengths_and_speed_stand_below_the_table(report, language, buckets, took):
    """The second system was not run here, so nobody knows its speed."""
    first = report.systems[0].estimates[0].score.value  # all lines are of one bucket
    for shown, bullet in ((as_table, ""), (as_markdown, "- ")):
        details = shown(report, language).split("\n\n")[1].splitlines()
        assert details[:2] == [bullet + buckets.format(first), bullet + took]
        assert len(details) == 3


def test_json_gives_everything_and_survives_writing(report):
    table = json.loads(json.dumps(as_json(report), allow_nan=False))
    old, new = table["systems"].values()
    assert list(table["systems"]) == list(SYSTEMS)
    for name, estimate in zip(old["scores"], report.systems[0].estimates, strict=True):
        assert name == estimate.score.name
        assert old["scores"][name] == {
            "value": estimate.score.value,
            "signature": estimate.score.signature,
            "mean": estimate.mean,
            "interval": estimate.interval,
            "p": None,
        }
    assert 0 < new["scores"]["bleu"]["p"] <= 1
    assert (old["outputs"]["empty"], new["outputs"]["copied"]) == ([2], [2])
    assert old["buckets"][0]["lines"] == 3
    assert old["buckets"][0]["value"] == old["scores"]["bleu"]["value"]
    took = {"seconds": 1.5, "peak_bytes": 3 * 2**20, "sentences_per_s": 2.0}
    assert (old["run"], new["run"]) == (took, None)
