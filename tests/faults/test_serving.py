"""Clients that are slow, rude, too many or gone, and a server that is to die or has to leave."""

import json
import os
import re
import socket
import statistics
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
import requests

from regard.cli.main import main

TATOEBA = Path(__file__).parents[1] / "models" / "tatoeba-zh-en"
APPLES = "我喜欢吃苹果。"
WORDS = ["喜欢", "今天", "苹果", "学校", "朋友", *"我你他去吃看书的了吗很不在"]
TABLE = {"q": APPLES, "source": "zh", "target": "en"}
ADDRESSES = ["/translate", "/detect", "/v2/translate", "/v2/glossaries", "/imme", "/",
             "/deeplx/translate", "/api/v1/translate", "/api/v1/score"]  # fmt: skip


@pytest.fixture(scope="module")
def server(serve_all):
    """One that is patient for a second, not for ten."""
    return serve_all(TATOEBA, limits={"receive": 1.0})


def assert_well(server):
    assert server.post("/translate", TABLE).json() == {"translatedText": "I like eating apples."}


def spoken(server, raw, seconds=5.0):
    """All that a server says to some bytes."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=seconds) as talk:
        talk.sendall(raw)
        heard = b""
        try:
            while chunk := talk.recv(65536):
                heard += chunk
        except (TimeoutError, ConnectionResetError):
            pass
    return heard


# --- slow clients


@pytest.mark.timeout(120)
def test_slow_headers_and_slow_bodies_are_cut_and_nobody_else_notices(
    server, often, record_property
):
    n, usual = often(40, 300), []
    for _ in range(5):
        started = time.monotonic()
        assert_well(server)
        usual.append(time.monotonic() - started)
    head = b"POST /translate HTTP/1.1\r\nHost: localhost\r\n"
    halves = [head + b"X-A: ", head + b"Content-Length: 90\r\n\r\n{", b"", head + b"X"]
    with ExitStack() as stack:
        talks = []
        for number in range(n):
            talk = stack.enter_context(socket.create_connection(("127.0.0.1", server.port), 9))
            talk.sendall(halves[number % 4])
            talks.append(talk)
        started = time.monotonic()
        meanwhile = []
        while time.monotonic() - started < 0.7:
            for talk in talks[::4]:
                talk.sendall(b"a")  # not silent, only slow
            before = time.monotonic()
            assert_well(server)
            meanwhile.append(time.monotonic() - before)
        heard = [talk.recv(4096) for talk in talks]
        lasted = time.monotonic() - started
    assert all(answer.startswith(b"HTTP/1.1 408 ") or answer == b"" for answer in heard)
    assert lasted < 3.0
    assert statistics.median(meanwhile) < statistics.median(usual) + 0.1
    record_property(
        "counted",
        f"{n} slow connections all cut after {lasted:.1f} s; a request meanwhile "
        f"{1000 * statistics.median(meanwhile):.0f} ms, else {1000 * statistics.median(usual):.0f}",
    )


def test_a_client_that_does_not_read_is_cut(serve):
    server = serve(TATOEBA, limits={"send": 0.5})
    ask = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with socket.socket() as talk:
        talk.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        talk.connect(("127.0.0.1", server.port))
        talk.settimeout(0.2)
        try:
            for _ in range(3000):
                talk.sendall(ask)  # and never a word is read
        except (TimeoutError, ConnectionError):
            pass
        deadline = time.monotonic() + 10
        while 'cut_total{why="send"} 1' not in server.get("/metrics").text:
            assert time.monotonic() < deadline
            time.sleep(0.05)
    assert_well(server)


def test_a_crowd_is_turned_away_and_let_in_again(serve):
    server = serve(TATOEBA, limits={"connections": 10})
    with ExitStack() as stack:
        for _ in range(10):
            stack.enter_context(socket.create_connection(("127.0.0.1", server.port)))
        time.sleep(0.2)
        assert spoken(server, b"").startswith(b"HTTP/1.1 503 ")
    time.sleep(0.2)
    assert_well(server)


# --- rude clients


@pytest.mark.parametrize(
    ("raw", "statuses"),
    [
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 100_000, (431,)),
        (b"GET /" + b"a" * 100_000, (400, 414, 431)),
        (b"GET /" + b"a" * 66_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", (414,)),
        (b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9999999\r\n\r\n", (413,)),
        (b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n", (400,)),
        (b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9" + b"9" * 50 +
         b"\r\n\r\n", (400, 413)),
        (b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n"
         b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", (400,)),
        (b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n"
         b"Content-Length: 6\r\n\r\nabcdef", (400,)),
        (b"POST /translate HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip\r\n\r\n",
         (400, 501)),
        (b"POST /translate HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
         b"zzz\r\n", (400,)),
        (b"POST /translate HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n" +
         (b"ffff\r\n" + b"a" * 65535 + b"\r\n") * 3, (413,)),
        (b"GET /\r\n", (400, 408)),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(100), (400,)),
        (b"\x00\xff" * 50 + b"\r\n\r\n", (400,)),
        (b"GET / HTTP/1.1\r\n\r\n", (400,)),
        (b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", (400, 421)),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", (400, 404, 405, 421)),
        (b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Length: 500\r\n\r\n{}", (408,)),
        (b"POST /translate HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
         b"2\r\n{}\r\n", (408,)),
    ],
)  # fmt: skip
def test_what_is_no_proper_request_is_refused_and_the_next_is_answered(server, raw, statuses):
    heard = spoken(server, raw)
    found = re.match(rb"HTTP/1\.1 (\d+) ", heard)
    assert found, heard[:200]
    assert int(found[1]) in statuses
    assert_well(server)


def test_requests_sent_one_behind_the_other_are_answered_in_order(server):
    body = json.dumps(TABLE).encode()
    one = (
        b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body)
        + body
    )
    last = b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    heard = spoken(server, one * 3 + last)
    assert heard.count(b"HTTP/1.1 200 OK") == 4
    assert heard.count(b"translatedText") == 3
    assert heard.endswith(b'{"status":"ok"}')
    # A body that is begun behind another request, and not ended, is not waited for either.
    started = time.monotonic()
    heard = spoken(server, one + one[:-5])
    assert heard.count(b"HTTP/1.1 200 OK") == 1
    assert b"HTTP/1.1 408 " in heard
    assert time.monotonic() - started < 4


HOSTILE = [
    b"[" * 60_000, b'{"q":' * 20_000, b'{"q": ' + b"1" * 5000 + b"}", b'{"q": NaN}',
    b'{"q": 1e999}', b'{"q": "\\ud800", "source": "zh", "target": "en"}', b'{"q": 1, "q": 2}',
    b'["q"]', b'"q"', b"null", b'{"q": [1, null]}', b'{"q": {"a": 1}}', b"\xff\xfe", b"{", b"\x00",
    b'{"q": "' + b"x" * 120_000 + b'"}', b'{"text": "\\ud800"}', b'{"text": [null]}',
    b'{"text_list": "\\udfff"}', b'{"q": true, "source": 1, "target": []}',
    b'{"text": "\\u0000", "target_lang": "EN", "to": "en", "source": "zh", "q": "\\u0000"}',
    b'{"text": ["\xe6\x88\x91"], "target_lang": ["EN"], "glossary_id": {}}',
]  # fmt: skip


@pytest.mark.parametrize("kind", ["application/json", "application/x-www-form-urlencoded",
                                  "text/plain", "multipart/form-data; boundary=x"])  # fmt: skip
def test_no_body_makes_the_server_fail(server, kind):
    with requests.Session() as session:
        for path in ADDRESSES:
            for body in HOSTILE:
                answer = session.post(
                    server.address + path, data=body, headers={"content-type": kind}, timeout=20
                )
                assert answer.status_code < 500, (path, body[:60], answer.text)
                if answer.status_code >= 400 and path != "/":
                    assert isinstance(answer.json(), dict)
    assert_well(server)


@pytest.mark.timeout(900)
def test_nothing_that_the_description_allows_or_forbids_makes_the_server_fail(server, often):
    import schemathesis
    from hypothesis import HealthCheck, Phase, settings
    from schemathesis.checks import CHECKS

    while server.post("/api/v1/trace", {"text": APPLES}).status_code == 503:
        pass  # until torch is loaded
    schema = schemathesis.openapi.from_url(server.address + "/openapi.json")
    counted = 0
    for result in schema.get_all_operations():
        operation = result.ok()

        @schemathesis_given(operation)
        @settings(
            max_examples=often(2, 200), deadline=None, database=None,
            suppress_health_check=list(HealthCheck), phases=[Phase.explicit, Phase.generate],
        )  # fmt: skip
        def ask(case):
            nonlocal counted
            counted += 1
            answer = case.call(timeout=30)
            case.validate_response(answer, checks=[CHECKS.get_one("not_a_server_error")])

        ask()
    assert counted > 30
    assert_well(server)


def schemathesis_given(operation):
    from hypothesis import given

    return given(case=operation.as_strategy())


# --- odd places


@pytest.fixture
def refused(monkeypatch, capsys):
    """What the command says instead of serving, and its exit code."""
    monkeypatch.setenv("REGARD_LANG", "en")

    def run(*arguments):
        with pytest.raises(SystemExit) as left:
            main(["serve", *map(str, arguments)])
        return left.value.code, capsys.readouterr().err

    return run


def test_what_cannot_be_served_is_said_with_an_exit_code(refused, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert refused(TATOEBA, "--port", port) == (
            5,
            f"error: port {port} of 127.0.0.1 is in use; choose another with --port\n",
        )
    nothing = tmp_path / "nothing"
    assert refused(nothing) == (4, f"error: there is no model directory {nothing}\n")
    assert refused(TATOEBA, "--host", "no.such.host.invalid") == (
        5,
        "error: there is no host no.such.host.invalid; name one of this machine\n",
    )
    assert refused(TATOEBA, "--host", "203.0.113.1", "--port", "0") == (
        5,
        "error: cannot listen at 203.0.113.1, port 0: Cannot assign requested address\n",
    )
    assert refused(TATOEBA, "--port", "70000")[0] == 2


def test_it_starts_in_odd_places_and_by_another_address(serve, tmp_path):
    place = tmp_path / "中文 和 spaces"
    place.mkdir()
    (place / "模型").symlink_to(TATOEBA)
    server = serve(
        "模型", "--host", "::1", cwd=place,
        env={"HOME": None, "LANG": "C", "LC_ALL": "C"},
    )  # fmt: skip
    assert server.address.startswith("http://[::1]:")
    assert_well(server)


def test_without_a_network_it_serves_and_calls_nobody():
    """In a world with nothing but loopback; strace is not needed where nobody can be called."""
    code = f"""
import re, subprocess, sys, urllib.request
server = subprocess.Popen([sys.executable, "-m", "regard", "serve", {str(TATOEBA)!r}, "--port",
                           "0"], stdout=subprocess.PIPE, text=True)
try:
    address = re.search(r"http://\\S+", server.stdout.readline())[0]
    body = b"q=%E6%88%91%E5%96%9C%E6%AC%A2%E5%90%83%E8%8B%B9%E6%9E%9C%E3%80%82&source=zh&target=en"
    print(urllib.request.urlopen(address + "/translate", body).read().decode())
finally:
    server.terminate()
    print(server.wait())
"""
    inside = ["unshare", "-rn", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
    try:
        subprocess.run([*inside, "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("this system gives no network of its own")
    done = subprocess.run(
        [*inside, sys.executable, "-c", code], capture_output=True, text=True, timeout=60,
        env={**os.environ, "REGARD_LANG": "en"},
    )  # fmt: skip
    assert done.stdout.splitlines() == ['{"translatedText":"I like eating apples."}', "0"], (
        done.stderr
    )


def test_x_forwarded_for_is_not_believed_unless_asked_for(serve):
    server = serve(TATOEBA, "--rate", "2")
    codes = [
        server.post("/translate", TABLE, headers={"x-forwarded-for": f"9.9.9.{n}"}).status_code
        for n in range(3)
    ]
    assert codes == [200, 200, 429]
