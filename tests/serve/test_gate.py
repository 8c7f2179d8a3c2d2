"""What every request goes through: hosts, origins, sizes, headers, keys, logs, the page."""

import json
import re
from pathlib import Path

import pytest
import requests

APPLES = "我喜欢吃苹果。"
TABLE = {"q": APPLES, "source": "zh", "target": "en"}
TATOEBA = Path(__file__).parents[1] / "models" / "tatoeba-zh-en"


def test_an_answer_does_not_wait_for_its_head_to_be_acknowledged(server):
    """Which takes 40 ms, where a socket is not told to send at once."""
    with requests.Session() as session:
        times = [session.get(server.address + "/healthz").elapsed for _ in range(20)]
    assert sorted(times)[5].total_seconds() < 0.03


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", ""])
def test_on_this_machine_alone_no_other_name_is_answered(server, host):
    answer = server.post("/translate", TABLE, headers={"Host": host})
    assert answer.status_code == 421
    assert answer.json() == {"error": f"this server does not answer to the host {host}"}


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:9", "127.0.0.1:1234", "[::1]:80"])
def test_this_machine_s_own_names_are_answered(server, host):
    assert server.get("/health", headers={"Host": host}).status_code == 200


def test_pages_of_other_sites_get_nothing_done_and_extensions_do(server):
    for origin in ("https://evil.example", "null", "http://[", "http://localhost.evil.example"):
        answer = server.post("/translate", TABLE, headers={"Origin": origin})
        assert answer.status_code == 403
        assert answer.json() == {"error": f"pages of {origin} may not ask this server"}
        assert "access-control-allow-origin" not in answer.headers
    for origin in (server.address, "chrome-extension://abc", "moz-extension://abc"):
        assert server.post("/translate", TABLE, headers={"Origin": origin}).status_code == 200
    preflight = requests.options(server.address + "/translate", timeout=9,
                                 headers={"Origin": "https://a.example"})  # fmt: skip
    assert "access-control-allow-origin" not in preflight.headers


def test_every_answer_has_its_trace_and_strict_headers(server):
    traces = set()
    for path in ("/", "/languages", "/nothing", "/metrics", "/page/style.css"):
        headers = server.get(path).headers
        traces.add(headers["x-trace-id"])
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["referrer-policy"] == "same-origin"
        assert "server" not in headers
        policy = headers["content-security-policy"]
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert policy.startswith(("default-src 'none'", "default-src 'self'"))
    assert len(traces) == 5


def test_what_is_too_large_or_compressed_is_refused(server):
    def status(**options):
        return server.post("/translate", **options)

    large = status(json={**TABLE, "q": "x" * 140_000})
    assert (large.status_code, large.json()) == (
        413,
        {"error": "the body of the request has more than 131072 bytes"},
    )
    chunks = status(data=iter([b"x" * 60_000] * 3))
    assert chunks.status_code == 413
    header = status(json=TABLE, headers={"x-a": "x" * 17_000})
    assert (header.status_code, header.json()) == (
        431,
        {"error": "the header of the request has more than 16384 bytes"},
    )
    fields = status(json=TABLE, headers={f"x-{n}": "x" for n in range(70)})
    assert fields.status_code == 431
    address = server.get("/translate", params={"q": "x" * 66_000})
    assert (address.status_code, address.json()) == (
        414,
        {"error": "the address of the request has more than 65536 bytes"},
    )
    packed = status(data=b"x", headers={"content-encoding": "gzip"})
    assert (packed.status_code, packed.json()) == (
        415,
        {"error": "a body that is compressed is not taken; send it as it is"},
    )


def test_what_is_not_there_is_said_in_the_protocol_s_words(server):
    assert server.get("/nothing").json() == {"error": "there is no such address here"}
    assert server.get("/v2/nothing").json() == {"message": "there is no such address here"}
    wrong = requests.delete(server.address + "/translate", timeout=9)
    assert (wrong.status_code, wrong.json()) == (
        405,
        {"error": "this address does not take DELETE"},
    )


def test_a_key_is_taken_from_wherever_a_client_puts_it(locked):
    address, key = locked.address + "/v2/usage", "open-sesame"
    ways = [
        {"headers": {"Authorization": f"DeepL-Auth-Key {key}"}},
        {"headers": {"Authorization": f"Bearer {key}"}},
        {"headers": {"X-API-Key": key}},
        {"params": {"auth_key": key}},
        {"data": {"api_key": key}},
        {"json": {"token": key}},
    ]
    for way in ways:
        assert requests.get(address, timeout=9, **way).status_code == 200
    for way in ({}, {"params": {"auth_key": key + "x"}}, {"headers": {"Authorization": key}}):
        assert requests.get(address, timeout=9, **way).status_code == 403
    for path in ("/languages", "/metrics", "/v2/languages", "/listPairs", "/v2/glossaries"):
        assert locked.get(path).status_code in (400, 403)
        assert locked.get(path, params={"api_key": key}).status_code == 200
    for path in ("/healthz", "/readyz", "/"):
        assert locked.get(path).status_code == 200


def test_no_key_and_no_text_is_in_the_log_in_the_metrics_or_in_an_error(locked):
    key, text = "open-sesame", "我的秘密是苹果"
    locked.get("/translate", params={**TABLE, "q": text, "api_key": key})
    locked.post("/translate", {**TABLE, "q": text, "api_key": key})
    locked.post("/v2/translate", {"text": [text], "target_lang": "EN"},
                headers={"Authorization": f"DeepL-Auth-Key {key}"})  # fmt: skip
    wrong = locked.post("/translate", {**TABLE, "q": text, "api_key": "wrong-sesame"})
    metrics = locked.get("/metrics", params={"api_key": key}).text
    log = locked.log.read_text()
    for place in (wrong.text, metrics, log):
        assert "sesame" not in place
        assert text not in place
        assert json.dumps(text).strip('"') not in place
        assert "%E6" not in place
    lines = [json.loads(line) for line in log.splitlines() if line.startswith("{")]
    line = next(line for line in lines if line.get("trace") == wrong.headers["x-trace-id"])
    assert (line["method"], line["path"], line["status"]) == ("POST", "/translate", 403)
    told = [line for line in lines if line.get("key") == "key1" and line.get("chars") == len(text)]
    assert len(told) >= 3
    assert all(line["ms"] >= 0 and line["bytes_out"] > 0 for line in told)


def test_metrics_count_what_was_asked(server):
    def count():
        text = server.get("/metrics").text
        found = re.search(r'total\{protocol="immersive",status="400"\} (\d+)', text)
        return int(found[1]) if found else 0

    before = count()
    server.post("/imme", {})
    assert count() == before + 1


def test_the_form_translates_without_a_script_and_shows_text_as_text(server, translator):
    page = server.get("/")
    assert "<form" in page.text
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    answer = server.post("/", data={"text": APPLES, "from": "auto", "to": "en"})
    assert answer.status_code == 200
    assert translator.translate(APPLES).text in answer.text
    hostile = "我</textarea><img src=x onerror=alert(1)>"
    shown = server.post("/", data={"text": hostile, "from": "zh", "to": "en"}).text
    assert "<img" not in shown
    assert "onerror=alert(1)&gt;" in shown
    refused = server.post("/", data={"text": APPLES, "from": "en", "to": "<b>"})
    assert refused.status_code == 400
    assert "<b>" not in refused.text


@pytest.mark.parametrize(
    "name",
    [
        "/page/..%2f..%2fapp.py", "/page/../app.py", "/page/%2e%2e/app.py", "/page//etc/passwd",
        "/page/style.css%00.html", "/page/", "/page/..", "/download_file/..%2f..%2fapp.py",
        "/page/style.css/", "/page/..%5capp.py",
    ],
)  # fmt: skip
def test_no_name_leads_out_of_the_page(server, name):
    session = requests.Session()
    request = requests.Request("GET", server.address).prepare()
    request.url = server.address + name  # as it is, which requests would tidy up
    assert session.send(request, timeout=9).status_code == 404
    session.close()


def test_rates_origins_hosts_proxies_and_texts_in_the_log_as_asked_for(serve):
    one = serve(TATOEBA, "--rate", "6", "--allow-origin", "https://a.example", "--log-text",
                "--allow-host", "regard.example", "--trust-proxy", "127.0.0.1")  # fmt: skip

    def ask(address, **headers):
        headers = {"x-forwarded-for": address, **headers}
        return one.post("/translate", TABLE, headers=headers)

    origin = ask("1.1.1.1", Origin="https://a.example", Host="regard.example")
    assert origin.status_code == 200
    assert origin.headers["access-control-allow-origin"] == "https://a.example"
    assert ask("1.1.1.1", Origin="https://b.example").status_code == 403
    asking = {"Origin": "https://a.example", "Access-Control-Request-Method": "POST"}
    preflight = requests.options(one.address + "/translate", headers=asking, timeout=9)
    assert preflight.status_code == 204
    assert preflight.headers["access-control-allow-origin"] == "https://a.example"
    assert "POST" in preflight.headers["access-control-allow-methods"]
    codes = [ask("2.2.2.2").status_code for _ in range(7)]
    assert codes == [200] * 6 + [429]
    refused = ask("6.6.6.6, 2.2.2.2")  # what the client itself claims is not believed
    assert refused.status_code == 429
    assert 1 <= int(refused.headers["retry-after"]) <= 10
    assert refused.json()["error"].startswith("Slowdown: more than 6 a minute")
    assert ask("3.3.3.3").status_code == 200
    assert json.dumps(APPLES).strip('"') in one.log.read_text()
