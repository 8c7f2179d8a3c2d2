"""Models of regard's own as Marians of transformers, and what Marian has no place for."""

import json

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from transformers import MarianMTModel, MarianTokenizer
from transformers.utils import logging

from regard.attention.layout import Padded
from regard.bundle import open_bundle
from regard.config import ModelConfig
from regard.decode.translator import load
from regard.errors import ModelError
from regard.interchange.carried import Carried, from_bundle, write_regard
from regard.interchange.marian import read_marian, write_marian
from regard.model.build import build_model
from regard.model.weights import weights_of
from regard.text.normalize import Normalizer
from regard.text.tokenizer import CharTokenizer, train_tokenizer
from regard.text.vocab import Vocabulary

SMALL = {"d_model": 8, "n_heads": 2, "n_layers": 1, "d_ff": 8, "max_len": 9}
logging.disable_progress_bar()


@pytest.fixture(scope="module")
def native(teach, tmp_path_factory):
    """A model of regard's own that can reverse, with tokenizers of its own and two languages."""
    torch.manual_seed(0)
    pairs = teach.sentences(64 * 40, 2)
    tokenizer = train_tokenizer(
        [text for pair in pairs[:400] for text in pair],
        kind="unigram", size=320, languages=("de", "fr"),
    )  # fmt: skip
    vocab = tokenizer.vocab
    config = ModelConfig(
        d_model=32, n_layers=1, n_heads=4, d_ff=64, max_len=40, activation="swish", dropout=0.0
    )
    network = build_model(config, len(vocab), len(vocab))
    optimizer = torch.optim.Adam(network.parameters(), lr=3e-3)
    asks = vocab.language("de")
    for step in range(200):
        some = pairs[64 * (step % 40) :][:64]
        src = [[asks, *tokenizer.encode(source), vocab.eos] for source, _ in some]
        tgt = [[vocab.bos, *tokenizer.encode(target), vocab.eos] for _, target in some]
        src_ids, tgt_ids = (
            torch.nn.utils.rnn.pad_sequence(list(map(torch.tensor, rows)), True, vocab.pad)
            for rows in (src, tgt)
        )
        lens = Padded(torch.tensor(list(map(len, src))))
        logits = network(src_ids, tgt_ids[:, :-1], lens, None)
        loss = torch.nn.functional.cross_entropy(
            logits.flatten(0, 1), tgt_ids[:, 1:].flatten(), ignore_index=vocab.pad
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    place = tmp_path_factory.mktemp("native") / "model"
    weights = {name: weight.numpy() for name, weight in weights_of(network).items()}
    facts = {"directions": [["en", "de"], ["en", "fr"]], "decode": {"beam": 5}}
    model = Carried(config, tokenizer, tokenizer, weights, facts, "# A model\n")
    write_regard(model, place, "float32")
    return open_bundle(place)


@pytest.mark.parametrize("beam", [1, 5])
def test_transformers_says_the_same_text_with_a_model_of_ours(native, beam, teach, tmp_path):
    write_marian(from_bundle(native), tmp_path / "hf", "float32")
    model = MarianMTModel.from_pretrained(tmp_path / "hf").eval()
    tokenizer = MarianTokenizer.from_pretrained(tmp_path / "hf")
    texts = [source for source, _ in teach.sentences(60, 12)] + ["é 你 b"]
    inputs = tokenizer([f">>de<<{text}" for text in texts], padding=True, return_tensors="pt")
    with torch.no_grad():
        rows = model.generate(**inputs, num_beams=beam, early_stopping=True)
    translator = load(native.path, engine="torch")
    expected = [one.text for one in translator.translate(texts, beam=beam, tgt_lang="de")]
    assert tokenizer.batch_decode(rows, skip_special_tokens=True) == expected
    right = [target for _, target in teach.sentences(60, 12)]
    assert sum(a == b for a, b in zip(expected, right, strict=False)) > 40


def test_our_model_comes_back_from_marian_bit_by_bit(native, tmp_path):
    first = from_bundle(native)
    write_marian(first, tmp_path / "hf", "float32")
    again = read_marian(tmp_path / "hf")
    assert first.weights.keys() == again.weights.keys()
    assert all(np.array_equal(first.weights[k], again.weights[k]) for k in first.weights)
    assert again.facts["directions"] == first.facts["directions"]
    text = "a b é 你"
    assert again.src_tokenizer.encode(text) == first.src_tokenizer.encode(text)
    assert again.tgt_tokenizer.vocab.languages == first.tgt_tokenizer.vocab.languages


def test_float16_is_written_as_such(native, tmp_path):
    write_marian(from_bundle(native), tmp_path / "hf", "float16")
    found = load_file(tmp_path / "hf" / "model.safetensors")
    assert {array.dtype for array in found.values()} == {np.dtype(np.float16)}
    assert json.loads((tmp_path / "hf" / "config.json").read_text())["dtype"] == "float16"


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"norm": "pre"}, 'model.norm = "pre" has no place in Marian, which has "post"'),
        (
            {"positions": "rotary"},
            'model.positions = "rotary" has no place in Marian, which has "sinusoidal"',
        ),
        (
            {"score": "additive"},
            'model.score = "additive" has no place in Marian, which has "scaled_dot"',
        ),
        (
            {"kind": "recurrent"},
            'model.kind = "recurrent" has no place in Marian, which has "transformer"',
        ),
    ],
)
def test_a_setting_that_marian_has_no_place_for_is_named(settings, said, native, tmp_path):
    model = from_bundle(native)
    config = ModelConfig(**SMALL, **settings)
    other = Carried(config, model.src_tokenizer, model.tgt_tokenizer, {}, {}, "")
    with pytest.raises(ModelError) as caught:
        write_marian(other, tmp_path / "hf", "float32")
    assert str(caught.value) == said
    assert not (tmp_path / "hf").exists()


@pytest.mark.parametrize(
    ("normalizer", "said"),
    [
        ({"form": "nfkc"}, 'normalizer.form = "nfkc" has no place in Marian, which has "nfc"'),
        ({"width": "half"}, 'normalizer.width = "half" has no place in Marian, which has "keep"'),
        (
            {"han": "simplified"},
            'normalizer.han = "simplified" has no place in Marian, which has "keep"',
        ),
    ],
)
def test_a_normaliser_that_marian_has_no_place_for_is_named(normalizer, said, native, tmp_path):
    tokenizer = train_tokenizer(
        ["a b c"], kind="unigram", size=270, normalizer=Normalizer(**normalizer)
    )
    model = Carried(ModelConfig(**SMALL), tokenizer, tokenizer, {}, {}, "")
    with pytest.raises(ModelError) as caught:
        write_marian(model, tmp_path / "hf", "float32")
    assert str(caught.value) == said


def test_tokenizers_and_types_that_marian_has_no_place_for_are_named(native, tmp_path):
    vocab = Vocabulary(("<pad>", "<s>", "</s>", "<unk>", "a"), pad=0, bos=1, eos=2, unk=3)
    chars = CharTokenizer(vocab, Normalizer())
    model = Carried(ModelConfig(**SMALL), chars, chars, {}, {}, "")
    with pytest.raises(ModelError) as caught:
        write_marian(model, tmp_path / "hf", "float32")
    assert str(caught.value) == (
        "a tokenizer of kind CharTokenizer has no place in Marian, which has SentencePiece"
    )
    with pytest.raises(ModelError) as caught:
        write_marian(from_bundle(native), tmp_path / "hf", "int8")
    assert str(caught.value) == (
        'dtype = "int8" has no place in Marian, which has float32 and float16'
    )
