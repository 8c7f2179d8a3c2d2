"""Checkpoints in fairseq's layout, written here: torch's own layers are the reference."""

import argparse
import collections
import json
import math
import os
import pickle

import numpy as np
import pytest
import torch
from torch import nn

from regard.bundle import open_bundle
from regard.decode.engines.torch import load_network
from regard.decode.search import Search
from regard.decode.translator import load
from regard.errors import ModelError
from regard.interchange.carried import write_regard
from regard.interchange.fairseq import read_fairseq
from regard.interchange.probe import PROBE

WORDS = ["lo@@", "w", "er", "new", "est", "low", "n@@", "e@@", "s@@", "t", ",", "madeupword0000"]
CODES = "#version: 0.2\nl o\nlo w</w>\ne r</w>\nn e\nne w</w>\ne s\nes t</w>\n"
D, HEADS, FF, N = 16, 2, 24, 16
BASE = {
    "arch": "transformer_iwslt_de_en", "source_lang": "de", "target_lang": "en",
    "encoder_embed_dim": D, "decoder_embed_dim": D, "encoder_layers": 2, "decoder_layers": 1,
    "encoder_attention_heads": HEADS, "decoder_attention_heads": HEADS,
    "encoder_ffn_embed_dim": FF, "decoder_ffn_embed_dim": FF, "activation_fn": "relu",
    "encoder_normalize_before": False, "decoder_normalize_before": False,
    "encoder_learned_pos": False, "decoder_learned_pos": False,
    "share_all_embeddings": True, "share_decoder_input_output_embed": True,
    "max_source_positions": 30, "max_target_positions": 20, "dropout": 0.3,
}  # fmt: skip


def sines(n, d):
    """fairseq's table: frequencies over half - 1, sines first; the padding's row is zero."""
    half = d // 2
    table = torch.zeros(n, d)
    for place in range(n):
        for j in range(half):
            angle = place * math.exp(-j * math.log(10000) / (half - 1))
            table[place, j], table[place, half + j] = math.sin(angle), math.cos(angle)
    table[1] = 0.0
    return table


class Reference(nn.Module):
    """The network of a checkpoint, made of torch's own layers."""

    def __init__(self, args):
        super().__init__()
        before = args["encoder_normalize_before"]
        options = {"dropout": 0.0, "batch_first": True, "norm_first": before}
        layer = lambda kind: kind(D, HEADS, FF, **options)  # noqa: E731
        self.encoder = nn.ModuleList(
            layer(nn.TransformerEncoderLayer) for _ in range(args["encoder_layers"])
        )
        self.decoder = nn.ModuleList(
            layer(nn.TransformerDecoderLayer) for _ in range(args["decoder_layers"])
        )
        self.norms = nn.ModuleList(nn.LayerNorm(D) if before else nn.Identity() for _ in range(2))
        self.source, self.target = (nn.Parameter(torch.randn(N, D)) for _ in range(2))
        self.output = nn.Parameter(torch.randn(N, D))
        if args["share_decoder_input_output_embed"]:
            self.output = self.target
        if args["share_all_embeddings"]:
            self.source = self.target
        learned = [args[f"{side}_learned_pos"] for side in ("encoder", "decoder")]
        most = [args[f"max_{side}_positions"] for side in ("source", "target")]
        self.places = nn.ParameterList(
            torch.randn(n + 2, D) if is_learned else sines(n + 2, D)
            for n, is_learned in zip(most, learned, strict=True)
        )
        with torch.no_grad():
            for p in self.parameters():
                p.add_(0.2 * torch.randn_like(p) if p.ndim == 1 else 0.0)

    def forward(self, src, tgt):
        x, y = (
            math.sqrt(D) * words[ids] + places[2 : 2 + ids.shape[1]]
            for ids, words, places in (
                (src, self.source, self.places[0]), (tgt, self.target, self.places[1])
            )
        )  # fmt: skip
        for layer in self.encoder:
            x = layer(x)
        x = self.norms[0](x)
        mask = nn.Transformer.generate_square_subsequent_mask(tgt.shape[1])
        for layer in self.decoder:
            y = layer(y, x, tgt_mask=mask)
        return self.norms[1](y) @ self.output.T


def named(reference, args, *, old=False):
    """The weights by fairseq's names of today, or by those of its first years."""
    found = collections.OrderedDict()
    found["encoder.version"] = torch.tensor([3.0])
    found["encoder.embed_tokens.weight"] = reference.source.data
    found["decoder.embed_tokens.weight"] = reference.target.data
    shares = args["share_decoder_input_output_embed"]
    if not old:
        found["decoder.output_projection.weight"] = reference.output.data
    elif not shares:
        found["decoder.embed_out"] = reference.output.data
    for stack, layers, norm, places in (
        ("encoder", reference.encoder, reference.norms[0], reference.places[0]),
        ("decoder", reference.decoder, reference.norms[1], reference.places[1]),
    ):
        if args[f"{stack}_learned_pos"]:
            found[f"{stack}.embed_positions.weight"] = places.data
        else:
            found[f"{stack}.embed_positions._float_tensor"] = torch.zeros(1)
        for kind, weight in norm.named_parameters():
            found[f"{stack}.layer_norm.{kind}"] = weight.data
        for number, layer in enumerate(layers):
            for name, weight in _layer(layer, stack, old):
                found[f"{stack}.layers.{number}.{name}"] = weight.clone()
    return found


def _layer(layer, stack, old):
    attentions = {"self_attn": layer.self_attn}
    if stack == "decoder":
        attentions["encoder_attn"] = layer.multihead_attn
    for name, attention in attentions.items():
        for kind in ("weight", "bias"):
            rows = getattr(attention, f"in_proj_{kind}").data
            if old:
                yield f"{name}.in_proj_{kind}", rows
            else:
                for part, some in zip("qkv", rows.chunk(3), strict=True):
                    yield f"{name}.{part}_proj.{kind}", some
            yield f"{name}.out_proj.{kind}", getattr(attention.out_proj, kind).data
    norms = [f"{name}_layer_norm" for name in (*attentions, "final")]
    for place, name in enumerate(norms):
        norm = getattr(layer, f"norm{place + 1}")
        for kind, weight in norm.named_parameters():
            yield f"layer_norms.{place}.{kind}" if old else f"{name}.{kind}", weight.data
    for ours, theirs in (("fc1", layer.linear1), ("fc2", layer.linear2)):
        for kind, weight in theirs.named_parameters():
            yield f"{ours}.{kind}", weight.data


class Meter:
    """What a checkpoint holds of its trainer, and nobody needs."""


def written(place, args=BASE, model=None, *, is_zip=True, has_cfg=False):
    """A directory with a checkpoint, dictionaries and codes."""
    place.mkdir(parents=True)
    settings = argparse.Namespace(**args)
    state = {
        "args": None if has_cfg else settings,
        "model": model,
        "extra_state": {"meters": {"loss": Meter()}, "epoch": 3},
    }
    if has_cfg:
        languages = {"_name": "translation", "source_lang": "de", "target_lang": "en"}
        state["cfg"] = {"task": languages, "model": settings}
    torch.save(state, place / "checkpoint_best.pt", _use_new_zipfile_serialization=is_zip)
    for language in ("de", "en"):
        lines = [f"{word} {100 - i}\n" for i, word in enumerate(WORDS)]
        (place / f"dict.{language}.txt").write_text("".join(lines), encoding="utf-8")
    (place / "bpecodes").write_text(CODES, encoding="utf-8")
    return place


CHOICES = [
    {},
    {"encoder_normalize_before": True, "decoder_normalize_before": True},
    {"share_all_embeddings": False, "encoder_learned_pos": True, "decoder_learned_pos": True},
    {
        "share_all_embeddings": False, "share_decoder_input_output_embed": False,
        "encoder_normalize_before": True, "decoder_normalize_before": True,
    },
]  # fmt: skip


@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize("choice", CHOICES, ids=["post", "pre", "learned", "apart"])
def test_every_checkpoint_gives_the_same_logits(choice, old, tmp_path):
    args = {**BASE, **choice}
    reference = Reference(args).eval()
    place = written(
        tmp_path / "fairseq", args, named(reference, args, old=old), is_zip=not old, has_cfg=not old
    )
    model = read_fairseq(place)
    write_regard(model, tmp_path / "own", "float32")
    bundle = open_bundle(tmp_path / "own")
    network = load_network(bundle, torch.device("cpu"))
    for n_src, n_tgt in ((1, 1), (7, 5), (20, 20)):
        src, tgt = torch.randint(3, N, (2, n_src)), torch.randint(3, N, (2, n_tgt))
        with torch.no_grad():
            assert (network(src, tgt) - reference(src, tgt)).abs().max() <= 1e-4
    assert bundle.facts["directions"] == [["de", "en"]]
    assert bundle.model.max_len == 20


@pytest.fixture
def post(tmp_path):
    """A directory in fairseq's layout, and its weights by name."""
    weights = named(Reference(BASE), BASE)
    return written(tmp_path / "fairseq", BASE, weights), weights


def test_text_is_cut_by_the_codes_and_starts_from_the_end(post):
    model = read_fairseq(post[0])
    tokenizer, vocab = model.src_tokenizer, model.src_tokenizer.vocab
    expected = "low lo@@ w@@ er ne@@ w@@ est , t@@ n@@ e"
    assert " ".join(tokenizer.pieces("low lower newest , tne")) == expected
    assert (vocab.bos, vocab.eos, vocab.pad, vocab.unk) == (2, 2, 1, 3)
    assert vocab.pieces[:6] == ("<s>", "<pad>", "</s>", "<unk>", "lo@@", "w")
    ids = tokenizer.encode("low xy low")
    assert ids == [vocab.id_of("low"), 3, 3, vocab.id_of("low")]
    assert tokenizer.decode([4, 5, 14, 2, 1]) == "low ,"
    assert tokenizer.uncovered("low xy") == 2
    assert model.facts["decode"] == {"beam": 5, "forbidden": [[1]]}


def test_an_imported_checkpoint_translates_on_both_engines(post, tmp_path):
    write_regard(read_fairseq(post[0] / "checkpoint_best.pt"), tmp_path / "own", "float32")
    texts, search = ["low newest", "er , low"], Search(beam=1, min_len=4)
    by_torch, by_ctranslate2 = (
        [one.text for one in load(tmp_path / "own", engine=engine).translate(texts, search=search)]
        for engine in ("torch", "ctranslate2")
    )
    assert by_torch == by_ctranslate2
    assert all(by_torch)


def test_without_codes_words_stay_whole(post):
    (post[0] / "bpecodes").unlink()
    assert read_fairseq(post[0]).src_tokenizer.pieces("low lowest") == ["low", "lowest"]


class Evil:
    def __init__(self, place):
        self.place = place

    def __reduce__(self):
        return os.mkdir, (self.place,)


@pytest.mark.parametrize("is_zip", [True, False])
def test_nothing_that_a_checkpoint_holds_is_run(is_zip, tmp_path):
    weights = named(Reference(BASE), BASE)
    place = written(tmp_path / "f", BASE, weights, is_zip=is_zip)
    state = {"args": argparse.Namespace(**BASE), "model": weights, "x": Evil(str(tmp_path / "run"))}
    torch.save(state, place / "checkpoint_best.pt", _use_new_zipfile_serialization=is_zip)
    read_fairseq(place)
    assert not (tmp_path / "run").exists()
    (place / "checkpoint_best.pt").write_bytes(pickle.dumps(Evil(str(tmp_path / "run"))))
    with pytest.raises(ModelError) as caught:
        read_fairseq(place)
    assert str(caught.value).startswith(
        f"{place / 'checkpoint_best.pt'} is no whole file of torch: "
    )
    assert not (tmp_path / "run").exists()


def said(place):
    with pytest.raises(ModelError) as caught:
        read_fairseq(place)
    return str(caught.value)


def test_weights_that_do_not_fit_are_all_named_as_fairseq_names_them(post):
    place, weights = post
    del weights["encoder.layers.1.fc1.bias"]
    weights["decoder.layers.0.fc2.bias"] = torch.zeros(3)
    weights["decoder.extra"] = torch.zeros(1)
    state = {"args": argparse.Namespace(**BASE), "model": weights}
    torch.save(state, place / "checkpoint_best.pt")
    assert said(place) == (
        "the weights do not fit the model: decoder.extra is unexpected, "
        "decoder.layers.0.fc2.bias has shape (3,) instead of (16,), "
        "encoder.layers.1.fc1.bias is missing"
    )


@pytest.mark.parametrize(
    ("change", "end"),
    [
        ({"arch": "lstm"},
         'is of arch = "lstm"; of fairseq\'s models regard reads those called transformer'),
        ({"arch": "transformer_lm_gpt"},
         'is of arch = "transformer_lm_gpt"; of fairseq\'s models regard reads those called '
         "transformer"),
        ({"activation_fn": "gelu", "layernorm_embedding": True},
         "has what regard has no place for: layernorm_embedding = True; activation_fn = gelu"),
        ({"decoder_embed_dim": 8, "decoder_normalize_before": True},
         "has what regard has no place for: decoder_embed_dim = 8 beside encoder_embed_dim = 16; "
         "a norm that comes before on one side and after on the other"),
    ],
)  # fmt: skip
def test_what_regard_has_no_place_for_is_named(change, end, post):
    place, weights = post
    state = {"args": argparse.Namespace(**{**BASE, **change}), "model": weights}
    torch.save(state, place / "checkpoint_best.pt")
    assert said(place) == f"{place / 'checkpoint_best.pt'} {end}"


def test_what_is_no_checkpoint_is_refused(post):
    place, weights = post
    file = place / "checkpoint_best.pt"
    for state, name in (
        ({"model": weights}, "args or cfg"),
        ({"args": argparse.Namespace()}, "model"),
    ):
        torch.save(state, file)
        assert said(place) == f"{file} is no checkpoint of fairseq: it has no {name}"
    torch.save({"args": argparse.Namespace(**BASE), "model": {"a": 1}}, file)
    assert said(place) == f"{file} is no checkpoint of fairseq: it has no a"
    file.write_bytes(file.read_bytes()[:-100])
    assert said(place).startswith(f"{file} is no whole file of torch: ")


def test_the_checkpoint_of_a_directory_is_the_best_the_last_or_the_only_one(post):
    place, _ = post
    file = place / "checkpoint_best.pt"
    file.rename(place / "only.pt")
    assert read_fairseq(place).facts["weights"] == "imported from fairseq, transformer_iwslt_de_en"
    (place / "two.pt").write_bytes(b"")
    assert said(place) == (
        f"{place} has 2 files that end in .pt, none of them called checkpoint_best.pt, "
        "checkpoint_last.pt, model.pt; name the one"
    )


def test_dictionaries_that_are_none_are_refused(post):
    place, _ = post
    file = place / "dict.de.txt"
    file.write_text("low 3\nlow 2\n", encoding="utf-8")
    assert said(place) == f'{file}: piece "low" has two ids, 4 and 5'
    file.write_text("low 3\nlow\n", encoding="utf-8")
    assert said(place) == f"{file}, line 2 is no line of a dictionary: a word, a space, its count"
    file.write_bytes(b"\xff\xfe 1\n")
    assert said(place) == f"{file}, line 1 is no line of a dictionary: a word, a space, its count"
    file.unlink()
    assert said(place) == f"there is no file {file}"


def test_one_dictionary_serves_both_languages(post):
    place, _ = post
    expected = read_fairseq(place).src_tokenizer.vocab
    (place / "dict.de.txt").rename(place / "dict.txt")
    (place / "dict.en.txt").unlink()
    model = read_fairseq(place)
    assert model.src_tokenizer.vocab == model.tgt_tokenizer.vocab == expected


def test_codes_that_are_none_are_refused(post):
    place, _ = post
    (place / "bpecodes").write_text("#version: 0.2\nl o\nlonely\n")
    assert said(place) == (
        f"{place / 'bpecodes'} holds no byte-pair codes: a line is two symbols with a space between"
    )


def test_settings_by_side_as_the_newest_checkpoints_have_them(post):
    place, weights = post
    sides = {
        side: {
            name.removeprefix(f"{side}_"): value
            for name, value in BASE.items()
            if name.startswith(f"{side}_")
        }
        for side in ("encoder", "decoder")
    }
    rest = {name: value for name, value in BASE.items() if name.partition("_")[0] not in sides}
    languages = {"source_lang": "de", "target_lang": "en"}
    cfg = {"task": languages, "model": {"_name": "transformer", **rest, **sides}}
    expected = read_fairseq(place).model
    torch.save({"args": None, "cfg": cfg, "model": weights}, place / "checkpoint_best.pt")
    assert read_fairseq(place).model == expected


def test_half_precision_and_bfloat16_are_read(post):
    place, weights = post
    expected = read_fairseq(place).weights
    for dtype, error in ((torch.float16, 2e-3), (torch.bfloat16, 2e-2)):
        small = {name: weight.to(dtype) for name, weight in weights.items()}
        state = {"args": argparse.Namespace(**BASE), "model": small}
        torch.save(state, place / "checkpoint_best.pt")
        found = read_fairseq(place).weights
        assert found.keys() == expected.keys()
        for name, array in found.items():
            assert np.abs(array - expected[name]).max() <= error * max(1, np.abs(array).max())


def test_a_probe_is_kept_with_the_model(post, tmp_path):
    model = read_fairseq(post[0])
    write_regard(model, tmp_path / "own", "float32")
    facts = json.loads((tmp_path / "own" / "config.json").read_text(encoding="utf-8"))
    assert facts["probe"]["src"] == model.src_tokenizer.encode(PROBE)
