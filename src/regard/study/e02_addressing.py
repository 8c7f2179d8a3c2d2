"""e02: hard addressing takes one value, soft addressing averages all; temperature joins them (000).

soft(q) = sum_i softmax(a(q, k_i) / T) v_i  ->  hard(q) = v at the best key,  as T -> 0
"""

import torch
from torch import Tensor

from regard.attention import attend, attend_hard, scaled_dot_scores
from regard.study.claim import Claim, Limit, Result, at_least, at_most
from regard.study.contents import CONTENTS
from regard.view.panels import Figure, Heat, Lines, Trace, Words

N_QUERIES, N_KEYS, D = 64, 8, 16
TEMPERATURES = tuple(2.0**n for n in range(3, -11, -1))
COLD = TEMPERATURES[-1]
SOFT_TO_HARD = Claim(
    note="000",
    words=Words(
        "Hard addressing takes the value at the best key, soft addressing the weighted sum of "
        "all; as the temperature falls, the second becomes the first.",
        "硬寻址直接取出最佳键的值，软寻址取所有值的加权和；温度降低时，后者趋于前者。",
    ),
    measured=Words(
        "mean distance between soft and hard answers at temperature 1/1024",
        "温度为1/1024时软、硬两种回答的平均距离",
    ),
    bound=at_most(0.2),
    control=Words(
        "the same at temperature 1",
        "温度为1时的同一距离",
    ),
    limit=Limit(
        Words(
            "the same at 1/1024 when two keys are equally good: soft addressing takes both at "
            "any temperature",
            "两个键同样好时，1/1024处的同一距离：无论温度多低，软寻址总是两个都取",
        ),
        at_least(0.1),
    ),
)
DIFFERENTIABLE = Claim(
    note="002",
    words=Words(
        "Soft addressing can be learned: it has a gradient.",
        "软寻址是可微的，因此可以学习。",
    ),
    measured=Words(
        "size of the gradient at the keys, soft",
        "软寻址对键的梯度大小",
    ),
    bound=at_least(1e-3),
    control=Words(
        "the same, hard",
        "硬寻址的同一数值",
    ),
)
FORMULA = Claim(
    note="000",
    words=Words(
        "Non-volitional cues, which the note explains by hard addressing, have the formula f = "
        "Σ α(Q, Kᵢ) Vᵢ.",
        "非自主性提示（笔记用硬寻址来解释）的公式是f = Σ α(Q, Kᵢ) Vᵢ。",
    ),
    measured=Words(
        "mean distance between the formula and hard addressing",
        "该公式与硬寻址的平均距离",
    ),
    bound=at_most(1e-5),
    control=Words(
        "between the formula and soft addressing",
        "该公式与软寻址的平均距离",
    ),
    remark=Words(
        "The formula that note 000 gives for non-volitional cues is that of soft addressing, "
        "which the note itself, a few lines above, gives to volitional ones. Only the heading "
        "is off.",
        "笔记000在“非自我提示”名下给出的公式，其实是软寻址的公式，而前面几行恰恰用软寻址来解释"
        "自主性提示。公式没有错，只是标题对错了。",
    ),
)


def run(seed: int, quick: bool) -> Result:
    """Cool the softmax down, and see whether it becomes a choice; with a tie, it cannot."""
    query, key = torch.randn(N_QUERIES, D), torch.randn(N_KEYS, D)
    value = torch.randn(N_KEYS, 4)
    hard = attend_hard(query, key, value, scaled_dot_scores).output
    apart = [distance(soft(query, key, value, t), hard) for t in TEMPERATURES]

    twice, both = torch.cat([key, key]), torch.cat([value, value + 1.0])
    tied = attend_hard(query, twice, both, scaled_dot_scores).output
    tied_apart = [distance(soft(query, twice, both, t), tied) for t in TEMPERATURES]

    findings = (
        SOFT_TO_HARD.found(apart[-1], apart[TEMPERATURES.index(1.0)], tied_apart[-1]),
        DIFFERENTIABLE.found(
            gradient(query, key, value, is_hard=False), gradient(query, key, value, is_hard=True)
        ),
        FORMULA.found(
            distance(formula(query, key, value), hard),
            distance(formula(query, key, value), soft(query, key, value, 1.0)),
        ),
    )
    return Result(findings, _figure(query, key, value, apart, tied_apart))


def soft(query: Tensor, key: Tensor, value: Tensor, temperature: float) -> Tensor:
    """Soft addressing at a temperature."""
    return attend(query, key, value, lambda q, k: scaled_dot_scores(q, k) / temperature).output


def formula(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """The note's sum, written as it stands there."""
    scores = [[float(q @ k) / D**0.5 for k in key] for q in query]
    weights = torch.tensor(scores).exp()
    weights = weights / weights.sum(dim=-1, keepdim=True)
    return torch.stack([sum(a * v for a, v in zip(row, value, strict=True)) for row in weights])


def distance(one: Tensor, other: Tensor) -> float:
    """Mean length of the difference."""
    return float((one - other).norm(dim=-1).mean())


def gradient(query: Tensor, key: Tensor, value: Tensor, *, is_hard: bool) -> float:
    """How strongly the answers depend on the keys; nothing, where no path leads to them."""
    key = key.clone().requires_grad_()
    attend_by = attend_hard if is_hard else attend
    answer = attend_by(query, key, value, scaled_dot_scores).output.square().sum()
    if not answer.requires_grad:
        return 0.0
    (slope,) = torch.autograd.grad(answer, key, allow_unused=True)
    return 0.0 if slope is None else float(slope.norm())


def _figure(
    query: Tensor, key: Tensor, value: Tensor, apart: list[float], tied: list[float]
) -> Figure:
    shown = (4.0, 1.0, 0.25, 2.0**-4, 2.0**-6)
    weights = [
        attend(query[:1], key, value, lambda q, k, t=t: scaled_dot_scores(q, k) / t).weights  # type: ignore[misc]
        for t in shown
    ]
    hard = attend_hard(query[:1], key, value, scaled_dot_scores).weights
    rows = [tuple(one[0].tolist()) for one in (*weights, hard) if one is not None]
    return Figure(
        CONTENTS["e02_addressing"],
        (
            Lines(
                Words("Soft answers come to the hard one", "软寻址趋于硬寻址"),
                Words("temperature", "温度"),
                Words("mean distance", "平均距离"),
                (
                    Trace(
                        Words("one best key", "最佳键唯一"),
                        tuple(zip(TEMPERATURES, apart, strict=True)),
                        "both",
                    ),
                    Trace(
                        Words("two equally good", "两个键同样好"),
                        tuple(zip(TEMPERATURES, tied, strict=True)),
                        "both",
                    ),
                ),
                is_log_across=True,
                low=0.0,
            ),
            Heat(
                Words("One query, cooled down to hard addressing", "一个查询的权重，降温到硬寻址"),
                tuple(rows),
                Words("temperature", "温度"),
                Words("keys", "键"),
                rows=("4", "1", "1/4", "1/16", "1/64", "0"),
                columns=tuple(str(n) for n in range(1, N_KEYS + 1)),
                most=1.0,
                has_numbers=True,
            ),
        ),
    )
