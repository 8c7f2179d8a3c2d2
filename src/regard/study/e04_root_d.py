"""e04: why scores are divided by sqrt(d): variance, entropy, gradient, with and without (002, 003).

q and k of d independent numbers of variance 1:  var(q . k) = d,  var(q . k / sqrt(d)) = 1
"""

import math

import torch
from torch import Tensor

from regard.attention import attend, dot_scores, masked_softmax, scaled_dot_scores
from regard.attention.functional import Scores
from regard.study.claim import Claim, Result, at_least, at_most
from regard.study.contents import CONTENTS
from regard.view.panels import Figure, Lines, Trace, Words

WIDTHS = tuple(2**n for n in range(13))  # 1 to 4096
N_QUERIES, N_KEYS = 256, 64
PAIRS, NUMBERS = 20_000, 2**24  # pairs for a variance, unless they would not fit in memory
VARIANCE = Claim(
    note="002, 003",
    words=Words(
        "The dot product of d independent numbers of variance 1 has variance d; divided by √d "
        "it has variance 1.",
        "各分量独立、方差为1时，d维点积的方差是d；除以√d后方差为1。",
    ),
    measured=Words(
        "furthest that var(q · k / √d) is from 1, for d = 1 … 4096",
        "d从1到4096，var(q·k/√d)与1的最大偏差",
    ),
    bound=at_most(0.25),
    control=Words(
        "the same without √d",
        "不除以√d时的同一偏差",
    ),
)
ENTROPY = Claim(
    note="003",
    words=Words(
        "Without the scale, large scores push softmax to its ends: nearly all weight on one key.",
        "不缩放时，评分过大，softmax被推到两端：几乎全部权重落在一个键上。",
    ),
    measured=Words(
        "entropy of unscaled weights over that of equal ones, at d = 4096",
        "d = 4096时，不缩放的权重的熵与均匀权重的熵之比",
    ),
    bound=at_most(0.2),
    control=Words(
        "the same, scaled",
        "缩放后的同一比值",
    ),
)
GRADIENT = Claim(
    note="003",
    words=Words(
        "There softmax has hardly any gradient, and learning starves.",
        "在两端softmax的梯度很小，梯度消失，学习难以进行。",
    ),
    measured=Words(
        "gradient Σ ∂αᵢ/∂sᵢ of unscaled weights, at d = 4096",
        "d = 4096时，不缩放的权重的梯度Σ∂αᵢ/∂sᵢ",
    ),
    bound=at_most(0.2),
    control=Words(
        "the same, scaled",
        "缩放后的同一数值",
    ),
)
FORMULA = Claim(
    note="004",
    words=Words(
        "The weights are softmax(q · k), as the first formula of note 004 has it.",
        "注意力权重是softmax(q·k)，即笔记004的第一个公式。",
    ),
    measured=Words(
        "largest difference between softmax(q · k) and scaled dot-product attention, d = 64",
        "softmax(q·k)与缩放点积注意力的最大差异，d = 64",
    ),
    bound=at_most(1e-5),
    control=Words(
        "the same for softmax(q · k / √d)",
        "softmax(q·k/√d)的同一差异",
    ),
    remark=Words(
        "The first formula of note 004 leaves √d out; its section 3 has it. The two are not "
        "the same weights, and the wider the vectors, the less so.",
        "笔记004的第一个公式漏了√d，第3节里则有。两者给出的权重并不相同，向量越宽差得越多。",
    ),
)
RANGE = Claim(
    note="003",
    words=Words(
        "After softmax the numbers lie between −1 and 1, on both sides of 0.",
        "经过softmax后，数据分布在−1到1之间，有正有负。",
    ),
    measured=Words(
        "share of softmax's values below 0",
        "softmax的值中小于0的比例",
    ),
    bound=at_least(0.01),
    control=Words(
        "the same for tanh of the same scores",
        "对同样的评分取tanh时的同一比例",
    ),
    remark=Words(
        "Note 003 speaks of values between −1 and 1 after softmax. They lie between 0 and 1 "
        "and sum to 1; it is tanh that goes from −1 to 1.",
        "笔记003说经过softmax后数据集中在−1到1之间。实际在0到1之间，且和为1；值域是−1到1的是tanh。",
    ),
)


def run(seed: int, quick: bool) -> Result:
    """For each width, random queries and keys: how scores spread, and what softmax makes of it."""
    spread = {d: float(products(d).var()) for d in WIDTHS}
    plain = {d: softmax_of(dot_scores, d) for d in WIDTHS}
    scaled = {d: softmax_of(scaled_dot_scores, d) for d in WIDTHS}
    widest = WIDTHS[-1]

    query, key = torch.randn(8, 64), torch.randn(N_KEYS, 64)
    first, third = masked_softmax(query @ key.T), masked_softmax(query @ key.T / math.sqrt(64))
    ours = attend(query, key, key, scaled_dot_scores).weights
    assert ours is not None
    findings = (
        VARIANCE.found(
            max(abs(spread[d] / d - 1.0) for d in WIDTHS), max(abs(spread[d] - 1.0) for d in WIDTHS)
        ),
        ENTROPY.found(plain[widest][0], scaled[widest][0]),
        GRADIENT.found(plain[widest][1], scaled[widest][1]),
        FORMULA.found(float((first - ours).abs().max()), float((third - ours).abs().max())),
        RANGE.found(
            float((ours < 0).float().mean()), float(((query @ key.T).tanh() < 0).float().mean())
        ),
    )
    return Result(findings, _figure(spread, plain, scaled))


def products(d: int) -> Tensor:
    """Dot products of many independent pairs."""
    n = min(PAIRS, NUMBERS // d)
    return (torch.randn(n, d) * torch.randn(n, d)).sum(-1)


def softmax_of(scores: Scores, d: int) -> tuple[float, float]:
    """Entropy of the weights as a share of the most there can be, and their gradient."""
    query, key = torch.randn(N_QUERIES, d), torch.randn(N_KEYS, d)
    weights = masked_softmax(scores(query, key))
    entropy = torch.special.entr(weights).sum(-1).mean() / math.log(N_KEYS)
    gradient = (weights * (1.0 - weights)).sum(-1).mean()  # the diagonal of softmax's Jacobian
    return float(entropy), float(gradient)


def _figure(
    spread: dict[int, float],
    plain: dict[int, tuple[float, float]],
    scaled: dict[int, tuple[float, float]],
) -> Figure:
    without, with_scale = Words("q · k", "q·k"), Words("q · k / √d", "q·k/√d")
    width = Words("width d", "宽度d")

    def lines(title: Words, up: Words, place: int) -> Lines:
        return Lines(
            title,
            width,
            up,
            (
                Trace(without, tuple((d, plain[d][place]) for d in WIDTHS), "both"),
                Trace(with_scale, tuple((d, scaled[d][place]) for d in WIDTHS), "both"),
            ),
            is_log_across=True,
            low=0.0,
            high=1.0,
        )

    return Figure(
        CONTENTS["e04_root_d"],
        (
            Lines(
                Words("Scores spread …", "评分越来越散……"),
                width,
                Words("variance", "方差"),
                (
                    Trace(without, tuple((d, spread[d]) for d in WIDTHS), "both"),
                    Trace(with_scale, tuple((d, spread[d] / d) for d in WIDTHS), "both"),
                ),
                is_log_across=True,
                is_log_up=True,
            ),
            lines(
                Words("… so one key takes all …", "……于是一个键独占权重……"),
                Words("entropy, share of the most", "熵（占最大值的比例）"),
                0,
            ),
            lines(
                Words("… and nothing is learned", "……也就学不到东西"),
                Words("gradient of softmax", "softmax的梯度"),
                1,
            ),
        ),
        columns=3,
    )
