"""`regard convert`: precisions, formats, and what is refused without a trace."""

import importlib.util
import io
import json
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch
from safetensors.numpy import load_file, save_file

from regard.bundle import open_bundle
from regard.cli.main import main
from regard.decode.translator import load
from regard.tensors import read_tensors, stored_dtype

TATOEBA = Path(__file__).parents[1] / "models" / "tatoeba-zh-en"
SENTENCES = [
    "我喜欢读书。", "你叫什么名字？", "他昨天去了北京。", "今天天气很好。", "我不知道该怎么办。",
    "她会说三种语言。", "请把门关上。", "这本书太难了。", "我们明天见面吧。", "你能帮我一个忙吗？",
    "汤姆每天早上喝咖啡。", "火车已经开走了。", "我忘了带钥匙。", "他们在公园里踢足球。",
    "这家饭馆的菜很便宜。", "孩子们都睡着了。", "我从来没有见过大海。", "你为什么不早点告诉我？",
    "外面正在下雨。", "我想买一双新鞋。",
]  # fmt: skip


def convert(*arguments):
    with pytest.raises(SystemExit) as left:
        main(["convert", *map(str, arguments)])
    return left.value.code or 0


def run(*arguments):
    with pytest.raises(SystemExit) as left:
        main([*map(str, arguments)])
    return left.value.code or 0


@pytest.fixture(scope="module")
def int8(tmp_path_factory):
    place = tmp_path_factory.mktemp("int8") / "model"
    assert convert(TATOEBA, place, "--dtype", "int8") == 0
    return place


def test_int8_has_half_the_bytes_of_float16_and_the_same_all_else(int8):
    before, after = open_bundle(TATOEBA), open_bundle(int8)
    assert stored_dtype(before.weights) == "float16"
    assert stored_dtype(after.weights) == "int8"
    assert after.weights.stat().st_size < 0.52 * before.weights.stat().st_size
    assert (after.model, after.facts) == (before.model, before.facts)
    assert after.src_tokenizer.vocab == before.src_tokenizer.vocab
    assert after.tgt_tokenizer.encode("a b") == before.tgt_tokenizer.encode("a b")


def test_from_int8_back_to_float32_are_the_numbers_that_int8_meant(int8, tmp_path):
    assert convert(int8, tmp_path / "model", "--dtype", "float32") == 0
    meant, found = (
        read_tensors(place / "model.safetensors") for place in (int8, tmp_path / "model")
    )
    assert meant.keys() == found.keys()
    assert all(np.array_equal(meant[name], found[name]) for name in meant)
    assert stored_dtype(tmp_path / "model" / "model.safetensors") == "float32"


def test_without_a_dtype_the_weights_stay_as_they_are(int8, tmp_path):
    assert convert(int8, tmp_path / "model", "--to", "regard") == 0
    kept, found = (place / "model.safetensors" for place in (int8, tmp_path / "model"))
    assert found.read_bytes() == kept.read_bytes()


@pytest.mark.parametrize("engine", ["torch", "ctranslate2"])
def test_int8_says_nearly_the_same_on_either_engine(int8, engine):
    before, after = (
        [one.text for one in load(place, engine=engine).translate(SENTENCES, beam=1)]
        for place in (TATOEBA, int8)
    )
    assert sum(a == b for a, b in zip(before, after, strict=True)) >= 0.8 * len(SENTENCES)


def test_both_engines_read_the_same_numbers_from_int8(int8):
    scores = [
        load(int8, engine=engine, dtype="float32").score(SENTENCES[:4], ["I like to read."] * 4)
        for engine in ("torch", "ctranslate2")
    ]
    for torchs, ctranslate2s in zip(*scores, strict=True):
        assert torchs.log_probs == pytest.approx(ctranslate2s.log_probs, abs=1e-4)


def test_int8_is_made_ready_and_translated_where_there_is_no_torch(int8, tmp_path):
    script = (
        "import sys\n"
        "sys.modules['torch'] = None\n"
        "import regard\n"
        "print(regard.load(sys.argv[1], engine='ctranslate2').translate(sys.argv[2], beam=1))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(int8), SENTENCES[0]],
        env={**os.environ, "REGARD_CACHE": str(tmp_path)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert (
        done.stdout.strip() == load(int8, engine="ctranslate2").translate(SENTENCES[0], beam=1).text
    )


def test_inspect_says_the_type_of_the_weights(int8, capsys, monkeypatch):
    monkeypatch.setenv("REGARD_LANG", "en")
    assert run("inspect", int8) == 0
    in_int8 = capsys.readouterr().out.splitlines()
    assert run("inspect", TATOEBA) == 0
    in_float16 = capsys.readouterr().out.splitlines()
    assert in_int8[1] == in_float16[1].replace("float16", "int8")
    assert in_float16[1].endswith(" (float16)")


def test_a_place_that_is_taken_is_left_alone(tmp_path, capsys):
    (tmp_path / "mine").mkdir()
    assert convert(TATOEBA, tmp_path / "mine") == 4
    said = capsys.readouterr().err
    assert said == f"error: {tmp_path / 'mine'} is there already; name another place\n"
    assert list((tmp_path / "mine").iterdir()) == []


# --- other formats


@pytest.fixture(scope="module")
def marian(tmp_path_factory):
    """A Marian of transformers that has learned nothing: what it says does not matter here."""
    file = Path(__file__).parents[1] / "interchange" / "marians.py"
    spec = importlib.util.spec_from_file_location("marians", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.trained_marian(tmp_path_factory.mktemp("hf") / "hf", "shared-swish", steps=2)


@pytest.fixture
def copied(marian, tmp_path):
    return shutil.copytree(marian, tmp_path / "hf")


def test_a_marian_is_recognised_and_goes_everywhere(marian, tmp_path, capsys):
    assert convert(marian, tmp_path / "own") == 0
    assert capsys.readouterr().out == f"{tmp_path / 'own'}\n"
    assert open_bundle(tmp_path / "own").facts["weights"] == "imported from Marian"
    assert convert(tmp_path / "own", tmp_path / "hf", "--to", "marian") == 0
    before, after = (load_file(p / "model.safetensors") for p in (marian, tmp_path / "hf"))
    assert all(np.array_equal(before[name], array) for name, array in after.items())
    assert (
        convert(tmp_path / "own", tmp_path / "ct2", "--to", "ctranslate2", "--dtype", "int8") == 0
    )
    assert (tmp_path / "ct2" / "model.bin").exists()
    assert convert(marian, tmp_path / "onnx", "--to", "onnx") == 0
    onnxruntime.InferenceSession(tmp_path / "onnx" / "decoder.onnx")


def test_an_imported_model_is_trained_further_and_still_asked_as_before(marian, tmp_path):
    assert convert(marian, tmp_path / "own") == 0
    for language in ("en", "de"):
        (tmp_path / f"train.{language}").write_text("a b\nc d e\nf\n" * 20)
    settings = ["train.steps=2", "train.tokens=64", "train.validate_every=2", "data.dedup=false"]
    arguments = [argument for setting in settings for argument in ("--set", setting)]
    files = ["--src", tmp_path / "train.en", "--tgt", tmp_path / "train.de"]
    new = tmp_path / "new"
    assert run("train", *files, "--from", tmp_path / "own", "-o", new, *arguments) == 0
    before, after = open_bundle(tmp_path / "own"), open_bundle(new)
    assert after.facts["decode"]["forbidden"] == before.facts["decode"]["forbidden"] == [[37]]
    assert after.src_tokenizer.encode("a b") == before.src_tokenizer.encode("a b")
    assert after.tgt_tokenizer.vocab == before.tgt_tokenizer.vocab
    weights = [read_tensors(bundle.weights) for bundle in (before, after)]
    assert weights[0].keys() == weights[1].keys()
    assert not np.array_equal(*(one["source.weight"] for one in weights))


def test_the_options_of_a_marian_are_for_a_marian(tmp_path, capsys, marian):
    assert convert(TATOEBA, tmp_path / "own", "--punctuation", "always") == 2
    assert capsys.readouterr().err == (
        f"error: the option --punctuation is for a Marian, but {TATOEBA} is of regard\n"
    )
    assert convert(marian, tmp_path / "own", "--punctuation", "always") == 0
    assert open_bundle(tmp_path / "own").facts["punctuation"] == "always, as Moses"


def refused(capsys, src, dst, *options):
    """The one sentence with which a conversion ends that leaves nothing behind."""
    around = sorted(dst.parent.iterdir())
    assert convert(src, dst, *options) == 4
    said = capsys.readouterr()
    assert said.out == ""
    [line] = said.err.splitlines()
    assert sorted(dst.parent.iterdir()) == around
    return line.removeprefix("error: ")


def rewritten(place, change):
    weights = load_file(place / "model.safetensors")
    change(weights)
    save_file(weights, place / "model.safetensors", metadata={"format": "pt"})


def test_a_truncated_file_is_refused(copied, tmp_path, capsys):
    ends = {
        "model.safetensors": "is no whole safetensors file: Error while deserializing header: "
        "incomplete metadata, file not fully covered",
        "config.json": "is no valid JSON",
        "vocab.json": "is no valid JSON",
        "source.spm": "is no SentencePiece model",
    }
    for name, end in ends.items():
        whole = (copied / name).read_bytes()
        (copied / name).write_bytes(whole[: len(whole) // 2])
        assert refused(capsys, copied, tmp_path / "own") == f"{copied / name} {end}"
        (copied / name).write_bytes(whole)


def test_missing_extra_and_misshapen_tensors_are_all_named(copied, tmp_path, capsys):
    def change(weights):
        del weights["model.encoder.layers.0.fc1.bias"]
        del weights["model.decoder.layers.0.self_attn.k_proj.weight"]
        weights["model.extra"] = np.zeros(1, np.float32)
        weights["model.encoder.layers.0.fc2.bias"] = np.zeros(31, np.float32)

    rewritten(copied, change)
    assert refused(capsys, copied, tmp_path / "own") == (
        "the weights do not fit the model: "
        "model.decoder.layers.0.self_attn.k_proj.weight is missing, "
        "model.encoder.layers.0.fc1.bias is missing, "
        "model.encoder.layers.0.fc2.bias has shape (31,) instead of (32,), "
        "model.extra is unexpected"
    )


def test_weights_that_are_no_numbers_are_refused(copied, tmp_path, capsys):
    def change(weights):
        weights["model.encoder.layers.0.fc1.bias"][3] = np.nan

    rewritten(copied, change)
    assert refused(capsys, copied, tmp_path / "own") == (
        "model.encoder.layers.0.fc1.bias holds numbers that are not finite, so it is not saved"
    )


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        (
            "activation_function", "gelu",
            'has activation_function = "gelu"; regard has relu, swish, silu',
        ),
        (
            "model_type", "bart",
            'is of model_type "bart"; of Hugging Face\'s models regard reads "marian"',
        ),
        ("d_model", "wide", 'has no valid "d_model"'),
        (
            "encoder_attention_heads", 5,
            ": model.d_model = 32 is not a multiple of model.n_heads[0] = 5",
        ),
        ("pad_token_id", 0, ": pad and eos are both id 0; they need one each"),
    ],
)  # fmt: skip
def test_settings_that_are_foreign_or_wrong_are_named(name, value, said, copied, tmp_path, capsys):
    config = json.loads((copied / "config.json").read_text())
    (copied / "config.json").write_text(json.dumps({**config, name: value}))
    file = "vocab.json" if name == "pad_token_id" else "config.json"
    space = "" if said.startswith(":") else " "
    assert refused(capsys, copied, tmp_path / "own") == f"{copied / file}{space}{said}"


def test_decode_settings_that_are_none_are_refused(copied, tmp_path, capsys):
    (copied / "generation_config.json").write_text(json.dumps({"bad_words_ids": [["x"]]}))
    assert refused(capsys, copied, tmp_path / "own") == (
        f'{copied / "generation_config.json"} has no valid "num_beams, max_length, '
        'length_penalty, bad_words_ids or no_repeat_ngram_size"'
    )


def test_vocabularies_that_do_not_fit_are_refused(copied, tmp_path, capsys):
    ids = json.loads((copied / "vocab.json").read_text())
    ids["▁a"] = 1000
    (copied / "vocab.json").write_text(json.dumps(ids))
    assert refused(capsys, copied, tmp_path / "own") == (
        f"{copied / 'vocab.json'} has 38 pieces with ids that are not 0 to 37, or more than the 38 "
        "words of the network"
    )
    ids = {piece: id for id, piece in enumerate(piece for piece in ids if piece != "<unk>")}
    (copied / "vocab.json").write_text(json.dumps(ids))
    assert refused(capsys, copied, tmp_path / "own") == (
        f"{copied / 'vocab.json'} has no piece <unk>"
    )
    (copied / "vocab.json").unlink()
    assert refused(capsys, copied, tmp_path / "own") == (
        f"there is no file {copied / 'vocab.json'}"
    )


def test_a_pickle_where_safetensors_is_expected_is_refused(copied, tmp_path, capsys):
    zipped = io.BytesIO()
    torch.save({}, zipped)
    for data in (zipped.getvalue(), pickle.dumps({})):
        (copied / "model.safetensors").write_bytes(data)
        assert refused(capsys, copied, tmp_path / "own") == (
            f"{copied / 'model.safetensors'} is a pickle by its first bytes, but should be "
            "safetensors"
        )


class Evil:
    def __init__(self, place):
        self.place = place

    def __reduce__(self):
        return os.mkdir, (self.place,)


def test_a_pickle_is_read_only_when_asked_and_never_run(copied, tmp_path, capsys):
    torch.save({"a": Evil(str(tmp_path / "run"))}, copied / "pytorch_model.bin")
    (copied / "model.safetensors").unlink()
    assert refused(capsys, copied, tmp_path / "own") == (
        f"{copied / 'pytorch_model.bin'} is a pickle, which may run what it likes when it is read; "
        "if you trust who made it, say so with --trust-pickle"
    )
    said = refused(capsys, copied, tmp_path / "own", "--trust-pickle")
    assert said.startswith(f"{copied / 'pytorch_model.bin'} is no file of tensors alone: ")
    assert not (tmp_path / "run").exists()


def test_what_is_no_model_is_refused(tmp_path, capsys):
    (tmp_path / "empty").mkdir()
    assert refused(capsys, tmp_path / "empty", tmp_path / "own") == (
        f"{tmp_path / 'empty'} is no model that regard knows: one of its own has a MANIFEST.json, "
        "one of Hugging Face a config.json, one of fairseq a file that ends in .pt"
    )
    assert refused(capsys, tmp_path / "none", tmp_path / "own") == (
        f"there is no model {tmp_path / 'none'}"
    )


def test_a_damaged_model_of_our_own_is_refused(tmp_path, capsys):
    place = shutil.copytree(TATOEBA, tmp_path / "model")
    whole = (place / "model.safetensors").read_bytes()
    (place / "model.safetensors").write_bytes(whole[:-1])
    for options in ((), ("--dtype", "int8"), ("--to", "onnx")):
        said = refused(capsys, place, tmp_path / "own", *options)
        assert str(place) in said


def test_a_tokenizer_that_was_changed_with_all_its_hashes_is_noticed(marian, tmp_path, capsys):
    """Who replaces a tokenizer and mends every hash is found out by the ids of the probe."""
    assert convert(marian, tmp_path / "own") == 0
    capsys.readouterr()
    folder = tmp_path / "own" / "src_tokenizer"
    pieces = json.loads((folder / "pieces.json").read_text())
    a, b = pieces.index("▁a"), pieces.index("▁b")
    pieces[a], pieces[b] = pieces[b], pieces[a]
    (folder / "pieces.json").write_text(json.dumps(pieces))
    said = refused(capsys, tmp_path / "own", tmp_path / "hf", "--to", "marian")
    assert said == (
        f"{tmp_path / 'own'} is damaged: src_tokenizer/pieces.json is missing or not as it was "
        "written; copy the model again"
    )
    mend(tmp_path / "own")
    said = refused(capsys, tmp_path / "own", tmp_path / "hf", "--to", "marian")
    assert said == "the source tokenizer is not what it was: a fixed text has other ids now"


def mend(place):
    """Every record and the manifest, made to say what the files are now."""
    from regard.storage import sha256

    for folder in (place / "src_tokenizer", place / "tgt_tokenizer"):
        record = json.loads((folder / "tokenizer.json").read_text())
        for entry in (record["model"], record["pieces"]):
            file = folder / entry["file"]
            entry |= {"bytes": file.stat().st_size, "sha256": sha256(file)}
        (folder / "tokenizer.json").write_text(json.dumps(record))
    manifest = json.loads((place / "MANIFEST.json").read_text())
    for name, entry in manifest["files"].items():
        entry |= {"size": (place / name).stat().st_size, "sha256": sha256(place / name)}
    (place / "MANIFEST.json").write_text(json.dumps(manifest))
