import io
import json
import shutil
import struct
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sentencepiece import SentencePieceTrainer

from regard.errors import ModelError
from regard.text import saved
from regard.text.tokenizer import load_tokenizer


@pytest.fixture
def directory(tokenizer, tmp_path):
    tokenizer.save(tmp_path)
    return tmp_path


@pytest.fixture
def unigram(trained, tmp_path):
    trained("unigram").save(tmp_path)
    return tmp_path


def refusal(directory):
    with pytest.raises(ModelError) as raised:
        load_tokenizer(directory)
    return str(raised.value)


def vouch(directory, model):
    """Put a model in place and a record that vouches for it, as one who means harm would."""
    (directory / "tokenizer.model").write_bytes(model)
    change(directory, "model", {"bytes": len(model), "sha256": sha256(model).hexdigest()})


def change(directory, name, value):
    path = directory / "tokenizer.json"
    record = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**record, name: value}), encoding="utf-8")


def test_the_record_says_what_the_tokenizer_is(unigram):
    record = json.loads((unigram / "tokenizer.json").read_text(encoding="utf-8"))
    model = (unigram / "tokenizer.model").read_bytes()
    assert record == {
        "format": 1,
        "kind": "unigram",
        "normalizer": {"form": "nfc", "width": "keep", "han": "keep"},
        "vocabulary": {"pad": 0, "bos": 1, "eos": 2, "unk": 3, "languages": {"en": 4, "zh": 5}},
        "model": {
            "file": "tokenizer.model",
            "bytes": len(model),
            "sha256": sha256(model).hexdigest(),
        },
    }


def test_a_truncated_model_is_refused(directory):
    path = directory / "tokenizer.model"
    size = path.stat().st_size
    path.write_bytes(path.read_bytes()[:-1])
    assert refusal(directory) == (
        f"{path} has {size - 1} bytes but tokenizer.json says {size}; it was cut or changed"
    )


def test_a_changed_model_is_refused(directory):
    path = directory / "tokenizer.model"
    model = bytearray(path.read_bytes())
    model[len(model) // 2] ^= 1
    path.write_bytes(model)
    assert refusal(directory) == (
        f"{path} was changed since it was saved: its sha256 is not the one in tokenizer.json"
    )


@pytest.mark.parametrize("name", ["tokenizer.json", "tokenizer.model"])
def test_a_missing_file_is_named(directory, name):
    (directory / name).unlink()
    assert refusal(directory) == f"there is no file {directory / name}"


@pytest.mark.parametrize("text", ["", "{", "\xff", "[" * 100_000])
def test_a_record_that_is_no_json_is_refused(directory, text):
    path = directory / "tokenizer.json"
    path.write_bytes(text.encode("latin-1"))
    assert refusal(directory) == f"{path} is no valid JSON"


@pytest.mark.parametrize("text", ["[]", "{}", '{"format": 2}'])
def test_a_record_of_another_format_is_refused(directory, text):
    path = directory / "tokenizer.json"
    path.write_text(text, encoding="utf-8")
    assert refusal(directory) == f"{path} is no tokenizer record of format 1"


SPECIAL = {"pad": 0, "bos": 1, "eos": 2, "unk": 3, "languages": {}}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("kind", None),
        ("kind", "wordpiece"),
        ("normalizer", []),
        ("normalizer", {"form": 3}),
        ("vocabulary", None),
        ("vocabulary", {"pad": 0}),
        ("vocabulary", {**SPECIAL, "pad": "0"}),
        ("vocabulary", {**SPECIAL, "pad": True}),
        ("vocabulary", {**SPECIAL, "languages": []}),
        ("vocabulary", {**SPECIAL, "languages": {"en": None}}),
        ("model", None),
        ("model", {"bytes": 3}),
        ("model", {"bytes": 3.0, "sha256": ""}),
    ],
)
def test_a_record_with_a_wrong_field_is_refused(directory, name, value):
    change(directory, name, value)
    assert refusal(directory) == f'{directory / "tokenizer.json"} has no valid "{name}"'


@pytest.mark.plain
def test_a_setting_that_cannot_be_is_named_with_its_file(directory):
    change(directory, "normalizer", {"form": "nfd"})
    assert refusal(directory) == (
        f'{directory / "tokenizer.json"}: normalizer.form = "nfd" is not one of nfc, nfkc, none'
    )


def test_special_ids_that_cannot_be_are_named_with_their_file(directory):
    change(directory, "vocabulary", {**SPECIAL, "eos": 0})
    assert refusal(directory) == (
        f"{directory / 'tokenizer.model'}: pad and eos are both id 0; they need one each"
    )


@pytest.mark.parametrize("name", ["tokenizer.json", "tokenizer.model"])
def test_a_file_too_large_is_refused_before_it_is_parsed(directory, name, monkeypatch):
    monkeypatch.setitem(saved.MOST_BYTES, name, 100)
    assert refusal(directory) == (
        f"{directory / name} is larger than the 100 bytes a tokenizer may have"
    )


@pytest.mark.parametrize("text", ["{", "{}", '"ab"', "[1]", '["\\ud800"]', "[" * 100_000])
def test_a_list_of_pieces_that_is_none_is_refused(trained, tmp_path, text):
    trained("char").save(tmp_path)
    vouch(tmp_path, text.encode())
    assert refusal(tmp_path) == f"{tmp_path / 'tokenizer.model'} is no list of pieces"


# --- SentencePiece models that somebody vouches for


def field(number, value):
    """A protobuf field: a number, a float or bytes."""
    match value:
        case int():
            return bytes([number << 3, value])
        case float():
            return bytes([number << 3 | 5]) + struct.pack("<f", value)
        case _:
            size = bytes([len(value) & 0x7F | 0x80, len(value) >> 7])
            return bytes([number << 3 | 2]) + size + value


def foreign(**changed):
    """A model of SentencePiece's own making."""
    model = io.BytesIO()
    settings = {"model_type": "bpe", "vocab_size": 300, "byte_fallback": True, "pad_id": 3}
    settings |= {"normalization_rule_name": "identity", "remove_extra_whitespaces": False}
    SentencePieceTrainer.train(
        sentence_iterator=iter(["the cat sat", "on the mat"]),
        model_writer=model,
        hard_vocab_limit=False,
        minloglevel=2,
        **{**settings, **changed},
    )
    return model.getvalue()


@pytest.mark.parametrize(
    "model",
    [
        lambda _: b"",
        lambda _: b"garbage" * 9,
        lambda _: b"\xff" * 30,
        lambda _: b"\x0a\xff\xff\xff\xff\x0f",
        lambda _: b"\x0b",
        lambda own: own,
        lambda own: own + field(1, field(1, b"another\nline")),
        lambda own: own + field(1, field(1, b"")),
        lambda own: own + field(1, field(1, b"\xff")),
        lambda own: own + field(1, field(1, b"x" * 2000)),
        lambda own: own + field(1, field(1, b"xyz") + field(2, float("nan"))),
        lambda own: own + field(1, field(1, b"<s2>") + field(3, 3)),
        lambda own: own + field(1, field(1, b"user") + field(3, 4)),
        lambda own: own + field(1, field(1, b"<unk2>") + field(3, 2)),
        lambda own: own + field(1, field(1, b"<0xZZ>") + field(3, 6)),
        lambda own: own + field(2, field(3, 1)),
        lambda own: own + field(3, field(2, b"table") + field(4, 0)),
        lambda own: own + field(5, field(2, b"table")),
        lambda _: foreign(),
        lambda _: foreign(normalization_rule_name="nmt_nfkc"),
        lambda _: foreign(remove_extra_whitespaces=True),
        lambda _: foreign(add_dummy_prefix=False),
        lambda _: foreign(treat_whitespace_as_suffix=True),
        lambda _: foreign(model_type="word", byte_fallback=False),
    ],
)
def test_a_model_that_regard_did_not_write_is_refused(unigram, model):
    own = (unigram / "tokenizer.model").read_bytes()
    vouch(unigram, model(own))
    if model(own) == own:
        change(unigram, "kind", "bpe")
    assert refusal(unigram) == (
        f"{unigram / 'tokenizer.model'} is no SentencePiece model that regard wrote"
    )


def test_a_piece_given_twice_is_named_with_its_file(unigram, trained):
    own, vocab = (unigram / "tokenizer.model").read_bytes(), trained("unigram").vocab
    vouch(unigram, own + field(1, field(1, "▁the".encode())))
    assert refusal(unigram) == (
        f"{unigram / 'tokenizer.model'}: "
        f'piece "▁the" has two ids, {vocab.id_of("▁the")} and {len(vocab)}'
    )


def test_a_model_of_too_many_pieces_is_refused(unigram, monkeypatch):
    monkeypatch.setattr("regard.text.spm.MOST_PIECES", 100)
    assert refusal(unigram) == (
        f"{unigram / 'tokenizer.model'} is no SentencePiece model that regard wrote"
    )


@given(at=st.integers(0, 10**6), byte=st.integers(0, 255), is_cut=st.booleans())
def test_no_single_byte_crashes_the_parser(trained, tmp_path_factory, at, byte, is_cut):
    directory = tmp_path_factory.mktemp("mutant")
    trained("unigram").save(directory)
    model = bytearray((directory / "tokenizer.model").read_bytes())
    at %= len(model)
    model[at] = byte
    vouch(directory, bytes(model[:at] if is_cut else model))
    try:
        tokenizer = load_tokenizer(directory)
    except ModelError:
        pass
    else:
        assert tokenizer.decode(tokenizer.encode("the 猫▁ cat")) == "the 猫▁ cat"
    shutil.rmtree(directory)
