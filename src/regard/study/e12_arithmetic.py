"""e12: the arithmetic of attention: note 004's three tokens, note 001's Z4 for real, eight heads.

Z4 = a41 V1 + a42 V2 + a43 V3 + a44 V4,   a4j = softmax over j of Q4 Kj / sqrt(d)
"""

import math
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from regard.attention import SelfAttention, attend, scaled_dot_scores
from regard.study.claim import Claim, Result, at_least, at_most
from regard.study.contents import CONTENTS
from regard.study.reading import Opened, opened
from regard.study.worked import WorkedExample, worked_example
from regard.view.panels import Figure, Heat, Words
from regard.view.pieces import as_pieces

SENTENCE = "我们今天在学校里学习机器翻译的方法。"
THREE = Claim(
    note="004",
    words=Words(
        "Self-attention of three tokens: dot products, over √d, softmax, then the weighted sum.",
        "三个词元的自注意力：点积，除以√d，softmax，再加权求和。",
    ),
    measured=Words(
        "largest difference between the worked numbers and a sum by hand",
        "例子中的数与手算结果的最大差异",
    ),
    bound=at_most(1e-9),
    control=Words(
        "the same if √d is left out",
        "不除以√d时的同一差异",
    ),
)
FOUR = Claim(
    note="001",
    words=Words(
        "Z₄ is the sum of four terms, one for each token.",
        "Z₄是四项之和，每个词元一项。",
    ),
    measured=Words(
        "distance of the sum of four weighted terms from Z₄, relative",
        "四个加权项之和与Z₄的相对差距",
    ),
    bound=at_most(1e-4),
    control=Words(
        "the same without the heaviest term",
        "去掉最重的一项时的同一差距",
    ),
)
AS_WRITTEN = Claim(
    note="001",
    words=Words(
        "Z₄ = Q₄K₁V₁ + Q₄K₂V₂ + Q₄K₃V₃ + Q₄K₄V₄.",
        "Z₄ = Q₄K₁V₁ + Q₄K₂V₂ + Q₄K₃V₃ + Q₄K₄V₄。",
    ),
    measured=Words(
        "distance of the sum as written from Z₄, relative",
        "照写的和与Z₄的相对差距",
    ),
    bound=at_most(1e-4),
    control=Words(
        "the same with softmax",
        "做了softmax时的同一差距",
    ),
    remark=Words(
        "Note 001 writes the terms of Z₄ without the softmax that its text, just above, asks "
        "for. With it the factors are weights that sum to 1.",
        "笔记001写Z₄各项时省去了softmax，而上文刚说过要做softmax。做了softmax，因子才是和为1的"
        "权重。",
    ),
)
EIGHT = Claim(
    note="001, 002",
    words=Words(
        "Eight heads of 64 are computed at once by reshaping, and equal eight computed by turns.",
        "8个64维的头可以通过变换维度一次算出，与逐个计算的结果相同。",
    ),
    measured=Words(
        "largest difference between at once and by turns",
        "一次算出与逐个计算的最大差异",
    ),
    bound=at_most(1e-4),
    control=Words(
        "the same when the axes are not turned",
        "没有交换维度时的同一差异",
    ),
)
OUTPUT = Claim(
    note="001",
    words=Words(
        "The decoder is followed by a softmax, which becomes a linear layer.",
        "Decoder后接上一个softmax变成一个线性层。",
    ),
    measured=Words(
        "furthest that the numbers for all words are from a sum of 1, softmax before the "
        "linear layer",
        "先softmax后线性层时，所有词的数之和与1的最大偏差",
    ),
    bound=at_most(1e-3),
    control=Words(
        "the same with softmax after it",
        "先线性层后softmax时的同一偏差",
    ),
    remark=Words(
        "Note 001 names softmax before the linear layer; its next sentences have them in "
        "order. Only softmax after the linear layer gives probabilities.",
        "笔记001把softmax说在线性层之前，接下来的几句顺序就对了。只有先线性层、后softmax，得到"
        "的才是概率。",
    ),
)
PROJECTED = Claim(
    note="004",
    words=Words(
        "The note's SelfAttention class projects queries, keys and values by learned matrices.",
        "笔记的SelfAttention类用可学习的矩阵投影查询、键和值。",
    ),
    measured=Words(
        "share of the projections' numbers that get a gradient, note 004's class",
        "笔记004的类中，投影参数得到梯度的比例",
    ),
    bound=at_least(0.9),
    control=Words(
        "the same for regard's SelfAttention",
        "regard的SelfAttention的同一比例",
    ),
    remark=Words(
        "The class of note 004 declares three projections but never calls them, so they learn "
        "nothing; its formulas, and step 1 of its section 3, do apply them.",
        "笔记004的类声明了三个投影却从未调用，它们什么也学不到；它的公式和第3节第1步里都是用了"
        "投影的。",
    ),
)


class AsPrinted(nn.Module):
    """Note 004's class as it is printed, with the last lines, which are missing, completed."""

    def __init__(self, embed_size: int, heads: int) -> None:
        super().__init__()
        self.heads, self.head_dim = heads, embed_size // heads
        self.values = nn.Linear(embed_size, embed_size)
        self.keys = nn.Linear(embed_size, embed_size)
        self.queries = nn.Linear(embed_size, embed_size)
        self.fc_out = nn.Linear(embed_size, embed_size)

    def forward(self, x: Tensor) -> Tensor:
        """Self-attention, as far as it goes."""
        values = keys = queries = x.unflatten(-1, (self.heads, self.head_dim)).transpose(1, 2)
        energy = queries @ keys.transpose(-2, -1) / math.sqrt(self.head_dim)
        return self.fc_out((energy.softmax(-1) @ values).transpose(1, 2).flatten(-2))


@dataclass(frozen=True, slots=True)
class Terms:
    """One head of the first layer at the fourth of four tokens."""

    pieces: tuple[str, ...]
    weights: Tensor
    terms: Tensor
    output: Tensor
    as_written: Tensor


def run(seed: int, quick: bool, model: Path | None = None) -> Result:
    """Work each sum by hand, and compare it with what the library gives."""
    example, read = worked_example(), opened(model)
    four, heads = terms_of(read), eight_heads()
    with torch.no_grad():
        hidden = read.network.encoder(read.embedded(read.ids(SENTENCE))).output
        wrong, right = (
            read.network.output(hidden.softmax(-1)),
            read.network.output(hidden).softmax(-1),
        )
    findings = (
        THREE.found(
            float((example.output - by_hand(example, math.sqrt(3))).abs().max()),
            float((example.output - by_hand(example, 1.0)).abs().max()),
        ),
        FOUR.found(
            apart(four.terms.sum(0), four.output),
            apart(four.terms.sum(0) - four.terms[four.weights.argmax()], four.output),
        ),
        AS_WRITTEN.found(
            apart(four.as_written, four.output), apart(four.terms.sum(0), four.output)
        ),
        EIGHT.found(heads[0], heads[1]),
        OUTPUT.found(unlike_one(wrong), unlike_one(right)),
        PROJECTED.found(
            share_learned(AsPrinted(64, 4), ("values", "keys", "queries")),
            share_learned(SelfAttention(64, 4, bias=False), ("qkv",)),
        ),
    )
    return Result(findings, _figure(example, four), read.in_words)


def by_hand(example: WorkedExample, scale: float) -> Tensor:
    """The note's steps in plain Python: every e_ij, every exp, every sum."""
    query, key, value = (x.tolist() for x in (example.query, example.key, example.value))
    rows = []
    for q in query:
        dots = [sum(a * b for a, b in zip(q, k, strict=True)) / scale for k in key]
        total = sum(math.exp(dot) for dot in dots)
        weights = [math.exp(dot) / total for dot in dots]
        rows.append([sum(w * v[i] for w, v in zip(weights, value, strict=True)) for i in range(3)])
    return torch.tensor(rows, dtype=torch.float64)


@torch.no_grad()
def terms_of(read: Opened) -> Terms:
    """The first head of the first layer at the last of four tokens of a sentence."""
    ids = read.ids(SENTENCE)
    says = [not is_sink for is_sink in as_pieces(read.pieces(ids)).is_sink]
    ids = ids[:, torch.tensor(says)][:, :4]
    layer = read.network.encoder.layers[0]
    attention = layer.attention
    x = layer.attention_residual.enter(read.embedded(ids))
    query, key, value = (part[0, 0] for part in attention.heads.split(attention.qkv(x), 3))
    d_head = query.shape[-1]
    factors = [float(query[3] @ key[j]) for j in range(4)]
    exps = [math.exp(factor / math.sqrt(d_head)) for factor in factors]
    weights = torch.tensor([e / sum(exps) for e in exps])
    return Terms(
        read.pieces(ids),
        weights,
        weights[:, None] * value,
        attend(query, key, value, scaled_dot_scores).output[3],
        sum((factor * v for factor, v in zip(factors, value, strict=True)), torch.zeros(d_head)),
    )


@torch.no_grad()
def eight_heads() -> tuple[float, float]:
    """How far eight heads at once are from eight by turns, and from a wrong reshaping."""
    attention, x = SelfAttention(512, 8, bias=False), torch.randn(1, 10, 512)
    at_once = attention(x).output
    wide = [part.chunk(8, dim=-1) for part in attention.qkv(x).chunk(3, dim=-1)]
    each = [attend(q, k, v, scaled_dot_scores).output for q, k, v in zip(*wide, strict=True)]
    by_turns = attention.out(torch.cat(each, dim=-1))
    # A view that forgets to turn the axes cuts tokens where it should cut the width.
    q, k, v = (part.reshape(1, 8, 10, 64) for part in attention.qkv(x).chunk(3, dim=-1))
    cut = attention.out(attend(q, k, v, scaled_dot_scores).output.reshape(1, 10, 512))
    return float((at_once - by_turns).abs().max()), float((at_once - cut).abs().max())


def apart(one: Tensor, other: Tensor) -> float:
    """The length of the difference over the length of the second."""
    return float((one - other).norm() / other.norm())


def unlike_one(numbers: Tensor) -> float:
    """How far from 1 the furthest sum is."""
    return float((numbers.sum(-1) - 1.0).abs().max())


def share_learned(attention: nn.Module, names: tuple[str, ...]) -> float:
    """How much of these parameters a step of learning would change."""
    output = attention(torch.randn(2, 5, 64))
    (output if isinstance(output, Tensor) else output.output).square().sum().backward()
    found = [p for name, p in attention.named_parameters() if name.split(".")[0] in names]
    changed = sum(int((p.grad != 0).sum()) for p in found if p.grad is not None)
    return changed / sum(p.numel() for p in found)


def _figure(example: WorkedExample, four: Terms) -> Figure:
    n = 8  # coordinates that are shown
    names = as_pieces(four.pieces).labels
    shades = lambda table: tuple(map(tuple, table.tolist()))  # noqa: E731
    return Figure(
        CONTENTS["e12_arithmetic"],
        (
            Heat(
                Words("Weights of three tokens", "三个词元的权重"),
                shades(example.weights),
                Words("query", "查询"),
                Words("key", "键"),
                rows=("x₁", "x₂", "x₃"),
                columns=("x₁", "x₂", "x₃"),
                most=1.0,
                has_numbers=True,
            ),
            Heat(
                Words("A real sentence: the weights of Z₄", "真实句子：Z₄的权重"),
                (tuple(four.weights.tolist()),),
                Words("Z₄", "Z₄"),
                Words("token", "词元"),
                rows=("α₄",),
                columns=names,
                most=1.0,
                has_numbers=True,
            ),
            Heat(
                Words("Z₄ as the sum of its four terms", "Z₄等于四项之和"),
                shades(torch.cat([four.terms, four.output[None]])[:, :n]),
                Words("term", "项"),
                Words("first eight coordinates", "前八个坐标"),
                rows=(*(f"α₄·V {name}" for name in names), "= Z₄"),
                columns=tuple(str(i + 1) for i in range(n)),
                has_numbers=True,
                is_signed=True,
            ),
        ),
        columns=3,
    )
