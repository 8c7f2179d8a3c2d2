"""Languages by their many names, texts by their script, and the model that goes the way."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from regard.serve.languages import Detected, canonical, detect, has_words, name_of
from regard.serve.models import Models
from regard.serve.refusals import Refused

TATOEBA = Path(__file__).parents[1] / "models" / "tatoeba-zh-en"


@pytest.mark.parametrize(
    ("codes", "language"),
    [
        ("zh ZH zh-CN zh_Hans ZH-HANS zh-Hans-CN cmn zho", "zh"),
        ("zh-Hant zt ZH-TW zh_HK", "zh-Hant"),
        ("en EN en-US en_GB eng EN-GB", "en"),
        ("auto AUTO", ""),
        ("de-AT deu", "de"),
        ("tlh", "tlh"),
    ],
)
def test_a_language_has_many_names(codes, language):
    assert {canonical(code) for code in codes.split()} == {language}


@pytest.mark.parametrize(
    ("text", "language", "least"),
    [
        ("我喜欢苹果", "zh", 100),
        ("I like apples", "en", 100),
        ("我喜欢iPhone", "zh", 55),
        ("The word 道 means way or path", "en", 80),
        ("私はりんごが好きです", "ja", 90),
        ("나는 사과를 좋아한다", "ko", 100),
        ("Я люблю яблоки", "", 0),
        ("2024 — 😀", "", 0),
        ("", "", 0),
        ("ｆｕｌｌ　ｗｉｄｔｈ", "en", 100),
    ],
)
def test_a_text_s_language_is_told_by_its_script(text, language, least):
    found = detect(text)
    assert found.language == language
    assert least <= found.confidence <= 100
    if not language:
        assert found == Detected("", 0.0)


def test_there_is_something_to_translate_where_there_is_a_letter_or_a_digit():
    assert all(map(has_words, ["a", "我", "7", "…é", "ß"]))
    assert not any(map(has_words, ["", " \u3000\n", "😀👍🏽", "…！？", "\u200b"]))


def test_languages_have_names_in_both_languages():
    assert (name_of("zh"), name_of("zh", True), name_of("tlh")) == ("Chinese", "中文", "tlh")


@pytest.fixture(scope="module")
def both():
    """Two models, one of which goes both ways, pretended from one that is there."""
    models = Models([TATOEBA])
    [one] = models.all
    copy = lambda number, name, *ways: SimpleNamespace(  # noqa: E731
        number=number, name=name, bundle=one.bundle, wording=one.wording, whole=one.whole,
        search=one.search, directions=ways)  # fmt: skip
    models.all = [copy(0, "a", ("zh", "en"), ("en", "zh")), copy(1, "b", ("de", "en"))]
    return models


def way(models, *arguments):
    found = models.way(*arguments)
    return found.served.name, found.direction


def test_the_first_model_that_goes_the_way_goes_it(both):
    assert way(both, "x", "zh", "en") == ("a", ("zh", "en"))
    assert way(both, "x", "ZH-CN", "EN-US") == ("a", ("zh", "en"))
    assert way(both, "x", "en", "zh-Hant") == ("a", ("en", "zh"))
    assert way(both, "x", "de", "en") == ("b", ("de", "en"))
    assert both.directions == [("zh", "en"), ("en", "zh"), ("de", "en")]
    assert both.sources() == ["zh", "en", "de"]
    assert both.targets("en") == ["zh", "zh-Hant"]


def test_auto_goes_by_the_script_of_each_text(both):
    assert way(both, "我喜欢苹果", "", "") == ("a", ("zh", "en"))
    assert way(both, "I like apples", "", "") == ("a", ("en", "zh"))
    assert way(both, "I like apples", "", "zh") == ("a", ("en", "zh"))
    assert way(both, "我喜欢苹果", "auto", "en") == ("a", ("zh", "en"))
    assert way(both, "2024", "", "en") == ("a", ("zh", "en"))
    assert both.way("我喜欢苹果", "", "en").confidence == 100


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("x", "fr", "en"), "fr is not supported"),
        (("x", "zh", "xx"), "xx is not supported"),
        (
            ("x", "zh", "de"),
            "zh to de is not supported; this server goes zh → en, en → zh, de → en",
        ),
        (
            ("x", "en", "en"),
            "en to en is not supported; this server goes zh → en, en → zh, de → en",
        ),
        (
            ("I like apples", "", "en"),
            "the text is written in en, and no model here goes from that to en; nothing was "
            "translated",
        ),
        (
            ("我喜欢", "", "zh"),
            "the text is written in zh, and no model here goes from that to zh; nothing was "
            "translated",
        ),
        (
            ("Я люблю яблоки", "", "en"),
            "the language of the text cannot be told by its script; name the source",
        ),
        (("x", "zh", "en", "c"), "there is no model c; there is a, b"),
    ],
)
def test_a_way_that_nobody_goes_is_refused_and_nothing_is_copied(both, arguments, message):
    with pytest.raises(Refused) as refused:
        both.way(*arguments)
    assert refused.value.status == 400
    assert refused.value.message == message


def test_models_of_one_name_are_told_apart():
    assert [one.name for one in Models([TATOEBA, TATOEBA, TATOEBA]).all] == [
        "tatoeba-zh-en",
        "tatoeba-zh-en-2",
        "tatoeba-zh-en-3",
    ]
