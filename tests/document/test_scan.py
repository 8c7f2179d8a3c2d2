"""Markup as tokens."""

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.document.scan import attribute_span, scan, scan_loosely

BITS = ["<b>", "</b>", "<a href='>'>", '<a b="', "<", ">", "<!--", "-->", "x", "&amp;", "<br/>",
        "<script>", "</script>", "<![CDATA[", "]]>", "<?x?>", "<!D>", " ", "'", '"', "=",
        "<00:01.0>"]  # fmt: skip


@given(st.lists(st.sampled_from(BITS)).map("".join), st.booleans())
def test_the_tokens_joined_are_the_text(text, is_html):
    assert "".join(token.raw for token in scan(text, is_html=is_html)) == text
    assert "".join(token.raw for token in scan_loosely(text)) == text


class Peer(HTMLParser):
    """The tags that the standard library finds."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.found = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        self.found.append(("/" + tag, {}))


PAGE = """<!DOCTYPE html><HTML lang=zh><p Title='a > b' data-x="1&lt;2">x<br>y<img src=a.png alt="">
<!-- <b>no</b> --><script>if (a<b) "<i>"</script><a href="?a=1&amp;b=2">z</a></p></HTML>"""


def test_tags_and_their_attributes_are_those_of_the_standard_library():
    ours = [
        ("/" * (token.role == "close") + token.name,
         {name.lower(): value for name, value in token.attributes.items()})
        for token in scan(PAGE, is_html=True)
        if token.role in ("open", "close", "alone")
    ]  # fmt: skip
    assert ours == Peer(PAGE).found


@pytest.mark.parametrize(
    ("text", "tags"),
    [
        ("a < b and c > d", []),
        ("<b>x</b>", ["<b>", "</b>"]),
        ("x <file> y", ["<file>"]),
        ("<a href='x'>", ["<a href='x'>"]),
        ("1<2>3", []),
        ("<br/><br />", ["<br/>", "<br />"]),
        ("a <00:01.500> b", ["<00:01.500>"]),
    ],
)
def test_in_a_text_that_is_no_markup_only_what_looks_like_a_tag_is_one(text, tags):
    assert [token.raw for token in scan_loosely(text) if token.role != "text"] == tags


def test_the_place_of_a_value_is_within_its_quotes():
    [token] = scan("""<img alt = 'a b' title=c src="d">""", is_html=True)
    for name, value in {"alt": "a b", "title": "c", "src": "d"}.items():
        start, end = attribute_span(token, name)
        assert token.raw[start:end] == value
    assert attribute_span(token, "href") is None
