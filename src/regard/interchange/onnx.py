"""A model as two ONNX graphs that any runtime can open, without regard and without torch.

encoder.onnx    src_ids, src_mask  ->  every decoder layer's keys and values of the source
decoder.onnx    token, src_mask, those, and keys and values of what is written
                ->  logits of the next word, and the latter one word longer

Batch, source and what is written may have any length; at the start nothing is written, and the
keys and values have length 0.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard import __version__
from regard.config import ModelConfig
from regard.errors import ConfigError, ModelError
from regard.interchange.carried import Carried
from regard.interchange.names import places
from regard.interchange.onnx_graph import Graph
from regard.interchange.positions import position_table
from regard.interchange.probe import check_written
from regard.interchange.taken import Weights
from regard.storage import write_json, written_whole
from regard.tensors import check_finite

NEVER = -1e9  # added to the score of what is no word

Arrays = Mapping[str, NDArray[Any]]


def write_onnx(carried: Carried, path: Path, dtype: str = "float32") -> None:
    """The model as a directory of graphs, tokenizers, and a table of what a search must know."""
    try:
        import onnx
    except ImportError as error:
        raise ConfigError(
            "{what} needs a package that cannot be imported ({reason}); pip install "
            "'regard[{extra}]'",
            what="--to onnx",
            reason=error,
            extra="onnx",
        ) from None

    model = carried.model
    _check_place(model)
    if dtype != "float32":
        raise ModelError(
            "{setting} has no place in the graphs regard writes for ONNX, which have {theirs}",
            setting=f'dtype = "{dtype}"',
            theirs='"float32"',
        )
    sides = carried.src_tokenizer, carried.tgt_tokenizer
    weights = _weights(carried)
    graphs = {
        "encoder.onnx": _encoder(model, weights).model(f"regard {__version__}"),
        "decoder.onnx": _decoder(model, weights).model(f"regard {__version__}"),
    }
    with written_whole(path) as building:
        for name, graph in graphs.items():
            onnx.save(graph, building / name)
        for tokenizer, side in zip(sides, ("src", "tgt"), strict=True):
            tokenizer.save(building / f"{side}_tokenizer")
        check_written(building, sides)
        write_json(building / "config.json", _facts(carried))
        (building / "README.md").write_text(_card(carried), encoding="utf-8")


@dataclass(frozen=True, slots=True)
class _Stack:
    """One side's layers on their way into a graph."""

    graph: Graph
    model: ModelConfig
    weights: Arrays
    n_heads: int
    turn: tuple[str, str] | None  # cosines and sines of rotary positions

    def linear(self, x: str, name: str) -> str:
        """A linear layer by our name of it."""
        return self.graph.linear(
            x, self.weights[f"{name}.weight"], self.weights[f"{name}.bias"], name
        )

    def norm(self, x: str, name: str) -> str:
        """A norm by our name of it."""
        return self.graph.norm(
            x, self.weights[f"{name}.weight"], self.weights[f"{name}.bias"], name
        )

    def entered(self, x: str, name: str) -> str:
        """What a sublayer is given."""
        return self.norm(x, f"{name}.norm") if self.model.norm == "pre" else x

    def left(self, x: str, y: str, name: str) -> str:
        """What comes out of a sublayer's residual."""
        x = self.graph.add("Add", [x, y])
        return x if self.model.norm == "pre" else self.norm(x, f"{name}.norm")

    def closed(self, x: str, name: str) -> str:
        """What leaves the last layer."""
        return self.norm(x, f"{name}.norm") if self.model.norm == "pre" else x

    @property
    def scale(self) -> float:
        """What scores are multiplied by."""
        width = self.model.d_model // self.n_heads
        return width**-0.5 if self.model.score == "scaled_dot" else 1.0

    def projected(self, x: str, name: str, n: int) -> list[str]:
        """n projections of x that lie side by side, in heads."""
        parts = self.graph.add_all("Split", [self.linear(x, name)], n, {"axis": -1})
        return [self.graph.split_heads(part, self.n_heads) for part in parts]

    def self_projected(self, x: str, layer: str) -> list[str]:
        """Query, key and value of x, turned where positions are rotary."""
        query, key, value = self.projected(x, f"{layer}.attention.qkv", 3)
        if self.turn is not None:
            query, key = (self.graph.turned(one, *self.turn) for one in (query, key))
        return [query, key, value]

    def fed_forward(self, x: str, layer: str) -> str:
        """The feed-forward sublayer in its residual."""
        inner = self.linear(
            self.entered(x, f"{layer}.feed_forward_residual"), f"{layer}.feed_forward.inner"
        )
        active = self.graph.activated(inner, self.model.activation)
        outer = self.linear(active, f"{layer}.feed_forward.outer")
        return self.left(x, outer, f"{layer}.feed_forward_residual")


def _encoder(model: ModelConfig, weights: Arrays) -> Graph:
    graph = Graph("encoder")
    n_layers, n_heads, _ = model.encoder
    ids = graph.takes("src_ids", np.int64, "batch", "source")
    bias = _bias(graph, graph.takes("src_mask", np.bool_, "batch", "source"))
    length = graph.add("Gather", [graph.add("Shape", [ids]), graph.constant(np.array(1))])
    zero, one = graph.constant(np.array(0)), graph.constant(np.array(1))
    places = graph.add("Range", [zero, length, one])
    stack = _Stack(graph, model, weights, n_heads, _turn(graph, model, n_heads, places))
    x = _embedded(graph, model, weights, "source", ids, places)
    for number in range(n_layers):
        layer = f"encoder.layers.{number}"
        query, key, value = stack.self_projected(
            stack.entered(x, f"{layer}.attention_residual"), layer
        )
        attended = graph.joined_heads(graph.attended(query, key, value, stack.scale, bias))
        y = stack.linear(attended, f"{layer}.attention.out")
        x = stack.fed_forward(stack.left(x, y, f"{layer}.attention_residual"), layer)
    memory = stack.closed(x, "encoder")
    n_layers, n_heads, _ = model.decoder
    readers = _Stack(graph, model, weights, n_heads, None)
    for number in range(n_layers):
        name = f"decoder.layers.{number}.cross_attention.key_value"
        key, value = readers.projected(memory, name, 2)
        width = model.d_model // n_heads
        for kind, result in (("key", key), ("value", value)):
            graph.gives(f"memory_{kind}_{number}", result, "batch", n_heads, "source", width)
    return graph


def _decoder(model: ModelConfig, weights: Arrays) -> Graph:
    graph = Graph("decoder")
    n_layers, n_heads, _ = model.decoder
    width = model.d_model // n_heads
    token = graph.takes("token", np.int64, "batch")
    bias = _bias(graph, graph.takes("src_mask", np.bool_, "batch", "source"))
    takes = {
        f"{side}_{kind}_{number}": graph.takes(
            f"{side}_{kind}_{number}", np.float32, "batch", n_heads, length, width
        )
        for number in range(n_layers)
        for side, length in (("memory", "source"), ("past", "written"))
        for kind in ("key", "value")
    }
    shape = graph.add("Shape", [takes["past_key_0"]])
    place = graph.add("Gather", [shape, graph.constant(np.array([2]))])  # as many as are written
    stack = _Stack(graph, model, weights, n_heads, _turn(graph, model, n_heads, place))
    ids = graph.add("Unsqueeze", [token, graph.constant(np.array([1]))])
    x = _embedded(graph, model, weights, "target", ids, place)
    for number in range(n_layers):
        layer = f"decoder.layers.{number}"
        x = _decoder_layer(stack, x, layer, number, takes, bias)
    x = graph.add("Squeeze", [stack.closed(x, "decoder"), graph.constant(np.array([1]))])
    name = {"all": "source", "target": "target", "none": "output"}[model.share] + ".weight"
    output = graph.constant(weights[name], name)
    inputs = [x, output]
    if model.output_bias:
        inputs.append(graph.constant(weights["output.bias"], "output.bias"))
    logits = graph.add("Gemm", inputs, {"transB": 1})
    graph.gives("logits", logits, "batch", len(weights[name]))
    graph.outputs.insert(0, graph.outputs.pop())
    return graph


def _decoder_layer(
    stack: _Stack, x: str, layer: str, number: int, takes: Mapping[str, str], bias: str
) -> str:
    graph, width = stack.graph, stack.model.d_model // stack.n_heads
    query, *news = stack.self_projected(stack.entered(x, f"{layer}.attention_residual"), layer)
    key, value = (
        graph.add("Concat", [takes[f"past_{kind}_{number}"], new], {"axis": 2})
        for kind, new in zip(("key", "value"), news, strict=True)
    )
    for name, result in ((f"key_{number}", key), (f"value_{number}", value)):
        graph.gives(name, result, "batch", stack.n_heads, "written_and_one", width)
    attended = graph.joined_heads(graph.attended(query, key, value, stack.scale, None))
    y = stack.linear(attended, f"{layer}.attention.out")
    x = stack.left(x, y, f"{layer}.attention_residual")
    [query] = stack.projected(
        stack.entered(x, f"{layer}.cross_residual"), f"{layer}.cross_attention.query", 1
    )
    key, value = (takes[f"memory_{kind}_{number}"] for kind in ("key", "value"))
    crossed = graph.joined_heads(graph.attended(query, key, value, stack.scale, bias))
    y = stack.linear(crossed, f"{layer}.cross_attention.out")
    return stack.fed_forward(stack.left(x, y, f"{layer}.cross_residual"), layer)


def _bias(graph: Graph, mask: str) -> str:
    """Zero for words and very small for what fills up, for every head and query."""
    axes = graph.constant(np.array([1, 2]))
    bias = graph.add("Where", [mask, graph.constant(0.0), graph.constant(NEVER)])
    return graph.add("Unsqueeze", [bias, axes])


def _embedded(
    graph: Graph, model: ModelConfig, weights: Arrays, side: str, ids: str, places: str
) -> str:
    """The vectors that enter the first layer."""
    name = "source.weight" if model.share == "all" else f"{side}.weight"
    x = graph.add("Gather", [graph.constant(weights[name], name), ids])
    if model.scale_embeddings:
        x = graph.add("Mul", [x, graph.constant(model.d_model**0.5)])
    if model.positions in ("sinusoidal", "learned"):
        table = position_table(model) if model.positions == "sinusoidal" else None
        table = weights[f"{side}.positions.table"] if table is None else table
        x = graph.add("Add", [x, graph.add("Gather", [graph.constant(table), places])])
    return x


def _turn(graph: Graph, model: ModelConfig, n_heads: int, places: str) -> tuple[str, str] | None:
    if model.positions != "rotary":
        return None
    width = model.d_model // n_heads
    angles = np.arange(model.max_len)[:, None] * 10000.0 ** (-np.arange(0, width, 2) / width)
    cos, sin = (
        graph.add("Gather", [graph.constant(table.astype(np.float32)), places])
        for table in (np.cos(angles), np.sin(angles))
    )
    return cos, sin


def _weights(carried: Carried) -> dict[str, NDArray[Any]]:
    model = carried.model
    n_src, n_tgt = (len(one.vocab) for one in (carried.src_tokenizer, carried.tgt_tokenizer))
    weights = Weights(carried.weights)
    table = {p.own: weights.take(p.own, *p.shape) for p in places(model, n_src, n_tgt, "marian")}
    if model.positions == "learned":
        for side in ("source", "target"):
            name = f"{side}.positions.table"
            table[name] = weights.take(name, model.max_len, model.d_model)
    weights.check()
    check_finite(table)
    return table


def _check_place(model: ModelConfig) -> None:
    for name, has in (("kind", ("transformer",)), ("score", ("scaled_dot", "dot"))):
        value = getattr(model, name)
        if value not in has:
            raise ModelError(
                "{setting} has no place in the graphs regard writes for ONNX, which have {theirs}",
                setting=f'model.{name} = "{value}"',
                theirs=" and ".join(f'"{one}"' for one in has),
            )


def _facts(carried: Carried) -> dict[str, Any]:
    vocab = carried.tgt_tokenizer.vocab
    return {
        "regard": __version__,
        "ids": {
            "src_pad": carried.src_tokenizer.vocab.pad, "src_eos": carried.src_tokenizer.vocab.eos,
            "bos": vocab.bos, "eos": vocab.eos, "pad": vocab.pad,
        },
        "languages": dict(carried.src_tokenizer.vocab.languages),
        "layers": carried.model.decoder[0],
        "heads": carried.model.decoder[1],
        "width": carried.model.d_model // carried.model.decoder[1],
        "max_len": carried.model.max_len,
        "decode": dict(carried.facts.get("decode", {})),
        "directions": carried.facts.get("directions", []),
    }  # fmt: skip


def _card(carried: Carried) -> str:
    return (
        f"{carried.card}\n## As ONNX\n\n"
        "`encoder.onnx` reads `src_ids` (the source, its end included) and `src_mask` (true where\n"
        "there is a word) once. `decoder.onnx` is then run once for every word: it takes the\n"
        "`token` before it, `src_mask`, the encoder's `memory_key_N` and `memory_value_N`, and\n"
        "`past_key_N` and `past_value_N`, which begin with length 0 and are `key_N` and `value_N`\n"
        "of the step before; `logits` are those of the next word. Ids are in `config.json`.\n"
    )
