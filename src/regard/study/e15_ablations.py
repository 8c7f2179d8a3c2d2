"""e15: one part changed at a time, as in the paper's table of variations, on Chinese numerals.

Every variant is trained from the same seeds on the same pairs, so differences are paired: what is
shown is their mean and its 95 % interval. `tools/ablations.py` does the same on Multi30k, on a GPU.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from statistics import mean, stdev

import numpy as np
import torch
from torch import Tensor

from regard.config import ModelConfig
from regard.data.tasks import Split, example, examples
from regard.model import build_model
from regard.model.weights import load_weights
from regard.study.claim import BEYOND, Bound, Claim, Result, at_least
from regard.study.contents import CONTENTS
from regard.study.learning import Draw, Pair, loss_and_accuracy, share_exact, teach
from regard.text.tokenizer import Tokenizer, train_tokenizer
from regard.train.average import average
from regard.train.trainer import Trainer, gathered
from regard.view.panels import Bar, Bars, Figure, Words, same

STUDENT = {2: 12.706, 3: 4.303}  # the 97.5 % point of Student's t, by how many seeds there are
BASE = ModelConfig(d_model=64, n_layers=1, n_heads=4, d_ff=128, dropout=0.0, max_len=64)
COSTS = 0.06  # nats per token that a change must cost before it counts


@dataclass(frozen=True, slots=True)
class Variant:
    """What differs from the base: settings of the network, or of its training."""

    name: Words
    network: Mapping[str, object]
    smoothing: float = 0.0
    has_warmup: bool = True
    is_reordered: bool = False


def changed(english: str, chinese: str, **network: object) -> Variant:
    """A variant of the network."""
    return Variant(Words(english, chinese), network)


VARIANTS = {
    "order": Variant(Words("other pairs", "换一批样本"), {}, is_reordered=True),
    "dot": changed("no √d", "不除以√d", score="dot"),
    "additive": changed("additive scores", "加性评分", score="additive"),
    "one_head": changed("1 head", "1个头", n_heads=1),
    "no_positions": changed("no positions", "无位置编码", positions="none"),
    "learned": changed("learned positions", "学习的位置", positions="learned"),
    "rotary": changed("rotary positions", "旋转位置", positions="rotary"),
    "pre": changed("pre-norm", "前置规范化", norm="pre"),
    "smoothing": Variant(Words("label smoothing 0.1", "标签平滑0.1"), {}, smoothing=0.1),
    "no_warmup": Variant(Words("no warm-up", "无预热"), {}, has_warmup=False),
    "much_smoothing": Variant(Words("label smoothing 0.3", "标签平滑0.3"), {}, smoothing=0.3),
}
QUICK = ("order", "much_smoothing")  # what shows within seconds
WHOLE = tuple(name for name in VARIANTS if name != "much_smoothing")


def claim(note: str, words: Words, variant: str, bound: Bound = at_least(COSTS)) -> Claim:  # noqa: B008
    """That a change costs something; if not, one that does shows it would have been seen."""
    name = VARIANTS[variant].name
    return Claim(
        note=note,
        words=words,
        measured=Words(
            f"loss with {name.english} less that of the base, nats per token",
            f"“{name.chinese}”与基准的损失之差（奈特/词元）",
        ),
        bound=bound,
        control=Words("the same with other pairs to learn from", "换一批训练样本时的同一差值"),
        otherwise=Words("the same for the costliest of all changes", "代价最大的改动的同一差值"),
    )


SMOOTHED = Words(
    "Label smoothing raises the loss that is judged without it, as the paper says.",
    "正如论文所说，标签平滑会使（不平滑地计算的）损失变高。",
)
CLAIMS = {
    "dot": claim(
        "002, 003",
        Words("Scores learn better divided by √d.", "评分除以√d学得更好。"),
        "dot",
    ),
    "one_head": claim(
        "001",
        Words("Four heads learn better than one.", "4个头比1个头学得更好。"),
        "one_head",
    ),
    "smoothing": claim(BEYOND, SMOOTHED, "smoothing"),
    "much_smoothing": claim(BEYOND, SMOOTHED, "much_smoothing", at_least(0.15)),
    "no_warmup": claim(
        BEYOND,
        Words("Without warm-up a network learns worse.", "没有预热，网络学得更差。"),
        "no_warmup",
    ),
}


def run(seed: int, quick: bool) -> Result:
    """Train the base and each variant from the same seeds, and compare them pair by pair."""
    seeds = [seed * 100 + n for n in range(2 if quick else 3)]
    updates, rows, n_unseen = (60, 16, 100) if quick else (300, 12, 200)
    tokenizer = learn_tokenizer(seed)
    pairs, others = (
        {one: drawn(tokenizer, one + shift, "train", updates * rows) for one in seeds}
        for shift in (0, 50)
    )
    lab = Lab(tokenizer, drawn(tokenizer, seed, "test", n_unseen), n_unseen, updates, rows)
    base = {one: lab.trained(Variant(same("base"), {}), one, pairs[one]) for one in seeds}
    costs = {}
    for name in QUICK if quick else WHOLE:
        variant = VARIANTS[name]
        shown = others if variant.is_reordered else pairs
        costs[name] = [lab.trained(variant, one, shown[one]).loss - base[one].loss
                       for one in seeds]  # fmt: skip
    costs["average"] = [one.averaged_loss - one.loss for one in base.values()]
    means = {name: mean(numbers) for name, numbers in costs.items()}
    findings = tuple(
        one.found(means[name], means["order"], otherwise=max(means.values()))
        for name, one in CLAIMS.items()
        if name in means
    )
    return Result(findings, _figure(costs, [one.exact for one in base.values()]))


LAST = 5  # sets of weights that are averaged


@dataclass(frozen=True, slots=True)
class Trained:
    """The loss on unseen pairs, as it is and with averaged weights, and exact by beam width."""

    loss: float
    averaged_loss: float
    exact: dict[int, float]


@dataclass(frozen=True, slots=True)
class Lab:
    """What all variants have in common."""

    tokenizer: Tokenizer
    unseen: Draw
    n_unseen: int
    updates: int
    rows: int

    def trained(self, variant: Variant, seed: int, pairs: Draw) -> Trained:
        """One variant from one seed."""
        vocab = self.tokenizer.vocab
        torch.manual_seed(seed)
        config = ModelConfig(**{**vars(BASE), **variant.network})
        network = build_model(config, len(vocab), len(vocab))
        kept: list[dict[str, Tensor]] = []

        def keep(trainer: Trainer) -> None:
            kept.append(gathered(dict(trainer.model.named_parameters())))

        teach(
            network,
            pairs,
            updates=self.updates,
            lr=6e-3,
            rows=self.rows,
            warmup=None if variant.has_warmup else 0,
            smoothing=variant.smoothing,
            vocab=vocab,
            seed=seed,
            hooks=[(self.updates // 20, keep)],
        )
        loss, _ = loss_and_accuracy(network, self.unseen, self.n_unseen, vocab)
        is_base = not variant.network and variant.name.english == "base"
        exact = {
            beam: share_exact(network, self.unseen, self.n_unseen // 2, beam=beam, vocab=vocab)
            for beam in ((1, 4) if is_base else ())
        }
        load_weights(network, average(kept[-LAST:]))
        averaged, _ = loss_and_accuracy(network, self.unseen, self.n_unseen, vocab)
        return Trained(loss, averaged, exact)


def learn_tokenizer(seed: int) -> Tokenizer:
    """Pieces of both languages, as for the numerals that regard trains without an argument."""
    some = islice(examples("numerals", seed, "train"), 3000)
    texts = [text for one in some for text in (one.src, one.tgt)]
    return train_tokenizer(texts, kind="unigram", size=420, threads=1)


def drawn(tokenizer: Tokenizer, seed: int, split: Split, n: int) -> Draw:
    """So many pairs, made once for all variants."""
    made = [example("numerals", seed, number, split) for number in range(n)]
    sides = tokenizer.encode_all([one.src for one in made]), tokenizer.encode_all(
        [one.tgt for one in made]
    )  # fmt: skip
    pairs: list[Pair] = [(np.array(src), np.array(tgt)) for src, tgt in zip(*sides, strict=True)]
    return pairs.__getitem__


def interval(numbers: list[float]) -> tuple[float, float]:
    """Where the mean lies with a probability of 95 %, by Student's t."""
    reach = STUDENT[len(numbers)] * stdev(numbers) / len(numbers) ** 0.5
    return mean(numbers) - reach, mean(numbers) + reach


def _figure(costs: dict[str, list[float]], exact: list[dict[int, float]]) -> Figure:
    names = {
        **{name: variant.name for name, variant in VARIANTS.items()},
        "average": Words("last 5 averaged", "最后5次平均"),
    }
    beams = {beam: [one[beam] for one in exact] for beam in exact[0]}
    return Figure(
        CONTENTS["e15_ablations"],
        (
            Bars(
                Words("What each change costs, mean and 95 %", "每处改动的代价（均值与95%区间）"),
                Words("loss more than the base, nats per token", "比基准多出的损失（奈特/词元）"),
                tuple(names[name] for name in costs),
                (same(""),),
                tuple((Bar(mean(one), interval(one)),) for one in costs.values()),
                mark=COSTS,
            ),
            Bars(
                Words("Exactly right, by the width of the beam", "完全正确的比例与束宽"),
                Words("share of unseen numerals", "未见数字的比例"),
                tuple(Words(f"beam {beam}" if beam > 1 else "greedy",
                            f"束宽{beam}" if beam > 1 else "贪心") for beam in beams),
                (same(""),),
                tuple((Bar(mean(one), interval(one)),) for one in beams.values()),
            ),
        ),
    )  # fmt: skip
