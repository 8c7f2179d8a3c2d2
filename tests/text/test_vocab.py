import json

import pytest

from regard.errors import ConfigError, DataError
from regard.text.vocab import (
    BYTE_PIECES,
    Vocabulary,
    joined,
    own_vocabulary,
    special_pieces,
    spellings,
)

PIECES = ("<pad>", "<s>", "</s>", "<unk>", "<2en>", "<2zh>", "cat", "猫")


def small(pieces=PIECES, pad=0, bos=1, eos=2, unk=3, languages=None):
    return Vocabulary(
        pieces, pad, bos, eos, unk, {"en": 4, "zh": 5} if languages is None else languages
    )


def test_pieces_and_ids_are_each_others_inverse():
    vocab = small()
    assert len(vocab) == 8
    assert [vocab.id_of(vocab.piece(id)) for id in range(8)] == list(range(8))


def test_an_unknown_piece_is_unk():
    assert small().id_of("dog") == small().unk


def test_a_language_has_its_token():
    vocab = small()
    assert vocab.piece(vocab.language("zh")) == "<2zh>"


def test_an_unknown_language_is_answered_with_the_known_ones():
    with pytest.raises(ConfigError) as raised:
        small().language("fr")
    assert str(raised.value) == 'language "fr" is not one of en, zh'
    with pytest.raises(ConfigError) as raised:
        small(languages={}).language("fr")
    assert str(raised.value) == (
        'there is no language "fr"; this vocabulary has no language tokens'
    )


@pytest.mark.parametrize("id", [-1, 8])
def test_an_id_outside_is_refused(id):
    vocab = small()
    sentence = f"id {id} is outside the vocabulary, whose 8 ids are 0 to 7"
    with pytest.raises(DataError) as raised:
        vocab.piece(id)
    assert str(raised.value) == sentence
    with pytest.raises(DataError) as raised:
        joined(spellings(vocab, str), [6, id])
    assert str(raised.value) == sentence


def test_a_start_may_be_padding_or_an_end():
    assert small(bos=0).bos == small().pad
    assert small(bos=2).bos == small().eos


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"eos": 0}, "pad and eos are both id 0; they need one each"),
        ({"unk": 2}, "eos and unk are both id 2; they need one each"),
        ({"unk": 1}, "bos and unk are both id 1; they need one each"),
        (
            {"languages": {"en": 4, "zh": 4}},
            "languages.en and languages.zh are both id 4; they need one each",
        ),
        ({"languages": {"en": 0}}, "pad and languages.en are both id 0; they need one each"),
        ({"pad": 8}, "pad = 8 is outside the vocabulary of 8 pieces"),
        ({"pad": -1}, "pad = -1 is outside the vocabulary of 8 pieces"),
        ({"languages": {"en": 9}}, "languages.en = 9 is outside the vocabulary of 8 pieces"),
        ({"pieces": (*PIECES, "cat")}, 'piece "cat" has two ids, 6 and 8'),
        (
            {"eos": 0, "unk": 9},
            "unk = 9 is outside the vocabulary of 8 pieces; "
            "pad and eos are both id 0; they need one each",
        ),
    ],
)
def test_ids_that_cannot_be_are_named_all_at_once(changed, sentence):
    with pytest.raises(ConfigError) as raised:
        small(**changed)
    assert str(raised.value) == sentence


def test_a_vocabulary_survives_json():
    vocab = small()
    assert Vocabulary.from_table(json.loads(json.dumps(vocab.as_table()))) == vocab
    assert hash(vocab) == hash(small())


def test_a_caller_cannot_change_the_languages_afterwards():
    languages = {"en": 4}
    vocab = small(languages=languages)
    languages["zh"] = 5
    assert vocab.languages == {"en": 4}


def test_bytes_spell_any_text_and_without_them_it_is_unknown():
    vocab = own_vocabulary([*special_pieces(["en"]), "cat"], ["en"])
    assert [vocab.piece(id) for id in vocab.spell("猫")] == ["<0xE7>", "<0x8C>", "<0xAB>"]
    assert joined(spellings(vocab, str), vocab.spell("猫\0 cat")) == "猫\0 cat"
    assert small().spell("猫") == [small().unk]


def test_special_ids_are_silent_and_unk_is_seen():
    vocab = own_vocabulary([*special_pieces(["en"]), "cat"], ["en"])
    ids = [vocab.bos, vocab.language("en"), vocab.id_of("cat"), vocab.unk, vocab.eos, vocab.pad]
    assert joined(spellings(vocab, str), ids) == "cat⁇"


def test_bytes_that_are_no_text_become_the_replacement_character():
    vocab = own_vocabulary(special_pieces([]), [])
    assert joined(spellings(vocab, str), [vocab.byte_ids[0xE7], vocab.byte_ids[0x41]]) == "\ufffdA"


def test_our_own_vocabularies_begin_with_the_special_pieces_and_the_bytes():
    assert special_pieces(["en", "zh_TW"]) == (
        *("<pad>", "<s>", "</s>", "<unk>", "<2en>", "<2zh_TW>"),
        *BYTE_PIECES,
    )


def test_a_bad_language_code_is_refused():
    with pytest.raises(ConfigError) as raised:
        special_pieces(["e n"])
    assert str(raised.value) == (
        'language "e n" is no code of letters, digits, - and _, such as en or zh-TW'
    )
    with pytest.raises(ConfigError) as raised:
        special_pieces(["en", "zh", "en"])
    assert str(raised.value) == 'language "en" is given twice'
