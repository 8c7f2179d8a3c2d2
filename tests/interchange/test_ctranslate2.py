"""Bundles as CTranslate2 models: the same numbers as torch, and a cache that is whole or made anew.

The networks are random, with weights large enough that every setting can be seen in the numbers.
"""

import itertools
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import sacrebleu
import torch

from regard.bundle import open_bundle, write_bundle
from regard.config import ModelConfig
from regard.data.tasks import examples
from regard.decode.translator import load
from regard.errors import ModelError, ResourceError
from regard.interchange import ctranslate2 as interchange
from regard.interchange.ctranslate2 import converted, open_converted, source_word, target_word
from regard.model.build import build_model
from regard.model.weights import save_tensors, weights_of
from regard.text.normalize import Normalizer
from regard.text.tokenizer import CharTokenizer
from regard.text.vocab import Vocabulary

NUMERALS = Path(__file__).parents[1] / "models" / "numerals"
SIZES = {"d_model": 16, "n_layers": 2, "n_heads": 2, "d_ff": 24, "max_len": 20}
UNEQUAL = {"n_layers": (1, 2), "n_heads": (2, 4), "d_ff": (24, 20)}


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def vocab(n_words):
    pieces = ("<pad>", "<s>", "</s>", "<unk>", *(chr(97 + i) for i in range(n_words - 4)))
    return Vocabulary(pieces, pad=0, bos=1, eos=2, unk=3)


def saved(place, network, config, n_src=14, n_tgt=14, dtype=torch.float32):
    tokenizers = tuple(CharTokenizer(vocab(n), Normalizer()) for n in (n_src, n_tgt))
    weights = {name: weight.to(dtype) for name, weight in weights_of(network).items()}
    write_bundle(
        place, config, tokenizers, lambda path: save_tensors(weights, path), facts={}, card=""
    )
    return open_bundle(place)


def made(place, n_src=14, n_tgt=14, dtype=torch.float32, **settings):
    """A random network and the bundle it was saved as."""
    config = ModelConfig(**{**SIZES, **settings})
    network = build_model(config, n_src, n_tgt).eval()
    with torch.no_grad():
        for p in network.parameters():
            p.copy_((2.0 * p if p.ndim > 1 else p + 0.3 * torch.randn_like(p)).to(dtype))
    return network, saved(place, network, config, n_src, n_tgt, dtype)


def pairs(n_src, n_tgt):
    draw = random.Random(0)
    return [
        (
            [draw.randrange(4, n_src) for _ in range(draw.randint(0, 9))] + [2],
            [draw.randrange(3, n_tgt) for _ in range(draw.randint(0, 9))],
        )
        for _ in range(6)
    ]


@torch.no_grad()
def expected(network, source, target):
    log_p = network(torch.tensor([source]), torch.tensor([[1, *target]]))[0].log_softmax(-1)
    return [float(log_p[place, word]) for place, word in enumerate([*target, 2])]


def said(bundle, some, dtype="float32"):
    translator = open_converted(bundle, dtype, parallel=1, threads=1)
    results = translator.score_batch(
        [[source_word(id) for id in source] for source, _ in some],
        [[target_word(id) for id in target] for _, target in some],
    )
    return [result.log_probs for result in results]


CHOICES = [
    {
        "positions": positions, "norm": norm, "share": share,
        "activation": ("relu", "swish")[i % 2],
        "score": ("scaled_dot", "dot")[i // 2 % 2],
        "scale_embeddings": bool(i // 3 % 2),
        "output_bias": bool(i % 3),
        **(UNEQUAL if i % 5 < 3 else {}),
    }
    for i, (positions, norm, share) in enumerate(
        itertools.product(
            ("sinusoidal", "learned", "rotary", "none"), ("pre", "post"), ("all", "target", "none")
        )
    )
]  # fmt: skip


@pytest.mark.parametrize("choice", CHOICES, ids=lambda choice: "-".join(map(str, choice.values())))
def test_every_network_that_can_be_said_says_the_same(choice, tmp_path):
    n_src = 14 if choice["share"] == "all" else 17
    network, bundle = made(tmp_path / "model", n_src, 14, **choice)
    some = pairs(n_src, 14)
    for (source, target), log_probs in zip(some, said(bundle, some), strict=True):
        assert log_probs == pytest.approx(expected(network, source, target), abs=2e-5)


def test_half_precision_weights_are_read(tmp_path):
    network, bundle = made(tmp_path / "model", dtype=torch.float16)
    some = pairs(14, 14)
    for (source, target), log_probs in zip(some, said(bundle, some), strict=True):
        assert log_probs == pytest.approx(expected(network, source, target), abs=2e-5)


def test_int8_is_smaller_and_nearly_the_same(tmp_path):
    network, bundle = made(tmp_path / "model", d_model=64, d_ff=128)
    some = pairs(14, 14)
    for (source, target), log_probs in zip(some, said(bundle, some, "int8"), strict=True):
        assert log_probs == pytest.approx(expected(network, source, target), abs=0.5)
    large, small = (
        (converted(bundle, dtype) / "model.bin").stat().st_size for dtype in ("float32", "int8")
    )
    assert small < 0.4 * large


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"score": "additive"}, 'model.score = "additive"'),
        ({"score": "gaussian"}, 'model.score = "gaussian"'),
        ({"kind": "recurrent"}, 'model.kind = "recurrent"'),
    ],
)
def test_what_cannot_be_said_is_named(settings, name, tmp_path):
    _, bundle = made(tmp_path / "model", **settings)
    with pytest.raises(ModelError) as caught:
        converted(bundle, "float32")
    assert str(caught.value) == (
        f"{name} cannot be said in CTranslate2; translate with the torch engine"
    )


def test_weights_that_do_not_fit_are_all_named(tmp_path):
    config = ModelConfig(**SIZES, positions="learned", share="target")
    other = ModelConfig(**{**SIZES, "max_len": 9}, positions="learned", output_bias=True)
    bundle = saved(tmp_path / "model", build_model(other, 14, 14), config)
    with pytest.raises(ModelError) as caught:
        converted(bundle, "float32")
    assert str(caught.value) == (
        "the weights do not fit the model: output.bias is unexpected, "
        "source.positions.table has shape (9, 16) instead of (20, 16), "
        "target.positions.table has shape (9, 16) instead of (20, 16), target.weight is missing"
    )


def entries(cache):
    return sorted(path for path in (cache / "ctranslate2").iterdir() if path.name != "lock")


def files(place):
    return {path.name: path.read_bytes() for path in place.iterdir()}


def test_a_model_is_made_once_for_each_of_its_kinds(tmp_path, cache):
    _, bundle = made(tmp_path / "model")
    place = converted(bundle, "float32")
    born = place.stat().st_ino
    assert converted(bundle, "float32") == place
    assert place.stat().st_ino == born
    assert converted(bundle, "int8") != place
    _, other_weights = made(tmp_path / "other weights")
    _, other_settings = made(tmp_path / "other settings", norm="pre")
    for other in (other_weights, other_settings):
        assert converted(other, "float32") != place
    assert len(entries(cache)) == 4


def flipped(data):
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]


def cut(data):
    return data[: len(data) // 2]


@pytest.mark.parametrize("damage", [flipped, cut])
@pytest.mark.parametrize("name", ["model.bin", "target_vocabulary.json", "sums.json"])
def test_a_damaged_model_is_made_again(name, damage, tmp_path, cache):
    _, bundle = made(tmp_path / "model")
    place = converted(bundle, "float32")
    whole = files(place)
    (place / name).write_bytes(damage(whole[name]))
    assert converted(bundle, "float32") == place
    assert files(place) == whole
    assert entries(cache) == [place]


def test_a_model_with_a_file_missing_is_made_again(tmp_path):
    _, bundle = made(tmp_path / "model")
    place = converted(bundle, "float32")
    whole = files(place)
    (place / "config.json").unlink()
    assert files(converted(bundle, "float32")) == whole


def test_the_cache_is_where_the_environment_says(tmp_path, monkeypatch):
    _, bundle = made(tmp_path / "model")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    roots = [tmp_path / "cache", tmp_path / "xdg/regard", tmp_path / "home/.cache/regard"]
    for root, name in zip(roots, ("REGARD_CACHE", "XDG_CACHE_HOME", ""), strict=True):
        assert converted(bundle, "float32").parent == root / "ctranslate2"
        if name:
            monkeypatch.setenv(name, "")  # the same as not at all


def test_without_a_home_nothing_is_kept(tmp_path, monkeypatch):
    def nowhere():
        raise RuntimeError("Could not determine home directory.")

    _, bundle = made(tmp_path / "model")
    monkeypatch.setenv("REGARD_CACHE", "")
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    monkeypatch.setattr(Path, "home", nowhere)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert converted(bundle, "float32").parent == tmp_path


def test_without_a_cache_a_model_lives_as_long_as_its_process(tmp_path):
    _, bundle = made(tmp_path / "model")
    (tmp_path / "file").write_text("")
    script = (
        "import sys\n"
        "from pathlib import Path\n"
        "from regard.bundle import open_bundle\n"
        "from regard.interchange.ctranslate2 import converted, open_converted\n"
        "bundle = open_bundle(Path(sys.argv[1]))\n"
        "open_converted(bundle, 'float32', parallel=1, threads=1)\n"
        "place = converted(bundle, 'float32')\n"
        "print(place, (place / 'model.bin').exists())\n"
    )
    environment = {
        **os.environ, "REGARD_CACHE": str(tmp_path / "file" / "cache"), "TMPDIR": str(tmp_path)
    }  # fmt: skip
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", script, str(bundle.path)],
        capture_output=True, text=True, env=environment, check=False,
    )  # fmt: skip
    assert (result.returncode, result.stderr) == (0, "")
    place, was_there = result.stdout.split()
    assert was_there == "True"
    assert Path(place).parent == tmp_path
    assert not Path(place).exists()


def test_a_full_disk_is_said(tmp_path, monkeypatch):
    _, bundle = made(tmp_path / "model")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(interchange, "convert", full)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(ResourceError) as caught:
        converted(bundle, "float32")
    [place] = tmp_path.glob("regard-*")
    assert str(caught.value) == f"{place} could not be written: No space left on device"


def test_of_processes_that_begin_together_one_makes_the_model(tmp_path, cache):
    _, bundle = made(tmp_path / "model")
    script = (
        "import sys\n"
        "from pathlib import Path\n"
        "from regard.bundle import open_bundle\n"
        "from regard.interchange.ctranslate2 import open_converted\n"
        "bundle = open_bundle(Path(sys.argv[1]))\n"
        "translator = open_converted(bundle, 'float32', parallel=1, threads=1)\n"
        "print(translator.score_batch([['s5', 's2']], [['6']])[0].log_probs)\n"
        "print('ctranslate2.specs' in sys.modules)\n"
    )
    command = [sys.executable, "-c", script, str(bundle.path)]
    together = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    outputs = [process.communicate()[0].splitlines() for process in together]
    assert [process.returncode for process in together] == [0, 0]
    assert outputs[0][0] == outputs[1][0]
    assert sorted(output[1] for output in outputs) == ["False", "True"]
    assert [path.name[:1] != "." for path in entries(cache)] == [True]


def test_int8_loses_hardly_any_bleu():
    pairs = list(itertools.islice(examples("numerals", 3, "test"), 300))
    scores = [
        sacrebleu.corpus_bleu(
            [
                one.text
                for one in load(NUMERALS, dtype=dtype).translate([p.src for p in pairs], beam=1)
            ],
            [[p.tgt for p in pairs]],
        ).score
        for dtype in ("float32", "int8")
    ]
    assert scores[1] >= scores[0] - 0.3
