"""e14: attention says where a translator looks; occlusion says what it needs (beyond the notes).

A source token is hidden from every attention of encoder and decoder, and each word of the
translation loses some of its probability: that much it needed the token.
"""

from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional as F

from regard.attention import causal_mask
from regard.data.tasks import examples
from regard.decode.translator import load
from regard.study.claim import BEYOND, Claim, Limit, Result, at_least, at_most
from regard.study.contents import CONTENTS
from regard.study.reading import Opened, opened
from regard.view.panels import Bar, Bars, Figure, Heat, Words, same
from regard.view.pieces import as_pieces

SENTENCES = (
    "我昨天在图书馆看书。",
    "他的妹妹会说三种语言。",
    "请把窗户打开。",
    "我们明天早上去北京。",
    "这本书比那本书便宜。",
    "她每天晚上喝一杯牛奶。",
    "老师给学生一个问题。",
    "火车七点离开车站。",
    "我不知道他住在哪里。",
    "孩子们在公园里踢足球。",
    "你喜欢喝茶还是喝咖啡？",
    "这个城市的冬天很冷。",
    "我的朋友买了一辆新车。",
    "医生说他需要休息。",
    "猫在桌子下面睡觉。",
    "她写信给她的父母。",
    "我想学习弹钢琴。",
    "昨天的考试非常难。",
    "他们正在等公共汽车。",
    "这家饭店的鱼很好吃。",
)
LOOKED = Claim(
    note=BEYOND,
    words=Words(
        "Attention shows what a translation relies on: source tokens that get more weight are "
        "missed more when they are hidden.",
        "注意力反映译文依赖什么：权重越大的源词元，遮住它时影响越大。",
    ),
    measured=Words(
        "rank correlation of attention with need, mean of all words",
        "注意力与依赖程度的秩相关系数，所有词的平均",
    ),
    bound=at_least(0.2),
    control=Words(
        "the same with the source tokens shuffled",
        "打乱源词元后的同一系数",
    ),
    limit=Limit(
        Words(
            "the same, which is far from 1: what is looked at is not all that counts",
            "同一系数离1还远：所关注的并不就是全部起作用的",
        ),
        at_most(0.9),
    ),
)


@dataclass(frozen=True, slots=True)
class Compared:
    """One translation: by target and source piece, what is looked at and what is needed."""

    source: tuple[str, ...]
    target: tuple[str, ...]
    attention: Tensor  # by layer, target, source
    need: Tensor

    def agreement(self, layer: int | None = None) -> float:
        """Rank correlation of the two, the mean over the words of the translation."""
        weights = self.attention.mean(0) if layer is None else self.attention[layer]
        return rank_correlation(weights, self.need)

    def by_chance(self) -> float:
        """The same with the source tokens' weights in another order, so that nothing matches."""
        order = torch.randperm(self.need.shape[1])
        return rank_correlation(self.attention.mean(0)[:, order], self.need)


def run(seed: int, quick: bool, model: Path | None = None) -> Result:
    """Translate, hide one token after the other, and compare with the weights."""
    read = opened(model)
    texts = texts_for(read, seed)[: 6 if quick else None]
    translator = load(read.bundle.path)
    compared = [compare(read, text, str(translator.translate(text, tgt_lang="en", beam=1)))
                for text in texts]  # fmt: skip
    agreement = mean([one.agreement() for one in compared])
    chance = mean([one.by_chance() for one in compared for _ in range(5)])
    finding = LOOKED.found(agreement, chance, agreement)
    return Result((finding,), _figure(compared, agreement, chance), read.in_words)


def texts_for(read: Opened, seed: int) -> list[str]:
    """Sentences that this model's vocabulary covers: plain Chinese, or else numerals."""
    n_unknown = sum(read.bundle.src_tokenizer.uncovered(text) for text in SENTENCES)
    if n_unknown < sum(map(len, SENTENCES)) / 10:
        return list(SENTENCES)
    found = (one.src for one in examples("numerals", seed, "test") if len(one.src) > 5)
    return list(islice(found, len(SENTENCES)))


@torch.no_grad()
def compare(read: Opened, text: str, translation: str) -> Compared:
    """Attention and need of one translation; the language token and the end are never hidden."""
    network, tgt = read.network, read.bundle.tgt_tokenizer
    src_ids = read.ids(text)
    said = [*tgt.encode(translation), tgt.vocab.eos]
    tgt_ids = torch.tensor([[tgt.vocab.bos, *said[:-1]]])
    first, last = int(bool(read.bundle.src_tokenizer.vocab.languages)), src_ids.shape[1] - 1
    hidden = torch.ones(last - first + 1, 1, src_ids.shape[1], dtype=torch.bool)  # row 0: nothing
    for row, place in enumerate(range(first, last), start=1):
        hidden[row, 0, place] = False

    n = len(hidden)
    memory = network.encoder(read.embedded(src_ids).expand(n, -1, -1), hidden).output
    x = network.target(tgt_ids, torch.arange(tgt_ids.shape[1])).expand(n, -1, -1)
    mask = causal_mask(tgt_ids.shape[1])
    decoded = network.decoder(x, memory, mask, hidden, wants_weights=True)
    log_probs = network.output(decoded.output).log_softmax(-1)
    own = log_probs.gather(-1, torch.tensor(said).expand(n, -1)[..., None])[..., 0]
    return Compared(
        as_pieces(read.pieces(src_ids)).labels[first:last],
        as_pieces([tgt.vocab.piece(id) for id in said]).labels,
        torch.stack(decoded.cross_weights)[:, 0].mean(1)[:, :, first:last],
        (own[0] - own[1:]).T,
    )


def rank_correlation(one: Tensor, other: Tensor) -> float:
    """Spearman's, row by row, and the mean of the rows."""
    mine, yours = (x.argsort(-1).argsort(-1).float() for x in (one, other))
    middle = (one.shape[-1] - 1) / 2
    return float(F.cosine_similarity(mine - middle, yours - middle, dim=-1).mean())


def mean(numbers: list[float]) -> float:
    """Their mean."""
    return sum(numbers) / len(numbers)


def _figure(compared: list[Compared], agreement: float, chance: float) -> Figure:
    one = compared[0]
    n_layers = len(one.attention)
    shades = lambda table: tuple(map(tuple, table.tolist()))  # noqa: E731
    rows = [
        *((Words(f"layer {n + 1}", f"第{n + 1}层"), mean([c.agreement(n) for c in compared]))
          for n in range(n_layers)),
        (Words("all layers", "所有层"), agreement),
        (Words("shuffled", "打乱"), chance),
    ]  # fmt: skip
    need = one.need.clamp(min=0)
    return Figure(
        CONTENTS["e14_occlusion"],
        (
            Heat(
                Words("Looked at: attention", "看哪里：注意力"),
                shades(one.attention.mean(0)),
                Words("translation", "译文"),
                Words("source", "原文"),
                rows=one.target,
                columns=one.source,
            ),
            Heat(
                Words("Needed: log-probability lost", "靠哪里：损失的对数概率"),
                shades(need),
                Words("translation", "译文"),
                Words("source", "原文"),
                rows=one.target,
                columns=one.source,
            ),
            Bars(
                Words("How well they agree", "两者有多一致"),
                Words("rank correlation", "秩相关系数"),
                tuple(words for words, _ in rows),
                (same(""),),
                tuple((Bar(number),) for _, number in rows),
            ),
        ),
        columns=3,
    )
