import json
import os
import pickle
import subprocess
import sys
import unicodedata
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.errors import ConfigError, DataError
from regard.text.normalize import Normalizer
from regard.text.tokenizer import load_tokenizer, train_tokenizer

# Text that looks like what it is not, or that tokenizers like to lose.
HARD_TEXTS = [
    "",
    " ",
    "  two  spaces  ",
    "\n",
    "line\r\nline\n",
    "\ta\tb\0c\0",
    "▁",
    "▁under▁ ▁score▁",
    "▁\n▁ \n",
    "▅",
    "<pad>",
    "<s></s><unk>",
    "</s>",
    "<2en> <2zh>",
    "<0x41>",
    "⁇ ⁇",
    "the <2en>the",
    "\ufeffbyte order mark",
    "e\u0301 and \u1e9b\u0323",
    "“全角，标点：①㎏”",
    "𠀀𪚥龘",
    "\u202eright to left\u202c עברית",
    "\ue000\uf8ff\U000f0000\U0010ffff",
    "\ufdd0\uffff\ufffd",
    "👨‍👩‍👧‍👦🇨🇳🏴\U000e0067\U000e007f",
    "བོད་ཡིག",
    "2017年12月31日 3.14",
]
PLANES = [
    "".join(chr(plane * 0x10000 + at) for at in (0x41, 0x1234, 0xABCD, 0xFFFD))
    for plane in range(17)
]


NEAR_PIECES = st.sampled_from([*HARD_TEXTS, "the", " cat", "我们", "▁", "\n", " ", "12"])
ANY_TEXT = st.one_of(
    st.text(st.characters(codec=None)), st.lists(NEAR_PIECES).map("".join), st.text()
)


@given(text=ANY_TEXT)
def test_decoding_gives_back_any_text(tokenizer, text):
    assert tokenizer.decode(tokenizer.encode(text)) == tokenizer.normalizer(text)
    assert tokenizer.decode(tokenizer.sample(text, (1, 2))) == tokenizer.normalizer(text)


@pytest.mark.parametrize("text", [*HARD_TEXTS, *PLANES])
def test_decoding_gives_back_hard_texts(tokenizer, text):
    for key in range(5):
        assert tokenizer.decode(tokenizer.sample(text, (key,))) == tokenizer.normalizer(text)
    assert tokenizer.decode(tokenizer.encode(text)) == tokenizer.normalizer(text)


@pytest.mark.slow
def test_decoding_gives_back_random_texts_of_all_planes(tokenizer):
    random = Random(20)
    ranges = [(0, 0x7F), (0, 0xFFF), (0x4E00, 0x9FFF), (0x2580, 0x2590), (0, 0x10FFFF)]
    texts = [
        "".join(chr(random.randint(*random.choice(ranges))) for _ in range(random.randrange(30)))
        for _ in range(20_000)
    ]
    for at, (text, ids) in enumerate(zip(texts, tokenizer.encode_all(texts), strict=True)):
        assert tokenizer.decode(ids) == tokenizer.normalizer(text)
        if at % 10 == 0:
            assert tokenizer.decode(tokenizer.sample(text, (at,))) == tokenizer.normalizer(text)


@given(text=ANY_TEXT)
def test_text_never_becomes_a_special_id(tokenizer, text):
    special = {*tokenizer.vocab.silent, tokenizer.vocab.unk}
    assert special.isdisjoint(tokenizer.encode(text))
    assert special.isdisjoint(tokenizer.sample(text, (3,)))


@pytest.mark.parametrize("special", ["</s>", "<2en>", "<0x41>", "<pad>"])
def test_text_that_looks_special_is_not_learned_as_a_piece(kind, special):
    texts = [f"{special} the {special}{special} cat" for _ in range(50)]
    tokenizer = train_tokenizer(texts, kind=kind, size=330, languages=["en"], threads=1)
    assert tokenizer.vocab.id_of(special) in tokenizer.vocab.special
    assert tokenizer.decode(tokenizer.encode(texts[0])) == texts[0]
    assert tokenizer.vocab.id_of(special) not in tokenizer.encode(texts[0])


@given(texts=st.lists(ANY_TEXT, max_size=8))
def test_many_texts_are_encoded_as_each_alone(tokenizer, texts):
    assert tokenizer.encode_all(texts) == [tokenizer.encode(text) for text in texts]
    assert tokenizer.encode_all(texts, threads=2) == tokenizer.encode_all(texts)


@given(text=st.text("ae\u0301\u0308\u0316ö한\u1112\u1161\u11abÅ\u212b我"))
def test_canonical_twins_are_tokenised_alike(tokenizer, text):
    assert tokenizer.encode(unicodedata.normalize("NFD", text)) == tokenizer.encode(text)


def test_chinese_punctuation_survives(tokenizer):
    text = "“你好”，世界：①㎏。？！（甲）"
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_the_normaliser_is_applied():
    tokenizer = train_tokenizer(
        ["漢字ＡＢ"], kind="char", size=300, normalizer=Normalizer(width="half", han="simplified")
    )
    assert tokenizer.decode(tokenizer.encode("漢字ＡＢ")) == "汉字AB"
    assert tokenizer.uncovered("漢字ＡＢ") == 0


def test_decoding_passes_over_special_ids(tokenizer):
    vocab = tokenizer.vocab
    ids = tokenizer.encode("the cat")
    assert (
        tokenizer.decode([vocab.bos, vocab.language("en"), *ids, vocab.eos, vocab.pad]) == "the cat"
    )


def test_an_unknown_id_is_seen_in_the_text(tokenizer):
    ids = tokenizer.encode("cat")
    assert "⁇" in tokenizer.decode([*ids, tokenizer.vocab.unk])


def test_an_id_outside_the_vocabulary_is_refused(tokenizer):
    size = len(tokenizer.vocab)
    with pytest.raises(DataError) as raised:
        tokenizer.decode([size])
    assert str(raised.value) == (
        f"id {size} is outside the vocabulary, whose {size} ids are 0 to {size - 1}"
    )


def test_uncovered_characters_are_counted(tokenizer):
    assert tokenizer.uncovered("the cat") == 0
    assert tokenizer.uncovered("龘") == 1
    assert tokenizer.uncovered("𠀀龘") == 2
    assert tokenizer.uncovered("") == 0


@pytest.mark.parametrize("kind", ["unigram", "bpe", "char"])
def test_uncovered_characters_do_not_uncover_their_neighbours(kind, trained):
    assert trained(kind).uncovered("the ▁cat 龘我们") == 2


def test_pieces_are_for_display(trained):
    assert trained("word").pieces("the cat") == ["the", "cat"]
    assert trained("char").pieces("我龘") == ["我", "<0xE9>", "<0xBE>", "<0x98>"]
    assert "".join(trained("bpe").pieces("the cat")) == "▁the▁cat"
    assert "".join(trained("unigram").pieces("the cat")) == "▁the▁cat"


def test_a_word_is_one_id_and_an_unknown_one_is_spelled_with_its_space(trained):
    tokenizer = trained("word")
    the, cat = tokenizer.encode("the cat")
    assert tokenizer.encode("the  zz cat")[0] == the
    assert tokenizer.pieces("the zz cat")[1:4] == ["<0x20>", "<0x7A>", "<0x7A>"]
    assert tokenizer.encode("the zz cat")[-1] == cat


def test_training_again_gives_the_same_tokenizer(kind, trained, train_again, tmp_path):
    trained(kind).save(tmp_path / "a")
    train_again(kind).save(tmp_path / "b")
    for name in ("tokenizer.json", "tokenizer.model"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


OTHER_PROCESS = """
import json, sys
from regard.text.tokenizer import train_tokenizer
texts, text = json.load(sys.stdin)
for kind in ("unigram", "bpe"):
    tokenizer = train_tokenizer(texts, kind=kind, size=400, seed_sentences=150, threads=1)
    print(tokenizer.encode(text), tokenizer.sample(text, (4, 2)))
"""


def test_two_processes_train_and_sample_alike(corpus):
    answers = {
        subprocess.run(
            [sys.executable, "-c", OTHER_PROCESS],
            input=json.dumps([[*corpus(300)], "the hills 我们"]),
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(answers) == 1


@given(text=ANY_TEXT)
def test_a_saved_tokenizer_is_the_same_when_loaded(tokenizer, text, tmp_path_factory):
    directory = tmp_path_factory.getbasetemp() / f"saved_{len(tokenizer.vocab)}_{id(tokenizer)}"
    if not directory.exists():
        tokenizer.save(directory)
    loaded = load_tokenizer(directory)
    assert type(loaded) is type(tokenizer)
    assert loaded.vocab == tokenizer.vocab
    assert loaded.normalizer == tokenizer.normalizer
    assert loaded.encode(text) == tokenizer.encode(text)
    assert loaded.sample(text, (9,)) == tokenizer.sample(text, (9,))


def test_a_tokenizer_crosses_process_borders(tokenizer):
    tokenizer.encode("the cat")
    copy = pickle.loads(pickle.dumps(tokenizer))
    assert copy.encode("the 猫▁") == tokenizer.encode("the 猫▁")
    assert copy.vocab == tokenizer.vocab


def test_the_size_is_not_exceeded(kind):
    texts = [chr(0x4E00 + at) + " the cat" for at in range(100)]
    assert len(train_tokenizer(texts, kind=kind, size=375, threads=1).vocab) <= 375


def test_a_small_text_has_a_small_vocabulary(kind):
    small = train_tokenizer(["the cat"], kind=kind, size=5000, threads=1)
    assert len(small.vocab) < 300
    assert small.decode(small.encode("the cat sat")) == "the cat sat"


def test_the_commonest_words_are_kept():
    texts = ["b b b", "a a c", "c d"]
    tokenizer = train_tokenizer(texts, kind="word", size=263, threads=1)
    assert tokenizer.vocab.pieces[-3:] == ("b", "a", "c")


@pytest.mark.parametrize("texts", [[], [""], ["", ""]])
def test_training_on_nothing_is_refused(kind, texts):
    with pytest.raises(DataError) as raised:
        train_tokenizer(texts, kind=kind, size=400)
    assert str(raised.value) == "there is no text to train a tokenizer on"


def test_a_size_too_small_is_refused_with_the_least(kind):
    least = {"unigram": 263, "bpe": 263, "char": 261, "word": 261}[kind]
    with pytest.raises(ConfigError) as raised:
        train_tokenizer(["ab"], kind=kind, size=100, threads=1)
    assert str(raised.value) == (
        "data.vocab_size = 100 is too small: special pieces, bytes and characters alone need "
        f"{least} ids; twice as many leave room for words"
    )
    assert train_tokenizer(["ab"], kind=kind, size=least, threads=1)


@pytest.mark.plain
def test_a_kind_that_is_none_is_refused():
    with pytest.raises(ConfigError) as raised:
        train_tokenizer(["a"], kind="wordpiece", size=400)
    assert str(raised.value) == 'kind = "wordpiece" is not one of unigram, bpe, char, word'


def test_the_package_itself_is_light():
    code = "import regard.text, sys; print(*{'torch', 'sentencepiece', 'opencc'} & {*sys.modules})"
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, text=True
    )
    assert answer.stdout == "\n"


def test_tokenizers_do_not_import_torch():
    code = "import regard.text.tokenizer, regard.text.sentences, sys; print('torch' in sys.modules)"
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, text=True
    )
    assert answer.stdout == "False\n"
