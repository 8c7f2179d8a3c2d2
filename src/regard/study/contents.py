"""The experiments by name, each with its title. Nothing heavy is imported here."""

import difflib
from collections.abc import Sequence

from regard.errors import ConfigError
from regard.view.panels import Words

CONTENTS = {
    "e01_kernel_regression": Words(
        "Nadaraya–Watson: attention that fits noisy points",
        "Nadaraya–Watson核回归：注意力拟合带噪声的点",
    ),
    "e02_addressing": Words(
        "Hard and soft addressing, and the temperature between",
        "硬寻址与软寻址，以及两者之间的温度",
    ),
    "e03_scores": Words(
        "Additive against dot-product scores",
        "加性评分与点积评分",
    ),
    "e04_root_d": Words(
        "Why scores are divided by √d",
        "评分为什么要除以√d",
    ),
    "e05_masks": Words(
        "What breaks without masks",
        "没有掩码会怎样",
    ),
    "e06_alignments": Words(
        "Bahdanau's alignments, learned on reversed digits",
        "在倒写数字上学到的Bahdanau对齐",
    ),
    "e07_heads": Words(
        "What 1, 2, 4 and 8 heads learn",
        "1、2、4、8个头各学到什么",
    ),
    "e08_three_encoders": Words(
        "Convolution, recurrence and self-attention, measured",
        "卷积、循环与自注意力的实测比较",
    ),
    "e09_positions": Words(
        "What positions are for",
        "位置编码有什么用",
    ),
    "e10_norms": Words(
        "Layer norm against batch norm, reason by reason",
        "层规范化与批量规范化：逐条检验理由",
    ),
    "e11_teacher_forcing": Words(
        "Teacher forcing: all places at once, and what it costs",
        "强制教学：一次算出所有位置，及其代价",
    ),
    "e12_arithmetic": Words(
        "The arithmetic of attention: three tokens, Z₄, eight heads",
        "注意力的算术：三个词元、Z₄与八个头",
    ),
    "e13_poem": Words(
        "What 君 attends to in its poem",
        "“君”在诗中关注什么",
    ),
    "e14_occlusion": Words(
        "Attention against occlusion: what is looked at, what is needed",
        "注意力与遮挡：看哪里，靠哪里",
    ),
    "e15_ablations": Words(
        "One part changed at a time, on Chinese numerals",
        "中文数字任务上的消融：每次只改一处",
    ),
}
"""Every experiment, in the order in which they are run."""


def chosen(asked: Sequence[str]) -> list[str]:
    """The names that were asked for, in the order of the table; e04 is enough for e04_root_d."""
    return [name for name in CONTENTS if name in {_found(one) for one in asked}]


def _found(asked: str) -> str:
    word = asked.strip().lower()
    matches = [name for name in CONTENTS if word in (name, *name.split("_", maxsplit=1))]
    if matches:
        return matches[0]
    near = difflib.get_close_matches(word, CONTENTS, n=1, cutoff=0.4)
    raise ConfigError(
        "there is no experiment {name}; did you mean {near}? regard study lists all",
        name=asked,
        near=near[0] if near else next(iter(CONTENTS)),
    )
