"""e09: what positions are for, and what the sines and cosines of note 002 can do (001, 002).

p(i, 2j) = sin(i w_j),  p(i, 2j+1) = cos(i w_j),  w_j = 10000^(-2j/d),  p(i + delta) = R p(i)
"""

from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from regard.attention import (
    LearnedPositions,
    RotaryPositions,
    SelfAttention,
    SinusoidalPositions,
    rotation,
    sinusoidal_positions,
)
from regard.attention.positions import NoPositions
from regard.model import Embedding, Encoder, EncoderLayer
from regard.model.layers import Positions
from regard.study.claim import Claim, Limit, Result, at_least, at_most
from regard.study.contents import CONTENTS
from regard.train.optim import make_optimizer, make_schedule
from regard.view.panels import Figure, Heat, Lines, Trace, Words

D, DELTA = 64, 5
N_WORDS, TRAINED, LONGEST = 10, 16, 64
Kind = Literal["sinusoidal", "learned", "rotary", "none"]
KINDS: tuple[Kind, ...] = ("sinusoidal", "learned", "rotary", "none")
SAME = Claim(
    note="001",
    words=Words(
        "Without positions, another order of the same words gives the same output.",
        "没有位置信息时，词的顺序不同，输出的值相同。",
    ),
    measured=Words(
        "largest change of the output when its words are shuffled",
        "打乱词序时输出的最大变化",
    ),
    bound=at_most(1e-4),
    control=Words(
        "the same once the output is put back in order",
        "把输出排回原序后的同一变化",
    ),
    remark=Words(
        "Note 001 says that another order gives the same output. The outputs are the same "
        "vectors in the new order: each word keeps its own, so the set is the same and the "
        "sequence is not.",
        "笔记001说输入不同顺序的词，输出的值相同。准确地说，输出是同一组向量按新顺序排列：每个"
        "词的输出不变，集合相同，序列不同。",
    ),
)
LOST = Claim(
    note="002",
    words=Words(
        "Self-attention by itself loses the order of a sequence; an added position restores it.",
        "自注意力本身会丧失序列的位置信息，加上位置编码就能补充回来。",
    ),
    measured=Words(
        "the same with positions, put back in order",
        "加上位置编码、排回原序后的变化",
    ),
    bound=at_least(0.01),
    control=Words(
        "the same without positions",
        "没有位置编码时的同一变化",
    ),
)
UNIQUE = Claim(
    note="002",
    words=Words(
        "Every position has a code of its own: single dimensions repeat, all together do not.",
        "每个位置有独一无二的编码：单个维度可能重复，组合起来不会重复。",
    ),
    measured=Words(
        "smallest distance between the codes of any two of 2,000 positions",
        "2000个位置中任意两个编码的最小距离",
    ),
    bound=at_least(0.1),
    control=Words(
        "the same for the first two dimensions",
        "只看前两维时的同一距离",
    ),
)
ROTATION = Claim(
    note="002",
    words=Words(
        "Codes δ apart are joined by one matrix, whatever the position: p(i + δ) = R(δ) p(i).",
        "相隔δ的两个位置编码可用同一个矩阵转换，与位置无关：p(i+δ) = R(δ)p(i)。",
    ),
    measured=Words(
        "largest difference between p(i + 5) and R(5) p(i), 500 positions",
        "500个位置上p(i+5)与R(5)p(i)的最大差异",
    ),
    bound=at_most(1e-9),
    control=Words(
        "the same with R(4)",
        "换成R(4)时的同一差异",
    ),
)
LEARNED = Claim(
    note="002",
    words=Words(
        "A model can learn this matrix by itself.",
        "模型可以自行学习到这一矩阵。",
    ),
    measured=Words(
        "error of a learned linear map at positions it was not trained on, relative",
        "学到的线性映射在未训练位置上的相对误差",
    ),
    bound=at_most(0.1),
    control=Words(
        "the same learned from pairs that do not belong together",
        "用错配的位置对学习时的同一误差",
    ),
    limit=Limit(
        Words(
            "distance of the learned matrix itself from R, relative: codes that hardly change "
            "from place to place leave it open",
            "学到的矩阵本身与R的相对距离：几乎不随位置变化的维度无法确定它",
        ),
        at_least(0.1),
    ),
)
BOTH = Claim(
    note="002",
    words=Words(
        "Positions may be learned or fixed: either way a token finds the one before it.",
        "位置编码可以学习得到，也可以直接固定：两种方式都能让词元找到它的前一个词元。",
    ),
    measured=Words(
        "tokens before named right up to the trained length of 16, the least of sinusoidal, "
        "learned and rotary",
        "训练长度16以内说对前一词元的比例，取正弦、学习、旋转三者的最小值",
    ),
    bound=at_least(0.9),
    control=Words(
        "the same without positions",
        "没有位置编码时的同一比例",
    ),
    limit=Limit(
        Words(
            "learned positions at length 64, whose later rows were never trained",
            "学习的位置编码在长度64时的同一比例：后面的行从未训练过",
        ),
        at_most(0.6),
    ),
)


class Previous(nn.Module):
    """One layer of self-attention that names the token before each token."""

    def __init__(self, kind: Kind) -> None:
        super().__init__()
        rotary = RotaryPositions(D // 2, LONGEST) if kind == "rotary" else None
        self.embedding = Embedding(N_WORDS, D, _positions(kind))
        self.attention = SelfAttention(D, 2, rotary=rotary)
        self.output = nn.Linear(D, N_WORDS)

    def forward(self, ids: Int[Tensor, "B T"]) -> Float[Tensor, "B T V"]:
        """Logits of the token before."""
        x = self.embedding(ids, torch.arange(ids.shape[1]))
        return self.output(self.attention(x).output)


def run(seed: int, quick: bool) -> Result:
    """Shuffle, compare codes, turn them, learn the turn, and go beyond the trained length."""
    changed, moved, told = shuffled()
    codes = sinusoidal_positions(2000, D)
    turned = sinusoidal_positions(500 + DELTA, D)
    learned, wrong = learned_turn(quick, is_paired=True), learned_turn(quick, is_paired=False)
    accuracy = {kind: taught(seed, kind, 250 if quick else 600) for kind in KINDS}
    within = {kind: min(by[n] for n in by if n <= TRAINED) for kind, by in accuracy.items()}
    findings = (
        SAME.found(changed, moved),
        LOST.found(told, moved),
        UNIQUE.found(nearest(codes), nearest(codes[:, :2])),
        ROTATION.found(
            float((turned[DELTA:] - turned[:-DELTA] @ rotation(DELTA, D).T).abs().max()),
            float((turned[DELTA:] - turned[:-DELTA] @ rotation(DELTA - 1, D).T).abs().max()),
        ),
        LEARNED.found(learned[0], wrong[0], learned[1]),
        BOTH.found(
            min(within[kind] for kind in KINDS if kind != "none"),
            within["none"],
            accuracy["learned"][LONGEST],
        ),
    )
    return Result(findings, _figure(accuracy, learned[2]))


@torch.no_grad()
def shuffled() -> tuple[float, float, float]:
    """How much shuffling changes an output: as it is, put back, and put back with positions."""
    layers = [EncoderLayer(D, 4, 2 * D, dropout=0.0) for _ in range(2)]
    encoder = Encoder(layers, nn.Identity()).eval()
    x, order = torch.randn(1, 12, D), torch.randperm(12).roll(1)
    places = sinusoidal_positions(12, D).float()
    plain, mixed = encoder(x).output, encoder(x[:, order]).output
    with_places = encoder(x + places).output, encoder(x[:, order] + places).output
    return (
        float((mixed - plain).abs().max()),
        float((mixed - plain[:, order]).abs().max()),
        float((with_places[1] - with_places[0][:, order]).abs().max()),
    )


def nearest(codes: Tensor) -> float:
    """The smallest distance between any two codes."""
    apart = torch.cdist(codes, codes, compute_mode="donot_use_mm_for_euclid_dist")
    return float(apart.fill_diagonal_(torch.inf).min())


def learned_turn(quick: bool, *, is_paired: bool) -> tuple[float, float, Tensor]:
    """A linear map trained on p(i) -> p(i + 5): its error elsewhere, its way to R, itself."""
    codes = sinusoidal_positions(400 + DELTA, D).float()
    x, y = codes[:-DELTA], codes[DELTA:]
    if not is_paired:
        y = y[torch.randperm(len(y))]
    unseen = torch.arange(len(x)) % 4 == 0
    linear = nn.Linear(D, D, bias=False)
    optimizer = make_optimizer(linear.parameters(), 1e-2)
    updates = 400 if quick else 3000
    rate = make_schedule("cosine", 1e-2, 10, updates)
    for step in range(1, updates + 1):
        optimizer.param_groups[0]["lr"] = rate(step)
        optimizer.zero_grad()
        F.mse_loss(linear(x[~unseen]), y[~unseen]).backward()
        optimizer.step()
    with torch.no_grad():
        error = (linear(x[unseen]) - codes[DELTA:][unseen]).norm() / codes[DELTA:][unseen].norm()
        true = rotation(DELTA, D).float()
        return float(error), float((linear.weight - true).norm() / true.norm()), linear.weight


def taught(seed: int, kind: Kind, updates: int) -> dict[int, float]:
    """Sequences of up to 16 tokens learned; then, by length, the share of tokens named right."""
    torch.manual_seed(seed)
    network = Previous(kind)
    optimizer = make_optimizer(network.parameters(), 5e-3)
    rate = make_schedule("cosine", 5e-3, updates // 10, updates)
    for step in range(1, updates + 1):
        optimizer.param_groups[0]["lr"] = rate(step)
        ids = torch.randint(0, N_WORDS, (64, TRAINED))
        optimizer.zero_grad()
        F.cross_entropy(network(ids)[:, 1:].flatten(0, 1), ids[:, :-1].flatten()).backward()
        optimizer.step()
    with torch.no_grad():
        found = {}
        for n in (4, 8, 12, 16, 20, 24, 32, 48, 64):
            ids = torch.randint(0, N_WORDS, (100, n))
            found[n] = float((network(ids)[:, 1:].argmax(-1) == ids[:, :-1]).float().mean())
    return found


def _positions(kind: Kind) -> Positions:
    match kind:
        case "sinusoidal":
            return SinusoidalPositions(D, LONGEST)
        case "learned":
            return LearnedPositions(D, LONGEST)
        case _:
            return NoPositions()


def _figure(accuracy: dict[Kind, dict[int, float]], matrix: Tensor) -> Figure:
    names: dict[Kind, Words] = {
        "sinusoidal": Words("sinusoidal", "正弦"),
        "learned": Words("learned", "学习"),
        "rotary": Words("rotary", "旋转"),
        "none": Words("none", "无"),
    }
    shades = lambda table: tuple(map(tuple, table.tolist()))  # noqa: E731
    return Figure(
        CONTENTS["e09_positions"],
        (
            Heat(
                Words("Codes of 64 positions", "64个位置的编码"),
                shades(sinusoidal_positions(64, 32)),
                Words("position", "位置"),
                Words("dimension, fast to slow", "维度，由快到慢"),
                most=1.0,
            ),
            Heat(
                Words("The turn R(5): a block for each pair", "转换矩阵R(5)：每对维度一块"),
                shades(rotation(DELTA, D)[:24, :24]),
                Words("dimension of p(i + 5)", "p(i+5)的维度"),
                Words("dimension of p(i)", "p(i)的维度"),
                most=1.0,
                is_signed=True,
            ),
            Heat(
                Words("What a linear map learned", "线性映射学到的矩阵"),
                shades(matrix[:24, :24]),
                Words("dimension of p(i + 5)", "p(i+5)的维度"),
                Words("dimension of p(i)", "p(i)的维度"),
                most=1.0,
                is_signed=True,
            ),
            Lines(
                Words("Trained to length 16, and beyond", "训练到长度16，再往后"),
                Words("length", "长度"),
                Words("tokens named right", "说对的词元比例"),
                tuple(
                    Trace(names[kind], tuple((float(n), a) for n, a in by.items()), "both")
                    for kind, by in accuracy.items()
                ),
                low=0.0,
                high=1.0,
            ),
        ),
    )
