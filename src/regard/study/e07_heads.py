"""e07: what 1, 2, 4 and 8 heads learn: each can look at one thing, so many see many (001, 002).

The task wants, for every token, its two neighbours on either side: four things at once, by one
layer of self-attention. A head averages what it sees, so a single head has to blur the four.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from regard.attention import SelfAttention, SinusoidalPositions
from regard.model import Embedding
from regard.study.claim import Claim, Result, at_least, at_most
from regard.study.contents import CONTENTS
from regard.train.optim import make_optimizer, make_schedule
from regard.view.panels import Bar, Bars, Figure, Heat, Words, same

N_WORDS, LENGTH, D = 10, 12, 64
OFFSETS = (-2, -1, 1, 2)
HEADS = (1, 2, 4, 8)
SPAN = 4  # offsets from -SPAN to SPAN are told apart
NEARLY = 0.8  # places that get so much of what the best one gets are part of a head's name
CHANCES = Claim(
    note="001",
    words=Words(
        "Several heads give more chances to learn: the same width, cut into heads, sees more.",
        "使用多头是为了增加学习机会：同样的宽度，分成多个头就能看到更多。",
    ),
    measured=Words(
        "neighbours named right by 4 heads",
        "4个头说对相邻词元的比例",
    ),
    bound=at_least(0.6),
    control=Words(
        "the same by 1 head",
        "1个头的同一比例",
    ),
)
DIFFERENT = Claim(
    note="002",
    words=Words(
        "Under the same conditions, different heads learn different behaviours.",
        "在相同条件下，不同的头学到不同的行为。",
    ),
    measured=Words(
        "share of weight that the two most unlike of 4 heads put in different places",
        "4个头中最不相似的两个，权重落在不同位置的比例",
    ),
    bound=at_least(0.4),
    control=Words(
        "the same before training",
        "训练前的同一比例",
    ),
)
LINEAR = Claim(
    note="002",
    words=Words(
        "The relations between tokens are learned by multi-head attention, which is linear.",
        "词元之间的关系由线性的多头注意力学习。",
    ),
    measured=Words(
        "how far f(x + y) is from f(x) + f(y), relative, multi-head attention",
        "多头注意力的f(x+y)与f(x)+f(y)的相对差距",
    ),
    bound=at_most(1e-4),
    control=Words(
        "the same for its value projection alone",
        "只看值投影时的同一差距",
    ),
    remark=Words(
        "Note 002 calls multi-head attention linear. Its projections are, and with the weights "
        "held still so is the average; but the weights themselves are a softmax of products of "
        "the input.",
        "笔记002说多头注意力是线性的。投影是线性的，固定权重时加权平均也是线性的；但权重本身是"
        "输入之积的softmax。",
    ),
)


class Neighbours(nn.Module):
    """One layer of self-attention that names the tokens around each token."""

    def __init__(self, n_heads: int) -> None:
        super().__init__()
        self.embedding = Embedding(N_WORDS, D, SinusoidalPositions(D, LENGTH))
        self.attention = SelfAttention(D, n_heads)
        self.output = nn.Linear(D, len(OFFSETS) * N_WORDS)

    def forward(self, ids: Int[Tensor, "B T"]) -> Float[Tensor, "B T _ V"]:
        """Logits for each of the neighbours."""
        x = self.embedding(ids, torch.arange(LENGTH))
        return self.output(self.attention(x).output).unflatten(-1, (len(OFFSETS), N_WORDS))

    def weights(self, ids: Int[Tensor, "B T"]) -> Float[Tensor, "B H T T"]:
        """What each head looks at."""
        x = self.embedding(ids, torch.arange(LENGTH))
        weights = self.attention(x, wants_weights=True).weights
        assert weights is not None
        return weights


@dataclass(frozen=True, slots=True)
class Learned:
    """How many neighbours were named right, and the mean weight of each head at each offset."""

    accuracy: float
    profiles: tuple[tuple[float, ...], ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Each head named by the places it looks at most, such as -1 +1."""
        return tuple(
            " ".join(
                f"{place - SPAN:+d}" if place != SPAN else "0"
                for place, weight in enumerate(profile)
                if weight >= NEARLY * max(profile)
            )
            for profile in self.profiles
        )

    @property
    def difference(self) -> float:
        """How unlike the two most unlike heads are: the share of weight that lies elsewhere."""
        profiles = torch.tensor(self.profiles)
        profiles = profiles / profiles.sum(-1, keepdim=True)
        return float(torch.cdist(profiles, profiles, p=1).max()) / 2


def run(seed: int, quick: bool) -> Result:
    """The same layer, cut into 1, 2, 4 and 8 heads, on the same task."""
    updates = 250 if quick else 1000
    learned = {n: teach(seed, n, updates) for n in ((1, 4) if quick else HEADS)}
    attention, value = SelfAttention(D, 4, bias=False), nn.Linear(D, D, bias=False)
    findings = (
        CHANCES.found(learned[4].accuracy, learned[1].accuracy),
        DIFFERENT.found(learned[4].difference, teach(seed, 4, 0).difference),
        LINEAR.found(unlike_linear(lambda x: attention(x).output), unlike_linear(value)),
    )
    return Result(findings, _figure(learned))


def teach(seed: int, n_heads: int, updates: int) -> Learned:
    """Train on sequences that never repeat, then look at ones that were not trained on."""
    torch.manual_seed(seed)
    network = Neighbours(n_heads)
    optimizer = make_optimizer(network.parameters(), 1e-2)
    rate = make_schedule("cosine", 1e-2, updates // 10, updates)
    for step in range(1, updates + 1):
        optimizer.param_groups[0]["lr"] = rate(step)
        ids = torch.randint(0, N_WORDS, (64, LENGTH))
        optimizer.zero_grad()
        F.cross_entropy(
            network(ids).flatten(0, -2), around(ids).flatten(), ignore_index=-1
        ).backward()
        optimizer.step()
    with torch.no_grad():
        ids = torch.randint(0, N_WORDS, (200, LENGTH))
        wanted = around(ids)
        is_right = network(ids).argmax(-1) == wanted
        return Learned(
            float(is_right[wanted >= 0].float().mean()), profiles_of(network.weights(ids))
        )


def around(ids: Tensor) -> Tensor:
    """Each token's neighbours; -1 where there is none."""
    beside = F.pad(ids, (2, 2), value=-1)
    return torch.stack([beside[:, 2 + offset : 2 + offset + LENGTH] for offset in OFFSETS], dim=-1)


def profiles_of(weights: Tensor) -> tuple[tuple[float, ...], ...]:
    """For each head its mean weight on the token so many places away, where there is one."""
    mean = weights.mean(0)
    return tuple(
        tuple(float(head.diagonal(offset).mean()) for offset in range(-SPAN, SPAN + 1))
        for head in mean
    )


def unlike_linear(f: Callable[[Tensor], Tensor]) -> float:
    """|f(x + y) - f(x) - f(y)| over |f(x + y)|: 0 for what is linear."""
    x, y = torch.randn(2, 1, LENGTH, D)
    with torch.no_grad():
        together = f(x + y)
        return float((together - f(x) - f(y)).norm() / together.norm())


def _figure(learned: dict[int, Learned]) -> Figure:
    heats = tuple(
        Heat(
            Words(f"{n} head" + "s" * (n > 1), f"{n}个头"),
            one.profiles,
            Words("head, named by its place", "头，以所看位置命名"),
            Words("place looked at, from the token itself", "所看的位置（相对词元自身）"),
            rows=one.names,
            columns=tuple(f"{offset:+d}" if offset else "0" for offset in range(-SPAN, SPAN + 1)),
            most=1.0,
        )
        for n, one in learned.items()
    )
    bars = Bars(
        Words("Task: name the 4 neighbours", "任务：说出前后各两个词元"),
        Words("share named right", "说对的比例"),
        tuple(Words(f"{n} head" + "s" * (n > 1), f"{n}个头") for n in learned),
        (same(""),),
        tuple((Bar(one.accuracy),) for one in learned.values()),
        high=1.0,
    )
    return Figure(CONTENTS["e07_heads"], (*heats, bars), columns=3)
