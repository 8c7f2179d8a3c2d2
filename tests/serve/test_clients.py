"""The real clients against a running server: each call, and what each error becomes in them."""

import datetime
import io
import time
from contextlib import closing

import deepl
import pytest
from deep_translator import LibreTranslator
from deep_translator.exceptions import AuthorizationException, ServerException
from libretranslatepy import LibreTranslateAPI

APPLES, HELLO = "我喜欢吃苹果。", "汤姆在学校。"


@pytest.fixture(scope="module")
def said(translator):
    """What the model says of itself."""
    return {text: translator.translate(text).text for text in (APPLES, HELLO)}


@pytest.fixture(scope="module")
def deepl_client(server):
    while server.post("/api/v1/attend", {"text": APPLES}).status_code == 503:
        pass  # until torch is loaded, which glossaries need
    with closing(deepl.DeepLClient("any", server_url=server.address)) as client:
        yield client


@pytest.fixture
def impatient(monkeypatch):
    """The client without its five patient attempts."""
    monkeypatch.setattr(deepl.http_client, "max_network_retries", 0)


# --- LibreTranslate


def test_libretranslatepy_translates_detects_and_lists(server, said):
    client = LibreTranslateAPI(server.address, api_key="any")
    assert client.translate(APPLES, "zh", "en") == said[APPLES]
    assert client.translate(APPLES, "auto", "en") == said[APPLES]
    assert client.detect(APPLES) == [{"confidence": 100.0, "language": "zh-Hans"}]
    assert client.languages() == [{"code": "zh-Hans", "name": "Chinese", "targets": ["en"]}]


def test_deep_translator_sends_everything_in_the_address_and_is_answered(server, said):
    client = LibreTranslator(
        source="zh", target="en", api_key="any", custom_url=server.address + "/"
    )
    assert client.translate(APPLES) == said[APPLES]
    assert client.translate_batch([HELLO, APPLES]) == [said[HELLO], said[APPLES]]
    long = APPLES + "\u3000" * 4900  # 44 KB of address
    assert client.translate(long) == said[APPLES]


def test_deep_translator_maps_a_wrong_key_and_a_wrong_language(server, locked):
    options = {"source": "zh", "target": "en", "custom_url": locked.address + "/"}
    with pytest.raises(AuthorizationException):
        LibreTranslator(api_key="wrong", **options).translate(APPLES)
    assert LibreTranslator(api_key="open-sesame", **options).translate(APPLES)
    options = {"source": "de", "target": "en", "custom_url": server.address + "/"}
    client = LibreTranslator(api_key="any", **options)
    with pytest.raises(ServerException):
        client.translate("Hallo")


# --- DeepL


def test_deepl_translates_one_text_and_several(deepl_client, said):
    one = deepl_client.translate_text(APPLES, target_lang="EN-US")
    assert (one.text, one.detected_source_lang, one.billed_characters) == (said[APPLES], "ZH", 7)
    some = deepl_client.translate_text([HELLO, APPLES], source_lang="ZH", target_lang="EN-GB")
    assert [each.text for each in some] == [said[HELLO], said[APPLES]]


def test_deepl_lists_languages_and_usage(deepl_client):
    assert [(one.code, one.name) for one in deepl_client.get_source_languages()] == [
        ("ZH", "Chinese")
    ]
    targets = deepl_client.get_target_languages()
    assert [(one.code, one.supports_formality) for one in targets] == [
        ("EN-GB", False),
        ("EN-US", False),
    ]
    before = deepl_client.get_usage().character.count
    deepl_client.translate_text(APPLES, target_lang="EN-US")
    assert deepl_client.get_usage().character.count == before + len(APPLES)


def test_deepl_keeps_tags_and_what_is_to_be_ignored(deepl_client):
    text = 'Tom <x id="7"></x> <b>我喜欢</b>吃<k>苹果 & 梨</k>。'.replace("&", "&amp;")
    found = deepl_client.translate_text(
        text, source_lang="ZH", target_lang="EN-US", tag_handling="xml", ignore_tags=["x", "k"]
    ).text
    assert found.count('<x id="7"></x>') == found.count("<k>苹果 &amp; 梨</k>") == 1
    assert found.count("<b>") == found.count("</b>") == 1
    assert "like" in found


def test_deepl_s_glossary_is_kept_used_and_forgotten(deepl_client):
    [pair] = deepl_client.get_glossary_languages()
    assert (pair.source_lang, pair.target_lang) == ("zh", "en")
    entries = {"苹果": "pears", "学校": "college"}
    made = deepl_client.create_glossary("fruit", "ZH", "EN", entries)
    assert (made.name, made.ready, made.entry_count) == ("fruit", True, 2)
    assert isinstance(made.creation_time, datetime.datetime)
    assert deepl_client.get_glossary(made.glossary_id).name == "fruit"
    assert deepl_client.get_glossary_entries(made) == entries
    assert made.glossary_id in [one.glossary_id for one in deepl_client.list_glossaries()]
    found = deepl_client.translate_text(
        APPLES, source_lang="ZH", target_lang="EN-US", glossary=made.glossary_id
    )
    assert "pears" in found.text
    deepl_client.delete_glossary(made)
    with pytest.raises(deepl.GlossaryNotFoundException):
        deepl_client.get_glossary(made.glossary_id)


def test_deepl_s_document_is_translated_and_handed_out_once(deepl_client, said, monkeypatch):
    monkeypatch.setattr("time.sleep", lambda seconds, sleep=time.sleep: sleep(min(seconds, 0.1)))
    target = io.BytesIO()
    source = io.BytesIO(f"{APPLES}\n\n{HELLO}\n".encode())
    source.name = "a.txt"
    status = deepl_client.translate_document(source, target, target_lang="EN-US")
    assert status.done
    assert status.billed_characters == len(APPLES) + len(HELLO)
    assert target.getvalue().decode() == f"{said[APPLES]}\n\n{said[HELLO]}\n"
    handle = deepl_client.translate_document_upload(
        f"{APPLES}\n", filename="a.txt", target_lang="EN-US"
    )
    deepl_client.translate_document_wait_until_done(handle)
    deepl_client.translate_document_download(handle)
    with pytest.raises(deepl.DeepLException, match="Not found"):
        deepl_client.translate_document_download(handle)


def test_deepl_s_errors_become_its_client_s(server, locked, impatient):
    wrong = deepl.DeepLClient("wrong", server_url=locked.address)
    with closing(wrong), pytest.raises(deepl.AuthorizationException):
        wrong.translate_text(APPLES, target_lang="EN-US")
    with closing(deepl.DeepLClient("few", server_url=locked.address)) as client:
        assert client.translate_text(APPLES, target_lang="EN-US").text
        assert client.get_usage().character.limit == 10
        with pytest.raises(deepl.QuotaExceededException):
            client.translate_text(APPLES, target_lang="EN-US")
    with closing(deepl.DeepLClient("any", server_url=server.address)) as client:
        with pytest.raises(deepl.DeepLException, match="Value for 'target_lang' not supported"):
            client.translate_text(APPLES, target_lang="DE")
        with pytest.raises(deepl.DeepLException, match="formality"):
            client.translate_text(APPLES, target_lang="EN-US", formality="more")
        polite = client.translate_text(APPLES, target_lang="EN-US", formality="prefer_more")
        assert polite.text


# --- replayed, for want of the programs


def test_weblate_s_requests_are_answered(server, said):
    libre = server.post("/translate", data={"q": APPLES, "source": "zh", "target": "en",
                                            "api_key": ""})  # fmt: skip
    assert libre.json() == {"translatedText": said[APPLES]}
    placed = server.post(
        "/v2/translate",
        {"text": ['<x id="7"></x>' + APPLES], "source_lang": "ZH", "target_lang": "EN-US",
         "tag_handling": "xml", "ignore_tags": ["x"], "formality": "default"},
        headers={"Authorization": "DeepL-Auth-Key any"},
    )  # fmt: skip
    [found] = placed.json()["translations"]
    assert found["text"].count('<x id="7"></x>') == 1
    pairs = server.get("/listPairs").json()
    assert pairs["responseData"] == [{"sourceLanguage": "zho", "targetLanguage": "eng"}]
    options = {"langpair": "zho|eng", "q": APPLES, "markUnknown": "no"}
    assert server.get("/translate", params=options).json() == {
        "responseData": {"translatedText": said[APPLES]},
        "responseDetails": None,
        "responseStatus": 200,
    }


def test_omegat_s_requests_are_answered(server, said):
    apertium = {"q": APPLES, "markUnknown": "no", "langpair": "zh|en", "key": "any"}
    shape = server.get("/translate", params=apertium).json()
    assert shape["responseData"]["translatedText"] == said[APPLES]
    libre = {"q": APPLES, "source": "zh-CN", "target": "en", "api_key": "any"}
    assert server.get("/translate", params=libre).json() == {"translatedText": said[APPLES]}


def test_mastodon_s_html_comes_back_as_html(server):
    table = {"q": ["<p>我喜欢吃<b>苹果</b>。</p>", "<p>汤姆 &amp; 玛丽</p>"], "source": "zh",
             "target": "en", "format": "html", "api_key": "any"}  # fmt: skip
    first, second = server.post("/translate", table).json()["translatedText"]
    assert first.startswith("<p>")
    assert first.count("<b>") == first.count("</b>") == 1
    assert "&" not in second.replace("&amp;", "")


def test_immersive_translate_gets_as_many_texts_as_it_sent(server, said):
    table = {"source_lang": "auto", "target_lang": "en", "text_list": [HELLO, APPLES, "😀"]}
    answer = server.post("/imme?token=any", table)
    assert answer.json() == {
        "translations": [
            {"detected_source_lang": "zh-CN", "text": said[HELLO]},
            {"detected_source_lang": "zh-CN", "text": said[APPLES]},
            {"detected_source_lang": "zh-CN", "text": "😀"},
        ]
    }


@pytest.mark.parametrize("path", ["/deeplx/translate", "/translate"])
def test_deeplx_s_clients_are_answered_at_either_address(server, said, path):
    table = {"text": APPLES, "source_lang": "ZH", "target_lang": "EN"}
    answer = server.post(path, table).json()
    assert (answer["code"], answer["data"]) == (200, said[APPLES])
    assert (answer["source_lang"], answer["target_lang"]) == ("ZH", "EN")
    assert said[APPLES] not in answer["alternatives"]
    assert len(answer["alternatives"]) == 3
