import io
import json
import pickle

import pytest
from sentencepiece import SentencePieceProcessor, SentencePieceTrainer

from regard.errors import ModelError
from regard.text.mapped import MappedTokenizer, mapped_tokenizer
from regard.text.normalize import Normalizer
from regard.text.tokenizer import Tokenizer, load_tokenizer
from regard.text.vocab import Vocabulary

TEXTS = [
    "the cat sat on the mat",
    "a dog ate the cat",
    "ｆｕｌｌ ｗｉｄｔｈ letters",
    "déjà vu",
] * 20


@pytest.fixture(scope="module")
def model():
    made = io.BytesIO()
    SentencePieceTrainer.train(
        sentence_iterator=iter(TEXTS), model_writer=made, vocab_size=60, minloglevel=2,
        hard_vocab_limit=False,
    )  # fmt: skip
    return made.getvalue()


@pytest.fixture(scope="module")
def vocab(model):
    """Ids of its own: special ones at both ends, the others from behind."""
    processor = SentencePieceProcessor(model_proto=model)
    own = [processor.id_to_piece(id) for id in range(3, len(processor))]
    pieces = ("</s>", "<unk>", ">>zh<<", *reversed(own), "<pad>")
    n = len(pieces)
    return Vocabulary(pieces, pad=n - 1, bos=n - 1, eos=0, unk=1, languages={"zh": 2})


@pytest.fixture(scope="module")
def tokenizer(model, vocab):
    return MappedTokenizer(model, vocab, Normalizer(form="none"))


def test_pieces_are_sentencepieces_and_ids_are_the_vocabularys(tokenizer, model, vocab):
    processor = SentencePieceProcessor(model_proto=model)
    for text in (*TEXTS[:4], "cat  mat ", "ｃａｔ"):
        pieces = processor.encode(text, out_type=str)
        assert tokenizer.pieces(text) == pieces
        assert tokenizer.encode(text) == [vocab.pieces.index(piece) for piece in pieces]
        assert tokenizer.decode(tokenizer.encode(text)) == processor.decode(pieces)
    assert isinstance(tokenizer, Tokenizer)
    assert tokenizer.sample("the cat", (1, 2)) == tokenizer.encode("the cat")


def test_the_model_normalises_by_its_own_tables(tokenizer):
    assert tokenizer.encode("ｃａｔ") == tokenizer.encode("cat")


def test_what_no_piece_covers_is_unknown_and_counted(tokenizer, vocab):
    ids = tokenizer.encode("cat 龘龘")
    assert ids[-1] == vocab.unk
    assert tokenizer.uncovered("cat 龘龘") == 2
    assert tokenizer.decode(ids) == "cat ⁇"


def test_a_language_is_asked_for_only_by_a_code_before_the_text(tokenizer, vocab):
    assert tokenizer.encode(">>zh<< cat") == [2, *tokenizer.encode("cat")]
    assert 2 not in tokenizer.encode("cat >>zh<<")
    assert 2 not in tokenizer.encode(">>fr<< cat")
    assert tokenizer.decode([2, *tokenizer.encode("cat"), 0, vocab.pad]) == "cat"


def test_no_text_becomes_padding_or_an_end(tokenizer, vocab):
    for text in ("</s>", "<pad>", "<unk> cat"):
        assert not {vocab.eos, vocab.pad} & set(tokenizer.encode(text))


@pytest.mark.parametrize("punctuation", ["", "de"])
def test_what_is_saved_is_read_again(tokenizer, tmp_path, punctuation):
    one = MappedTokenizer(tokenizer.model, tokenizer.vocab, tokenizer.normalizer, punctuation)
    one.save(tmp_path)
    again = load_tokenizer(tmp_path)
    text = "„cat“ – mat"
    assert again.pieces(text) == one.pieces(text) == pickle.loads(pickle.dumps(one)).pieces(text)
    assert (again.pieces(text) != tokenizer.pieces(text)) == bool(punctuation)
    assert again.vocab == one.vocab


@pytest.mark.parametrize("name", ["tokenizer.model", "pieces.json"])
def test_a_changed_file_is_noticed(tokenizer, tmp_path, name):
    tokenizer.save(tmp_path)
    data = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(data[:-3] + data[-2:])
    with pytest.raises(ModelError) as caught:
        load_tokenizer(tmp_path)
    assert str(caught.value) == (
        f"{tmp_path / name} has {len(data) - 1} bytes but tokenizer.json says {len(data)}; "
        "it was cut or changed"
    )
    (tmp_path / name).write_bytes(data[:-3] + b"x" + data[-2:])
    with pytest.raises(ModelError) as caught:
        load_tokenizer(tmp_path)
    assert str(caught.value) == (
        f"{tmp_path / name} was changed since it was saved: its sha256 is not the one in "
        "tokenizer.json"
    )


def test_a_list_of_pieces_that_is_none_is_refused(tokenizer, tmp_path):
    tokenizer.save(tmp_path)
    record = json.loads((tmp_path / "tokenizer.json").read_text())
    record["pieces"] = 7
    (tmp_path / "tokenizer.json").write_text(json.dumps(record))
    with pytest.raises(ModelError) as caught:
        load_tokenizer(tmp_path)
    assert str(caught.value) == f'{tmp_path / "tokenizer.json"} has no valid "pieces"'


@pytest.mark.parametrize("data", [b"", b"no model", b"\x0a\x02\x0a\x00", b"\x08\x01"])
def test_what_is_no_model_is_refused(data, vocab, tmp_path):
    with pytest.raises(ModelError) as caught:
        mapped_tokenizer(tmp_path / "source.spm", data, vocab, Normalizer())
    assert str(caught.value) == f"{tmp_path / 'source.spm'} is no SentencePiece model"
