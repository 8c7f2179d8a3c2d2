"""e13: which tokens 君 attends to in its poem, in a translator's encoder, as it is (003)."""

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from regard.model import Transformer, build_model
from regard.study.claim import Claim, Result, at_least
from regard.study.contents import CONTENTS
from regard.study.reading import Opened, opened
from regard.text.vocab import EOS
from regard.view.panels import Figure, Heat, Words
from regard.view.pieces import Units, as_words

POEM = "梦里若有，梦是反的：梦里若无，唯梦闲人不梦君。"
LOST = POEM.replace("闲人", "闲云")
WHO, PERSON = "君", "人"
PERSON_FOUND = Claim(
    note="003",
    words=Words(
        "To know whom 君 means, attention looks for a person in the context: 君 attends to 人 "
        "more than to other characters.",
        "要知道“君”指谁，注意力会在上下文中寻找人物：“君”对“人”的关注多于其他字。",
    ),
    measured=Words(
        "weight of 君 on 人 over its mean weight on a character, all layers and heads",
        "“君”对“人”的权重与对一个字的平均权重之比，取所有层和头的平均",
    ),
    bound=at_least(1.5),
    control=Words(
        "the same in a network that has learned nothing",
        "未经训练的网络的同一倍数",
    ),
    otherwise=Words(
        "the token that 君 attends to most, in the same measure",
        "“君”关注最多的词元的同一倍数",
    ),
)
CONTEXT = Claim(
    note="003",
    words=Words(
        "Attention corrects the dictionary: what 君 means after the encoder depends on the text.",
        "注意力对“字典”做修正：编码之后“君”的含义取决于上下文。",
    ),
    measured=Words(
        "change of 君 after the encoder when 人 becomes 云, relative",
        "把“人”换成“云”时，编码后“君”的相对变化",
    ),
    bound=at_least(1e-3),
    control=Words(
        "the same before the encoder, in the embedding alone",
        "编码之前（只看嵌入）的同一变化",
    ),
)


@dataclass(frozen=True, slots=True)
class Row:
    """What 君 looks at: by layer and head, the weight of each unit of the text."""

    units: Units
    weights: Tensor

    def lift(self) -> float:
        """The weight on 人 over the mean weight of all characters that are not 君 itself."""
        mean = self.weights.mean(dim=(0, 1))
        content = [
            place
            for place, (label, is_sink) in enumerate(
                zip(self.units.labels, self.units.is_sink, strict=True)
            )
            if not is_sink and WHO not in label
        ]
        return float(mean[place_of(self.units, PERSON)] / mean[content].mean())

    def best_lift(self) -> float:
        """The same for the unit that gets most."""
        mean = self.weights.mean(dim=(0, 1))
        return float(mean.max() / mean.mean())


def run(seed: int, quick: bool, model: Path | None = None) -> Result:
    """One look into the encoder, and one into an encoder that has learned nothing."""
    read = opened(model)
    row = row_of(read, read.network)
    config, vocab = read.bundle.model, read.bundle.src_tokenizer.vocab
    torch.manual_seed(seed)
    blank = build_model(config, len(vocab), len(read.bundle.tgt_tokenizer.vocab)).eval()
    assert isinstance(blank, Transformer)
    findings = (
        PERSON_FOUND.found(row.lift(), row_of(read, blank).lift(), otherwise=row.best_lift()),
        CONTEXT.found(changed(read, POEM, LOST), changed(read, POEM, LOST, is_encoded=False)),
    )
    return Result(findings, _figure(row), read.in_words)


@torch.no_grad()
def row_of(read: Opened, network: Transformer) -> Row:
    """The weights of 君 on every unit of the poem."""
    ids = read.ids(POEM)
    units = as_words(read.pieces(ids))
    x = network.source(ids, torch.arange(ids.shape[1]))
    layers = network.encoder(x, wants_weights=True).weights
    weights_LHSS = torch.stack(layers)[:, 0]
    own = units.starts[place_of(units, WHO)]
    rows = weights_LHSS[:, :, own : own + units.sizes[place_of(units, WHO)]].mean(dim=2)
    by_unit = [
        rows[..., at : at + n].sum(-1) for at, n in zip(units.starts, units.sizes, strict=True)
    ]
    return Row(units, torch.stack(by_unit, dim=-1))


def place_of(units: Units, character: str) -> int:
    """The last unit that holds a character."""
    return max(place for place, label in enumerate(units.labels) if character in label)


@torch.no_grad()
def changed(read: Opened, one: str, other: str, *, is_encoded: bool = True) -> float:
    """How much the vector of 君 differs between two texts."""
    found = []
    for text in (one, other):
        ids = read.ids(text)
        units = as_words(read.pieces(ids))
        x = read.embedded(ids)
        x = read.network.encoder(x).output if is_encoded else x
        found.append(x[0, units.starts[place_of(units, WHO)]])
    return float((found[0] - found[1]).norm() / found[0].norm())


def _figure(row: Row) -> Figure:
    """The layers, their mean, and the head that looks most at 人, which is one of many."""
    by_layer = row.weights.mean(dim=1)
    by_head = row.weights[..., place_of(row.units, PERSON)]
    layer, head = divmod(int(by_head.argmax()), by_head.shape[1])
    rows = torch.cat([by_layer, by_layer.mean(0, keepdim=True), row.weights[layer, head][None]])
    return Figure(
        CONTENTS["e13_poem"],
        (
            Heat(
                Words(
                    "The weights of 君, and the head that looks most at 人",
                    "“君”的权重，以及最关注“人”的头",
                ),
                tuple(map(tuple, rows.tolist())),
                Words("query 君", "查询：君"),
                Words("key", "键"),
                rows=(
                    *(Words(f"layer {n + 1}", f"第{n + 1}层") for n in range(len(by_layer))),
                    Words("all layers", "所有层"),
                    Words(f"layer {layer + 1}, head {head + 1}", f"第{layer + 1}层第{head + 1}头"),
                ),
                columns=tuple("⏎" if label == EOS else label for label in row.units.labels),
                has_numbers=True,
            ),
        ),
    )
