"""The server's own API: what it says is what the model says, and what it shows adds up."""

import base64
import json

import numpy as np
import pytest

import regard
from regard.decode.search import Search

APPLES, SCHOOL = "我喜欢吃苹果。", "汤姆在学校。"


@pytest.fixture(scope="module")
def thorough(server, translator):
    """The same model in torch; and the server's, which is started by its first question."""
    while server.post("/api/v1/attend", {"text": APPLES}).status_code == 503:
        pass  # until torch is loaded
    return regard.load(translator.bundle.path, engine="torch")


def ask(server, path, **fields):
    answer = server.post(f"/api/v1/{path}", fields)
    assert answer.status_code == 200, answer.text
    return answer.json()


def array(table, kind="float32"):
    dtype = {"float32": "<f4", "uint8": "u1"}[kind]
    return np.frombuffer(base64.b64decode(table[kind]), dtype).reshape(table["shape"])


def test_a_text_is_translated_as_without_a_server(server, translator):
    found = ask(server, "translate", text=[APPLES, SCHOOL], nbest=3, beam=4, alignments=True)
    search = Search(beam=4, nbest=3, wants_attention=True)
    expected = translator.translate([APPLES, SCHOOL], search=search)
    for one, own in zip(found["translations"], expected, strict=True):
        assert (one["text"], one["from"], one["to"]) == (own.text, "zh", "en")
        assert [a["text"] for a in one["alternatives"]] == [a.text for a in own.alternatives]
        assert one["score"] == pytest.approx(own.score, abs=1e-4)
        assert one["alternatives"][0]["alignment"]["links"] == list(map(list, own.alignment.links))


def test_the_pieces_of_a_translation_have_the_probability_of_its_score(server):
    [one] = ask(server, "translate", text=f"{APPLES}\n{SCHOOL}", log_probs=True, nbest=2)[
        "translations"
    ]
    for alternative in one["alternatives"]:
        pieces = alternative["pieces"]
        ends = [n for n, piece in enumerate(pieces, start=1) if piece["piece"] == "</s>"]
        assert len(ends) == 2  # two lines are two sentences
        log_probs = [piece["log_prob"] for piece in pieces]
        means = [np.mean(log_probs[: ends[0]]), np.mean(log_probs[ends[0] :])]
        assert alternative["score"] == pytest.approx(np.mean(means), abs=1e-4)


def test_a_prefix_and_terms_are_kept_to(server, thorough):
    [one] = ask(server, "translate", text=APPLES, prefix="We", beam=1)["translations"]
    assert one["text"].startswith("We")
    [one] = ask(server, "translate", text=APPLES, terms={"苹果": "pears"})["translations"]
    assert "pears" in one["text"]


def test_a_stream_grows_piece_by_piece_to_the_greedy_translation(server, thorough):
    answer = server.post("/api/v1/translate", {"text": f"{APPLES}\n{SCHOOL}", "stream": True})
    assert answer.headers["content-type"] == "application/x-ndjson"
    *parts, done = map(json.loads, answer.text.splitlines())
    assert done["done"] is True
    assert done["text"] == thorough.translate(f"{APPLES}\n{SCHOOL}", beam=1).text
    for number, line in enumerate(done["text"].split("\n")):
        grown = [part["text"] for part in parts if part["part"] == number]
        assert grown[-1] == line
        assert [len(text) for text in grown] == sorted(len(text) for text in grown)


def test_scores_are_the_model_s_own(server, translator):
    found = ask(server, "score", text=[APPLES, SCHOOL], translation=["I like it.", "Tom."])
    expected = translator.score([APPLES, SCHOOL], ["I like it.", "Tom."])
    for one, own in zip(found["scores"], expected, strict=True):
        assert one["pieces"] == list(own.pieces)
        assert one["log_probs"] == pytest.approx(list(own.log_probs), abs=1e-4)
        assert one["log_prob"] == pytest.approx(own.log_prob, abs=1e-3)


def test_all_weights_come_as_bytes_and_one_head_to_the_last_digit(server, thorough):
    own = thorough.attend(APPLES)
    found = ask(server, "attend", text=APPLES)
    assert found["translation"] == own.text
    assert found["src_pieces"] == list(own.src_pieces)
    assert found["tgt_pieces"] == list(own.tgt_pieces)
    for kind in ("cross", "encoder", "decoder"):
        weights = getattr(own, kind)
        assert abs(array(found["weights"][kind], "uint8") / 255 - weights).max() <= 0.5 / 255 + 1e-6
        place = {"kind": kind, "layer": 2, "head": 1, "vectors": True}
        one = ask(server, "attend", text=APPLES, **place)
        seen = array(one["weights"])
        np.testing.assert_allclose(seen, weights[2, 1], atol=1e-6)
        query, key = (array(one[name]).astype(float) for name in ("query", "key"))
        scores = query @ key.T * one["scale"]
        if one["causal"]:
            scores[np.triu_indices_from(scores, 1)] = -np.inf
        again = np.exp(scores - scores.max(1, keepdims=True))
        np.testing.assert_allclose(seen, again / again.sum(1, keepdims=True), atol=1e-6)
        assert array(one["value"]).shape == array(one["key"]).shape


def test_a_given_translation_is_attended_aligned_and_occluded(server, thorough):
    pair = {"text": APPLES, "translation": "I like apples."}
    own = thorough.attend(*pair.values())
    found = ask(server, "align", **pair)
    assert found["tgt_pieces"] == list(own.tgt_pieces[:-1])
    mean = own.cross[-1].mean(axis=0)[:-1, :-1]
    assert found["links"] == [[int(row.argmax()), n] for n, row in enumerate(mean)]
    assert found["pharaoh"].split()[0] == "{}-{}".format(*found["links"][0])
    found = ask(server, "occlude", **pair)
    assert found["src_pieces"] == list(own.src_pieces[:-1])
    src, tgt = thorough.wording.pair(*pair.values(), "en")
    engine = thorough._torch
    [whole] = engine.score([(src, tgt)])
    for place in range(len(src) - 1):
        [without] = engine.score([(src[:place] + src[place + 1 :], tgt)])
        delta = np.subtract(whole.log_probs, without.log_probs)
        np.testing.assert_allclose(found["delta"][place], delta, atol=1e-3)
        assert found["total"][place] == pytest.approx(delta.sum(), abs=1e-3)


def test_a_search_is_told_step_by_step(server, thorough):
    found = ask(server, "trace", text=APPLES, beam=3)
    own = thorough.translate(APPLES, search=Search(beam=3, nbest=3))
    assert [one["text"] for one in found["hypotheses"]] == [a.text for a in own.alternatives]
    live = [[]]
    for step in found["steps"]:
        kept = [one for one in step if one["fate"] == "kept"]
        live = [[*live[one["parent"]], one["piece"]] for one in kept]
        assert len(step) <= 6
    forced = ask(server, "trace", text=APPLES, beam=2, prefix="We")
    assert [one["piece"] for one in forced["steps"][0]] == ["▁We"]
    assert forced["hypotheses"][0]["text"].startswith("We")


def test_models_say_what_they_are_and_what_is_taken(server):
    found = server.get("/api/v1/models").json()
    [model] = found["models"]
    assert (model["name"], model["directions"]) == (
        "tatoeba-zh-en",
        [{"from": "zh", "to": "en"}],
    )
    assert model["model"]["n_heads"] == 4
    assert found["limits"] == {"texts": 64, "chars": 5000, "beam": 8}


@pytest.mark.parametrize(
    ("path", "fields", "code", "field", "message"),
    [
        ("translate", {}, "missing", "text", "the request has no text; it is needed"),
        (
            "translate",
            {"text": "我", "beams": 3},
            "unknown_field",
            "beams",
            "there is no field beams in this request",
        ),
        (
            "translate",
            {"text": "我", "beam": 9},
            "wrong_value",
            "beam",
            "beam = 9 is not right; it must be 1 to 8",
        ),
        (
            "translate",
            {"text": "我" * 5001},
            "too_many",
            "the number of characters",
            "the number of characters is 5001, but at most 5000 are taken in one request",
        ),
        (
            "translate",
            {"text": ["我", "你"], "stream": True},
            "too_many",
            "the number of texts",
            "the number of texts is 2, but at most 1 are taken in one request",
        ),
        (
            "translate",
            {"text": "我", "stream": True, "nbest": 2},
            "wrong_value",
            "stream",
            "stream = true is not right; it must be alone: greedy, without nbest, terms and "
            "alignments",
        ),
        (
            "translate",
            {"text": "我", "terms": {str(n): "x" for n in range(1001)}},
            "too_many",
            "terms",
            "terms is 1001, but at most 1000 are taken in one request",
        ),
        (
            "score",
            {"text": ["我"], "translation": []},
            "wrong_value",
            "translation",
            "there are 1 sources but 0 translations; they are scored in pairs",
        ),
        ("attend", {"text": " "}, "missing", "text", "the request has no text; it is needed"),
        (
            "attend",
            {"text": "我，" * 110, "translation": "I."},
            "too_many",
            "text",
            "221 pieces are more than the 200 that can be looked at; give one sentence",
        ),
        (
            "attend",
            {"text": "我", "kind": "cross", "layer": 7},
            "wrong_setting",
            "",
            "there is no layer 7; they are 0 to 2",
        ),
        (
            "trace",
            {"text": "我\n你"},
            "too_many",
            "text",
            "a search is traced for one sentence; this text has 2",
        ),
        ("nothing", {}, "not_found", "", "there is no such address here"),
    ],
)
def test_errors_are_typed_and_in_both_languages(server, path, fields, code, field, message):
    answer = server.post(f"/api/v1/{path}", fields)
    assert answer.status_code in (400, 404)
    error = answer.json()["error"]
    assert set(error) == {"code", "message", "message_zh", "field", "trace_id"}
    assert (error["code"], error["field"]) == (code, field)
    assert error["message"] == message
    assert any("\u4e00" <= char <= "\u9fff" for char in error["message_zh"])
    assert error["trace_id"] == answer.headers["x-trace-id"]
