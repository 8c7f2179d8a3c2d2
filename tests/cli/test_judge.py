import math
from types import SimpleNamespace

import pytest
import torch
from torch.nn import functional as F

from regard.cli.judge import GLIMPSE, Judge, dev_line, glimpse, take_note, validation
from regard.config import DataConfig, ModelConfig
from regard.data.prepare import prepare
from regard.evaluate.metrics import bleu
from regard.model import build_model
from regard.model.weights import weights_of
from regard.train.parallel import Parallel
from regard.train.precision import Precision
from regard.train.state import TrainState

CPU = torch.device("cpu")
MODEL = ModelConfig(d_model=8, n_layers=1, n_heads=2, d_ff=8, dropout=0.5)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    data = DataConfig(task="copy", task_pairs=30, tokenizer="char", vocab_size=300)
    made = prepare(data, tmp_path_factory.mktemp("data"))
    del made.dev[7:]
    return made


def network(prepared):
    vocabs = prepared.src_tokenizer.vocab, prepared.tgt_tokenizer.vocab
    return build_model(MODEL, *map(len, vocabs))


def judge_of(prepared, **more):
    return Judge(network(prepared), prepared, Precision("float32", CPU), **more)


@torch.no_grad()
def word_by_word(network, src, tgt, text):
    """The likeliest word after all before it, each time from the beginning."""
    source = torch.tensor([[*src.encode(text), src.vocab.eos]])
    ids = [tgt.vocab.bos]
    while len(ids) <= 2 * source.shape[1] + 20:
        ids.append(int(network(source, torch.tensor([ids]))[0, -1].argmax()))
        if ids[-1] == tgt.vocab.eos:
            return tgt.decode(ids[1:-1])
    return tgt.decode(ids[1:])


def test_scores_are_those_of_each_pair_by_itself(prepared):
    other = network(prepared).eval()
    judge = judge_of(prepared)
    scores = judge.scores(weights_of(other))
    src, tgt = prepared.src_tokenizer, prepared.tgt_tokenizer
    loss = right = n_tokens = 0.0
    for pair in prepared.dev:
        ids, words = src.encode(pair.src), tgt.encode(pair.tgt)
        source = torch.tensor([[*ids, src.vocab.eos]])
        fed, labels = [tgt.vocab.bos, *words], torch.tensor([*words, tgt.vocab.eos])
        with torch.no_grad():
            logits = other(source, torch.tensor([fed]))[0]
        loss += float(F.cross_entropy(logits, labels, reduction="sum"))
        right += int((logits.argmax(-1) == labels).sum())
        n_tokens += len(labels)
    assert scores["loss"] == pytest.approx(loss / n_tokens, abs=1e-5)
    assert scores["accuracy"] == pytest.approx(right / n_tokens)
    said = [word_by_word(other, src, tgt, pair.src) for pair in prepared.dev]
    assert judge.said == said
    references = [pair.tgt for pair in prepared.dev]
    assert scores["bleu"] == bleu(said, references, "").value


@pytest.mark.parametrize(
    ("metric", "wide", "beam"),
    [("bleu", {"bleu": 31.0, "exact": 1.0}, 5), ("bleu", {"bleu": 30.0, "exact": 9.0}, 1),
     ("exact", {"bleu": 1.0, "exact": 9.0}, 5), ("loss", {"bleu": 31.0, "exact": 1.0}, 5),
     ("bleu", None, 1)],
)  # fmt: skip
def test_a_wide_beam_is_kept_only_where_it_says_better_things(
    prepared, monkeypatch, metric, wide, beam
):
    judge, greedy = judge_of(prepared), {"bleu": 30.0, "exact": 2.0}
    monkeypatch.setattr(judge, "scores", lambda _, beam=1: greedy if beam == 1 else wide)
    assert judge.best_scores({}, metric) == (greedy if beam == 1 else wide, beam)


def test_nothing_is_judged_without_a_text_or_when_somebody_wants_to_leave(prepared):
    weights = weights_of(network(prepared))
    assert judge_of(prepared, is_leaving=lambda: True).scores(weights) is None
    without = SimpleNamespace(**{**vars(prepared), "dev": []})
    assert judge_of(without).scores(weights) is None


@pytest.mark.parametrize(("metric", "sign"), [("loss", 1), ("bleu", -1), ("exact", -1)])
def test_patience_counts_validations_since_the_best(metric, sign):
    state, verdicts = TrainState(), []
    for step, value in enumerate([5.0, 3.0, 4.0, 3.0, 2.0, 2.5, 2.1, 9.0], start=1):
        state.step = step
        verdicts.append(take_note(state, sign * value, metric, patience=3))
        assert (state.score, state.score_step) == (sign * value, step)
    assert verdicts == [False] * 7 + [True]  # 3.0 again is no better; then 2.0 is
    assert (state.best, state.best_step, state.stale) == (sign * 2.0, 5, 3)


@pytest.mark.parametrize(("metric", "sign"), [("loss", 1), ("bleu", -1)])
def test_a_score_that_is_no_number_is_never_the_best(metric, sign):
    state, found = TrainState(), []
    for step, value in enumerate([math.nan, 3.0, math.nan, 2.0, math.nan], start=1):
        state.step = step
        assert not take_note(state, sign * value, metric, patience=3)
        found.append(state.best_step)
    assert found == [0, 2, 2, 4, 4]
    assert state.best == sign * 2.0


def test_patience_begins_where_something_is_right():
    state, found = TrainState(), []
    for step, value in enumerate([0.0, 0.0, 0.0, 0.5, 0.0, 0.0], start=1):
        state.step = step
        found.append((take_note(state, value, "bleu", patience=2), state.best_step))
    assert found == [(False, step) for step in (1, 2, 3, 4, 4)] + [(True, 4)]


def test_a_loss_of_zero_is_as_good_as_it_gets():
    state = TrainState()
    verdicts = [take_note(state, 0.0, "loss", patience=2) for _ in range(3)]
    assert verdicts == [False, False, True]


def test_without_patience_a_run_never_stops():
    state = TrainState()
    assert not any(take_note(state, 1.0, "loss", patience=0) for _ in range(99))


class Log:
    """What a validation says and writes."""

    def __init__(self):
        self.written, self.samples, self.said, self.paused = [], [], [], 0.0

    def write(self, step, numbers):
        self.written.append((step, numbers))

    def write_samples(self, step, rows):
        self.samples += [(step, row["src"], row["tgt"]) for row in rows]

    def say(self, line, chinese=""):
        self.said.append((line, chinese))

    def keep(self):
        self.said.append(("kept", ""))

    def pause(self, seconds):
        self.paused += seconds


def running(prepared, step):
    made = weights_of(network(prepared))
    return SimpleNamespace(
        state=TrainState(step=step),
        weights=lambda: made,
        parallel=Parallel(device="cpu"),
        wants_to_stop=False,
    )


def test_a_validation_is_written_shown_and_remembered(prepared):
    log, trainer = Log(), running(prepared, 4)
    validate = validation(judge_of(prepared), log, metric="loss", patience=1)
    validate(trainer)
    (step, numbers), *none = log.written
    assert not none
    assert step == 4
    assert set(numbers) == {"dev_loss", "dev_accuracy", "dev_bleu", "dev_chrf", "dev_exact"}
    assert trainer.state.best == pytest.approx(numbers["dev_loss"])
    assert log.said[0] == ("kept", "")
    assert log.said[1][0].startswith("update 4  dev: loss ")
    assert log.said[1][1].startswith("第4次更新，开发集：损失 ")
    assert [line.split(" → ")[0].strip() for line, _ in log.said[2:]] == [
        pair.src for pair in prepared.dev[:2]
    ]
    assert log.paused > 0.0
    assert log.samples == [(4, pair.src, pair.tgt) for pair in prepared.dev]
    trainer.state.step = 8
    validate(trainer)
    assert trainer.wants_to_stop
    assert log.said[-1] == (
        "no better loss since update 4: the run stops here",
        "自第4次更新以来损失没有改善：训练到此为止",
    )


def test_a_long_text_is_cut_on_the_screen_and_a_terminal_is_told_nothing():
    assert glimpse("我喜欢喝茶。") == "我喜欢喝茶。"
    assert glimpse("字" * GLIMPSE) == "字" * GLIMPSE
    assert glimpse("字" * (GLIMPSE + 1)) == "字" * (GLIMPSE - 1) + "…"
    assert glimpse("red\x1b[31m\ttea\u2028") == "red [31m tea"


def test_a_run_that_is_about_to_stop_does_not_validate(prepared):
    log, trainer = Log(), running(prepared, 4)
    trainer.wants_to_stop = True
    validation(judge_of(prepared), log, metric="loss", patience=1)(trainer)
    assert not log.written
    assert trainer.state.score is None


def test_the_line_of_a_validation_has_every_score():
    scores = {"loss": 0.5, "accuracy": 0.25, "bleu": 12.345, "chrf": 33.33, "exact": 7.0}
    assert dev_line(scores) == (
        "dev: loss 0.5000  accuracy 25.0%  BLEU 12.35  chrF 33.3  exact 7.0 %",
        "开发集：损失 0.5000  准确率 25.0%  BLEU 12.35  chrF 33.3  全对 7.0 %",
    )
