"""e03: additive against dot-product scores: which widths they take, and what they cost (000, 002).

additive  w_v . tanh(W_q q + W_k k)          dot  q . k / sqrt(d)
"""

from itertools import product

import torch

from regard.attention import (
    AdditiveAttention,
    additive_scores,
    attend,
    scaled_dot_attention,
    scaled_dot_scores,
)
from regard.errors import RegardError
from regard.study.claim import Claim, Result, at_least
from regard.study.contents import CONTENTS
from regard.study.measuring import Call, largest_tensor, seconds
from regard.view.panels import Figure, Lines, Trace, Words

WIDTHS = (3, 5, 8, 16)
D = 64
WIDTH = Claim(
    note="000, 002",
    words=Words(
        "Additive attention suits queries and keys of different widths; the dot product needs "
        "one width for both.",
        "加性注意力适用于维度不同的查询和键；点积要求二者维度相同。",
    ),
    measured=Words(
        "share of 16 pairs of widths that additive attention takes",
        "16种宽度组合中加性注意力能处理的比例",
    ),
    bound=at_least(1.0),
    control=Words(
        "the same for the dot product",
        "点积的同一比例",
    ),
)
TIME = Claim(
    note="000, 002",
    words=Words(
        "The dot product is the quicker to compute.",
        "点积的计算效率更高。",
    ),
    measured=Words(
        "time of additive over dot-product attention, at the greatest length",
        "加性注意力与点积注意力的用时之比，取最大长度",
    ),
    bound=at_least(2.0),
    control=Words(
        "time of the fused over the plain dot product",
        "融合点积与普通点积的用时之比",
    ),
)
MEMORY = Claim(
    note="000, 002",
    words=Words(
        "And the dot product needs less memory: no hidden layer for every pair.",
        "点积还更省内存：不必为每一对查询和键存一个隐藏层。",
    ),
    measured=Words(
        "largest tensor of additive over dot-product attention, at the greatest length",
        "加性与点积注意力的最大张量之比，取最大长度",
    ),
    bound=at_least(8.0),
    control=Words(
        "the same for the fused over the plain dot product",
        "融合点积与普通点积之比",
    ),
)
NAMES = ("additive", "dot", "fused dot")


def run(seed: int, quick: bool) -> Result:
    """Try all pairs of widths, then time both and weigh what they make on the way."""
    lengths = (64, 128, 256) if quick else (64, 128, 256, 512, 1024)
    rounds = 9
    took = {n: seconds(calls(n), rounds) for n in lengths}
    made = {n: {name: largest_tensor(call) for name, call in calls(n).items()} for n in lengths}
    last = lengths[-1]
    findings = (
        WIDTH.found(share_taken(is_additive=True), share_taken(is_additive=False)),
        TIME.found(
            took[last]["additive"] / took[last]["dot"], took[last]["fused dot"] / took[last]["dot"]
        ),
        MEMORY.found(
            made[last]["additive"] / made[last]["dot"], made[last]["fused dot"] / made[last]["dot"]
        ),
    )
    return Result(findings, _figure(lengths, took, made))


def share_taken(*, is_additive: bool) -> float:
    """Of all pairs of widths, how many an attention takes."""
    taken = 0
    for d_query, d_key in product(WIDTHS, repeat=2):
        query, key = torch.randn(4, d_query), torch.randn(6, d_key)
        try:
            if is_additive:
                AdditiveAttention(d_query, d_key, 8)(query, key, key)
            else:
                attend(query, key, key, scaled_dot_scores)
        except RegardError:
            continue
        taken += 1
    return taken / len(WIDTHS) ** 2


def calls(n: int) -> dict[str, Call]:
    """Each attention over n tokens, ready to be called."""
    query, key, value, v = torch.randn(n, D), torch.randn(n, D), torch.randn(n, D), torch.randn(D)
    rows = tuple(x[None, None] for x in (query, key, value))  # as the fused kernel wants them
    return {
        "additive": lambda: attend(query, key, value, lambda q, k: additive_scores(q, k, v)),
        "dot": lambda: attend(query, key, value, scaled_dot_scores),
        "fused dot": lambda: scaled_dot_attention(*rows),
    }


def _figure(
    lengths: tuple[int, ...], took: dict[int, dict[str, float]], made: dict[int, dict[str, int]]
) -> Figure:
    names = {
        "additive": Words("additive", "加性"),
        "dot": Words("dot product", "点积"),
        "fused dot": Words("dot product, fused", "点积（融合）"),
    }
    tokens = Words("tokens", "词元数")
    return Figure(
        CONTENTS["e03_scores"],
        (
            Lines(
                Words("Time against length", "用时与长度"),
                tokens,
                Words("milliseconds", "毫秒"),
                tuple(
                    Trace(names[name], tuple((n, 1e3 * took[n][name]) for n in lengths), "both")
                    for name in NAMES
                ),
                is_log_across=True,
                is_log_up=True,
            ),
            Lines(
                Words("Memory against length", "内存与长度"),
                tokens,
                Words("largest tensor, MB", "最大张量（MB）"),
                tuple(
                    Trace(names[name], tuple((n, made[n][name] / 1e6) for n in lengths), "both")
                    for name in NAMES
                ),
                is_log_across=True,
                is_log_up=True,
            ),
        ),
    )
