"""Models as ONNX: onnxruntime, which knows nothing of regard, computes the same numbers."""

import itertools
import json
import random
import subprocess
import sys

import numpy as np
import onnxruntime
import pytest
import torch

from regard.config import ModelConfig
from regard.decode.translator import load
from regard.errors import ConfigError, ModelError
from regard.interchange.carried import Carried, from_bundle
from regard.interchange.onnx import write_onnx
from regard.model.build import build_model
from regard.model.weights import weights_of
from regard.text.normalize import Normalizer
from regard.text.tokenizer import CharTokenizer, load_tokenizer
from regard.text.vocab import Vocabulary

SIZES = {"d_model": 16, "n_layers": 2, "n_heads": 2, "d_ff": 24, "max_len": 40}
UNEQUAL = {"n_layers": (1, 2), "n_heads": (2, 4), "d_ff": (24, 20)}
BOS, EOS = 1, 2


def tokenizer(n_words):
    pieces = ("<pad>", "<s>", "</s>", "<unk>", *(chr(97 + i) for i in range(n_words - 4)))
    return CharTokenizer(Vocabulary(pieces, pad=0, bos=BOS, eos=EOS, unk=3), Normalizer())


def carried(n_src=14, n_tgt=14, **settings):
    """A random network, large enough weights that every setting can be seen, and its model."""
    config = ModelConfig(**{**SIZES, **settings})
    network = build_model(config, n_src, n_tgt).eval()
    with torch.no_grad():
        for p in network.parameters():
            p.copy_(2.0 * p if p.ndim > 1 else p + 0.3 * torch.randn_like(p))
    weights = {name: weight.numpy() for name, weight in weights_of(network).items()}
    return network, Carried(config, tokenizer(n_src), tokenizer(n_tgt), weights, {}, "")


class Runtime:
    """The graphs in onnxruntime, and the walk through them that their card describes."""

    def __init__(self, place):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self.encoder, self.decoder = (
            onnxruntime.InferenceSession(place / f"{name}.onnx", options)
            for name in ("encoder", "decoder")
        )
        self.facts = json.loads((place / "config.json").read_text(encoding="utf-8"))

    def read(self, rows):
        n = max(map(len, rows))
        pad = self.facts["ids"]["src_pad"]
        ids = np.array([[*row, *[pad] * (n - len(row))] for row in rows])
        mask = np.array([[i < len(row) for i in range(n)] for row in rows])
        names = [output.name for output in self.encoder.get_outputs()]
        found = self.encoder.run(names, {"src_ids": ids, "src_mask": mask})
        empty = np.zeros((len(rows), self.facts["heads"], 0, self.facts["width"]), np.float32)
        pasts = itertools.product(("key", "value"), range(self.facts["layers"]))
        past = {f"past_{kind}_{number}": empty for kind, number in pasts}
        return {"src_mask": mask, **dict(zip(names, found, strict=True))}, past

    def step(self, token, memory, past):
        logits, *longer = self.decoder.run(None, {"token": np.array(token), **memory, **past})
        names = [output.name for output in self.decoder.get_outputs()][1:]
        return logits, {f"past_{n}": value for n, value in zip(names, longer, strict=True)}

    def logits(self, sources, targets):
        memory, past = self.read(sources)
        rows = []
        for token in zip(*targets, strict=True):
            logits, past = self.step(token, memory, past)
            rows.append(logits)
        return np.stack(rows, axis=1)

    def greedy(self, source, limit):
        memory, past = self.read([source])
        token, said = self.facts["ids"]["bos"], []
        while len(said) < limit:
            logits, past = self.step([token], memory, past)
            token = int(logits[0].argmax())
            if token == self.facts["ids"]["eos"]:
                break
            said.append(token)
        return said


CHOICES = [
    {
        "positions": positions, "norm": norm, "share": share,
        "activation": ("relu", "swish")[i % 2],
        "score": ("scaled_dot", "dot")[i // 2 % 2],
        "scale_embeddings": bool(i // 3 % 2),
        "output_bias": bool(i % 3),
        **(UNEQUAL if i % 5 < 3 else {}),
    }
    for i, (positions, (norm, share)) in enumerate(
        itertools.product(
            ("sinusoidal", "learned", "rotary", "none"),
            [("pre", "all"), ("post", "target"), ("pre", "none")],
        )
    )
]  # fmt: skip


@pytest.mark.parametrize("choice", CHOICES, ids=lambda choice: "-".join(map(str, choice.values())))
def test_every_network_gives_the_same_logits_at_five_lengths(choice, tmp_path):
    n_src = 14 if choice["share"] == "all" else 17
    network, model = carried(n_src, 14, **choice)
    write_onnx(model, tmp_path / "onnx")
    runtime, draw = Runtime(tmp_path / "onnx"), random.Random(0)
    for length in (1, 2, 5, 13, 40):
        source = [[draw.randrange(3, n_src) for _ in range(length)] for _ in range(2)]
        target = [[BOS, *(draw.randrange(3, 14) for _ in range(length - 1))] for _ in range(2)]
        with torch.no_grad():
            expected = network(torch.tensor(source), torch.tensor(target)).numpy()
        assert np.abs(runtime.logits(source, target) - expected).max() <= 1e-3


def test_what_fills_up_a_batch_changes_nothing(tmp_path):
    _, model = carried()
    write_onnx(model, tmp_path / "onnx")
    runtime = Runtime(tmp_path / "onnx")
    together = runtime.logits([[5, 6, 7, 8, 2], [9, 2]], [[BOS, 4], [BOS, 5]])
    for row, (source, target) in enumerate([([5, 6, 7, 8, 2], [BOS, 4]), ([9, 2], [BOS, 5])]):
        alone = runtime.logits([source], [target])
        assert np.abs(together[row] - alone[0]).max() < 1e-5


def test_a_greedy_walk_through_the_graphs_says_what_the_translator_says(tmp_path, tatoeba):
    translator = load(tatoeba, engine="torch")
    write_onnx(from_bundle(translator.bundle), tmp_path / "onnx")
    runtime = Runtime(tmp_path / "onnx")
    src, tgt = (load_tokenizer(tmp_path / "onnx" / f"{side}_tokenizer") for side in ("src", "tgt"))
    texts = ["我喜欢读书。", "他昨天去了北京。", "你能帮我一个忙吗？", "火车已经开走了。"]
    for text, expected in zip(texts, translator.translate(texts, beam=1), strict=True):
        ids = [*src.encode(text), runtime.facts["ids"]["src_eos"]]
        assert tgt.decode(runtime.greedy(ids, 2 * len(ids) + 20)) == expected.text


def test_the_files_open_in_onnxruntime_alone(tmp_path):
    _, model = carried()
    write_onnx(model, tmp_path / "onnx")
    for file in ("encoder.onnx", "decoder.onnx"):
        (tmp_path / "alone").mkdir(exist_ok=True)
        (tmp_path / "alone" / file).write_bytes((tmp_path / "onnx" / file).read_bytes())
    script = (
        "import sys, onnxruntime\n"
        "for name in ('encoder', 'decoder'):\n"
        "    onnxruntime.InferenceSession(name + '.onnx')\n"
        "print(sorted({'torch', 'regard', 'onnx'} & set(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", script],
        cwd=tmp_path / "alone", capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == "[]\n"


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"score": "additive"}, 'model.score = "additive"'),
        ({"score": "gaussian"}, 'model.score = "gaussian"'),
        ({"kind": "recurrent"}, 'model.kind = "recurrent"'),
    ],
)
def test_what_the_graphs_have_no_place_for_is_named(settings, said, tmp_path):
    _, model = carried(**settings)
    with pytest.raises(ModelError) as caught:
        write_onnx(model, tmp_path / "onnx")
    theirs = '"transformer"' if "kind" in said else '"scaled_dot" and "dot"'
    assert str(caught.value) == (
        f"{said} has no place in the graphs regard writes for ONNX, which have {theirs}"
    )
    assert not (tmp_path / "onnx").exists()


@pytest.mark.parametrize("dtype", ["float16", "int8"])
def test_a_type_that_the_graphs_do_not_hold_is_named(dtype, tmp_path):
    with pytest.raises(ModelError) as caught:
        write_onnx(carried()[1], tmp_path / "onnx", dtype)
    assert str(caught.value) == (
        f'dtype = "{dtype}" has no place in the graphs regard writes for ONNX, which have "float32"'
    )


def test_without_the_package_its_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ConfigError) as caught:
        write_onnx(carried()[1], tmp_path / "onnx")
    assert str(caught.value) == (
        "--to onnx needs a package that cannot be imported (import of onnx halted; None in "
        "sys.modules); pip install 'regard[onnx]'"
    )


def test_weights_that_do_not_fit_are_all_named(tmp_path):
    _, model = carried()
    weights = dict(model.weights)
    del weights["source.weight"]
    weights["extra"] = np.zeros(1)
    bad = Carried(model.model, model.src_tokenizer, model.tgt_tokenizer, weights, {}, "")
    with pytest.raises(ModelError) as caught:
        write_onnx(bad, tmp_path / "onnx")
    assert str(caught.value) == (
        "the weights do not fit the model: extra is unexpected, source.weight is missing"
    )
