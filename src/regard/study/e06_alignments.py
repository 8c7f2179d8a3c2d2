"""e06: Bahdanau's decoder learns by itself which word to read: for reversed digits, from behind.

c_t = sum_i a(s_{t-1}, h_i) h_i      the decoder's state asks, the encoder's states answer (002)
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from regard.config import ModelConfig
from regard.data.batch import Batch
from regard.model import Recurrent, build_model
from regard.study.claim import Claim, Result, at_least, at_most
from regard.study.contents import CONTENTS
from regard.study.learning import DIGITS, batch_of, digit_task, teach
from regard.train.trainer import Trainer
from regard.view.panels import Figure, Heat, Lines, Trace, Words

ALIGNED = Claim(
    note="002",
    words=Words(
        "In predicting a token the model aligns with the part of the source that matters: for "
        "reversed digits, from the last to the first.",
        "预测词元时，模型只对齐输入中与当前预测相关的部分：对于倒写的数字，就是从最后一个到第一"
        "个。",
    ),
    measured=Words(
        "mean weight on the digit that is to be written next",
        "落在接下来应写的那个数字上的平均权重",
    ),
    bound=at_least(0.35),
    control=Words(
        "the same before training",
        "训练前的同一权重",
    ),
)
BACKWARDS = Claim(
    note="002",
    words=Words(
        "No strict one-way alignment is built in: the attended place may run backwards.",
        "没有严格的单向对齐限制：所关注的位置可以倒着走。",
    ),
    measured=Words(
        "correlation of the place attended to with the place written",
        "所关注的位置与所写位置的相关系数",
    ),
    bound=at_most(-0.7),
    control=Words(
        "the same before training",
        "训练前的同一系数",
    ),
)
VALID = Claim(
    note="002",
    words=Words(
        "All states of the encoder are asked at every step, and the mask hides what is not valid.",
        "每一步都会用到编码器所有时间步的状态，并用掩码遮蔽无效内容。",
    ),
    measured=Words(
        "largest weight on filler",
        "落在填充上的最大权重",
    ),
    bound=at_most(0.0),
    control=Words(
        "the same without the mask",
        "没有掩码时的同一权重",
    ),
)


def run(seed: int, quick: bool) -> Result:
    """Teach a GRU with additive attention to reverse digits, and look at its weights on the way."""
    lengths = range(2, 6) if quick else range(2, 9)
    updates, every = (240, 60) if quick else (900, 60)
    torch.manual_seed(seed)
    config = ModelConfig(kind="recurrent", d_model=64, n_layers=1, dropout=0.0, max_len=32)
    network = build_model(config, len(DIGITS), len(DIGITS))
    assert isinstance(network, Recurrent)
    batch = batch_of(digit_task("reverse", seed, lengths, "test"), range(100))
    seen: dict[int, Tensor] = {0: weights_of(network.eval(), batch)}

    def look(trainer: Trainer) -> None:
        seen[trainer.state.step] = weights_of(network.eval(), batch)

    teach(
        network,
        digit_task("reverse", seed, lengths),
        updates=updates,
        lr=5e-3,
        seed=seed,
        hooks=[(every, look)],
    )
    lens, before, after = batch.src.lens, seen[0], seen[updates]
    findings = (
        ALIGNED.found(aligned_weight(after, lens), aligned_weight(before, lens)),
        BACKWARDS.found(order(after, lens), order(before, lens)),
        VALID.found(
            on_filler(after, lens), on_filler(weights_of(network, batch, is_masked=False), lens)
        ),
    )
    return Result(findings, _figure(seen, batch))


@torch.no_grad()
def weights_of(network: Recurrent, batch: Batch, *, is_masked: bool = True) -> Tensor:
    """By sentence, target place and source place."""
    layouts = (batch.src, batch.tgt) if is_masked else (None, None)
    return network.explain(batch.src_ids, batch.tgt_ids, *layouts).cross[0, :, 0]


def aligned_weight(weights: Tensor, lens: Tensor) -> float:
    """The mean weight on the anti-diagonal: digit n - t is written at place t."""
    return float(torch.cat([one[t, n - 1 - t] for one, n, t in _places(weights, lens)]).mean())


def order(weights: Tensor, lens: Tensor) -> float:
    """Whether the attended place goes along with the written one, 1, or against it, -1.

    Both are in shares of the sentence; the attended place is the mean by weight.
    """
    pairs = []
    for one, n, t in _places(weights, lens):
        if n > 1:
            middle = one[t] @ torch.arange(one.shape[1], dtype=one.dtype)
            pairs.append(torch.stack([t / (n - 1), middle / (n - 1)]))
    return float(torch.corrcoef(torch.cat(pairs, dim=1))[0, 1])


def on_filler(weights: Tensor, lens: Tensor) -> float:
    """The most that any place after a sentence's end is given."""
    return max(
        float(one[:, n:].max())
        for one, n in zip(weights, lens, strict=True)
        if n < weights.shape[-1]
    )


def _places(weights: Tensor, lens: Tensor) -> Iterator[tuple[Tensor, int, Tensor]]:
    """Each sentence's weights, how many digits it has, and the places at which they are written."""
    for one, length in zip(weights, lens.tolist(), strict=True):
        n = length - 1  # the end of the sentence stands behind the digits
        yield one, n, torch.arange(n)


def _figure(seen: dict[int, Tensor], batch: Batch) -> Figure:
    lens = batch.src.lens
    row = int(lens.argmax())
    n = int(lens[row])
    source = tuple(DIGITS.piece(int(id)) for id in batch.src_ids[row, :n])
    target = tuple(DIGITS.piece(int(id)) for id in batch.labels[row, :n])
    steps = list(seen)
    heats = tuple(
        Heat(
            Words(f"After {step} updates", f"{step}次更新之后"),
            tuple(map(tuple, seen[step][row, :n, :n].tolist())),
            Words("written", "写出"),
            Words("read", "读入"),
            rows=(*target[:-1], "⏎"),
            columns=(*source[:-1], "⏎"),
            most=1.0,
        )
        for step in (steps[0], steps[len(steps) // 3], steps[-1])
    )
    course = Lines(
        Words("The alignment is learned", "对齐是学出来的"),
        Words("updates", "更新次数"),
        Words("weight on the next digit", "下一个数字的权重"),
        (
            Trace(
                Words("unseen sequences", "未见过的序列"),
                tuple((float(step), aligned_weight(w, lens)) for step, w in seen.items()),
                "both",
            ),
        ),
        low=0.0,
        high=1.0,
    )
    return Figure(CONTENTS["e06_alignments"], (*heats, course), columns=4)
