"""e01: Nadaraya-Watson regression, attention pooling before anybody called it that (note 002).

f(x) = sum_i softmax(-((x - x_i) w)^2 / 2) y_i
"""

from statistics import median

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from regard.attention import GaussianAttention
from regard.study.claim import Claim, Result, at_least, at_most
from regard.study.contents import CONTENTS
from regard.view.panels import Figure, Heat, Lines, Trace, Words, same

N_POINTS, NOISE = 60, 0.5
SHUFFLES = 9  # by chance a shuffle may look like something; half of them do not
POOLING = Claim(
    note="002",
    words=Words(
        "Attention pooling answers each query with values whose keys are near, and so fits "
        "noisy points better than their average does.",
        "注意力汇聚用键与查询相近的值回答查询，因此比平均汇聚更好地拟合带噪声的点。",
    ),
    measured=Words(
        "squared error of attention pooling over that of the average",
        "注意力汇聚的平方误差与平均汇聚之比",
    ),
    bound=at_most(0.5),
    control=Words(
        "the same with the keys shuffled, median of 9",
        "打乱键之后的同一比值，9次的中位数",
    ),
)
WIDTH = Claim(
    note="002",
    words=Words(
        "A learned width makes the weights sharper than the fixed one.",
        "可学习的宽度使注意力权重比固定宽度时更集中。",
    ),
    measured=Words(
        "keys that share the weight (exp of the entropy), learned over fixed width",
        "分享权重的键数（熵的指数），可学习宽度与固定宽度之比",
    ),
    bound=at_most(0.7),
    control=Words(
        "the same, learned on shuffled keys, median of 9",
        "在打乱的键上学习时的同一比值，9次的中位数",
    ),
)
POOLS = Claim(
    note="002",
    words=Words(
        "Volitional attention can be modelled by a fully connected layer or by max pooling.",
        "自主性的注意力可以用全连接层甚至最大汇聚层来模拟。",
    ),
    measured=Words(
        "how much the answer changes from query to query (standard deviation), the larger of "
        "max pooling and a fully connected layer",
        "回答随查询变化的程度（标准差），取最大汇聚与全连接层中较大者",
    ),
    bound=at_least(0.1),
    control=Words(
        "the same for attention pooling",
        "注意力汇聚的同一数值",
    ),
    remark=Words(
        "Note 002 opens with the two words swapped: a fully connected layer and max pooling "
        "have no query, so whatever one looks for they answer the same. They model "
        "non-volitional attention, as the note's own next lines say.",
        "笔记002开头把两个词写反了：全连接层和最大汇聚层没有查询，无论想找什么，回答都一样。它"
        "们模拟的是非自主性注意力，笔记紧接着的几行就说对了。",
    ),
)


def run(seed: int, quick: bool) -> Result:
    """Fit the points by a fixed and by a learned width, and once more with the keys shuffled."""
    x = 5.0 * torch.rand(N_POINTS).sort().values
    y = truth(x) + NOISE * torch.randn(N_POINTS)
    queries = torch.linspace(0.0, 5.0, 101)
    updates = 60 if quick else 200

    fixed, learned = pooled(GaussianAttention(1.0), queries, x, y), fitted(queries, x, y, updates)
    blind = [fitted(queries, x, y[torch.randperm(N_POINTS)], updates) for _ in range(SHUFFLES)]
    average, highest, connected = y.mean(), y.max(), nn.Linear(N_POINTS, 1)(y).detach()
    error = lambda answer: float((answer - truth(queries)).square().mean())  # noqa: E731
    unmoved = torch.stack([highest.expand(101), connected.expand(101)])
    findings = (
        POOLING.found(
            error(learned[0]) / error(average),
            median(error(answer) for answer, _ in blind) / error(average),
        ),
        WIDTH.found(
            n_keys_used(learned[1]) / n_keys_used(fixed[1]),
            median(n_keys_used(weights) for _, weights in blind) / n_keys_used(fixed[1]),
        ),
        POOLS.found(float(unmoved.std(dim=1).max()), float(learned[0].std())),
    )
    return Result(findings, _figure(x, y, queries, fixed, learned))


def truth(x: Tensor) -> Tensor:
    """What the points would be without noise."""
    return 2.0 * x.sin() + x**0.8


def pooled(
    attention: GaussianAttention, queries: Tensor, x: Tensor, y: Tensor
) -> tuple[Tensor, Tensor]:
    """The answer to each query, and the weights that made it."""
    with torch.no_grad():
        attended = attention(queries[:, None], x[:, None], y[:, None])
    assert attended.weights is not None
    return attended.output[:, 0], attended.weights


def fitted(queries: Tensor, x: Tensor, y: Tensor, updates: int) -> tuple[Tensor, Tensor]:
    """The same after w has learned to predict each point from all the others."""
    attention = GaussianAttention(1.0)
    optimizer = torch.optim.Adam(attention.parameters(), lr=0.1)
    others = ~torch.eye(len(x), dtype=torch.bool)  # a point that sees itself learns w = infinity
    for _ in range(updates):
        answer = attention(x[:, None], x[:, None], y[:, None], others).output[:, 0]
        optimizer.zero_grad()
        F.mse_loss(answer, y).backward()
        optimizer.step()
    return pooled(attention, queries, x, y)


def n_keys_used(weights: Tensor) -> float:
    """How many keys share the weight, as if they had equal shares: exp of the mean entropy."""
    return float(torch.special.entr(weights).sum(-1).mean().exp())


def _figure(
    x: Tensor,
    y: Tensor,
    queries: Tensor,
    fixed: tuple[Tensor, Tensor],
    learned: tuple[Tensor, Tensor],
) -> Figure:
    def over(heights: Tensor, xs: Tensor = queries) -> tuple[tuple[float, float], ...]:
        return tuple(zip(xs.tolist(), heights.tolist(), strict=True))

    def shades(weights: Tensor) -> tuple[tuple[float, ...], ...]:
        return tuple(map(tuple, weights[::4].tolist()))

    keys, asked = Words("keys, from left to right", "键，从左到右"), Words("queries", "查询")
    return Figure(
        CONTENTS["e01_kernel_regression"],
        (
            Lines(
                Words("Answers to every query", "对每个查询的回答"),
                same("x"),
                same("y"),
                (
                    Trace(Words("noisy points", "带噪声的点"), over(y, x), "dots"),
                    Trace(Words("truth", "真值"), over(truth(queries)), "dashed"),
                    Trace(Words("learned width", "可学习宽度"), over(learned[0])),
                    Trace(Words("w = 1", "w = 1"), over(fixed[0])),
                    Trace(Words("average", "平均汇聚"), over(y.mean().expand(101))),
                    Trace(Words("max", "最大汇聚"), over(y.max().expand(101))),
                ),
            ),
            Heat(Words("Weights, w = 1", "权重，w = 1"), shades(fixed[1]), asked, keys),
            Heat(
                Words("Weights, learned width", "权重，可学习宽度"), shades(learned[1]), asked, keys
            ),
        ),
        columns=3,
    )
