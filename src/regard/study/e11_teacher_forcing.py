"""e11: teacher forcing computes all places at once, and what it costs: exposure bias (002).

Trained on true words, a network has never read its own mistakes.
"""

import numpy as np
import torch
from torch import Tensor

from regard.attention import CrossAttention
from regard.config import ModelConfig
from regard.data.batch import Batch
from regard.model import Transformer, build_model
from regard.study.claim import BEYOND, Claim, Limit, Result, at_least, at_most
from regard.study.contents import CONTENTS
from regard.study.e05_masks import Unmasked
from regard.study.learning import DIGITS, Draw, Pair, batch_of, digit_task, teach, written
from regard.view.panels import Figure, Lines, Trace, Words

D, LENGTH = 32, 8
EARLY, LATE = 120, 320  # updates: half learned, and well
PARALLEL = Claim(
    note="002",
    words=Words(
        "With the target shifted right and the causal mask, all places are computed at once, "
        "and equal what is computed place by place.",
        "目标序列右移并加上因果掩码，就能一次算出所有位置，且与逐个位置计算的结果相同。",
    ),
    measured=Words(
        "largest difference between all at once and step by step",
        "一次算出与逐步计算的最大差异",
    ),
    bound=at_most(1e-4),
    control=Words(
        "the same without the causal mask",
        "没有因果掩码时的同一差异",
    ),
)
EXPOSED = Claim(
    note=BEYOND,
    words=Words(
        "Where the next word depends on the last, a network that reads its own words makes "
        "more mistakes than one that reads the true ones (exposure bias).",
        "下一个词依赖上一个词时，读自己写的词比读真实的词错得更多（曝光偏差）。",
    ),
    measured=Words(
        "how many more of 100 tokens are wrong when it reads its own, after 120 updates",
        "120次更新之后，读自己写的词时每100个词元多错几个",
    ),
    bound=at_least(1.0),
    control=Words(
        "the same when it reads the true words step by step",
        "同样逐步、但读真实的词时的同一数值",
    ),
    limit=Limit(
        Words(
            "the same after 320 updates: who makes no mistakes reads none",
            "320次更新之后的同一数值：不犯错，也就读不到错",
        ),
        at_most(5.0),
    ),
)
CROSS = Claim(
    note="002",
    words=Words(
        "Cross-attention takes the encoder's output as keys and queries.",
        "交叉注意力以编码器的输出为键和查询。",
    ),
    measured=Words(
        "answers too many for 5 target tokens, 7 encoder states as queries",
        "5个目标词元、以7个编码器状态为查询时，多出的回答数",
    ),
    bound=at_most(0),
    control=Words(
        "the same, encoder states as keys and values",
        "以编码器状态为键和值时的同一数目",
    ),
    remark=Words(
        "Note 002 writes that the encoder's output gives keys and queries. It gives keys and "
        "values; the queries are the decoder's, as the same sentence says first, and so there "
        "is one answer for each target token.",
        "笔记002写的是以编码器的输出为键和查询，应为键和值；查询来自解码器，同一句的前半句就是"
        "这样说的，所以每个目标词元得到一个回答。",
    ),
)


def run(seed: int, quick: bool) -> Result:
    """Compare forward with step by step; then a task whose errors go on, half and well learned."""
    network = small(seed)
    batch = batch_of(digit_task("copy", seed, range(LENGTH, LENGTH + 1), "test"), range(16))
    hidden, seen = apart(network, network, batch), apart(network, Unmasked(network), batch)

    n_pairs = 150 if quick else 600
    half, well = (errors(seed, updates, n_pairs) for updates in (EARLY, LATE))
    findings = (
        PARALLEL.found(hidden, seen),
        EXPOSED.found(
            100 * float((half[1] - half[0]).mean()),
            100 * float((half[2] - half[0]).mean()),
            100 * float((well[1] - well[0]).mean()),
        ),
        CROSS.found(answers(queries=7, keys=5) - 5, answers(queries=5, keys=7) - 5),
    )
    return Result(findings, _figure(half, well))


def small(seed: int) -> Transformer:
    """A small Transformer, as it comes."""
    torch.manual_seed(seed)
    config = ModelConfig(
        d_model=D, n_layers=1, n_heads=2, d_ff=64, norm="pre", dropout=0.0, max_len=32
    )
    network = build_model(config, len(DIGITS), len(DIGITS))
    assert isinstance(network, Transformer)
    return network.eval()


@torch.no_grad()
def apart(network: Transformer, at_once: torch.nn.Module, batch: Batch) -> float:
    """How far logits of all places at once are from those of one place after the other."""
    parallel = at_once(batch.src_ids, batch.tgt_ids, batch.src, batch.tgt)
    return float((parallel - step_by_step(network, batch)).abs().max())


@torch.no_grad()
def step_by_step(network: Transformer, batch: Batch) -> Tensor:
    """Logits of each place in its turn, after the true words."""
    state = network.start(network.encode(batch.src_ids, batch.src))
    steps = []
    for token in batch.tgt_ids.unbind(1):
        logits, state = network.step(token, state)
        steps.append(logits)
    return torch.stack(steps, dim=1)


def counting(seed: int) -> Draw:
    """Beside each digit, how many even ones there were so far: every word builds on the last."""

    def draw(number: int) -> Pair:
        digits = np.random.default_rng((seed, number)).integers(0, 10, LENGTH)
        counted = np.cumsum(digits % 2 == 0)
        return digits + FIRST, counted + FIRST

    return draw


FIRST = DIGITS.id_of("0")
Errors = tuple[Tensor, Tensor, Tensor]


def errors(seed: int, updates: int, n_pairs: int) -> Errors:
    """At each place the share of wrong words: after the true ones, its own, and the true again.

    The first reads the true words all at once, the last step by step, as it reads its own.
    """
    network, unseen = small(seed), counting(seed + 1)
    teach(network, counting(seed), updates=updates, lr=1e-2, seed=seed)
    batch = batch_of(unseen, range(n_pairs))
    with torch.no_grad():
        at_once = network(batch.src_ids, batch.tgt_ids, batch.src, batch.tgt)
    stepped = step_by_step(network, batch)
    free = torch.zeros(LENGTH)
    for mine, right in written(network, unseen, n_pairs):
        said = np.resize(np.append(mine, [DIGITS.pad] * LENGTH), LENGTH)
        free += torch.from_numpy(said != right).float() / n_pairs
    forced, again = (
        (logits.argmax(-1) != batch.labels)[:, :LENGTH].float().mean(0)
        for logits in (at_once, stepped)
    )
    return forced, free, again


def answers(*, queries: int, keys: int) -> int:
    """How many rows cross-attention gives back."""
    return CrossAttention(D, 2)(torch.randn(1, queries, D), torch.randn(1, keys, D)).output.shape[1]


def _figure(half: Errors, well: Errors) -> Figure:
    def lines(updates: int, found: Errors) -> Lines:
        names = (
            Words("after the true words", "读真实的词"),
            Words("after its own words", "读自己写的词"),
        )
        return Lines(
            Words(f"Counting, learned for {updates} updates", f"计数任务，学习{updates}次更新"),
            Words("place in the sequence", "序列中的位置"),
            Words("tokens wrong, %", "错误词元（%）"),
            tuple(
                Trace(name, tuple((t + 1.0, 100 * v) for t, v in enumerate(one.tolist())), "both")
                for name, one in zip(names, found[:2], strict=True)
            ),
            low=0.0,
            high=100 * float(torch.stack([*half, *well]).max()),
        )

    return Figure(CONTENTS["e11_teacher_forcing"], (lines(EARLY, half), lines(LATE, well)))
