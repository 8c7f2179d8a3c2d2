"""e08: note 002's table of CNN, RNN and self-attention, measured (001, 002).

                  cost        sequential   longest path
convolution       k n d^2     1            n / k
recurrence        n d^2       n            n
self-attention    n^2 d       1            1
"""

import torch
from torch import Tensor, nn

from regard.attention import attend, scaled_dot_scores
from regard.model import Encoder, EncoderLayer
from regard.model.convolutional import ConvolutionalEncoder, ConvolutionLayer
from regard.model.recurrent_encoder import RecurrentEncoder
from regard.study.claim import Claim, Limit, Result, at_least, at_most
from regard.study.contents import CONTENTS
from regard.study.measuring import Call, exponent, longest_chain, seconds
from regard.view.panels import Figure, Lines, Trace, Words

KERNEL = 5
RAISED = str.maketrans("0123456789.-", "⁰¹²³⁴⁵⁶⁷⁸⁹·⁻")
NAMES = {
    "convolution": Words("convolution", "卷积"),
    "recurrence": Words("recurrence", "循环"),
    "attention": Words("self-attention", "自注意力"),
    "projected": Words("with projections", "连同投影"),
}
COST_N = Claim(
    note="002",
    words=Words(
        "Self-attention costs O(n²d): four times as much for twice the length, where "
        "recurrence and convolution cost twice as much.",
        "自注意力的计算复杂度是O(n²d)：长度加倍，代价变为四倍；循环和卷积只变为两倍。",
    ),
    measured=Words(
        "exponent of n in the time of self-attention",
        "自注意力用时中n的指数",
    ),
    bound=at_least(1.5),
    control=Words(
        "the same for convolution",
        "卷积的同一指数",
    ),
)
COST_D = Claim(
    note="002",
    words=Words(
        "Convolution costs O(knd²) and self-attention O(n²d): of the width, one costs the "
        "square and the other the width itself.",
        "卷积的复杂度是O(knd²)，自注意力是O(n²d)：前者随宽度平方增长，后者随宽度线性增长。",
    ),
    measured=Words(
        "exponent of d in the time of convolution",
        "卷积用时中d的指数",
    ),
    bound=at_least(1.5),
    control=Words(
        "the same for self-attention",
        "自注意力的同一指数",
    ),
    limit=Limit(
        Words(
            "the same for self-attention with its four projections, which the table leaves "
            "out: they cost O(nd²)",
            "自注意力连同四个投影时的同一指数；表中没有计入投影，其代价是O(nd²)",
        ),
        at_least(1.3),
    ),
)
SEQUENTIAL = Claim(
    note="001, 002",
    words=Words(
        "Recurrence takes O(n) steps that wait for one another, self-attention O(1): it can be "
        "computed in parallel.",
        "循环网络要O(n)个依次进行的步骤，自注意力只要O(1)，因此可以并行。",
    ),
    measured=Words(
        "operations that wait for one another, the longest sequence over one of 5 tokens, "
        "self-attention",
        "依次等待的运算数，最长序列与5个词元之比，自注意力",
    ),
    bound=at_most(1.1),
    control=Words(
        "the same for recurrence",
        "循环的同一比值",
    ),
)
PATH = Claim(
    note="002",
    words=Words(
        "The longest path between two tokens is O(1) for self-attention; a stack of "
        "convolutions needs O(n/k) layers.",
        "自注意力中任意两个词元之间的最大路径长度是O(1)；卷积则要堆叠O(n/k)层。",
    ),
    measured=Words(
        "layers until the first token of the longest sequence reaches the last, self-attention",
        "最长序列中第一个词元影响到最后一个所需的层数，自注意力",
    ),
    bound=at_most(1),
    control=Words(
        "the same for convolutions of 5 tokens",
        "宽5的卷积所需的层数",
    ),
)
FADING = Claim(
    note="001, 002",
    words=Words(
        "Over long sequences a recurrent network loses what came early: its gradient vanishes.",
        "序列长时，循环网络容易丢失早期信息：梯度会消失。",
    ),
    measured=Words(
        "gradient from 63 tokens back over that from one back, recurrence",
        "来自63个词元之前的梯度与来自前一个词元的梯度之比，循环",
    ),
    bound=at_most(0.01),
    control=Words(
        "the same for self-attention",
        "自注意力的同一比值",
    ),
)
BASED_ON = Claim(
    note="001",
    words=Words(
        "The Transformer is based on the recurrent neural network, with self-attention added.",
        "Transformer是基于循环神经网络、加入自注意力机制的模型。",
    ),
    measured=Words(
        "how many times longer the chain of operations is for the longest sequence than for 5 "
        "tokens, Transformer",
        "最长序列的运算链是5个词元时的多少倍，Transformer",
    ),
    bound=at_least(2.0),
    control=Words(
        "the same for a recurrent network",
        "循环网络的同一倍数",
    ),
    remark=Words(
        "Note 001 calls the Transformer an RNN with self-attention. It has no recurrence at "
        "all, as notes 002 and 004 say: no step of the encoder waits for the token before.",
        "笔记001把Transformer说成基于RNN、加入自注意力的模型。其实它完全没有循环，正如笔记002和"
        "004所说：编码器里没有哪一步要等前一个词元。",
    ),
)
Times = dict[int, dict[str, float]]


def run(seed: int, quick: bool) -> Result:
    """Time against length and width, chains of waiting operations, and how far gradients reach."""
    rounds = 5 if quick else 15
    lengths = (256, 512, 1024) if quick else (256, 512, 1024, 2048)
    by_length = timed({n: calls(n, 128) for n in lengths}, rounds)
    by_width = timed({d: calls(128, d) for d in (256, 512, 1024)}, rounds)
    grows = {name: slope(by_length, name) for name in NAMES}
    widens = {name: slope(by_width, name) for name in NAMES}
    reach = (5, 9, 17) if quick else (5, 9, 17, 33, 65)
    chains = {n: {name: longest_chain(read(name, torch.randn(1, n, 16))) for name in ENCODERS}
              for n in reach}  # fmt: skip
    layers = {n: {"convolution": layers_needed("convolution", n),
                  "attention": layers_needed("attention", n)} for n in reach}  # fmt: skip
    fades = {name: faded(name, 64) for name in ENCODERS}
    last = reach[-1]
    findings = (
        COST_N.found(grows["attention"], grows["convolution"]),
        COST_D.found(widens["convolution"], widens["attention"], widens["projected"]),
        SEQUENTIAL.found(
            chains[last]["attention"] / chains[5]["attention"],
            chains[last]["recurrence"] / chains[5]["recurrence"],
        ),
        PATH.found(layers[last]["attention"], layers[last]["convolution"]),
        FADING.found(
            fades["recurrence"][-1] / fades["recurrence"][1],
            fades["attention"][-1] / fades["attention"][1],
        ),
        BASED_ON.found(
            chains[last]["attention"] / chains[5]["attention"],
            chains[last]["recurrence"] / chains[5]["recurrence"],
        ),
    )
    return Result(findings, _figure(by_length, by_width, chains, layers, fades))


def timed(ready: dict[int, dict[str, Call]], rounds: int) -> Times:
    """The time of each, all sizes and kinds in turn."""
    took = seconds(
        {(size, name): call for size, each in ready.items() for name, call in each.items()}, rounds
    )
    return {size: {name: took[size, name] for name in NAMES} for size in ready}


def slope(times: Times, name: str) -> float:
    """The exponent by which time grows."""
    return exponent(list(times), [took[name] for took in times.values()])


def encoder(name: str, d_model: int, n_layers: int = 1) -> nn.Module:
    """One of three encoders with one interface."""
    match name:
        case "convolution":
            layers = [ConvolutionLayer(d_model, KERNEL, dropout=0.0) for _ in range(n_layers)]
            return ConvolutionalEncoder(layers, nn.Identity())
        case "recurrence":
            return RecurrentEncoder(d_model, n_layers)
        case _:
            return Encoder(
                [EncoderLayer(d_model, 4, d_model, dropout=0.0) for _ in range(n_layers)],
                nn.Identity(),
            )


ENCODERS = ("convolution", "recurrence", "attention")


def calls(n: int, d: int) -> dict[str, Call]:
    """A layer of each kind over n tokens of width d, ready to be called."""
    x = torch.randn(1, n, d)
    convolution, recurrence = encoder("convolution", d), encoder("recurrence", d)
    projected = EncoderLayer(d, 1, d).attention
    return {
        "convolution": _without_gradient(lambda: convolution(x)),
        "recurrence": _without_gradient(lambda: recurrence(x)),
        "attention": _without_gradient(lambda: attend(x, x, x, scaled_dot_scores)),
        "projected": _without_gradient(lambda: projected(x, wants_weights=True)),
    }


def _without_gradient(call: Call) -> Call:
    def quietly() -> object:
        with torch.inference_mode():
            return call()

    return quietly


def read(name: str, x: Tensor) -> Tensor:
    """The last token after one layer, and the way its gradient would take."""
    return encoder(name, x.shape[-1])(x.requires_grad_()).output[0, -1].sum()


def layers_needed(name: str, n: int) -> int:
    """Layers until the gradient of the last token reaches the first."""
    for n_layers in range(1, n + 1):
        x = torch.randn(1, n, 16, requires_grad=True)
        (encoder(name, 16, n_layers)(x).output[0, -1] @ torch.randn(16)).backward()
        assert x.grad is not None
        if float(x.grad[0, 0].abs().max()) > 0:
            return n_layers
    return n


def faded(name: str, n: int) -> list[float]:
    """How large the gradient of the last token is at the token so many places back."""
    sizes = torch.zeros(n)
    for _ in range(8):
        x = torch.randn(1, n, 32, requires_grad=True)
        output = encoder(name, 32)(x).output[0, -1]
        (gradient,) = torch.autograd.grad(output @ torch.randn(32), x)
        sizes += gradient[0].norm(dim=-1).flip(0) / 8
    return sizes.tolist()


def _figure(
    by_length: Times,
    by_width: Times,
    chains: dict[int, dict[str, int]],
    layers: dict[int, dict[str, int]],
    fades: dict[str, list[float]],
) -> Figure:
    return Figure(
        CONTENTS["e08_three_encoders"],
        (
            _time_plot(
                Words("Time against length (d = 128)", "用时与长度（d = 128）"),
                Words("tokens n", "词元数n"),
                by_length,
                "n",
            ),
            _time_plot(
                Words("Time against width (n = 128)", "用时与宽度（n = 128）"),
                Words("width d", "宽度d"),
                by_width,
                "d",
            ),
            _step_plot(chains, layers),
            Lines(
                Words("How far one layer's gradient reaches", "一层的梯度能传多远"),
                Words("tokens back", "往回的词元数"),
                Words("size of the gradient", "梯度大小"),
                tuple(
                    Trace(
                        NAMES[name],
                        tuple((float(k), g) for k, g in enumerate(fades[name]) if g > 1e-12),
                    )
                    for name in ENCODERS
                ),
                is_log_up=True,
            ),
        ),
    )


def _time_plot(title: Words, across: Words, times: Times, letter: str) -> Lines:
    """Milliseconds over sizes, each line with the exponent it grows by."""
    traces = []
    for name, words in NAMES.items():
        grows = letter + f"{slope(times, name):.1f}".translate(RAISED)
        traces.append(
            Trace(
                Words(f"{words.english}, {grows}", f"{words.chinese}，{grows}"),
                tuple((size, 1e3 * took[name]) for size, took in times.items()),
                "both",
            )
        )
    up = Words("milliseconds", "毫秒")
    return Lines(title, across, up, tuple(traces), is_log_across=True, is_log_up=True)


def _step_plot(chains: dict[int, dict[str, int]], layers: dict[int, dict[str, int]]) -> Lines:
    shown = (
        (Words("recurrence: chain of operations", "循环：运算链"), chains, "recurrence"),
        (Words("self-attention: chain", "自注意力：运算链"), chains, "attention"),
        (Words("convolution: layers to see all", "卷积：看到全句的层数"), layers, "convolution"),
        (Words("self-attention: layers", "自注意力：层数"), layers, "attention"),
    )
    return Lines(
        Words("Steps and layers against length", "步骤数、层数与长度"),
        Words("tokens n", "词元数n"),
        Words("number", "数目"),
        tuple(
            Trace(words, tuple((n, one[name]) for n, one in counted.items()), "both")
            for words, counted, name in shown
        ),
        is_log_across=True,
        is_log_up=True,
    )
