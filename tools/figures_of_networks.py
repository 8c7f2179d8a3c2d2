"""The pictures of pages 7 to 12 of docs/*/learn: networks."""

from collections.abc import Callable, Iterable
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

import regard
from figure_parts import KEY, QUERY, fit, heat, values
from regard.attention import SelfAttention, causal_mask, rotation, sinusoidal_positions
from regard.bundle import open_bundle
from regard.config import ModelConfig
from regard.decode.engines.torch import load_network
from regard.model import Encoder, EncoderLayer, FeedForward, Transformer, build_model
from regard.model.convolutional import ConvolutionalEncoder, ConvolutionLayer
from regard.model.recurrent_encoder import RecurrentEncoder
from regard.view.panels import Bar, Bars, Figure, Heat, Lines, Trace, Words, same

MODEL = Path(__file__).resolve().parents[1] / "tests" / "models" / "tatoeba-zh-en"


def reach() -> Figure:
    """How much the last output feels each input."""
    encoders: dict[Words, nn.Module] = {
        Words("convolution, 3 layers of width 3", "卷积，3层，核宽3"): ConvolutionalEncoder(
            [ConvolutionLayer(16, kernel=3, dropout=0.0) for _ in range(3)], nn.Identity()
        ),
        Words("recurrence, 1 layer", "循环，1层"): RecurrentEncoder(16),
        Words("self-attention, 1 layer", "自注意力，1层"): Encoder(
            [EncoderLayer(16, 2, 32, dropout=0.0)], nn.Identity()
        ),
    }
    traces = []
    for name, encoder in encoders.items():
        torch.manual_seed(0)
        x = torch.randn(1, 40, 16, requires_grad=True)
        encoder(x).output[0, -1, 0].backward()
        assert x.grad is not None
        felt = x.grad[0].abs().sum(-1)
        felt = felt / felt[-1]
        shown = ((i + 1.0, float(one)) for i, one in enumerate(felt) if one > 0)
        traces.append(Trace(name, tuple(shown), "both"))
    plot = Lines(
        Words("gradient of the last output, by place", "最后一个输出对各位置的梯度"),
        Words("place of the input", "输入的位置"),
        Words("gradient, the last place = 1", "梯度，以最后一个位置为1"),
        tuple(traces),
        is_log_up=True,
    )
    return Figure(Words("How far the last token sees", "最后一个词元能看多远"), (plot,), 1)


def positions() -> Figure:
    """The sinusoidal table, and some of its columns."""
    table = sinusoidal_positions(n=60, d=32).float()
    drawn = Heat(
        Words("rows are places, columns are dimensions", "行是位置，列是维度"),
        values(table),
        Words("place i", "位置i"),
        Words("dimension", "维度"),
        is_signed=True,
    )
    columns = tuple(
        Trace(
            Words(f"dimension {j}", f"第{j}维"), tuple((i, float(table[i, j])) for i in range(60))
        )
        for j in (4, 5, 10, 11)
    )
    lines = Lines(
        Words("four of the columns", "其中四列"), Words("place i", "位置i"), same("p"), columns
    )
    return Figure(Words("Sinusoidal positions", "正弦位置编码"), (drawn, lines))


def rotated() -> Figure:
    """The matrix of a shift, and one pair of columns going round."""
    matrix = Heat(
        Words("R(5) for 8 dimensions", "R(5)，8维"),
        values(rotation(delta=5, d=8)),
        Words("dimension at place i + 5", "位置i + 5的维度"),
        Words("dimension at place i", "位置i的维度"),
        has_numbers=True,
        is_signed=True,
    )
    table = sinusoidal_positions(n=56, d=8)
    pairs = tuple(
        Trace(
            Words(f"dimensions {j} and {j + 1}", f"第{j}、{j + 1}维"),
            tuple((float(row[j]), float(row[j + 1])) for row in table[::5]),
            "both",
        )
        for j in (2, 4)
    )
    circle = Lines(
        Words("every fifth place, as a point", "每隔五个位置，画成一点"),
        Words("sine", "正弦"),
        Words("cosine", "余弦"),
        pairs,
    )
    return Figure(Words("A shift by five places", "移动五个位置"), (matrix, circle))


def scaled() -> Figure:
    """How long a row of the embedding is, before and after √d, beside a position."""
    torch.manual_seed(0)
    rows, before, after, beside = [], [], [], []
    for d in (64, 256, 512):
        small = ModelConfig(d_model=d, n_heads=4, d_ff=64, n_layers=1)
        row = build_model(small, 100, 100).source.weight.detach().norm(dim=-1).mean()
        rows.append(same(f"d = {d}"))
        before.append(Bar(float(row)))
        after.append(Bar(float(d**0.5 * row)))
        beside.append(Bar(float(sinusoidal_positions(3, d).norm(dim=-1).mean())))
    plot = Bars(
        Words("mean length of a vector", "向量的平均长度"),
        Words("length", "长度"),
        tuple(rows),
        (Words("row", "一行"), Words("row × √d", "一行 × √d"), Words("position", "位置")),
        tuple(zip(before, after, beside, strict=True)),
    )
    return Figure(Words("Embeddings beside positions", "嵌入与位置编码相比"), (plot,), 1)


def mixing() -> Figure:
    """Which tokens change when one changes."""
    torch.manual_seed(0)
    attention, feed_forward = SelfAttention(16, 2), FeedForward(16, 64)
    output, place = Words("output token", "输出词元"), Words("changed token", "被改的词元")
    plots = (
        heat(
            Words("self-attention", "自注意力"),
            _changes(lambda x: attention(x).output),
            output,
            place,
        ),
        heat(Words("feed-forward", "前馈网络"), _changes(feed_forward), output, place),
    )
    return Figure(Words("Who mixes tokens", "谁在混合词元"), plots)


def norms() -> Figure:
    """Tokens stay unlike each other, with the residual."""
    names = Words("with the residual", "有残差"), Words("without", "没有残差")
    points: tuple[list[tuple[float, float]], ...] = ([], [])
    torch.manual_seed(0)
    layers = [EncoderLayer(64, 4, 256, dropout=0.0, norm="pre") for _ in range(12)]
    for layer in layers:
        layer.requires_grad_(False)
    kept = bare = torch.randn(1, 8, 64)
    for depth, layer in enumerate(layers, start=1):
        kept = layer(kept)[0]
        bare = layer.attention(layer.attention_residual.enter(bare)).output
        bare = layer.feed_forward(layer.feed_forward_residual.enter(bare))
        for series, y in zip(points, (kept, bare), strict=True):
            series.append((depth, float((y - y.mean(1, keepdim=True)).norm() / y.norm())))
    plot = Lines(
        Words("distance of the tokens from their mean", "各词元离平均值多远"),
        Words("layers", "层数"),
        Words("share of their size", "占自身大小的比例"),
        tuple(Trace(n, tuple(p), "both") for n, p in zip(names, points, strict=True)),
        low=0,
        high=1,
    )
    return Figure(
        Words("Without residuals tokens become alike", "没有残差，词元会变得一样"), (plot,), 1
    )


def stacked() -> Figure:
    """Where the six encoder layers of the bundled model look, one after the other."""
    attended = regard.load().attend("我喜欢机器学习。")
    pieces = tuple(attended.src_pieces)
    plots = tuple(
        Heat(
            Words(f"layer {number}", f"第{number}层"),
            values(torch.as_tensor(layer).mean(0)),
            QUERY,
            KEY,
            rows=pieces,
            columns=pieces,
            most=1.0,
        )
        for number, layer in enumerate(attended.encoder, start=1)
    )
    return Figure(Words("Six equal layers, mean of 8 heads", "六个同样的层，8个头的平均"), plots, 3)


def dependence() -> Figure:
    """Which logits depend on which tokens of target and source."""
    torch.manual_seed(0)
    small = ModelConfig(d_model=32, n_heads=2, d_ff=64, n_layers=2, dropout=0.0)
    model = build_model(small, 10, 10).eval()
    src_ids, tgt_ids = torch.tensor([[5, 6, 7, 8]]), torch.tensor([[0, 8, 7, 6, 5]])
    plain = model(src_ids, tgt_ids)
    by_target = [model(src_ids, _replaced(tgt_ids, t)) - plain for t in range(5)]
    by_source = [model(_replaced(src_ids, t), tgt_ids) - plain for t in range(4)]
    output = Words("output at place", "输出的位置")
    plots = tuple(
        heat(name, torch.stack([one[0].abs().amax(-1) for one in all_]).T.gt(0).float(), output, by)
        for name, all_, by in (
            (
                Words("on the target", "取决于目标"),
                by_target,
                Words("changed target", "被改的目标"),
            ),
            (Words("on the source", "取决于源"), by_source, Words("changed source", "被改的源")),
        )
    )
    return Figure(Words("Which outputs depend on which tokens", "哪些输出取决于哪些词元"), plots)


def shifted() -> Figure:
    """What teacher forcing gives the decoder, and what it asks."""
    given, asked = ("<s>", "I", "like", "pears"), ("I", "like", "pears", "</s>")
    drawn = Heat(
        Words("dark: this word may be seen", "深色：可以看到这个词"),
        values(causal_mask(4).float()),
        Words("word to say", "要说出的词"),
        Words("words given, shifted right", "给定的词，右移一位"),
        rows=asked,
        columns=given,
    )
    return Figure(
        Words("Teacher forcing: one batch, all places", "强制教学：一次算完所有位置"), (drawn,), 1
    )


def pieces() -> Figure:
    """A translation as a row of choices."""
    bundle = open_bundle(MODEL)
    network = load_network(bundle, torch.device("cpu"))
    assert isinstance(network, Transformer)
    vocab = bundle.tgt_tokenizer.vocab
    src = [*bundle.src_tokenizer.encode("我喜欢吃苹果。"), bundle.src_tokenizer.vocab.eos]
    tgt = bundle.tgt_tokenizer.encode("I like eating apples.")
    logits = network(torch.tensor([src]), torch.tensor([[vocab.bos, *tgt]])).detach()
    rows, bars = [], []
    for place, word in enumerate([*tgt, vocab.eos]):
        p = torch.softmax(logits[0, place].float(), dim=-1)
        others = p.clone()
        others[word] = 0
        rows.append(same(f"{vocab.piece(word)} / {vocab.piece(int(others.argmax()))}"))
        bars.append((Bar(float(p[word])), Bar(float(others.max()))))
    plot = Bars(
        Words("the piece, and the likeliest other one", "词片，以及最可能的另一个"),
        Words("probability", "概率"),
        tuple(rows),
        (Words("chosen", "选中的"), Words("other", "另一个")),
        tuple(bars),
        high=1,
    )
    return Figure(same("我喜欢吃苹果。→ I like eating apples."), (plot,), 1)


def asked() -> Figure:
    """The note's words alone and in a sentence: what each written piece looked at."""
    translator = regard.load()
    plots = []
    for text in ("机器学习", "我喜欢机器学习。"):
        attended = translator.attend(text)
        plots.append(
            Heat(
                same(text),
                values(torch.as_tensor(attended.cross[-1]).mean(0)),
                Words("written", "写出的"),
                Words("looked at", "看着的"),
                rows=tuple(attended.tgt_pieces),
                columns=tuple(attended.src_pieces),
                most=1.0,
                has_numbers=True,
            )
        )
    return Figure(
        Words(
            "Cross-attention of the last layer, mean of 8 heads",
            "最后一层的交叉注意力，8个头的平均",
        ),
        tuple(plots),
    )


def sorting() -> Figure:
    """The loss of a network that learns to sort five digits."""
    torch.manual_seed(0)
    config = ModelConfig(d_model=32, n_heads=2, d_ff=64, n_layers=1, dropout=0.0, norm="pre")
    model = build_model(config, 10, 10)

    def loss() -> Tensor:
        src_ids = torch.randint(1, 10, (32, 5))
        tgt_ids = src_ids.sort(-1).values
        logits = model(src_ids, F.pad(tgt_ids, (1, 0))[:, :-1])
        return F.cross_entropy(logits.flatten(0, 1), tgt_ids.flatten())

    losses = fit(model, loss, steps=600, lr=5e-3)
    means = [(i, sum(losses[i - 20 : i]) / 20) for i in range(20, 601, 20)]
    plot = Lines(
        Words("a Transformer learns to sort five digits", "Transformer学习给五个数字排序"),
        Words("updates", "更新次数"),
        Words("loss", "损失"),
        (Trace(Words("training", "训练"), tuple(means)),),
        low=0,
    )
    return Figure(Words("Another text-to-text task", "另一个文本到文本的任务"), (plot,), 1)


def _changes(layer: Callable[[Tensor], Tensor]) -> Tensor:
    """1 where an output, down, changes with an input, across."""
    x = torch.randn(6, 16)
    columns: Iterable[Tensor] = (
        (layer(x + 3 * F.one_hot(torch.tensor(t), 6)[:, None]) - layer(x)).abs().amax(-1)
        for t in range(6)
    )
    return torch.stack([*columns]).T.gt(1e-6).float()


def _replaced(ids: Tensor, place: int) -> Tensor:
    other = ids.clone()
    other[0, place] = 9
    return other
