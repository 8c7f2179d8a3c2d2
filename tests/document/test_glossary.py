"""Glossaries in three formats."""

import pytest

from regard.document.glossary import MAX_BYTES, read_glossary
from regard.errors import DataError

TBX2 = """<?xml version="1.0"?><martif type="TBX"><text><body>
<termEntry id="1">
<langSet xml:lang="en"><tig><term>container</term></tig><tig><term>box</term></tig></langSet>
<langSet xml:lang="zh-CN"><tig><term>容器</term></tig><tig><term>箱</term></tig></langSet>
</termEntry>
<termEntry id="2"><langSet xml:lang="en"><tig><term>only here</term></tig></langSet></termEntry>
</body></text></martif>"""
TBX3 = """<tbx type="TBX-Basic" xmlns="urn:iso:std:iso:30042:ed-2"><text><body>
<conceptEntry id="1">
<langSec xml:lang="zh"><termSec><term>节点 &amp; <hi>点</hi></term></termSec></langSec>
<langSec xml:lang="en"><termSec><term>node</term></termSec></langSec>
</conceptEntry></body></text></tbx>"""


def test_tables_have_a_word_and_a_term_and_more_columns_are_passed_over():
    tsv = "苹果\tapple\tnoun\n\n梨\t pear \n".encode()
    assert read_glossary(tsv, "a.tsv") == {"苹果": "apple", "梨": "pear"}
    assert read_glossary(b"\xef\xbb\xbf" + tsv, "a.txt") == {"苹果": "apple", "梨": "pear"}
    csv = b'"a, b","say ""x"""\r\nc,"two\nlines"\r\n'
    assert read_glossary(csv, "a.csv") == {"a, b": 'say "x"', "c": "two\nlines"}


def test_term_bases_of_both_kinds_are_read_from_and_to_any_language():
    assert read_glossary(TBX2.encode(), "a.tbx", src_lang="en", tgt_lang="zh") == {
        "container": "容器", "box": "容器",
    }  # fmt: skip
    assert read_glossary(TBX2.encode("utf-16"), "a.tbx", src_lang="zh", tgt_lang="en") == {
        "容器": "container", "箱": "container",
    }  # fmt: skip
    assert read_glossary(TBX3.encode(), "a.tbx", src_lang="zh", tgt_lang="en") == {
        "节点 & 点": "node",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "a.tsv",
            b"a\tb\nc d\n",
            "a.tsv, line 2 is no term: the source's word, then what it is called, in two columns",
        ),
        (
            "a.csv",
            b"a,\n",
            "a.csv, line 1 is no term: the source's word, then what it is called, in two columns",
        ),
        ("a.csv", b'"a"b,c\n', "a.csv, line 1 is no CSV: ',' expected after '\"'"),
        ("a.tbx", b"<a><b></a>", "a.tbx, line 1: the XML cannot be read: mismatched tag"),
        (
            "a.tsv",
            b"x" * (MAX_BYTES + 1),
            "a.tsv is larger than 10485760 bytes; that is no glossary",
        ),
    ],
)
def test_what_is_no_glossary_is_refused_by_its_line(name, content, message):
    with pytest.raises(DataError) as refused:
        read_glossary(content, name)
    assert str(refused.value) == message
