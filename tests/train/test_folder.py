import json
import os
import re
import subprocess
import sys
from contextlib import contextmanager

import pytest
import torch

from regard import __version__
from regard.config import Config, DataConfig, ModelConfig, TrainConfig
from regard.errors import ConfigError, ResourceError
from regard.processors import processor_name
from regard.train.folder import (
    check_network,
    check_same,
    differences,
    facts,
    ignored_words,
    locked,
    record,
    recorded,
    spread,
)

HOLDER = """
import fcntl, os, sys
file = open(sys.argv[1], "a+")
fcntl.lockf(file, fcntl.LOCK_EX)
print(os.getpid(), file=file, flush=True)
print("held", flush=True)
sys.stdin.read()
"""
OFFER = "; resume with what it began with, or take its weights alone with --resume-weights-only"


@contextmanager
def held_by_another(path):
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with process:
        assert process.stdout.readline() == b"held\n"
        yield process.pid
        process.stdin.close()


def facts_of(config=None, **more):
    made = facts(config or Config(), "abc", 1, torch.device("cpu"))
    return {**made, **more}


def began():
    """The same as a run folder holds it."""
    return json.loads(json.dumps(facts_of()))


def test_a_folder_is_made_and_tells_who_holds_it(tmp_path):
    with locked(tmp_path / "deep" / "run"):
        assert (tmp_path / "deep" / "run" / "lock").read_text() == f"{os.getpid()}\n"


def test_a_folder_that_another_process_holds_is_refused_until_it_ends(tmp_path):
    with held_by_another(tmp_path / "lock") as pid:
        sentence = (
            f"{tmp_path} is being written by process {pid}; wait for it, or name another place "
            "with -o"
        )
        with pytest.raises(ResourceError, match=f"^{re.escape(sentence)}$"), locked(tmp_path):
            pass
        assert (tmp_path / "lock").read_text() == f"{pid}\n"
    with locked(tmp_path):
        pass
    with locked(tmp_path):
        assert (tmp_path / "lock").read_text() == f"{os.getpid()}\n"


def test_a_holder_that_has_not_said_its_number_yet_is_a_question_mark(tmp_path):
    with held_by_another(tmp_path / "lock"):
        (tmp_path / "lock").write_text("")
        with pytest.raises(ResourceError, match=r" process \?; wait"), locked(tmp_path):
            pass


def test_what_was_recorded_comes_back(tmp_path):
    assert recorded(tmp_path) is None
    table = facts_of()
    record(tmp_path, table)
    found = recorded(tmp_path)
    assert found["config"]["model"] == table["config"]["model"]
    assert found["versions"] == table["versions"]
    assert found["versions"]["regard"] == __version__
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]
    for damaged in ('{"config": {"mod', "[]", '{"config": {}}', "7"):
        (tmp_path / "run.json").write_text(damaged)
        assert recorded(tmp_path) is None


def test_facts_that_cannot_be_written_leave_no_draft(tmp_path):
    (tmp_path / "run.json").mkdir()
    with pytest.raises(OSError, match=r"run\.json"):
        record(tmp_path, facts_of())
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]


def test_a_run_goes_on_with_what_it_began_with(tmp_path):
    record(tmp_path, facts_of())
    check_same(recorded(tmp_path), facts_of())  # or it raises
    assert differences(recorded(tmp_path), facts_of()) == []


@pytest.mark.parametrize(
    "config",
    [
        Config(model=ModelConfig(dropout=0.5, attention_dropout=0.1, activation_dropout=0.1)),
        Config(train=TrainConfig(lr=1.0, steps=7, workers=3, save_every=5, patience=2)),
    ],
)
def test_a_run_may_go_on_with_other_dropouts_rates_and_paces(config):
    now = facts_of(config)
    assert now["config"] != began()["config"]
    check_same(began(), now)  # or it raises


@pytest.mark.parametrize(
    ("section", "name", "value", "sentence"),
    [
        ("train", "tokens", 99, "train.tokens was 4096 when this run began and is 99 now"),
        ("train", "batching", "packed",
         'train.batching was "padded" when this run began and is "packed" now'),
        ("train", "accumulate", 3, "train.accumulate was 1 when this run began and is 3 now"),
        ("train", "metric", "bleu",
         'train.metric was "loss" when this run began and is "bleu" now'),
        ("train", "seed", 2, "train.seed was 1 when this run began and is 2 now"),
        ("model", "d_model", 64, "model.d_model was 512 when this run began and is 64 now"),
        ("data", "train", ["b"], 'data.train was [] when this run began and is ["b"] now'),
        ("data", "new", 1, "data.new was None when this run began and is 1 now"),
    ],
)  # fmt: skip
def test_each_change_that_matters_is_refused_by_its_name(section, name, value, sentence):
    now = facts_of()
    now["config"][section][name] = value
    with pytest.raises(ConfigError, match=f"^{re.escape(sentence + OFFER)}$"):
        check_same(began(), now)


def test_all_changes_are_said_at_once_and_in_chinese_too():
    now = facts_of(Config(train=TrainConfig(tokens=9, seed=4)), text="xyz")
    sentence = (
        "train.tokens was 4096 when this run began and is 9 now; "
        f"train.seed was 1 when this run began and is 4 now{OFFER}"
    )
    with pytest.raises(ConfigError, match=f"^{re.escape(sentence)}$") as caught:
        check_same(began(), now)
    assert "--resume-weights-only" in caught.value.in_language("zh")
    assert "when this run began" not in caught.value.in_language("zh")


def test_another_text_under_the_same_settings_is_refused():
    sentence = "the training text is not what it was when this run began" + OFFER
    with pytest.raises(ConfigError, match=f"^{re.escape(sentence)}$"):
        check_same(began(), facts_of(text="xyz"))


def test_weights_are_refused_by_another_network_and_keep_their_words():
    before = began()
    now = facts_of(
        Config(
            model=ModelConfig(dropout=0.5),
            train=TrainConfig(tokens=9),
        )
    )
    check_network(before, now)  # or it raises
    assert ignored_words(before, now) == []
    now = facts_of(Config(model=ModelConfig(n_heads=4), data=DataConfig(vocab_size=9)))
    assert ignored_words(before, now) == ["data.vocab_size"]
    with pytest.raises(
        ConfigError,
        match=r"^model\.n_heads was 8 when this run began and is 4 now; "
        r"weights are of no use to another network$",
    ):
        check_network(before, now)


def test_a_setting_that_is_newer_than_a_run_is_what_it_does_by_default():
    before = began()
    del before["config"]["model"]["output_bias"]
    check_same(before, facts_of())  # or it raises
    with pytest.raises(ConfigError, match=r"^model\.output_bias was false .* is true now"):
        check_same(before, facts_of(Config(model=ModelConfig(output_bias=True))))


def test_what_keeps_a_run_from_repeating_to_the_bit_is_told():
    before = facts_of()
    assert differences(before, facts_of()) == []
    now = facts_of(threads=64, device="NVIDIA H200", ranks=3)
    now["versions"] = {**now["versions"], "torch": "9.9", "regard": "7.0"}
    assert differences(before, now) == [
        "processes 1 → 3",
        f"threads {before['threads']} → 64",
        f"regard {__version__} → 7.0",
        f"torch {torch.__version__} → 9.9",
        f"device {processor_name()} → NVIDIA H200",
    ]


@pytest.mark.parametrize(
    ("accumulate", "began", "ranks", "expected"),
    [(3, 2, 3, 2), (3, 2, 1, 6), (1, 2, 1, 2), (1, 2, 3, 1), (1, 1, 8, 1), (4, 3, 3, 4)],
)
def test_other_ranks_share_an_update_of_about_as_many_batches(accumulate, began, ranks, expected):
    assert spread(accumulate, began, ranks) == expected
