"""Marians of transformers, taught to reverse: the same numbers and the same words in regard."""

import json
import shutil

import ctranslate2
import numpy as np
import pytest
import torch
from sacremoses import MosesPunctNormalizer
from safetensors.numpy import load_file, save_file
from transformers import MarianMTModel, MarianTokenizer
from transformers.utils import logging

from regard.attention.layout import Padded
from regard.bundle import open_bundle
from regard.config import ModelConfig
from regard.decode.engines.ctranslate2 import CTranslate2Engine
from regard.decode.engines.torch import load_network, torch_engine
from regard.decode.search import Search, Sentence
from regard.decode.translator import load
from regard.errors import ModelError
from regard.interchange.carried import Carried, from_bundle, write_regard
from regard.interchange.ctranslate2 import write_ctranslate2
from regard.interchange.marian import halves, read_marian, write_marian
from regard.model.build import build_model

CHOICES = ["shared-swish", "shared-relu-unequal", "separate-swish-unequal", "untied-relu"]
CPU = torch.device("cpu")
logging.disable_progress_bar()


@pytest.fixture(scope="module", autouse=True)
def caching(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REGARD_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def imported(marians, tmp_path_factory):
    """A function from a choice to the bundle of its Marian."""
    made = {}

    def bundle(choice):
        if choice not in made:
            place = tmp_path_factory.mktemp("imported") / "model"
            write_regard(read_marian(marians(choice)), place, "float32")
            made[choice] = open_bundle(place)
        return made[choice]

    return bundle


def theirs(place):
    return MarianMTModel.from_pretrained(place).eval(), MarianTokenizer.from_pretrained(place)


def generated(model, inputs, **options):
    """The words of each sentence as transformers finds them, its end left out."""
    with torch.no_grad():
        rows = model.generate(**inputs, **options)[:, 1:].tolist()
    return [row[: row.index(model.config.eos_token_id)] for row in rows]


def searched(engine, rows, **options):
    sentences = [Sentence(tuple(row)) for row in rows]
    return [list(own[0].ids) for own in engine.search(sentences, Search(**options))]


@pytest.mark.parametrize("choice", CHOICES)
def test_logits_are_equal_on_200_sentences(choice, marians, imported, teach):
    model, tokenizer = theirs(marians(choice))
    pairs = teach.sentences(200, 9)
    src, tgt = (
        tokenizer(**texts, padding=True, return_tensors="pt")
        for texts in ({"text": [s for s, _ in pairs]}, {"text_target": [t for _, t in pairs]})
    )
    start = torch.full((200, 1), model.config.decoder_start_token_id)
    given = torch.cat([start, tgt["input_ids"][:, :-1]], dim=1)
    network = load_network(imported(choice), CPU)
    with torch.no_grad():
        expected = model(**src, decoder_input_ids=given).logits
        lens, tgt_lens = src["attention_mask"].sum(1), tgt["attention_mask"].sum(1)
        found = network(src["input_ids"], given, Padded(lens), Padded(tgt_lens))
    is_word = tgt["attention_mask"].bool()
    assert (found - expected)[is_word].abs().max() <= 1e-4
    best = expected.argmax(-1)
    assert (best == tgt["input_ids"])[is_word].float().mean() > 0.9  # it has learned its task


@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("beam", [1, 5])
def test_greedy_and_beam_search_say_the_same_words(choice, beam, marians, imported, teach):
    model, tokenizer = theirs(marians(choice))
    bundle = imported(choice)
    texts = [source for source, _ in teach.sentences(200, 10)]
    rows = [[*bundle.src_tokenizer.encode(text), bundle.src_tokenizer.vocab.eos] for text in texts]
    assert rows == tokenizer(texts)["input_ids"]
    inputs = tokenizer(texts, padding=True, return_tensors="pt")
    early = {"early_stopping": True} if beam > 1 else {}
    expected = generated(model, inputs, num_beams=beam, **early)
    assert len({len(row) for row in expected}) > 3
    own = load(bundle.path, engine="torch").search
    options = {"beam": beam, "max_len": own.max_len, "forbidden": own.forbidden}
    assert searched(torch_engine([bundle], CPU), rows, **options) == expected
    if beam == 1:
        assert searched(CTranslate2Engine(bundle), rows, **options) == expected


@pytest.mark.parametrize("beam", [1, 5])
def test_probabilities_are_shared_out_where_the_model_says_so(beam, copied, teach, tmp_path):
    """As in OPUS-MT's models, whose padding has a logit like any word's, and is forbidden."""
    pad = 37

    def likely(weights):
        weights["final_logits_bias"][0, pad] = 9.0

    rewritten(copied, likely)
    generation = json.loads((copied / "generation_config.json").read_text())
    generation["renormalize_logits"] = True
    (copied / "generation_config.json").write_text(json.dumps(generation))
    model, tokenizer = theirs(copied)
    write_regard(read_marian(copied), tmp_path / "own", "float32")
    texts = [source for source, _ in teach.sentences(100, 13)]
    inputs = tokenizer(texts, padding=True, return_tensors="pt")
    early = {"early_stopping": True} if beam > 1 else {}
    expected = generated(model, inputs, num_beams=beam, **early)
    rows = tokenizer(texts)["input_ids"]
    bundle = open_bundle(tmp_path / "own")
    assert load(bundle.path).search.renormalize
    options = {"beam": beam, "max_len": 29, "forbidden": ((pad,),), "renormalize": True}
    for engine in (torch_engine([bundle], CPU), CTranslate2Engine(bundle)):
        assert searched(engine, rows, **options) == expected


@pytest.mark.parametrize("choice", CHOICES)
def test_the_way_back_gives_every_bit_back(choice, marians, imported, tmp_path):
    first = from_bundle(imported(choice))
    write_marian(first, tmp_path / "hf", "float32")
    again = read_marian(tmp_path / "hf")
    assert first.weights.keys() == again.weights.keys()
    assert all(np.array_equal(first.weights[k], again.weights[k]) for k in first.weights)
    assert again.model == first.model
    assert again.facts == first.facts
    before, after = (load_file(p / "model.safetensors") for p in (marians(choice), tmp_path / "hf"))
    assert all(np.array_equal(before[name], array) for name, array in after.items())
    for file in ("source.spm", "target.spm"):
        assert (tmp_path / "hf" / file).read_bytes() == (marians(choice) / file).read_bytes()
    model, tokenizer = theirs(tmp_path / "hf")
    old, old_tokenizer = theirs(marians(choice))
    inputs, old_inputs = (
        one(["a b c", "h g"], padding=True, return_tensors="pt")
        for one in (tokenizer, old_tokenizer)
    )
    assert torch.equal(inputs["input_ids"], old_inputs["input_ids"])
    assert torch.equal(model.generate(**inputs), old.generate(**inputs))


def test_the_coordinates_are_those_of_marians_own_table(marians):
    model, _ = theirs(marians("shared-swish"))
    own = build_model(ModelConfig(d_model=32, n_heads=4, max_len=40), 5, 5).source.positions.table
    table = model.model.encoder.embed_positions.weight
    assert (own[:, halves(32)] - table).abs().max() < 1e-6


def test_special_ids_and_decode_defaults_are_marians(imported):
    bundle = imported("shared-swish")
    vocab = bundle.tgt_tokenizer.vocab
    pad = len(vocab) - 1
    assert (vocab.eos, vocab.unk, vocab.pad, vocab.bos) == (0, 1, pad, pad)
    assert load(bundle.path).search == Search(
        beam=4, length_penalty=1.0, max_len=29, forbidden=((pad,),)
    )
    assert bundle.facts["punctuation"] == "never"


def test_a_language_is_asked_for_before_the_text_or_by_name(marians, imported):
    _, tokenizer = theirs(marians("shared-swish"))
    bundle = imported("shared-swish")
    text = ">>cmn_Hans<< a b c"
    assert [*bundle.src_tokenizer.encode(text), 0] == tokenizer(text)["input_ids"]
    assert bundle.facts["directions"] == [["en", ""], ["en", "de"], ["en", "cmn_Hans"]]
    wording = load(bundle.path).wording
    asked = [
        *wording.asked([text], [("", "")]), *wording.asked(["a b c"], [("", "cmn_Hans")])
    ]  # fmt: skip
    assert [list(one.sentences[0].ids) for one in asked] == [tokenizer(text)["input_ids"]] * 2
    assert [one.direction for one in asked] == [("en", "cmn_Hans")] * 2
    assert asked[0].text == text
    [plain] = wording.asked(["a b c"], [("", "")])
    assert list(plain.sentences[0].ids) == tokenizer("a b c")["input_ids"]


def test_alignments_leave_the_language_out_where_there_is_one(imported):
    translator = load(imported("shared-swish").path, engine="torch")
    search = Search(beam=1, wants_attention=True, max_len=10)
    for text in ("a b c", ">>de<< a b c"):
        alignment = translator.translate(text, search=search).alignment
        assert alignment.src_pieces == ("▁a", "▁b", "▁c")


def test_punctuation_is_normalised_as_sacremoses_does_it_or_never(marians):
    place = marians("shared-swish")
    _, tokenizer = theirs(place)
    text = "„a“ — b ‘c’ d…"
    never = read_marian(place).src_tokenizer
    always = read_marian(place, punctuation=True)
    assert [*never.encode(text), 0] == tokenizer(text)["input_ids"]
    moses = MosesPunctNormalizer("en").normalize(text)
    assert [*always.src_tokenizer.encode(text), 0] == tokenizer(moses)["input_ids"]
    assert tokenizer.tokenize(text) == never.pieces(text)
    assert tokenizer.tokenize(moses) == always.src_tokenizer.pieces(text) != never.pieces(text)
    assert always.facts["punctuation"] == "always, as Moses"


def test_punctuation_stays_as_chosen_when_the_model_is_saved(marians, tmp_path):
    write_regard(read_marian(marians("shared-swish"), punctuation=True), tmp_path / "m", "float32")
    tokenizer = open_bundle(tmp_path / "m").src_tokenizer
    assert tokenizer.pieces("„a“") == tokenizer.pieces('"a"')


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8"])
def test_a_ctranslate2_directory_says_the_same_by_itself(dtype, imported, teach, tmp_path):
    bundle = imported("shared-relu-unequal")
    write_ctranslate2(from_bundle(bundle), tmp_path / "ct2", dtype)
    translator = ctranslate2.Translator(str(tmp_path / "ct2"), intra_threads=1)
    texts = [source for source, _ in teach.sentences(200, 11)]
    pieces = [[*bundle.src_tokenizer.pieces(text), "</s>"] for text in texts]
    found = [one.hypotheses[0] for one in translator.translate_batch(pieces, beam_size=1)]
    vocab = bundle.src_tokenizer.vocab
    rows = [[vocab.id_of(piece) for piece in row] for row in pieces]
    forbidden = ((bundle.tgt_tokenizer.vocab.pad,),)
    expected = searched(torch_engine([bundle], CPU), rows, beam=1, forbidden=forbidden)
    said = [[bundle.tgt_tokenizer.vocab.id_of(piece) for piece in row] for row in found]
    same = sum(one == other for one, other in zip(said, expected, strict=True))
    assert same == 200 if dtype == "float32" else same >= 190


def test_what_is_forbidden_is_never_said_by_a_ctranslate2_directory(imported, tmp_path):
    bundle = imported("untied-relu")
    model = from_bundle(bundle)
    word = bundle.tgt_tokenizer.vocab.id_of("▁s")
    facts = {**model.facts, "decode": {"forbidden": [[word], [word, word]]}}
    banned = Carried(
        model.model, model.src_tokenizer, model.tgt_tokenizer, model.weights, facts, ""
    )
    for number, (one, is_said) in enumerate(((model, True), (banned, False))):
        write_ctranslate2(one, tmp_path / str(number), "float32")
        translator = ctranslate2.Translator(str(tmp_path / str(number)), intra_threads=1)
        [found] = translator.translate_batch([["▁a", "▁a", "</s>"]], max_decoding_length=9)
        assert ("▁s" in found.hypotheses[0]) == is_said


# --- files as they come


@pytest.fixture
def copied(marians, tmp_path):
    return shutil.copytree(marians("shared-swish"), tmp_path / "hf")


def rewritten(place, change):
    weights = load_file(place / "model.safetensors")
    change(weights)
    save_file(weights, place / "model.safetensors", metadata={"format": "pt"})


def test_positions_that_older_files_hold_are_passed_over(copied, marians):
    table = theirs(copied)[0].model.encoder.embed_positions.weight.detach().numpy()
    names = [f"model.{side}.embed_positions.weight" for side in ("encoder", "decoder")]
    rewritten(copied, lambda weights: weights.update(dict.fromkeys(names, table)))
    expected = read_marian(marians("shared-swish")).weights
    found = read_marian(copied).weights
    assert all(np.array_equal(found[name], array) for name, array in expected.items())
    rewritten(copied, lambda weights: weights.update({names[0]: table + 1.0}))
    with pytest.raises(ModelError) as caught:
        read_marian(copied)
    assert str(caught.value) == f"the weights do not fit the model: {names[0]} is unexpected"


def test_other_names_of_a_shared_matrix_are_read_if_they_hold_the_same(copied, marians):
    def add(weights):
        weights["lm_head.weight"] = weights.pop("model.shared.weight")

    rewritten(copied, add)
    expected, found = (read_marian(p).weights for p in (marians("shared-swish"), copied))
    assert np.array_equal(found["source.weight"], expected["source.weight"])

    def differ(weights):
        weights["model.encoder.embed_tokens.weight"] = weights["lm_head.weight"] + 1.0

    rewritten(copied, differ)
    with pytest.raises(ModelError, match="is unexpected"):
        read_marian(copied)


def test_weights_in_several_files_are_read_as_one(copied, marians):
    weights = load_file(copied / "model.safetensors")
    names = sorted(weights)
    parts = {"one.safetensors": names[:9], "two.safetensors": names[9:]}
    for file, own in parts.items():
        save_file({name: weights[name] for name in own}, copied / file)
    (copied / "model.safetensors").unlink()
    table = {"weight_map": {name: file for file, own in parts.items() for name in own}}
    (copied / "model.safetensors.index.json").write_text(json.dumps(table))
    expected, found = (read_marian(p).weights for p in (marians("shared-swish"), copied))
    assert all(np.array_equal(found[name], array) for name, array in expected.items())


def test_a_config_without_generation_settings_has_them_itself(copied):
    (copied / "generation_config.json").unlink()
    config = json.loads((copied / "config.json").read_text())
    more = {
        "num_beams": 6,
        "max_length": 20,
        "bad_words_ids": [[37], [1, 2]],
        "length_penalty": 0.6,
    }
    (copied / "config.json").write_text(json.dumps({**config, **more}))
    assert read_marian(copied).facts["decode"] == {
        "beam": 6, "max_len": 19, "forbidden": [[37], [1, 2]], "length_penalty": 0.6,
    }  # fmt: skip


def test_a_pickle_is_read_in_another_process_where_its_maker_is_trusted(copied, marians):
    model, _ = theirs(copied)
    torch.save(model.state_dict(), copied / "pytorch_model.bin")
    (copied / "model.safetensors").unlink()
    found = read_marian(copied, trusts_pickle=True).weights
    expected = read_marian(marians("shared-swish")).weights
    assert all(np.array_equal(found[name], array) for name, array in expected.items())


def test_an_imported_model_can_be_looked_into(imported):
    translator = load(imported("shared-swish").path)
    attention = translator.attend("a b c")
    assert attention.cross.shape[:2] == (1, 4)
    assert attention.encoder.sum(-1) == pytest.approx(1.0, abs=1e-5)
