"""Each protocol's shapes, answers and errors, as a program on the other side would see them."""

import pytest

APPLES, SCHOOL = "我喜欢吃苹果。", "汤姆在学校。"


@pytest.fixture(scope="module")
def said(translator):
    return {text: translator.translate(text).text for text in (APPLES, SCHOOL)}


def libre(server, **fields):
    answer = server.post("/translate", {"source": "zh", "target": "en", **fields})
    return answer.status_code, answer.json()


# --- LibreTranslate


def test_one_text_has_one_answer_and_a_list_has_lists(server, said):
    """In any order: the shape of an answer is that of its own question."""
    for _ in range(2):
        assert libre(server, q=APPLES) == (200, {"translatedText": said[APPLES]})
        assert libre(server, q=[APPLES]) == (200, {"translatedText": [said[APPLES]]})
        assert libre(server, q=[SCHOOL, APPLES])[1] == {
            "translatedText": [said[SCHOOL], said[APPLES]]
        }
        assert libre(server, q=[]) == (200, {"translatedText": []})
    joined = libre(server, q=[f"{APPLES}|{SCHOOL}"])[1]["translatedText"]
    assert len(joined) == 1


def test_auto_says_what_it_found_for_each(server):
    found = {"confidence": 100.0, "language": "zh-Hans"}
    assert libre(server, q=APPLES, source="auto")[1]["detectedLanguage"] == found
    assert libre(server, q=[APPLES, SCHOOL], source="auto")[1]["detectedLanguage"] == [found] * 2
    assert "detectedLanguage" not in libre(server, q=APPLES)[1]


def test_alternatives_are_others_and_as_many_as_asked_for_at_most(server, said):
    answer = libre(server, q=[APPLES, SCHOOL], alternatives=3)[1]
    for text, best, others in zip(
        (APPLES, SCHOOL), answer["translatedText"], answer["alternatives"], strict=True
    ):
        assert best == said[text]
        assert 1 <= len(others) <= 3
        assert len({best, *others}) == 1 + len(others)
    assert libre(server, q=APPLES, alternatives="2")[0] == 200
    assert libre(server, q="<b>我</b>", format="html", alternatives=2)[1]["alternatives"] == []


@pytest.mark.parametrize(
    ("fields", "status", "error"),
    [
        ({}, 400, "Invalid request: missing q parameter"),
        ({"q": APPLES, "source": None}, 400, "Invalid request: missing source parameter"),
        ({"q": APPLES, "target": ""}, 400, "Invalid request: missing target parameter"),
        ({"q": APPLES, "target": "zz"}, 400, "zz is not supported"),
        ({"q": APPLES, "source": "zz"}, 400, "zz is not supported"),
        ({"q": APPLES, "target": "auto"}, 400, "auto is not supported"),
        ({"q": APPLES, "format": "xml"}, 400, "xml format is not supported"),
        (
            {"q": APPLES, "alternatives": 10_000},
            400,
            "Invalid request: alternatives parameter must be <= 7",
        ),
        (
            {"q": APPLES, "alternatives": -1},
            400,
            "Invalid request: alternatives parameter must be <= 7",
        ),
        (
            {"q": APPLES, "alternatives": "x"},
            400,
            "Invalid request: alternatives parameter must be <= 7",
        ),
        (
            {"q": "我" * 5001},
            400,
            "Invalid request: request (5001) exceeds text limit (5000)",
        ),
        ({"q": ["我"] * 65}, 400, "Invalid request: request (65) exceeds text limit (64)"),
        (
            {"q": [1, None]},
            400,
            "q = a list of 2 is not right; it must be a text or a list of texts",
        ),
        (
            {"q": "I like it", "source": "auto"},
            400,
            "the text is written in en, and no model here goes from that to en; nothing was "
            "translated",
        ),
    ],
)
def test_libretranslate_s_errors_are_in_its_words(server, fields, status, error):
    assert libre(server, **fields) == (status, {"error": error})


def test_libretranslate_s_keys(locked, said):
    table = {"q": APPLES, "source": "zh", "target": "en"}
    missing = locked.post("/translate", table)
    assert (missing.status_code, missing.json()) == (
        400,
        {"error": "Visit whoever runs this server to get an API key"},
    )
    wrong = locked.post("/translate", {**table, "api_key": "x"})
    assert (wrong.status_code, wrong.json()) == (403, {"error": "Invalid API key"})
    right = locked.post("/translate", {**table, "api_key": "open-sesame"})
    assert right.json() == {"translatedText": said[APPLES]}


def test_libretranslate_s_other_addresses(server, said):
    settings = server.get("/frontend/settings").json()
    assert settings["charLimit"] == 5000
    assert settings["keyRequired"] is False
    assert ".txt" in settings["supportedFilesFormat"]
    assert server.get("/health").json() == {"status": "ok"}
    assert server.post("/suggest", {}).status_code == 403
    assert server.get("/spec").json()["info"]["title"] == "regard"
    assert server.post("/detect", {"q": "Я люблю"}).json() == [
        {"confidence": 0.0, "language": "en"}
    ]
    assert server.post("/detect", {}).json() == {"error": "Invalid request: missing q parameter"}
    assert server.get("/languages", headers={"accept-language": "zh-CN"}).json()[0]["name"] == (
        "中文"
    )


def test_a_file_is_translated_and_can_be_fetched(server, said):
    files = {"file": ("../a b.txt", f"{APPLES}\n".encode())}
    answer = server.post("/translate_file", data={"source": "zh", "target": "en"}, files=files)
    url = answer.json()["translatedFileUrl"]
    assert url.startswith(server.address + "/download_file/")
    fetched = server.get(url.removeprefix(server.address))
    assert fetched.content.decode() == said[APPLES] + "\n"
    assert fetched.headers["content-disposition"] == "attachment; filename*=UTF-8''a%20b.txt"
    page = "<p>我喜欢<b>苹果</b>。</p>"
    files = {"file": ("a.html", page.encode())}
    answer = server.post("/translate_file", data={"source": "auto", "target": "en"}, files=files)
    url = answer.json()["translatedFileUrl"]
    html = server.get(url.removeprefix(server.address))
    assert html.text.startswith("<p>")
    assert html.text.count("<b>") == html.text.count("</b>") == 1
    assert html.headers["content-type"] == "application/octet-stream"  # and so no page of ours
    assert server.get("/download_file/nothing.txt").status_code == 404
    for name, content, error in [
        ("a.exe", b"x", "a.exe is no document that can be translated; these can: "),
        ("a.txt", b"\xff", "a.txt cannot be read as utf-8"),
    ]:
        refused = server.post(
            "/translate_file",
            data={"source": "zh", "target": "en"},
            files={"file": (name, content)},
        )
        assert refused.status_code == 400
        assert refused.json()["error"].startswith(error)


# --- DeepL


def deepl(server, **fields):
    answer = server.post("/v2/translate", {"text": [APPLES], "target_lang": "EN", **fields})
    assert answer.headers["x-trace-id"]
    return answer.status_code, answer.json()


def test_deepl_takes_json_forms_and_addresses_and_unknown_fields(server, said):
    expected = {
        "translations": [
            {"detected_source_language": "ZH", "text": said[text], "billed_characters": len(text)}
            for text in (APPLES, SCHOOL)
        ]
    }
    both = {"text": [APPLES, SCHOOL], "target_lang": "EN-GB", "style_id": "x", "context": "y"}
    assert server.post("/v2/translate", both).json() == expected
    assert server.post("/v2/translate", data=both).json() == expected
    assert server.get("/v2/translate", params={**both, "auth_key": "any"}).json() == expected


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"text": None}, "Parameter 'text' not specified."),
        ({"target_lang": None}, "Parameter 'target_lang' not specified."),
        ({"target_lang": "XX"}, "Value for 'target_lang' not supported."),
        ({"source_lang": "XX"}, "Value for 'source_lang' not supported."),
        ({"tag_handling": "json"}, "Value for 'tag_handling' not supported."),
        ({"formality": "rude"}, "Value for 'formality' not supported."),
        ({"split_sentences": "2"}, "Value for 'split_sentences' not supported."),
        ({"formality": "less"}, "'formality' is not supported for given 'target_lang'."),
        ({"glossary_id": "x"}, "Parameter 'source_lang' not specified."),
    ],
)
def test_deepl_s_errors_are_in_its_words(server, fields, message):
    status, table = deepl(server, **fields)
    assert (status, table["message"]) == (400, message)


def test_a_formality_that_no_model_has_is_explained(server):
    assert deepl(server, formality="less")[1]["detail"] == (
        "a formality of its own has no model here; ask for prefer_less"
    )


def test_deepl_refuses_ill_formed_xml_and_takes_ill_formed_html(server):
    text = "<b>我喜欢<i>苹果</b>。"
    status, table = deepl(server, text=[text], tag_handling="xml")
    assert status == 400
    assert "message" in table
    status, table = deepl(server, text=[text], tag_handling="html")
    assert status == 200
    found = table["translations"][0]["text"]
    assert [found.count(tag) for tag in ("<b>", "<i>", "</b>")] == [1, 1, 1]


def test_deepl_s_glossaries_are_checked_and_each_key_s_own(locked, server):
    def create(where, key="any", **fields):
        table = {"name": "g", "source_lang": "zh", "target_lang": "en", "entries_format": "csv",
                 "entries": "苹果,pear\n学校,\"college, old\"\n", **fields}  # fmt: skip
        return where.post(
            "/v2/glossaries", table, headers={"Authorization": f"DeepL-Auth-Key {key}"}
        )

    made = create(server)
    assert made.status_code == 201
    entries = server.get(f"/v2/glossaries/{made.json()['glossary_id']}/entries")
    assert entries.text == "苹果\tpear\n学校\tcollege, old"
    for fields, detail in [
        ({"entries": ""}, "the glossary has no entries"),
        (
            {"entries": "苹果\n"},
            "entry 1 of the glossary is none: two texts of at most 1024 bytes, and no first one "
            "twice",
        ),
        (
            {"entries": "a,b\na,c"},
            "entry 2 of the glossary is none: two texts of at most 1024 bytes, and no first one "
            "twice",
        ),
        ({"entries_format": "xls"}, "Value for 'entries_format' not supported."),
        ({"target_lang": "de"}, "Value for 'target_lang' not supported."),
    ]:
        refused = create(server, **fields)
        assert (refused.status_code, refused.json()["message"]) == (400, detail)
    own = create(locked, "open-sesame").json()["glossary_id"]
    other = locked.get(f"/v2/glossaries/{own}", headers={"Authorization": "DeepL-Auth-Key few"})
    assert other.status_code == 404
    assert other.json() == {"message": "there is no glossary here"}
    turned = server.post("/v2/translate", {"text": "苹果", "source_lang": "EN", "target_lang": "EN",
                                           "glossary_id": made.json()["glossary_id"]})  # fmt: skip
    assert turned.json()["message"] == ("the glossary goes from zh to en, not as is asked for")


def test_deepl_s_document_needs_its_key_and_says_what_is_wrong(server):
    data, files = {"target_lang": "EN"}, {"file": ("a.txt", APPLES.encode())}
    made = server.post("/v2/document", data=data, files=files).json()
    address = f"/v2/document/{made['document_id']}"
    assert server.post(address, {"document_key": "x"}).status_code == 404
    assert server.post(address, made).json()["status"] in ("queued", "translating", "done")
    for bad, other, message in [
        (data, {"file": ("a.doc", b"x")}, "a.doc is no document that can be translated"),
        (data, {"file": ("a.txt", b"\xff")}, "a.txt cannot be read as utf-8"),
        ({"target_lang": "XX"}, files, "Value for 'target_lang' not supported."),
        (data, {}, "Parameter 'file' not specified."),
    ]:
        refused = server.post("/v2/document", data=bad, files=other)
        assert refused.status_code == 400
        assert refused.json()["message"].startswith(message)


# --- the others


def test_apertium_s_errors_and_other_addresses(server):
    answer = server.get("/translate", params={"langpair": "zho|fra", "q": APPLES})
    assert (answer.status_code, answer.json()) == (
        400,
        {
            "status": "error",
            "code": 400,
            "message": "Bad Request",
            "explanation": "fra is not supported",
        },
    )
    assert server.get("/translate", params={"langpair": "zho", "q": "x"}).json()[
        "explanation"
    ] == 'langpair = "zho" is not right; it must be two languages, as zho|eng'  # fmt: skip
    assert server.get("/identifyLang", params={"q": APPLES}).json() == {"zho": 1.0}
    assert server.get("/listLanguageNames", params={"locale": "zh"}).json() == {
        "zho": "中文",
        "eng": "英语",
    }
    marked = {"langpair": "zh|en", "q": "<b>我喜欢</b>", "format": "html"}
    said = server.get("/translate", params=marked).json()["responseData"]["translatedText"]
    assert said.startswith("<b>")


def test_immersive_translate_is_told_that_it_failed_and_never_given_its_own_text(server):
    table = {"source_lang": "auto", "target_lang": "en", "text_list": [APPLES, "I like it."]}
    answer = server.post("/imme", table)
    assert answer.status_code == 400
    assert set(answer.json()) == {"code", "message"}
    assert answer.json()["message"].startswith("文本是en，而这里没有从它到en的模型")
    assert server.post("/imme", {"text_list": ["a"]}).status_code == 400


def test_deeplx_s_errors(server):
    answer = server.post("/deeplx/translate", {"text": APPLES, "target_lang": "DE"})
    assert (answer.status_code, answer.json()) == (
        400,
        {"code": 400, "message": "DE is not supported"},
    )


def test_traditional_chinese_is_read_as_simplified_is(server, said):
    table = {"q": "我喜歡吃蘋果。", "source": "zh-Hant", "target": "en"}
    assert server.post("/translate", table).json() == {"translatedText": said[APPLES]}
