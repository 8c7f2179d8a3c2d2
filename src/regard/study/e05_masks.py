"""e05: what breaks without the padding mask, and what without the causal one (002).

The padding mask keeps filler out of a sentence; the causal mask keeps the answer out of the
question. Masked scores become minus infinity, so masked keys weigh exactly 0.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attention import (
    Layout,
    SelfAttention,
    attend,
    causal_mask,
    padding_mask,
    scaled_dot_scores,
)
from regard.attention.layout import positions_of
from regard.attention.masks import memory_mask
from regard.config import ModelConfig
from regard.model import Transformer, build_model
from regard.study.claim import Claim, Result, at_least, at_most
from regard.study.contents import CONTENTS
from regard.study.learning import DIGITS, digit_task, loss_and_accuracy, share_exact, teach
from regard.view.panels import Bar, Bars, Figure, Heat, Words

D, N = 32, 6
LENGTHS = range(2, 6)
PADDING = Claim(
    note="002",
    words=Words(
        "Masked filler changes nothing: a padded sentence gives what the sentence alone gives.",
        "遮住无意义词元后，填充不起作用：填充过的句子与单独的句子结果相同。",
    ),
    measured=Words(
        "largest change by five tokens of filler",
        "添加五个填充词元引起的最大变化",
    ),
    bound=at_most(1e-5),
    control=Words(
        "the same without the mask",
        "没有掩码时的同一变化",
    ),
)
CAUSAL = Claim(
    note="002",
    words=Words(
        "The causal mask makes place i depend on places up to i alone.",
        "因果掩码保证第i个位置只依赖它和它之前的位置。",
    ),
    measured=Words(
        "largest change of earlier places by another last token",
        "改换最后一个词元时，前面位置的最大变化",
    ),
    bound=at_most(1e-6),
    control=Words(
        "the same without the mask",
        "没有掩码时的同一变化",
    ),
)
CHEATING = Claim(
    note="002",
    words=Words(
        "So a decoder trained with it can write by itself; without it, training only teaches "
        "it to copy the answer it is shown.",
        "因此用因果掩码训练的解码器能自己写出答案；没有它，训练只教会解码器抄写看到的答案。",
    ),
    measured=Words(
        "share of digit sequences copied exactly by a network that writes alone",
        "网络自己逐词写出时完全正确的数字序列比例",
    ),
    bound=at_least(0.5),
    control=Words(
        "the same, trained without the mask",
        "训练时没有掩码的同一比例",
    ),
)
ZEROED = Claim(
    note="001",
    words=Words(
        "The mask sets the information after time t to 0.",
        "掩码把t时间后的信息置为0。",
    ),
    measured=Words(
        "mean weight on the future when its keys and values are 0",
        "把未来的键和值置为0时，落在未来的平均权重",
    ),
    bound=at_most(0.0),
    control=Words(
        "the same with scores of −∞",
        "评分置为−∞时的同一权重",
    ),
    remark=Words(
        "Note 001 sets the information after t to 0. A key of zeros has score 0, and exp(0) = "
        "1: it still takes its share of the weight. What is set is the score, and to minus "
        "infinity.",
        "笔记001说把t时间后的信息置为0。全零的键评分为0，而exp(0) = 1，它照样分走权重。要改的是"
        "评分，而且要改成负无穷。",
    ),
)
EMPTY = Claim(
    note="004",
    words=Words(
        "Filling masked scores with −1e10 nulls out the attention to masked tokens.",
        "用−1e10填充被遮的评分，就能去掉对被遮词元的注意力。",
    ),
    measured=Words(
        "weight on masked keys of a query that may attend to none, by −1e10",
        "没有可关注的键时，−1e10给被遮键的权重之和",
    ),
    bound=at_most(0.0),
    control=Words(
        "the same by masked_softmax",
        "用masked_softmax时的同一权重",
    ),
    remark=Words(
        "With note 004's −1e10 a query that may attend to nothing attends to everything alike, "
        "filler included, because softmax of equal scores is uniform. Rows with at least one "
        "key are right.",
        "按笔记004用−1e10填充时，一个没有可关注对象的查询会平均地关注所有词元，填充也在内，因为"
        "相等的评分经softmax就是均匀分布。至少有一个键的行没有问题。",
    ),
)


class Unmasked(nn.Module):
    """A Transformer whose decoder sees the whole target while it is trained."""

    def __init__(self, network: Transformer) -> None:
        super().__init__()
        self.network = network

    def forward(
        self,
        src_ids: Int[Tensor, "B S"],
        tgt_ids: Int[Tensor, "B T"],
        src: Layout | None = None,
        tgt: Layout | None = None,
    ) -> Float[Tensor, "B T V"]:
        """Teacher forcing with nothing hidden but the filler."""
        memory, n = self.network.encode(src_ids, src), tgt_ids.shape[-1]
        x = self.network.target(tgt_ids, positions_of(tgt, n, tgt_ids.device))
        mask = None if tgt is None else padding_mask(tgt.lens, n)
        crossed = memory_mask(tgt, src, memory.output.shape[-2])
        return self.network.output(self.network.decoder(x, memory.output, mask, crossed).output)


def run(seed: int, quick: bool) -> Result:
    """Random attention for what is exact, two small networks for what is learned."""
    x, attention = torch.randn(1, N, D), SelfAttention(D, 4).eval()
    query, key = torch.randn(2, N, D)
    weights = {
        "none": weights_of(query, key),
        "zeroed": zeroed(query, key),
        "infinity": weights_of(query, key, causal_mask(N)),
    }
    nothing = torch.zeros(1, N, dtype=torch.bool)
    updates, n_pairs = (150, 100) if quick else (500, 500)
    honest, cheat = (
        taught(seed, updates, n_pairs, is_masked=is_masked) for is_masked in (True, False)
    )
    findings = (
        PADDING.found(
            padding_change(attention, x, is_masked=True),
            padding_change(attention, x, is_masked=False),
        ),
        CAUSAL.found(
            future_change(attention, x, is_masked=True),
            future_change(attention, x, is_masked=False),
        ),
        CHEATING.found(honest[1], cheat[1]),
        ZEROED.found(future_weight(weights["zeroed"]), future_weight(weights["infinity"])),
        EMPTY.found(
            float(filled(query, key, nothing)[0].sum()),
            float(weights_of(query, key, nothing)[0].sum()),
        ),
    )
    return Result(findings, _figure(weights, honest, cheat))


def padding_change(attention: SelfAttention, x: Tensor, *, is_masked: bool) -> float:
    """How much a sentence's answer changes when it is filled up."""
    longer = torch.cat([x, torch.randn(1, 5, D)], dim=1)
    mask = padding_mask(torch.tensor([N]), N + 5) if is_masked else None
    with torch.no_grad():
        change = attention(longer, mask).output[:, :N] - attention(x).output
    return float(change.abs().max())


def future_change(attention: SelfAttention, x: Tensor, *, is_masked: bool) -> float:
    """How much the answers before the last token change when it does."""
    other = torch.cat([x[:, :-1], torch.randn(1, 1, D)], dim=1)
    mask = causal_mask(N) if is_masked else None
    with torch.no_grad():
        change = attention(other, mask).output - attention(x, mask).output
    return float(change[:, :-1].abs().max())


def taught(seed: int, updates: int, n_pairs: int, *, is_masked: bool) -> tuple[float, float]:
    """Copying learned: the share of tokens right from the true prefix, and of sequences alone."""
    torch.manual_seed(seed)
    config = ModelConfig(
        d_model=D, n_layers=1, n_heads=2, d_ff=64, norm="pre", dropout=0.0, max_len=32
    )
    network = build_model(config, len(DIGITS), len(DIGITS))
    assert isinstance(network, Transformer)
    trained = network if is_masked else Unmasked(network)
    teach(trained, digit_task("copy", seed, LENGTHS), updates=updates, lr=1e-2, seed=seed)
    unseen = digit_task("copy", seed, LENGTHS, "test")
    _, accuracy = loss_and_accuracy(trained, unseen, n_pairs)
    return accuracy, share_exact(network.eval(), unseen, n_pairs)


def weights_of(query: Tensor, key: Tensor, mask: Tensor | None = None) -> Tensor:
    """Each query's weights on the keys."""
    weights = attend(query, key, key, scaled_dot_scores, mask).weights
    assert weights is not None
    return weights


def zeroed(query: Tensor, key: Tensor) -> Tensor:
    """Row t as it is when the keys after t are vectors of zeros."""
    places = torch.arange(len(key))
    known = [key.masked_fill(places[:, None] > t, 0.0) for t in places]
    return torch.stack([weights_of(query, keys)[t] for t, keys in enumerate(known)])


def filled(query: Tensor, key: Tensor, mask: Tensor) -> Tensor:
    """The weights as note 004 masks them."""
    return scaled_dot_scores(query, key).masked_fill(~mask, -1e10).softmax(-1)


def future_weight(weights: Tensor) -> float:
    """How much of a row lies after its own place, in the mean of those that have an after."""
    return float(weights.triu(1).sum(-1)[:-1].mean())


def _figure(
    weights: dict[str, Tensor], honest: tuple[float, float], cheat: tuple[float, float]
) -> Figure:
    titles = {
        "none": Words("No mask", "没有掩码"),
        "zeroed": Words("Future information set to 0", "未来的信息置为0"),
        "infinity": Words("Future scores set to −∞", "未来的评分置为−∞"),
    }
    heats = tuple(
        Heat(
            titles[name],
            tuple(map(tuple, matrix.tolist())),
            Words("query at place", "查询的位置"),
            Words("key at place", "键的位置"),
            rows=tuple("123456"),
            columns=tuple("123456"),
            most=1.0,
            has_numbers=True,
        )
        for name, matrix in weights.items()
    )
    bars = Bars(
        Words("Trained with and without", "有无因果掩码的训练"),
        Words("share right", "正确的比例"),
        (
            Words("tokens, true prefix", "给真前缀时的词元"),
            Words("sequences, alone", "自己写的序列"),
        ),
        (Words("causal mask", "因果掩码"), Words("no mask", "无掩码")),
        tuple((Bar(a), Bar(b)) for a, b in zip(honest, cheat, strict=True)),
        high=1.0,
    )
    return Figure(CONTENTS["e05_masks"], (*heats, bars), columns=2)
