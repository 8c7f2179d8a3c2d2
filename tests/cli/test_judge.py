import json
from types import SimpleNamespace

import pytest
import torch
from torch.nn import functional as F

from regard.cli.judge import Judge, dev_line, take_note, validation
from regard.config import DataConfig, ModelConfig
from regard.data.prepare import prepare
from regard.decode.translator import translate_with
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


def test_scores_are_those_of_each_pair_by_itself(prepared):
    other = network(prepared).eval()
    scores = judge_of(prepared).scores(weights_of(other))
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
    said = translate_with(other, src, tgt, [pair.src for pair in prepared.dev], CPU)
    references = [pair.tgt for pair in prepared.dev]
    assert scores["bleu"] == bleu(said, references, "").value


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


def test_without_patience_a_run_never_stops():
    state = TrainState()
    assert not any(take_note(state, 1.0, "loss", patience=0) for _ in range(99))


class Log:
    """What a validation says and writes."""

    def __init__(self):
        self.written, self.said, self.paused = [], [], 0.0

    def write(self, step, numbers):
        self.written.append((step, numbers))

    def say(self, line):
        self.said.append(line)

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


def test_a_validation_is_written_shown_and_remembered(prepared, tmp_path):
    log, trainer = Log(), running(prepared, 4)
    validate = validation(
        judge_of(prepared), log, metric="loss", patience=1, samples=tmp_path / "samples.jsonl"
    )
    validate(trainer)
    (step, numbers), *none = log.written
    assert not none
    assert step == 4
    assert set(numbers) == {"dev_loss", "dev_accuracy", "dev_bleu", "dev_chrf", "dev_exact"}
    assert trainer.state.best == pytest.approx(numbers["dev_loss"])
    assert log.said[0].startswith("dev: loss ")
    assert log.paused > 0.0
    samples = [json.loads(line) for line in (tmp_path / "samples.jsonl").read_text().splitlines()]
    assert [row["src"] for row in samples] == [pair.src for pair in prepared.dev]
    trainer.state.step = 8
    validate(trainer)
    assert trainer.wants_to_stop
    assert log.said[-1] == "no better loss since update 4: the run stops here"


def test_a_run_that_is_about_to_stop_does_not_validate(prepared, tmp_path):
    log, trainer = Log(), running(prepared, 4)
    trainer.wants_to_stop = True
    validation(judge_of(prepared), log, metric="loss", patience=1, samples=tmp_path / "s")(trainer)
    assert not log.written
    assert trainer.state.score is None


def test_samples_that_cannot_be_written_cost_nothing(prepared, tmp_path):
    (tmp_path / "samples.jsonl").symlink_to("/dev/full")
    trainer = running(prepared, 4)
    validation(
        judge_of(prepared), Log(), metric="loss", patience=0, samples=tmp_path / "samples.jsonl"
    )(trainer)
    assert trainer.state.score_step == 4


def test_the_line_of_a_validation_has_every_score():
    scores = {"loss": 0.5, "accuracy": 0.25, "bleu": 12.345, "chrf": 33.33, "exact": 7.0}
    assert dev_line(scores) == (
        "dev: loss 0.5000  accuracy 25.0%  BLEU 12.35  chrF 33.3  exact 7.0 %"
    )
