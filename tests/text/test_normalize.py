import itertools
import json
import sys
import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.errors import ConfigError
from regard.text.normalize import Normalizer

SETTINGS = [
    Normalizer(*choices)
    for choices in itertools.product(
        ("nfc", "nfkc", "none"), ("keep", "half"), ("keep", "simplified", "traditional")
    )
]
# Characters that interact: full width with accents, compatibility, both scripts of Han, Hangul.
TOUCHY = "ＡｚＺ１９e\u0301\u0316\u0344\u0f73Å①㎏ﬁ，：薴苧苎乾干後后髮发裏里臺台\uf900\u2f81"
TOUCHY += "a\u1100\u1161한\ud800\udc00"


@pytest.mark.parametrize("normalizer", SETTINGS)
@given(text=st.text(st.one_of(st.sampled_from(TOUCHY), st.characters(codec=None))))
def test_normalising_twice_changes_nothing_more(normalizer, text):
    once = normalizer(text)
    assert normalizer(once) == once
    once.encode()


@pytest.mark.parametrize("normalizer", SETTINGS)
@given(text=st.text(st.characters(min_codepoint=0x3400, max_codepoint=0x9FFF)))
def test_normalising_han_twice_changes_nothing_more(normalizer, text):
    assert normalizer(normalizer(text)) == normalizer(text)


@pytest.mark.parametrize("normalizer", SETTINGS)
@given(texts=st.lists(st.text(st.sampled_from(TOUCHY + "ab \n")), max_size=4))
def test_what_is_left_as_it_is_would_not_change_alone_or_together(normalizer, texts):
    if normalizer.leaves("\n".join(texts)):
        assert [normalizer(text) for text in texts] == texts


def test_a_quick_look_knows_most_normal_text():
    assert Normalizer().leaves("你好，world\nCafé")
    assert not Normalizer().leaves("Cafe\u0301")
    assert not Normalizer().leaves("half \ud800")


@given(st.text(st.characters(codec="utf-8")))
def test_the_default_is_nfc(text):
    assert Normalizer()(text) == unicodedata.normalize("NFC", text)


def test_chinese_punctuation_survives_by_default():
    text = "“你好”，世界：①㎏。？！（甲）……——《书》、；"
    assert Normalizer()(text) == text
    assert Normalizer(form="nfkc")(text) != text


def test_half_width_folds_letters_and_digits_and_leaves_punctuation():
    normalizer = Normalizer(width="half")
    assert normalizer("ＡＢＺａｚ０１９，。：？！（）　～") == "ABZaz019，。：？！（）　～"
    assert normalizer("Ａ\u0301") == "Á"


def test_han_is_converted_by_phrase():
    assert Normalizer(han="simplified")("頭髮與發現，皇后在後面") == "头发与发现，皇后在后面"
    assert Normalizer(han="traditional")("头发与发现，皇后在后面") == "頭髮與發現，皇后在後面"
    assert Normalizer()("頭髮头发") == "頭髮头发"


def test_half_a_surrogate_pair_becomes_the_replacement_character():
    assert Normalizer()("a\ud800b\udc00") == "a\ufffdb\ufffd"
    assert Normalizer(form="none")("\ud83d\ude00") == "😀"


@pytest.mark.parametrize("marks", ["\u0301\u0316", "\u0f73", "\u0344\u0316"])
@pytest.mark.parametrize("form", ["nfc", "nfkc"])
def test_a_million_marks_on_one_letter_are_normalised_in_seconds(marks, form):
    text = "a" + marks * (1_000_000 // len(marks))
    start = time.perf_counter()
    normalized = Normalizer(form=form)(text)
    assert time.perf_counter() - start < 20
    assert unicodedata.is_normalized(form.upper(), normalized)


@given(st.text(st.sampled_from("a\u0301\u0316\u0344\u0f73\u0f71\u0323Å\u1e9b"), max_size=40))
def test_a_long_text_is_normalised_as_its_short_parts_are(text):
    # A letter that joins with nothing keeps the part to itself.
    long = f"{text}我" + "我" * 5000
    assert Normalizer()(long) == unicodedata.normalize("NFC", f"{text}我") + "我" * 5000


@pytest.mark.parametrize("normalizer", SETTINGS)
def test_settings_survive_json(normalizer):
    assert Normalizer.from_table(json.loads(json.dumps(normalizer.as_table()))) == normalizer


@pytest.mark.plain
def test_a_bad_setting_is_named():
    with pytest.raises(ConfigError) as raised:
        Normalizer(form="nfd")
    assert str(raised.value) == 'normalizer.form = "nfd" is not one of nfc, nfkc, none'
    with pytest.raises(ConfigError) as raised:
        Normalizer.from_table({"forme": "nfc"})
    assert str(raised.value) == "unknown setting normalizer.forme"


def test_text_that_keeps_its_script_needs_no_converter(monkeypatch):
    monkeypatch.setitem(sys.modules, "opencc", None)
    assert Normalizer()("乾隆年間") == "乾隆年間"
