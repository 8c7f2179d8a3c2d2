import math
import re
import threading
from types import SimpleNamespace

import pytest
import torch
from safetensors.torch import load_file

from regard.bundle import open_bundle
from regard.cli.judge import METRICS
from regard.cli.keep import Saving, final_weights, snapshots, write_model
from regard.config import Config, DataConfig, ModelConfig, TrainConfig
from regard.data.prepare import prepare
from regard.errors import ModelError, ResourceError
from regard.model import build_model
from regard.model.weights import save_tensors, weights_of
from regard.storage import sha256
from regard.train import checkpoint
from regard.train.checkpoint import Checkpoint, checkpoints, write_checkpoint
from regard.train.state import TrainState

DATA = DataConfig(task="copy", task_pairs=30, tokenizer="char", vocab_size=300)
MODEL = ModelConfig(d_model=8, n_layers=1, n_heads=2, d_ff=8)


class Running:
    """A trainer as far as keeping looks at it: all its weights are the number of the update."""

    def __init__(self, step=0, *, is_first=True):
        self.state = TrainState(step=step)
        self.parallel = SimpleNamespace(is_first=is_first)
        self.wants_to_stop = False

    def judged(self, score):
        self.state.score, self.state.score_step = score, self.state.step
        return self

    def weights(self):
        return {"w": torch.full((2,), float(self.state.step))}

    def checkpoint(self):
        return Checkpoint(self.state, self.weights(), self.weights())


class Judging:
    """A judge of one metric, by the number that all weights are; None if it has no text."""

    def __init__(self, metric="loss", score_of=None):
        self.metric, self.score_of, self.seen = metric, score_of, []

    def scores(self, weights):
        self.seen.append(weights["w"][0].item())
        return {self.metric: self.score_of(self.seen[-1])} if self.score_of else None


class Said(list):
    """A log of which only the words are kept."""

    def warn(self, line, chinese):
        self.append((line, chinese))


def steps(directory):
    return [int(place.name.removeprefix("step-")) for place in checkpoints(directory)]


def save_all(directory, scores, settings):
    """Save after each update, the n-th with the n-th score, None for those not judged."""
    save = Saving(directory, settings, Said())
    for step, score in enumerate(scores, start=1):
        running = Running(step)
        save(running if score is None else running.judged(score))
    save.finish()


@pytest.mark.parametrize(
    ("settings", "kept"),
    [
        ({}, [8, 7, 2]),  # one to spare, and the best
        ({"metric": "bleu"}, [8, 7, 5]),
        ({"average": 4, "average_of": "last"}, [8, 7, 6, 5, 2]),
        ({"average": 2, "average_of": "best"}, [8, 7, 2]),
        ({"average": 3, "average_of": "best"}, [8, 7, 3, 2]),
        ({"average": 3, "save_every": 3, "validate_every": 8}, [8, 7, 6, 3, 2]),
    ],
)  # fmt: skip
def test_what_nobody_will_ask_for_is_dropped(tmp_path, settings, kept):
    scores = [9.0, 1.0, 3.0, None, 10.0, 4.0, None, 2.0]
    save_all(tmp_path, scores, TrainConfig(steps=8, **{"save_every": 1, **settings}))
    assert steps(tmp_path) == kept


def test_a_save_hashes_what_it_writes_and_nothing_else(tmp_path, monkeypatch):
    hashed = []
    monkeypatch.setattr(checkpoint, "sha256", lambda path: (hashed.append(path), sha256(path))[1])
    settings = TrainConfig(steps=9, save_every=1, average=4, average_of="best")
    scores = [9.0, 1.0, 3.0, 10.0, 4.0, 2.0]
    save_all(tmp_path, scores, settings)
    assert len(hashed) == 3 * len(scores)  # weights, moments and state, once each
    assert steps(tmp_path) == [6, 5, 3, 2]
    hashed.clear()
    save = Saving(tmp_path, settings, Said())  # a run that was resumed knows none of them yet
    for step in (7, 8):
        save(Running(step).judged(20.0))
    save.finish()
    assert len(hashed) == 3 * 2 + 3 * 4
    assert steps(tmp_path) == [8, 7, 6, 5, 3, 2]


def test_a_checkpoint_that_is_there_is_written_again_only_if_it_was_judged_since(tmp_path):
    settings = TrainConfig(steps=9, save_every=1)
    save_all(tmp_path, [None, None], settings)
    place = checkpoints(tmp_path)[0]
    written = place.stat().st_ino
    running = Running(2)
    for expected, score in ((True, None), (False, 3.0)):
        save = Saving(tmp_path, settings, Said(), saved=TrainState(step=2))
        save(running if score is None else running.judged(score))
        save.finish()
        assert (place.stat().st_ino == written) == expected


@pytest.mark.parametrize("settings", [{}, {"ema": 0.9}, {"patience": 1}, {"average": 2}])
def test_the_last_weights_are_chosen_without_hashing_what_is_not_used(
    tmp_path, monkeypatch, settings
):
    save_all(tmp_path, [4.0, 3.0, 2.0, 5.0], TrainConfig(steps=4, save_every=1, average=4))
    hashed = set()
    monkeypatch.setattr(
        checkpoint, "sha256", lambda path: (hashed.add(path.parent.name), sha256(path))[1]
    )
    final_weights(tmp_path, TrainConfig(steps=4, save_every=1, **settings), Running(4), Judging())
    assert len(hashed) == settings.get("average", settings.get("patience", 0))


@pytest.mark.parametrize(
    ("settings", "expected", "words", "chinese"),
    [
        ({}, 6.0, "update 6", "第6次更新"),
        ({"ema": 0.9}, 6.0, "running average at update 6", "第6次更新时的滑动平均"),
        ({"patience": 2}, 2.0, "update 2, the best by loss", "损失最佳的第2次更新"),
        ({"patience": 2, "ema": 0.9}, 6.0, "running average at update 6", "第6次更新时的滑动平均"),
        ({"average": 3}, 5.0, "average of updates 4, 5, 6", "第4、5、6次更新的平均权重"),
        ({"average": 9}, 3.5, "average of updates 1, 2, 3, 4, 5, 6",
         "第1、2、3、4、5、6次更新的平均权重"),
        ({"average": 2, "average_of": "best"}, 3.5, "average of updates 2, 5",
         "第2、5次更新的平均权重"),
        ({"average": 2, "save_every": 2, "validate_every": 2}, 5.0, "average of updates 4, 6",
         "第4、6次更新的平均权重"),
    ],
)  # fmt: skip
def test_the_weights_that_the_settings_ask_for_are_given(
    tmp_path, settings, expected, words, chinese
):
    scores = [9.0, 1.0, 4.0, 5.0, 2.0, 3.0]
    made = TrainConfig(**{"steps": 6, "save_every": 1, "validate_every": 1, **settings})
    for step, score in enumerate(scores, start=1):
        write_checkpoint(tmp_path, Running(step).judged(score).checkpoint())
    weights, *chosen = final_weights(tmp_path, made, Running(6), Judging())
    assert weights["w"].tolist() == [expected] * 2
    assert chosen == [words, chinese]


def test_an_average_of_the_best_without_any_judged_is_of_the_last(tmp_path):
    settings = TrainConfig(steps=3, save_every=1, average=2, average_of="best")
    save_all(tmp_path, [None] * 3, settings)
    judge = Judging("loss", lambda weight: weight)
    assert final_weights(tmp_path, settings, Running(3), judge)[1] == "average of updates 2, 3"
    assert judge.seen == []  # there is nothing to hold it against


def test_damaged_checkpoints_are_not_averaged(tmp_path):
    settings = TrainConfig(steps=4, save_every=1, average=4)
    save_all(tmp_path, [None] * 4, settings)
    (tmp_path / "step-00000003" / "model.safetensors").write_bytes(b"")
    assert (
        final_weights(tmp_path, settings, Running(4), Judging())[1] == "average of updates 1, 2, 4"
    )


@pytest.mark.parametrize("kind", ["last", "best"])
@pytest.mark.parametrize("metric", ["loss", "accuracy", "bleu", "chrf", "exact"])
@pytest.mark.parametrize(
    ("together", "alone", "is_kept"),
    [(37.0, 40.25, False), (40.25, 37.0, True), (40.25, 40.25, True),
     (math.nan, 40.25, False), (37.0, math.nan, True), (math.nan, math.nan, True)],
)  # fmt: skip
def test_no_average_is_kept_that_is_worse_than_the_best_checkpoint(
    tmp_path, kind, metric, together, alone, is_kept
):
    sign = -1.0 if metric == "loss" else 1.0
    settings = TrainConfig(steps=4, save_every=1, average=3, average_of=kind, metric=metric)
    save_all(tmp_path, [sign * score for score in (1.0, 4.0, 3.0, 2.0)], settings)
    judge = Judging(metric, lambda weight: sign * {3.0: together, 2.0: alone}[weight])
    weights, english, chinese = final_weights(tmp_path, settings, Running(4), judge)
    averaged = "average of updates 2, 3, 4", "第2、3、4次更新的平均权重"
    if is_kept:
        assert (weights["w"].tolist(), english, chinese) == ([3.0, 3.0], *averaged)
    else:
        name, chinese_name, form = METRICS[metric]
        a, b = form.format(sign * together), form.format(sign * alone)
        assert weights["w"].tolist() == [2.0, 2.0]
        assert english == f"{averaged[0]} has {name} {a}, update 2 alone {b}: update 2 is kept"
        assert chinese == (
            f"{averaged[1]}，{chinese_name}为{a}；单独第2次更新为{b}；模型取第2次更新"
        )


@pytest.mark.parametrize(
    ("metric", "scores", "told"),
    [("chrf", (1.93956, 2.13031), "第1、2次更新的平均权重，chrF为1.9；单独第1次更新为2.1"),
     ("chrf", (1.93956, 1.94131), "第1、2次更新的平均权重，chrF为1.94；单独第1次更新为1.941"),
     ("chrf", (1.93956, 1.94031), "第1、2次更新的平均权重，chrF为1.93956；单独第1次更新为1.94031"),
     ("accuracy", (0.25, 0.5), "第1、2次更新的平均权重，准确率为25.0%；单独第1次更新为50.0%"),
     ("exact", (1.0, 2.0), "第1、2次更新的平均权重，全对率为1.0 %；单独第1次更新为2.0 %")],
)  # fmt: skip
def test_scores_have_the_decimals_that_tell_them_apart(tmp_path, metric, scores, told):
    settings = TrainConfig(steps=2, save_every=1, average=2, metric=metric)
    save_all(tmp_path, [2.0, 1.0], settings)
    judge = Judging(metric, lambda weight: dict(zip((1.5, 1.0), scores, strict=True))[weight])
    chinese = final_weights(tmp_path, settings, Running(2), judge)[2]
    assert chinese == f"{told}；模型取第1次更新"


def full(tensors, path):
    raise ResourceError("{path} could not be written: {reason}", path=path, reason="full")


def test_a_save_that_fails_is_a_warning_but_at_the_end_an_error(tmp_path, monkeypatch):
    said = Said()
    save = Saving(tmp_path, TrainConfig(steps=3), said)
    monkeypatch.setattr(checkpoint, "save_tensors", full)
    save(Running(2))
    save(Running(3))
    english, chinese = said[0]
    assert re.fullmatch(r"update 2 could not be saved: \S+ could not be written: full", english)
    assert re.fullmatch(r"第2次更新未能保存：\S+无法写入：full", chinese)
    with pytest.raises(ResourceError, match=r"^\S+model\.safetensors could not be written: full$"):
        save.finish()
    assert [english.split(" could")[0] for english, _ in said] == ["update 2", "update 3"]
    save.finish()  # told once
    assert list(tmp_path.iterdir()) == []


def test_a_save_that_succeeds_makes_up_for_one_that_failed(tmp_path, monkeypatch):
    def full_at_first(tensors, path):
        (full if "step-00000001" in path.parent.name else save_tensors)(tensors, path)

    monkeypatch.setattr(checkpoint, "save_tensors", full_at_first)
    save = Saving(tmp_path, TrainConfig(), Said())
    for step in (1, 2):
        save(Running(step))
    save.finish()
    assert steps(tmp_path) == [2]


@pytest.fixture
def slow_disk(monkeypatch):
    """Weights are written as soon as `go` is set; `begun` tells that one is waiting for it."""
    disk, write = SimpleNamespace(go=threading.Event(), begun=threading.Event()), save_tensors

    def slow(tensors, path):
        disk.begun.set()
        assert disk.go.wait(10)
        write(tensors, path)

    monkeypatch.setattr(checkpoint, "save_tensors", slow)
    yield disk
    disk.go.set()


def test_a_run_goes_on_while_a_checkpoint_is_written(tmp_path, slow_disk):
    save, running = Saving(tmp_path, TrainConfig(), Said()), Running(1)
    save(running)
    assert slow_disk.begun.wait(10)
    save.look(running)  # nobody waits
    assert steps(tmp_path) == []
    slow_disk.go.set()
    save.finish()
    assert steps(tmp_path) == [1]


def test_a_second_checkpoint_waits_for_the_first(tmp_path, slow_disk):
    save = Saving(tmp_path, TrainConfig(), Said())
    save(Running(1))
    second = threading.Thread(target=save, args=(Running(2),))
    second.start()
    second.join(0.1)
    assert second.is_alive()
    slow_disk.go.set()
    second.join(10)
    save.finish()
    assert steps(tmp_path) == [2, 1]


def test_a_run_that_ends_by_an_error_still_writes_what_it_began_to(tmp_path, slow_disk):
    save = Saving(tmp_path, TrainConfig(), Said())
    save(Running(1))
    threading.Timer(0.1, slow_disk.go.set).start()
    save.close()
    assert steps(tmp_path) == [1]


def test_what_failed_beside_the_training_is_told_at_the_next_look(tmp_path, monkeypatch):
    said, running = Said(), Running(1)
    save = Saving(tmp_path, TrainConfig(), said)
    monkeypatch.setattr(checkpoint, "save_tensors", full)
    save(running)
    save.close()
    save.look(running)
    assert [english.split(" could")[0] for english, _ in said] == ["update 1"]
    save.look(running)
    assert len(said) == 1


def test_weights_that_are_not_finite_stop_the_run(tmp_path):
    save, running = Saving(tmp_path, TrainConfig(), Said()), Running(1)
    running.weights = lambda: {"w": torch.tensor([math.nan])}
    save(running)
    with pytest.raises(ModelError, match=r"^w holds numbers that are not finite, so it is not"):
        save(Running(2))


def test_no_update_is_saved_twice(tmp_path, monkeypatch):
    written = []
    monkeypatch.setattr(
        checkpoint, "save_tensors", lambda tensors, path: (written.append(path), path.touch())
    )
    save = Saving(tmp_path, TrainConfig(), Said())
    for step in (1, 1, 2, 2):
        save(Running(step))
    save.finish()
    assert len(written) == 2 * 2  # weights and moments


def test_only_the_first_rank_saves(tmp_path):
    save = Saving(tmp_path, TrainConfig(), Said())
    save(Running(1, is_first=False))
    save.finish()
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    return prepare(DATA, tmp_path_factory.mktemp("data"))


@pytest.fixture
def trained(prepared):
    """A trainer whose weights are those of a network."""
    vocabs = prepared.src_tokenizer.vocab, prepared.tgt_tokenizer.vocab
    running = Running(3)
    made = weights_of(build_model(MODEL, *map(len, vocabs)))
    running.weights = lambda: made
    return running


def test_snapshots_are_models_to_open(tmp_path, prepared, trained):
    config = Config(model=MODEL, data=DATA, train=TrainConfig(snapshots=(2, 3)))
    hooks = snapshots(tmp_path, config, prepared, Said())
    assert [every for every, _ in hooks] == [2, 3]
    for _, keep in hooks:
        keep(trained)
    assert [path.name for path in tmp_path.iterdir()] == ["step-00000003"]
    kept = open_bundle(tmp_path / "step-00000003")
    own = load_file(kept.weights)
    assert all(torch.equal(own[name], weight) for name, weight in trained.weights().items())
    assert kept.facts["weights"] == "update 3"


def test_a_snapshot_that_cannot_be_kept_is_a_warning(tmp_path, prepared, trained, monkeypatch):
    said = Said()
    config = Config(model=MODEL, data=DATA, train=TrainConfig(snapshots=(3,)))
    monkeypatch.setattr("regard.cli.keep.save_tensors", full)
    for _, keep in snapshots(tmp_path, config, prepared, said):
        keep(trained)
    english, chinese = said[0]
    assert re.fullmatch(r"the snapshot of update 3 could not be kept: \S+ could .*full", english)
    assert re.fullmatch(r"第3次更新的快照未能保留：\S+无法写入：full", chinese)
    assert list(tmp_path.iterdir()) == []


def test_a_model_carries_what_is_known_of_it(tmp_path, prepared, trained):
    scores = {"loss": 0.51234, "accuracy": 0.9, "bleu": 31.4159, "chrf": 55.5, "exact": 12.0}
    config = Config(model=MODEL, data=DATA)
    write_model(
        tmp_path / "model", config, prepared, trained.weights(), trained.state,
        chosen=("update 3", "第3次更新"), scores=scores, signature="nrefs:1",
    )  # fmt: skip
    facts = open_bundle(tmp_path / "model").facts
    assert facts["updates"] == 3
    assert facts["dev"]["bleu"] == 31.4159
    card = (tmp_path / "model" / "README.md").read_text()
    assert "on the generated task copy: 3 updates, 0 target tokens; weights: update 3." in card
    assert "权重：第3次更新。" in card
    assert "BLEU 31.42 (nrefs:1), chrF 55.5, exact 12.0 %, loss 0.512" in card
