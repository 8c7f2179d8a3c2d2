"""What a request may say, and how it may not say it."""

import asyncio
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.requests import Request

from regard.serve.fields import File, fields_of, table_of
from regard.serve.refusals import Refused


def fields(query=b"", body=b"", kind="application/json", method="POST"):
    async def receive():
        return {"type": "http.request", "body": body, "more_body": False}

    scope = {"type": "http", "method": method, "query_string": query,
             "headers": [(b"content-type", kind.encode())]}  # fmt: skip
    return asyncio.run(fields_of(Request(scope, receive)))


def refusal(function, *arguments):
    with pytest.raises(Refused) as refused:
        function(*arguments)
    return refused.value


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        (b"[" * 100_000, "it is nested too deeply"),
        (b'{"a":' * 100_000, "it is nested too deeply"),
        (b'{"a": ' + b"1" * 5000 + b"}", "a number has too many digits"),
        (b'{"a": NaN}', "NaN is no number"),
        (b'{"a": -Infinity}', "-Infinity is no number"),
        (b'{"a": 1e999}', "a number is too large"),
        (b'{"a": "\\ud800"}', "it has half of a surrogate pair"),
        (b'{"\\uDFFF": 1}', "it has half of a surrogate pair"),
        (b'{"a": 1, "a": 2}', "a name stands in it twice"),
        (b'["a"]', "it is a list of 1, not an object"),
        (b'"a"', 'it is "a", not an object'),
        (b"null", "it is null, not an object"),
        (b'{"a": "\xff"}', "it is no UTF-8 at byte 7"),
        (b"{", "expecting property name enclosed in double quotes at character 1"),
    ],
)
def test_json_that_is_meant_to_hurt_is_refused_by_a_sentence(body, detail):
    refused = refusal(table_of, body)
    assert refused.status == 400
    assert refused.message == f"the body is no valid JSON: {detail}"
    assert refused.message_zh == f"正文不是有效的JSON：{detail}"


@given(
    st.dictionaries(
        st.text(),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text()
            | st.floats(allow_nan=False, allow_infinity=False),
            lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
            max_leaves=10,
        ),
    )
)  # fmt: skip
def test_proper_json_is_read_as_python_reads_it(table):
    for ascii in (True, False):
        text = json.dumps(table, ensure_ascii=ascii)
        assert table_of(text.encode("utf-8", "surrogatepass")) == table


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused_and_nothing_else(raw):
    kinds = ("application/json", "application/x-www-form-urlencoded", "text/plain", "",
             "multipart/form-data; boundary=x")  # fmt: skip
    for kind in kinds:
        status, found = 200, None
        try:
            found = fields(raw.replace(b" ", b"+"), raw, kind)
        except Refused as refused:
            status = refused.status
        assert status == 400 or isinstance(found.table, dict)


def test_query_form_and_json_are_one_table_and_the_body_goes_before():
    query = b"q=a&source=zh"
    for body, kind in [
        (b'{"q": "b", "n": 1}', "application/json"),
        (b"q=b&n=1", "application/x-www-form-urlencoded; charset=utf-8"),
        (b'{"q": "b", "n": 1}', "text/plain"),
    ]:
        found = fields(query, body, kind)
        assert (found.text("q"), found.text("source"), found.number("n", 0, 9)) == ("b", "zh", 1)
    assert fields(b"", b"api_key=K", "application/x-www-form-urlencoded", "GET").text(
        "api_key"
    ) == "K"  # fmt: skip


def test_a_field_that_repeats_is_a_list_or_its_last():
    found = fields(body=b"text=a&text=b&x[]=1&x[]=2", kind="application/x-www-form-urlencoded")
    assert found.texts("text") == ["a", "b"]
    assert found.text("text") == "b"
    assert found.texts("x") == ["1", "2"]
    assert fields(body=b'{"tags": "a, b,,c"}').words("tags") == ["a", "b", "c"]
    assert fields(body=b'{"tags": ["a", "b,c"]}').words("tags") == ["a", "b", "c"]
    assert fields(body=b"{}").words("tags") == []


def test_what_is_of_the_wrong_kind_is_named():
    found = fields(body=b'{"q": [1, null], "n": "ten", "big": 10000, "f": "maybe", "t": {}}')
    assert refusal(found.texts, "q").message == (
        "q = a list of 2 is not right; it must be a text or a list of texts"
    )
    assert refusal(found.text, "t").message == "t = an object is not right; it must be a text"
    assert refusal(found.text, "t").message_zh == "t = an object不对；应为文本"
    assert refusal(found.number, "n", 0, 9).message == 'n = "ten" is not right; it must be 0 to 9'
    assert refusal(found.number, "big", 0, 9).message == (
        "big = 10000 is not right; it must be 0 to 9"
    )
    assert refusal(found.flag, "f").message == 'f = "maybe" is not right; it must be true, false'
    assert refusal(found.file, "q").message == (
        "q = a list of 2 is not right; it must be a file in multipart/form-data"
    )
    assert refusal(found.text, "nothing").message == "the request has no nothing; it is needed"
    for value, right in [("true", True), (1, True), ("0", False), (False, False)]:
        assert fields(body=json.dumps({"f": value}).encode()).flag("f") is right


MULTIPART = (
    b"--XX\r\nContent-Disposition: form-data; name=\"source\"\r\n\r\nzh\r\n"
    b"--XX\r\nContent-Disposition: form-data; name=\"file\"; filename=\"%b\"\r\n"
    b"Content-Type: text/plain\r\n\r\n%b\r\n--XX--\r\n"
)  # fmt: skip


@given(st.binary(max_size=300).filter(lambda content: b"\r\n--XX" not in content))
def test_a_file_comes_as_it_was_sent(content):
    found = fields(body=MULTIPART % (b"a.txt", content), kind="multipart/form-data; boundary=XX")
    assert found.file("file") == File("a.txt", content)
    assert found.text("source") == "zh"


@pytest.mark.parametrize("name", ["../../etc/passwd", "C:\\windows\\passwd", "/abs/passwd"])
def test_a_file_s_name_is_no_path(name):
    body = MULTIPART % (name.encode(), b"x")
    assert fields(body=body, kind='multipart/form-data; boundary="XX"').file("file").name == (
        "passwd"
    )


def test_a_form_that_is_none_is_refused():
    for body, kind in [
        (b"--XX\r\n\r\n", "multipart/form-data"),
        (b"--XX\r\n\r\n", "multipart/form-data; boundary=XX"),
        (b"--XX\r\nno disposition\r\n\r\nx\r\n--XX--", "multipart/form-data; boundary=XX"),
    ]:
        assert refusal(fields, b"", body, kind).message == (
            "the body is no valid multipart/form-data"
        )
    assert refusal(fields, b"q=%ff").message == (
        "the query is no text in UTF-8, or has too many fields"
    )
    assert refusal(fields, b"&".join([b"a=1"] * 1001)).message_zh == (
        "查询串不是UTF-8文本，或字段过多"
    )
