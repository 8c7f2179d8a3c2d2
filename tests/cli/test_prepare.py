from dataclasses import replace
from types import SimpleNamespace

import pytest

from regard.cli.prepare import data_line, tell_of_data
from regard.config import DataConfig
from regard.data.prepare import prepare

N_PAIRS = 400


def write(place, name, numbers):
    place.mkdir(exist_ok=True)
    (place / f"{name}.zh").write_text("".join(f"第{n}句\n" for n in numbers))
    (place / f"{name}.en").write_text("".join(f"sentence {n}\n" for n in numbers))


@pytest.fixture
def config(tmp_path):
    write(tmp_path / "text", "train", range(N_PAIRS))
    return DataConfig(
        train=(str(tmp_path / "text"),), src_lang="zh", tgt_lang="en",
        tokenizer="char", vocab_size=300,
    )  # fmt: skip


@pytest.fixture
def lines(tmp_path):
    """What is said of the data of some settings, in English and in Chinese."""

    def made(config):
        return data_line(prepare(config, tmp_path / "data"), config)

    return made


def vocabulary(prepared):
    return len(prepared.src_tokenizer.vocab)


def test_pairs_that_were_held_out_are_not_said_to_be_dropped(config, tmp_path):
    prepared = prepare(config, tmp_path / "data")
    n, words = len(prepared.dev), vocabulary(prepared)
    assert n > 1
    assert len(prepared.dataset) == N_PAIRS - n
    assert data_line(prepared, config) == (
        f"{N_PAIRS - n} pairs, {n} more held out to judge by; one vocabulary of {words}",
        f"{N_PAIRS - n}个句对，另留出{n}个用于评判；共用词表{words}",
    )


def test_files_to_judge_by_are_named_and_what_they_share_with_training_is_dropped(
    config, tmp_path, lines
):
    write(tmp_path / "text", "dev", [5, 7, 1000])
    english, chinese = lines(config)
    assert english.startswith("398 pairs (dropped 2 by drop_overlap), 3 of dev.zh,dev.en to judge")
    assert chinese.startswith(
        "398个句对（丢弃：与开发集或测试集相同（drop_overlap）2个），用dev.zh、dev.en的3个句对评判；"
    )


def test_one_pair_is_one_pair_and_none_to_judge_by_is_said(config, tmp_path, lines):
    write(tmp_path / "text", "train", [1])
    english, chinese = lines(config)
    assert english.startswith("1 pair, none to judge by; one vocabulary of ")
    assert chinese.startswith("1个句对，没有可供评判的句对；共用词表")


def test_a_generated_task_makes_more_pairs_to_judge_by(lines):
    task = DataConfig(task="copy", task_pairs=1200, tokenizer="char", vocab_size=300)
    english, chinese = lines(task)
    assert english.startswith("1,200 pairs, 2,000 more to judge by; one vocabulary of ")
    assert chinese.startswith("1,200个句对，另有2,000个用于评判；共用词表")


def test_two_vocabularies_are_two_numbers(config, tmp_path):
    own = replace(config, joint=False)
    prepared = prepare(own, tmp_path / "data")
    src, tgt = len(prepared.src_tokenizer.vocab), len(prepared.tgt_tokenizer.vocab)
    assert src != tgt
    english, chinese = data_line(prepared, own)
    assert english.endswith(f"; vocabularies of {src} and {tgt}")
    assert chinese.endswith(f"；词表{src}和{tgt}")


def test_every_reason_to_drop_is_counted_and_named(config, tmp_path):
    """A reason may also be one of another version."""
    prepared = prepare(config, tmp_path / "data")
    for dropped, english, chinese in (
        ({"drop_overlap": 48}, "dropped 48 by drop_overlap",
         "丢弃：与开发集或测试集相同（drop_overlap）48个"),
        ({"max_len": 3000, "dedup": 5}, "dropped 5 by dedup, 3,000 by max_len",
         "丢弃：重复（dedup）5个，过长（max_len）3,000个"),
        ({"held_out": len(prepared.dev) + 3, "new": 1},
         "dropped 1 by new, 3 as copies of those held out",
         "丢弃：其他（new）1个，与留出的句对相同3个"),
    ):  # fmt: skip
        other = replace(prepared, dataset=replace(prepared.dataset, dropped=dropped))
        lines = data_line(other, config)
        assert f" pairs ({english}), " in lines[0]
        assert f"个句对（{chinese}），" in lines[1]


@pytest.mark.parametrize(("n_pairs", "is_new", "is_warned"), [
    (3, True, True), (3, False, False), (400, True, False),
])  # fmt: skip
def test_a_run_without_pairs_to_judge_by_is_warned_as_it_begins(
    config, tmp_path, n_pairs, is_new, is_warned
):
    write(tmp_path / "text", "train", range(n_pairs))
    said, warned = [], []
    log = SimpleNamespace(
        say=lambda *words: said.append(words), warn=lambda *words: warned.append(words)
    )
    prepared = prepare(config, tmp_path / "data")
    tell_of_data(prepared, config, log, is_new=is_new)
    assert said == [data_line(prepared, config)]
    words = (
        "there is no pair to judge by: the run will not stop early, and its weights are not "
        "scored; give some with --set data.dev=dev.zh,dev.en",
        "没有可供评判的句对：训练不会提前停止，权重也不会有分数；"
        "请用--set data.dev=dev.zh,dev.en给出一些",
    )
    assert warned == [words] * is_warned
