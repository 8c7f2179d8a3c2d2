"""Validation: the development text predicted and translated, scored, and shown."""

import math
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import torch

from regard.data.feed import ordered_batches
from regard.decode.engines.torch import TorchEngine
from regard.decode.ensemble import Network
from regard.decode.search import Search
from regard.decode.wording import Wording, sentences_of
from regard.evaluate.metrics import bleu, chrf, exact_match
from regard.model.weights import load_weights
from regard.train.validate import dev_loss

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import Tensor

    from regard.data.corpus import Pair
    from regard.data.prepare import Prepared
    from regard.train.log import Log
    from regard.train.precision import Precision
    from regard.train.state import TrainState
    from regard.train.trainer import Trainer

JUDGED = 500  # development pairs that are translated at a validation
SHOWN, KEPT = 2, 20  # of those, on the screen and in samples.jsonl
GLIMPSE = 120  # letters of a text on the screen; samples.jsonl has it whole
TOKENS = 4096  # of a batch whose loss is taken
AT_ONCE = 100  # texts translated before looking whether somebody wants to leave
LOWER_IS_BETTER = ("loss",)
# as people write them, in English and in Chinese, and with as many decimals as tell something
METRICS = {
    "loss": ("loss", "损失", "{:.4f}"),
    "accuracy": ("accuracy", "准确率", "{:.1%}"),
    "bleu": ("BLEU", "BLEU", "{:.2f}"),
    "chrf": ("chrF", "chrF", "{:.1f}"),
    "exact": ("exact", "全对率", "{:.1f} %"),
}
OF_TEXT = ("bleu", "chrf", "exact")  # metrics of what is said
WIDE = 5  # the beam that a finished model is tried with


class Judge:
    """Knows the development text, and has a plain network of its own to put weights into."""

    def __init__(
        self,
        network: Network,
        prepared: "Prepared",
        precision: "Precision",
        *,
        longest: int | None = None,
        is_leaving: Callable[[], bool] = lambda: False,
    ) -> None:
        self.network = network.to(precision.device)
        self.tokenizers = prepared.src_tokenizer, prepared.tgt_tokenizer
        self.longest = longest
        self.pairs = [pair for pair in prepared.dev if self._fits(pair)]
        self.batches = ordered_batches(self.pairs, *self.tokenizers, TOKENS)
        self.precision = precision
        self.is_leaving = is_leaving
        ways = list(dict.fromkeys((pair.src_lang, pair.tgt_lang) for pair in self.pairs))
        longest = longest or sys.maxsize
        self.wording = Wording(*self.tokenizers, ways, longest)
        src, tgt = (tokenizer.vocab for tokenizer in self.tokenizers)
        self.engine = TorchEngine(
            [self.network],
            pad=src.pad,
            bos=tgt.bos,
            eos=tgt.eos,
            longest=longest,
            device=precision.device,
        )
        self.said: list[str] = []  # of the last time, for those who want to see some
        self.signature = ""

    def _fits(self, pair: "Pair") -> bool:
        """Whether the network has positions for a pair, the end and a language counted."""
        if self.longest is None:
            return True
        return all(
            len(tokenizer.encode(text)) + 2 <= self.longest
            for tokenizer, text in zip(self.tokenizers, (pair.src, pair.tgt), strict=True)
        )

    def best_scores(
        self, weights: "Mapping[str, Tensor]", metric: str
    ) -> tuple[dict[str, float] | None, int]:
        """The scores by the beam that suits these weights better, and how wide it is.

        A network that is very sure of itself is better asked greedily: its beam is full of ends
        that it thinks unlikely before the sure one has ended.
        """
        greedy, wide = self.scores(weights), self.scores(weights, beam=WIDE)
        name = metric if metric in OF_TEXT else "bleu"
        if greedy and wide and wide[name] > greedy[name]:
            return wide, WIDE
        return greedy, 1

    def scores(self, weights: "Mapping[str, Tensor]", *, beam: int = 1) -> dict[str, float] | None:
        """Every metric of these weights; None without a development text, or if asked to leave."""
        if not self.pairs:
            return None
        load_weights(self.network, weights)
        pad = self.tokenizers[1].vocab.pad
        loss, accuracy = dev_loss(self.network, self.batches, pad=pad, precision=self.precision)
        self.said = []
        judged = self.pairs[:JUDGED]
        for start in range(0, len(judged), AT_ONCE):
            if self.is_leaving():
                return None
            self.said += self._translate(start, min(start + AT_ONCE, len(judged)), beam)
        self.engine.forget()  # training wants the memory
        references, language = [pair.tgt for pair in judged], judged[0].tgt_lang
        of_words = bleu(self.said, references, language)
        self.signature = of_words.signature
        return {
            "loss": loss,
            "accuracy": accuracy,
            "bleu": of_words.value,
            "chrf": chrf(self.said, references, language).value,
            "exact": exact_match(self.said, references, language).value,
        }

    def _translate(self, start: int, stop: int, beam: int) -> list[str]:
        chosen = self.pairs[start:stop]
        asked = self.wording.asked(
            [pair.src for pair in chosen], [(pair.src_lang, pair.tgt_lang) for pair in chosen]
        )
        with self.precision.autocast():
            found = self.engine.search(sentences_of(asked), Search(beam=beam))
        return [one.text for one in self.wording.translations(asked, found)]


def validation(
    judge: Judge | None, log: "Log", *, metric: str, patience: int
) -> Callable[["Trainer"], None]:
    """The hook that validates: only the first rank has a judge, and all hear the verdict."""

    def validate(trainer: "Trainer") -> None:
        if trainer.wants_to_stop:
            return
        started = time.monotonic()
        weights = trainer.weights()
        scores = judge.scores(weights) if judge is not None else None
        said = [1.0, scores[metric]] if scores else [0.0, 0.0]
        verdict = torch.tensor(said, dtype=torch.float64, device=trainer.parallel.device)
        is_judged, score = trainer.parallel.agree(verdict).tolist()
        if scores and judge:
            log.write(trainer.state.step, {f"dev_{name}": value for name, value in scores.items()})
            log.keep()
            english, chinese = dev_line(scores)
            step = trainer.state.step
            log.say(f"update {step}  {english}", f"第{step}次更新，{chinese}")
            _show(judge, log, step)
        if is_judged:
            trainer.wants_to_stop = take_note(trainer.state, score, metric, patience)
            if trainer.wants_to_stop:
                best, (english, chinese, _) = trainer.state.best_step, METRICS[metric]
                log.say(
                    f"no better {english} since update {best}: the run stops here",
                    f"自第{best}次更新以来{chinese}没有改善：训练到此为止",
                )
        log.pause(time.monotonic() - started)

    return validate


def take_note(state: "TrainState", score: float, metric: str, patience: int) -> bool:
    """Remember the best score; whether `patience` validations have passed without a better one.

    What is no number is worse than any. As long as nothing that is said is right, a model may well
    be learning: BLEU and its like begin to count where they leave 0.
    """
    state.score, state.score_step = score, state.step
    sign = 1.0 if metric in LOWER_IS_BETTER else -1.0
    best = math.nan if state.best is None else state.best
    is_silent = metric not in LOWER_IS_BETTER and score == best == 0.0
    is_first = math.isnan(best) and not math.isnan(score)
    if sign * score < sign * best or is_first or is_silent:
        state.best, state.best_step, state.stale = score, state.step, 0
        return False
    state.stale += 1
    return 0 < patience <= state.stale


def dev_line(scores: dict[str, float]) -> tuple[str, str]:
    """The scores in one line, in English and in Chinese."""
    return (
        "dev: loss {loss:.4f}  accuracy {accuracy:.1%}  BLEU {bleu:.2f}  chrF {chrf:.1f}  "
        "exact {exact:.1f} %".format(**scores),
        "开发集：损失 {loss:.4f}  准确率 {accuracy:.1%}  BLEU {bleu:.2f}  chrF {chrf:.1f}  "
        "全对 {exact:.1f} %".format(**scores),
    )


def glimpse(text: str) -> str:
    """A text for one line of a log: no paragraph, and nothing that a terminal would obey."""
    line = " ".join("".join(each if each.isprintable() else " " for each in text).split())
    return line if len(line) <= GLIMPSE else line[: GLIMPSE - 1] + "…"


def _show(judge: Judge, log: "Log", step: int) -> None:
    """A few translations for the eye, and some more in a file."""
    shown = list(zip(judge.pairs, judge.said, strict=False))
    for pair, said in shown[:SHOWN]:
        log.say(f"     {glimpse(pair.src)} → {glimpse(said)}")
    rows = [{"src": pair.src, "said": said, "tgt": pair.tgt} for pair, said in shown[:KEPT]]
    log.write_samples(step, rows)
