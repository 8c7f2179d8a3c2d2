"""The application without a network: what is refused, and in whose words."""

import asyncio
import json
from pathlib import Path

import pytest

from regard.decode.results import Alternative
from regard.serve.app import build_app
from regard.serve.gate import Doors
from regard.serve.keys import Keys
from regard.serve.limits import Limits
from regard.serve.models import Models
from regard.serve.service import Answer, Service

TATOEBA = Path(__file__).parents[1] / "models" / "tatoeba-zh-en"
TABLE = {"q": "我", "source": "zh", "target": "en"}


@pytest.fixture(scope="module")
def models():
    return Models([TATOEBA])


@pytest.fixture
def service(models):
    """A service that translates nothing: what it says is set by the test."""
    made = Service(models, limits=Limits(deadline=0.2), keys=Keys())

    async def translate(wanted):
        one = Alternative("x", 0.0, True)
        return [Answer("x", "zh", "en", 100.0, "m", (one,)) for _ in wanted.texts]

    made.translate = translate
    return made


async def call(app, path, body, *, kind=b"application/json", method="POST", headers=(), gone=60):
    """What an application sends to a client that leaves after so many seconds."""
    given, sent = [{"type": "http.request", "body": body, "more_body": False}], []

    async def receive():
        if given:
            return given.pop()
        await asyncio.sleep(gone)
        return {"type": "http.disconnect"}

    async def send(message):
        sent.append(message)

    scope = {
        "type": "http", "method": method, "path": path, "raw_path": path.encode(),
        "query_string": b"", "root_path": "", "scheme": "http", "http_version": "1.1",
        "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80),
        "headers": [(b"host", b"localhost"), (b"content-type", kind), *headers],
    }  # fmt: skip
    await app(scope, receive, send)
    if not sent:
        return None
    text = b"".join(one.get("body", b"") for one in sent[1:])
    headers = dict(sent[0]["headers"])
    is_stream = headers[b"content-type"] == b"application/x-ndjson"
    said = list(map(json.loads, text.splitlines())) if is_stream else json.loads(text)
    return sent[0]["status"], headers, said


def ask(service, path, table=None, **options):
    """The status, the headers and the body of an answer; None if there was none."""
    body = json.dumps(table or {}).encode()
    return asyncio.run(call(build_app(service, Doors()), path, body, **options))


def test_a_server_that_leaves_takes_no_more_and_says_so(service):
    service.is_leaving = True
    status, headers, table = ask(service, "/translate", TABLE)
    assert (status, headers[b"retry-after"]) == (503, b"5")
    assert table == {"error": "the server is about to stop; ask again in a moment"}
    assert ask(service, "/readyz", method="GET")[0] == 503
    assert ask(service, "/healthz", method="GET")[0] == 200


def test_a_length_and_a_transfer_encoding_are_one_too_many(service):
    headers = [(b"content-length", b"2"), (b"transfer-encoding", b"chunked")]
    status, back, table = ask(service, "/v2/translate", {}, headers=headers)
    assert (status, back[b"connection"]) == (400, b"close")
    assert table == {"message": "a request has a content-length or a transfer-encoding, not both"}


@pytest.mark.parametrize(
    ("path", "table", "where"),
    [
        ("/translate", TABLE, lambda t: t["error"]),
        ("/v2/translate", {"text": "我", "target_lang": "EN"}, lambda t: t["message"]),
        ("/imme", {"text_list": ["我"], "target_lang": "en"}, lambda t: t["message"]),
        ("/deeplx/translate", {"text": "我", "target_lang": "en"}, lambda t: t["message"]),
        ("/translate", {"langpair": "zh|en", "q": "我"}, lambda t: t["explanation"]),
        ("/api/v1/translate", {"text": "我"}, lambda t: t["error"]["message"]),
    ],
)
def test_a_fault_inside_is_500_in_each_protocol_s_shape_and_tells_no_secrets(
    service, path, table, where
):
    async def fail(wanted):
        raise KeyError("secret")

    service.translate = fail
    status, _, said = ask(service, path, table)
    assert status == 500
    assert "the server failed at this request; its log has more" in where(said)
    assert "secret" not in json.dumps(said)


def test_a_deadline_is_503_and_ends_the_work(service):
    ended = []

    async def linger(wanted):
        try:
            await asyncio.sleep(60)
        finally:
            ended.append(True)

    service.translate = linger
    status, headers, table = ask(service, "/translate", TABLE)
    assert (status, headers[b"retry-after"], ended) == (503, b"2", [True])
    assert table == {
        "error": "the request was not done within 0.2 s; ask for less at once, or again later"
    }


class Lane:
    """Says so many words, and then nothing more."""

    def __init__(self, *words):
        self.words = words

    async def ask(self, *question, on_part):
        for word in self.words:
            on_part(word)
        await asyncio.sleep(60)


def test_a_stream_that_has_not_begun_by_the_deadline_is_503(service):
    service.lane = lambda kind: Lane()
    status, headers, table = ask(service, "/api/v1/translate", {"text": "我", "stream": True})
    assert (status, headers[b"retry-after"]) == (503, b"2")
    assert table["error"]["code"] == "deadline"


def test_a_stream_that_is_not_done_by_the_deadline_ends_with_a_line_that_says_so(service):
    service.lane = lambda kind: Lane(40, 41)
    status, _, lines = ask(service, "/api/v1/translate", {"text": "我", "stream": True})
    assert status == 200
    *parts, last = lines
    assert [part["part"] for part in parts] == [0, 0]
    assert last["error"]["code"] == "deadline"
    assert last["error"]["message"].startswith("the request was not done within 0.2 s")


def test_the_work_of_a_client_that_left_is_ended_and_nothing_is_sent(service):
    ended = []

    async def linger(wanted):
        try:
            await asyncio.sleep(60)
        finally:
            ended.append(True)

    service.translate = linger
    assert ask(service, "/translate", TABLE, gone=0.02) is None
    assert ended == [True]
    assert service.metrics.requests["libretranslate", 499] == 1


def test_a_text_whose_tags_cannot_be_kept_is_refused(service):
    async def endless(wanted):
        one = Alternative("x x x", 0.0, False)
        return [Answer("x x x", "zh", "en", 100.0, "m", (one,)) for _ in wanted.texts]

    service.translate = endless
    status, _, table = ask(service, "/translate", {**TABLE, "q": "<b>我</b>", "format": "html"})
    assert status == 400
    assert table == {
        "error": "text 1 could not be translated with all its tags in place (endless); send it in "
        "smaller parts"
    }


def test_a_document_that_is_not_done_is_asked_for_again(service):
    async def linger(wanted):
        await asyncio.sleep(60)

    service.translate = linger
    body = (
        b'--x\r\nContent-Disposition: form-data; name="target_lang"\r\n\r\nEN\r\n'
        b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\n'
        + "我".encode()
        + b"\r\n--x--\r\n"
    )

    async def main():
        app = build_app(service, Doors())
        kind = b"multipart/form-data; boundary=x"
        _, _, made = await call(app, "/v2/document", body, kind=kind)
        key = json.dumps({"document_key": made["document_key"]}).encode()
        place = f"/v2/document/{made['document_id']}"
        _, _, table = await call(app, place, key)
        assert table["status"] in ("queued", "translating")
        status, _, table = await call(app, f"{place}/result", key)
        assert (status, table["message"]) == (503, "the document is not translated yet; ask again")

    asyncio.run(main())
