"""e10: layer norm against batch norm, each of note 002's four reasons alone (002).

Layer norm looks at one token, batch norm at one coordinate of all tokens of the batch.
"""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from regard.attention import SinusoidalPositions, causal_mask, padding_mask
from regard.model import Embedding, Encoder, EncoderLayer
from regard.model.layers import PostNorm
from regard.study.claim import Claim, Limit, Result, at_least, at_most
from regard.study.contents import CONTENTS
from regard.train.optim import make_optimizer, make_schedule
from regard.view.panels import Bar, Bars, Figure, Lines, Trace, Words

D, N_WORDS, PAD = 32, 10, 10
SHORTEST, LONGEST = 3, 12
LENGTHS = Claim(
    note="002",
    words=Words(
        "Sequences differ in length, and layer norm is the steadier: longer neighbours in the "
        "batch change nothing.",
        "序列长度不同，层规范化更稳定：同批次里的句子变长，对本句没有影响。",
    ),
    measured=Words(
        "largest change of a sentence when another of its batch grows, layer norm",
        "同批次的另一句变长时，本句的最大变化，层规范化",
    ),
    bound=at_most(1e-4),
    control=Words(
        "the same with batch norm",
        "批量规范化的同一变化",
    ),
)
RESIDUAL = Claim(
    note="002",
    words=Words(
        "Layer norm suits residual connections: at any depth every token enters with one size.",
        "层规范化有利于残差连接的计算：无论多深，每个词元都以同样的大小进入下一层。",
    ),
    measured=Words(
        "how unlike the sizes of tokens are after 12 layers (deviation over mean), layer norm",
        "12层之后各词元大小的差异（标准差与均值之比），层规范化",
    ),
    bound=at_most(0.02),
    control=Words(
        "the same with batch norm",
        "批量规范化的同一差异",
    ),
)
MIXING = Claim(
    note="002",
    words=Words(
        "Batch norm mixes what different places say: even the future leaks past the causal mask.",
        "批量规范化会混杂不同位置的信息：连未来的信息也会越过因果掩码泄漏出来。",
    ),
    measured=Words(
        "largest change of earlier places by another last token, under the causal mask, batch norm",
        "有因果掩码时，改换最后一个词元使前面位置产生的最大变化，批量规范化",
    ),
    bound=at_least(1e-3),
    control=Words(
        "the same with layer norm",
        "层规范化的同一变化",
    ),
)
DEEP = Claim(
    note="002",
    words=Words(
        "Norms after every sub-layer let deep networks converge.",
        "每个子层之后的规范化保证深层网络的收敛。",
    ),
    measured=Words(
        "loss without any norm less that with layer norm, 12 layers",
        "没有规范化与层规范化的损失之差，12层",
    ),
    bound=at_least(0.03),
    control=Words(
        "the same with 2 layers",
        "2层时的同一差值",
    ),
    limit=Limit(
        Words(
            "the same at the depth that suits no norm best: where a network is shallow enough to "
            "converge anyway, the norm slows it down",
            "在最适合无规范化的深度上的同一差值：网络浅到本来就能收敛时，规范化反而拖慢学习",
        ),
        at_most(-0.03),
    ),
)
ABLATION = Claim(
    note="002",
    words=Words(
        "Ablations show, too, that layer norm does better.",
        "消融实验也表明层规范化的效果更好。",
    ),
    measured=Words(
        "loss with batch norm less that with layer norm, mean of all depths",
        "批量规范化与层规范化的损失之差，各深度的平均",
    ),
    bound=at_least(0.03),
    control=Words(
        "the same without any norm, 12 layers",
        "12层、没有规范化时的同一差值",
    ),
    remark=Words(
        "Note 002 refers to the Transformer's ablations, but the paper's table does not vary the "
        "norm. So the comparison is run here, on a small task, from 2 layers to 12.",
        "笔记002提到Transformer的消融实验，但原论文的消融表并没有比较规范化方式。"
        "所以在这里用一个小任务从2层到12层做一遍。",
    ),
)


class BatchNorm(nn.Module):
    """Batch norm over all tokens of all sentences, filler included, as it comes."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(d_model)

    def forward(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        """Each coordinate with mean 0 and variance 1 over the batch."""
        return self.norm(x.flatten(0, -2)).view_as(x)


class Reader(nn.Module):
    """An encoder that names, for every token, the one before it."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.embedding = Embedding(N_WORDS + 1, D, SinusoidalPositions(D, LONGEST))
        self.encoder = encoder
        self.output = nn.Linear(D, N_WORDS)

    def forward(self, ids: Int[Tensor, "B T"], lens: Int[Tensor, "B"]) -> Float[Tensor, "B T V"]:
        """Logits of the token before."""
        x = self.embedding(ids, torch.arange(LONGEST))
        return self.output(self.encoder(x, padding_mask(lens, LONGEST)).output)


Norm = type[nn.Module]
Losses = dict[Norm, dict[int, float]]
NORMS: tuple[Norm, ...] = (nn.LayerNorm, BatchNorm, nn.Identity)


def run(seed: int, quick: bool) -> Result:
    """Three reasons by one pass of a random stack, the others by training."""
    depths = (2, 12) if quick else (2, 4, 6, 8, 12)
    updates, rows = (70, 32) if quick else (250, 32)
    losses = {norm: {d: taught(seed, d, norm, updates, rows) for d in depths} for norm in NORMS}
    findings = (
        LENGTHS.found(by_lengths(nn.LayerNorm), by_lengths(BatchNorm)),
        RESIDUAL.found(spread_of_sizes(nn.LayerNorm), spread_of_sizes(BatchNorm)),
        MIXING.found(by_future(BatchNorm), by_future(nn.LayerNorm)),
        DEEP.found(
            lead(losses, nn.Identity, [12]),
            lead(losses, nn.Identity, [2]),
            min(lead(losses, nn.Identity, [depth]) for depth in depths),
        ),
        ABLATION.found(lead(losses, BatchNorm, depths), lead(losses, nn.Identity, [12])),
    )
    return Result(findings, _figure(losses))


def lead(losses: Losses, norm: Norm, depths: Sequence[int]) -> float:
    """How much more is lost than with layer norm."""
    return sum(losses[norm][d] - losses[nn.LayerNorm][d] for d in depths) / len(depths)


def stack(n_layers: int, norm: Norm) -> Encoder:
    """Post-norm layers, initialised as the paper's, with this norm in the place of their own."""
    layers = [EncoderLayer(D, 2, 2 * D, dropout=0.0) for _ in range(n_layers)]
    encoder = Encoder(layers, nn.Identity())
    for module in encoder.modules():
        if isinstance(module, PostNorm):
            module.norm = norm(D)  # type: ignore[assignment]
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
    return encoder


@torch.no_grad()
def by_lengths(norm: type[nn.Module]) -> float:
    """How much a sentence's output changes when the other of its batch is longer."""
    encoder, own = stack(2, norm), torch.randn(1, 5, D)
    outputs = []
    for n in (5, 20):
        rows = torch.zeros(2, n, D)
        rows[0, :5], rows[1] = own[0], torch.randn(n, D)
        outputs.append(encoder(rows, padding_mask(torch.tensor([5, n]), n)).output[0, :5])
    return float((outputs[0] - outputs[1]).abs().max())


@torch.no_grad()
def spread_of_sizes(norm: type[nn.Module]) -> float:
    """How unlike the lengths of the tokens' vectors are after twelve layers."""
    sizes = stack(12, norm)(torch.randn(8, 20, D)).output.norm(dim=-1)
    return float(sizes.std() / sizes.mean())


@torch.no_grad()
def by_future(norm: type[nn.Module]) -> float:
    """How much places before the last change when the last token does."""
    encoder, x = stack(2, norm), torch.randn(1, 6, D)
    other = torch.cat([x[:, :-1], torch.randn(1, 1, D)], dim=1)
    change = encoder(other, causal_mask(6)).output - encoder(x, causal_mask(6)).output
    return float(change[:, :-1].abs().max())


def taught(seed: int, depth: int, norm: Norm, updates: int, rows: int) -> float:
    """The loss on unseen sequences after so many updates; what is no number counts as chance."""
    torch.manual_seed(seed)
    network = Reader(stack(depth, norm))
    optimizer = make_optimizer(network.parameters(), 3e-3)
    rate = make_schedule("cosine", 3e-3, updates // 5, updates)
    for step in range(1, updates + 1):
        optimizer.param_groups[0]["lr"] = rate(step)
        optimizer.zero_grad()
        loss = loss_of(network, rows)
        if not loss.isfinite():
            break
        loss.backward()
        nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
    with torch.no_grad():
        unseen = float(loss_of(network.eval(), 400))
    chance = math.log(N_WORDS)
    return min(unseen, chance) if math.isfinite(unseen) else chance


def loss_of(network: Reader, rows: int) -> Tensor:
    """The loss on sequences of different lengths, filled up."""
    lens = torch.randint(SHORTEST, LONGEST + 1, (rows,))
    is_word = torch.arange(LONGEST) < lens[:, None]
    ids = torch.randint(0, N_WORDS, (rows, LONGEST)).masked_fill(~is_word, PAD)
    before = ids[:, :-1].masked_fill(~is_word[:, 1:], PAD)
    logits = network(ids, lens)[:, 1:]
    return F.cross_entropy(logits.flatten(0, 1), before.flatten(), ignore_index=PAD)


def _figure(losses: Losses) -> Figure:
    names = {
        nn.LayerNorm: Words("layer norm", "层规范化"),
        BatchNorm: Words("batch norm", "批量规范化"),
        nn.Identity: Words("none", "无"),
    }
    changes = (
        (Words("a longer neighbour", "邻句变长"), by_lengths),
        (Words("another future", "未来改变"), by_future),
        (Words("sizes of tokens", "词元大小"), spread_of_sizes),
    )
    return Figure(
        CONTENTS["e10_norms"],
        (
            Bars(
                Words("What changes a token that should not", "不该有的影响"),
                Words("change", "变化"),
                tuple(words for words, _ in changes),
                (names[nn.LayerNorm], names[BatchNorm]),
                tuple((Bar(f(nn.LayerNorm)), Bar(f(BatchNorm))) for _, f in changes),
            ),
            Lines(
                Words("Loss after training, by depth", "训练后的损失与深度"),
                Words("layers", "层数"),
                Words("loss on unseen sequences", "未见序列的损失"),
                tuple(
                    Trace(names[norm], tuple((float(d), v) for d, v in by.items()), "both")
                    for norm, by in losses.items()
                ),
                low=0.0,
            ),
        ),
    )
