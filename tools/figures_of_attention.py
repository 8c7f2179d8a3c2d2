"""The pictures of pages 1 to 6 of docs/*/learn: attention by itself."""

import torch
from torch import Tensor
from torch.nn import functional as F

from figure_parts import KEY, QUERY, fit, heat, points
from regard.attention import (
    AdditiveAttention,
    GaussianAttention,
    SelfAttention,
    attend,
    causal_mask,
    dot_scores,
    masked_softmax,
    padding_mask,
    scaled_dot_scores,
    valid_lens_mask,
)
from regard.config import ModelConfig
from regard.model import build_model
from regard.study.worked import worked_example
from regard.view.panels import Bar, Bars, Figure, Lines, Trace, Words, same


def pooled() -> Figure:
    """Two queries over the same keys and values."""
    key = torch.tensor([[1.0, 0.0], [0.0, 1.0], [2.0, 0.0]])
    value = torch.tensor([[10.0], [20.0], [30.0]])
    plots = []
    for query in ([1.0, 0.0], [0.0, 1.0]):
        attended = attend(torch.tensor([query]), key, value, scaled_dot_scores)
        assert attended.weights is not None
        asked, answer = f"[{query[0]:.0f}, {query[1]:.0f}]", f"{attended.output.item():.2f}"
        plots.append(
            Bars(
                Words(f"query {asked}: answer {answer}", f"查询{asked}：答案{answer}"),
                Words("weight", "权重"),
                tuple(Words(f"value {one.item():.0f}", f"值{one.item():.0f}") for one in value),
                (same("α"),),
                tuple((Bar(float(weight)),) for weight in attended.weights[0]),
                high=1,
            )
        )
    return Figure(
        Words("The same keys and values, asked twice", "同样的键和值，两个查询"), tuple(plots)
    )


def addressing() -> Figure:
    """The weights of three keys as the temperature falls."""
    query = torch.tensor([[1.0, 0.0]])
    key = torch.tensor([[1.0, 0.0], [0.0, 1.0], [2.0, 0.0]])
    temperatures = torch.logspace(1, -2, 40).tolist()
    weights = [
        torch.softmax(scaled_dot_scores(query, key) / one, dim=-1)[0] for one in temperatures
    ]
    traces = tuple(
        Trace(
            Words(f"key {i + 1}", f"键{i + 1}"),
            tuple(
                (temperature, float(row[i]))
                for temperature, row in zip(temperatures, weights, strict=True)
            ),
        )
        for i in range(3)
    )
    return Figure(
        Words("From soft to hard addressing", "从软寻址到硬寻址"),
        (
            Lines(
                Words("the best key takes all as τ falls to 0", "温度τ趋于0时，最佳键得到全部权重"),
                Words("temperature τ", "温度τ"),
                Words("weight", "权重"),
                traces,
                is_log_across=True,
                low=0,
                high=1,
            ),
        ),
        columns=1,
    )


def kernel() -> Figure:
    """Noisy points, and three ways to average them."""
    torch.manual_seed(0)
    x = 5 * torch.rand(50, 1)
    y = _curve(x) + 0.5 * torch.randn(50, 1)
    grid = torch.linspace(0, 5, 100)[:, None]
    regression = GaussianAttention(w=1.0)
    others = ~torch.eye(50, dtype=torch.bool)

    def loss() -> Tensor:
        return (regression(x, x, y, others).output - y).square().mean()

    fit(regression, loss, steps=100, lr=0.1)
    fits = {
        Words("average pooling", "平均汇聚"): y.mean().expand(100, 1),
        Words("w = 1", "w = 1"): GaussianAttention(w=1.0)(grid, x, y).output,
        Words("w learned", "学到的w"): regression(grid, x, y).output,
    }
    traces = [Trace(Words("the curve", "真实曲线"), points(grid, _curve(grid)), "dashed")]
    traces += [Trace(name, points(grid, fitted)) for name, fitted in fits.items()]
    traces += [Trace(Words("noisy points", "带噪声的点"), points(x, y), "dots")]
    weights = regression(grid[::10], x, y).weights[:, x[:, 0].argsort()]
    return Figure(
        Words("Kernel regression is attention: keys are places", "核回归就是注意力：键是位置"),
        (
            Lines(Words("fits", "拟合"), same("x"), same("y"), tuple(traces)),
            heat(
                Words("weights, w learned", "权重，学到的w"),
                weights,
                down=QUERY,
                across=Words("key, by place", "键，按位置排列"),
            ),
        ),
    )


def additive() -> Figure:
    """Queries 7 wide over keys 5 wide, in two sequences of 2 and 4 valid keys."""
    torch.manual_seed(0)
    queries, keys, values = torch.randn(2, 3, 7), torch.randn(2, 4, 5), torch.randn(2, 4, 2)
    attention = AdditiveAttention(d_query=7, d_key=5, d_hidden=6)
    mask = valid_lens_mask(torch.tensor([2, 4]), n_keys=4)
    weights = attention(queries, keys, values, mask).weights
    assert weights is not None
    plots = tuple(
        heat(Words(f"{n} valid keys", f"{n}个有效键"), one, QUERY, KEY, True)
        for n, one in zip((2, 4), weights, strict=True)
    )
    return Figure(Words("Additive attention, untrained", "加性注意力，未经训练"), plots)


def sharpness() -> Figure:
    """The same queries and keys, 64 wide, with √d and without."""
    torch.manual_seed(0)
    query, key = torch.randn(2, 4, 64)
    plots = (
        heat(
            Words("with √d", "除以√d"),
            masked_softmax(scaled_dot_scores(query, key)),
            *(QUERY, KEY, True),
        ),
        heat(Words("without", "不除"), masked_softmax(dot_scores(query, key)), QUERY, KEY, True),
    )
    return Figure(Words("Weights of four keys, 64 wide", "四个键的权重，宽64"), plots)


def root_d() -> Figure:
    """Entropy and gradient of softmax as the width grows."""
    torch.manual_seed(0)
    widths = [2**i for i in range(13)]
    names = (Words("without √d", "不除以√d"), Words("with √d", "除以√d"))
    entropies: tuple[list[tuple[float, float]], ...] = ([], [])
    slopes: tuple[list[tuple[float, float]], ...] = ([], [])
    for d in widths:
        query, key = torch.randn(2, 500, 10, d)
        for which, scale in enumerate((1.0, d**0.5)):
            weights = torch.softmax((query * key).sum(-1) / scale, dim=-1)
            logs = weights.clamp(min=1e-30).log()
            entropies[which].append((d, float(-(weights * logs).sum(-1).mean())))
            slopes[which].append((d, float((weights * (1 - weights)).mean())))
    plots = tuple(
        Lines(
            title,
            Words("width d", "宽度d"),
            title,
            tuple(Trace(n, tuple(points)) for n, points in zip(names, series, strict=True)),
            is_log_across=True,
            low=0,
        )
        for title, series in (
            (Words("entropy of the weights (10 keys)", "权重的熵（10个键）"), entropies),
            (Words("gradient of a weight by its score", "权重对自身评分的梯度"), slopes),
        )
    )
    return Figure(Words("Why scores are divided by √d", "评分为什么要除以√d"), plots)


def masks() -> Figure:
    """The same scores with three masks."""
    torch.manual_seed(0)
    scores = torch.randn(5, 5)
    masked = {
        Words("no mask", "没有掩码"): masked_softmax(scores, None),
        Words("padding: 3 tokens of 5", "填充：5个位置，3个词元"): masked_softmax(
            scores, padding_mask(torch.tensor([3]), n_keys=5)[0]
        ),
        Words("causal", "因果"): masked_softmax(scores, causal_mask(5)),
    }
    plots = tuple(heat(name, weights, QUERY, KEY, True) for name, weights in masked.items())
    title = Words("What is left out weighs exactly 0", "被排除的键，权重恰好是0")
    return Figure(title, plots, columns=3)


def alignment() -> Figure:
    """Bahdanau's network learns to reverse six digits."""
    torch.manual_seed(0)
    config = ModelConfig(kind="recurrent", d_model=64, n_layers=1, dropout=0.0)
    network = build_model(config, 10, 10)
    src_ids = torch.randint(1, 10, (200, 6))
    shifted = F.pad(src_ids.flip(1), (1, 0))[:, :-1]
    before = network.explain(src_ids, shifted).cross[0, :, 0].mean(0)

    def loss() -> Tensor:
        src = torch.randint(1, 10, (64, 6))
        tgt = src.flip(1)
        logits = network(src, F.pad(tgt, (1, 0))[:, :-1])
        return F.cross_entropy(logits.flatten(0, 1), tgt.flatten())

    fit(network, loss, steps=900, lr=5e-3)
    after = network.explain(src_ids, shifted).cross[0, :, 0].mean(0)
    step, place = Words("step of the target", "目标的步"), Words("place in the source", "源的位置")
    titles = Words("before training", "训练之前"), Words("after training", "训练之后")
    plots = tuple(
        heat(title, weights, step, place, True)
        for title, weights in zip(titles, (before, after), strict=True)
    )
    return Figure(
        Words("Six digits written backwards: where each step looks", "倒写六位数字：每一步看哪里"),
        plots,
    )


def worked() -> Figure:
    """Note 004's example in three matrices."""
    example = worked_example()
    token = Words("token", "词元")
    return Figure(
        Words("Note 004's example with numbers", "笔记004的例子，填上数"),
        (
            heat(Words("scores QKᵀ", "评分QKᵀ"), example.dots, QUERY, KEY, True),
            heat(Words("weights", "权重"), example.weights, QUERY, KEY, True),
            heat(Words("output", "输出"), example.output, token, Words("coordinate", "分量"), True),
        ),
        columns=3,
    )


def terms() -> Figure:
    """The first row of the example as a sum."""
    example = worked_example()
    parts = [example.weights[0, j] * example.value[j] for j in range(3)]
    rows = [*(same(f"α₁{'₁₂₃'[j]} v{'₁₂₃'[j]}") for j in range(3)), Words("sum = y₁", "和 = y₁")]
    bars = tuple(
        tuple(Bar(float(number)) for number in part) for part in [*parts, example.output[0]]
    )
    coordinates = tuple(Words(f"coordinate {i + 1}", f"第{i + 1}个分量") for i in range(3))
    plot = Bars(
        Words("three terms and their sum", "三项及其和"),
        Words("number", "数值"),
        tuple(rows),
        coordinates,
        bars,
    )
    return Figure(Words("One row of the output, term by term", "输出的一行，逐项相加"), (plot,), 1)


def heads() -> Figure:
    """Three heads of one attention."""
    torch.manual_seed(3)
    attention = SelfAttention(d_model=12, n_heads=3)
    weights = attention(2 * torch.randn(1, 6, 12), wants_weights=True).weights
    assert weights is not None
    plots = tuple(
        heat(Words(f"head {i + 1}", f"第{i + 1}个头"), weights[0, i], QUERY, KEY, True)
        for i in range(3)
    )
    return Figure(Words("Every head has weights of its own", "每个头有自己的权重"), plots, 3)


def _curve(x: Tensor) -> Tensor:
    return 2 * x.sin() + x**0.8
