import re
from xml.sax.saxutils import escape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.data.streams import BadText
from regard.data.xml import best_language, language_rank, read_xml, xml_languages
from regard.errors import DataError

# What XML can hold, less the carriage return, which it turns into a line feed.
XML_TEXT = st.text(
    st.characters(
        codec="utf-8",
        exclude_categories=["Cs"],
        exclude_characters="\r\ufffe\uffff"
        + "".join(map(chr, [*range(9), 11, 12, *range(14, 32)])),
    )
)


def refuses(sentence):
    return pytest.raises(DataError, match=f"^{re.escape(sentence)}$")


def tmx(units, head=""):
    return f'<?xml version="1.0"?>{head}<tmx version="1.4"><header/><body>{units}</body></tmx>'


def tu(**texts):
    tuvs = (f'<tuv xml:lang="{k}"><seg>{text}</seg></tuv>' for k, text in texts.items())
    return f"<tu>{''.join(tuvs)}</tu>"


def xliff1(units, languages='source-language="zh" target-language="en"'):
    return (
        '<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">'
        f'<file original="x" datatype="plaintext" {languages}><body>{units}</body></file></xliff>'
    )


def xliff2(units):
    return (
        '<xliff version="2.0" xmlns="urn:oasis:names:tc:xliff:document:2.0" srcLang="zh-CN" '
        f'trgLang="en"><file id="f">{units}</file></xliff>'
    )


def unit1(src, tgt, rest="", target=""):
    return (
        f"<trans-unit id='1' {rest}><source>{src}</source><target {target}>{tgt}</target>"
        "</trans-unit>"
    )


def unit2(src, tgt, rest="", unit=""):
    return (
        f"<unit id='1' {unit}><segment {rest}><source>{src}</source><target>{tgt}</target>"
        "</segment></unit>"
    )


def pairs(tmp_path, content, src="zh", tgt="en", **settings):
    path = tmp_path / "x.xml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return list(read_xml(path, src, tgt, **settings))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@given(st.lists(st.tuples(XML_TEXT, XML_TEXT)))
def test_pairs_come_back_as_they_were_written(tmp_path, encoding, wanted):
    escaped = [(escape(src), escape(tgt)) for src, tgt in wanted]
    for text in (
        tmx("".join(tu(zh=src, en=tgt) for src, tgt in escaped)),
        xliff1("".join(unit1(src, tgt) for src, tgt in escaped)),
        xliff2("".join(unit2(src, tgt) for src, tgt in escaped)),
    ):
        assert (
            pairs(tmp_path, text.removeprefix('<?xml version="1.0"?>').encode(encoding)) == wanted
        )


def test_blocks_may_end_anywhere(tmp_path, monkeypatch):
    monkeypatch.setattr("regard.data.streams.BLOCK", 7)
    assert pairs(tmp_path, tmx(tu(zh="好的", en="all &amp; fine"))) == [("好的", "all & fine")]


def test_of_three_languages_the_two_asked_for_are_taken(tmp_path):
    text = tmx(tu(de="eins", zh="一", en="one"))
    assert pairs(tmp_path, text) == [("一", "one")]
    assert pairs(tmp_path, text, "en", "de") == [("one", "eins")]
    assert pairs(tmp_path, text, "", "") == [("eins", "一")]
    assert xml_languages(tmp_path / "x.xml") == ["de", "zh", "en"]


@pytest.mark.parametrize(
    ("have", "asked", "rank"),
    [
        ("zh", "zh", 3),
        ("ZH-cn", "zh_CN", 3),
        ("zh-CN", "zh", 2),
        ("en", "en-US", 2),
        ("zh-Hans-CN", "zh-CN", 2),
        ("zh-TW", "zh-CN", 0),
        ("de", "zh", 0),
        ("", "zh", 0),
        ("*", "zh", 1),
        ("de", "", 3),
    ],
)
def test_languages_match_by_their_subtags(have, asked, rank):
    assert language_rank(have, asked) == rank


def test_the_nearest_language_wins():
    assert best_language(["zh-TW", "zh-CN", "zh"], "zh") == 2
    assert best_language(["zh-TW", "zh-CN"], "zh-CN") == 1
    assert best_language(["de"], "zh") is None


def test_the_old_lang_attribute_of_tmx_counts_too(tmp_path):
    text = tmx('<tu><tuv lang="ZH-CN"><seg>一</seg></tuv><tuv lang="en-us"><seg>1</seg></tuv></tu>')
    assert pairs(tmp_path, text) == [("一", "1")]


def test_a_unit_that_lacks_a_language_or_a_segment_keeps_its_place(tmp_path):
    hollow = '<tu><tuv xml:lang="zh"><seg>一</seg></tuv><tuv xml:lang="en"></tuv></tu>'
    nameless = '<tu><tuv xml:lang="zh"><seg>一</seg></tuv><tuv><seg>one</seg></tuv></tu>'
    text = tmx(tu(zh="一", de="eins") + hollow + nameless + "<tu/>" + tu(zh="二", en="two"))
    assert pairs(tmp_path, text) == [
        (BadText("missing-language", "zh, de"), ""),
        ("一", BadText("missing-segment", "en")),
        (BadText("missing-language", "zh, ?"), ""),
        (BadText("missing-language", ""), ""),
        ("二", "two"),
    ]


def test_inline_markup_is_reduced_to_its_text(tmp_path):
    coded = (
        'a<bpt i="1">&lt;b&gt;</bpt>b<ept i="1">&lt;/b&gt;</ept><hi>c</hi><it pos="begin">x</it>'
        "<ph>&lt;img alt='<sub>d<bpt>x</bpt></sub>'&gt;</ph><ut>x</ut>e"
    )
    assert pairs(tmp_path, tmx(tu(zh="好", en=coded))) == [("好", "abcde")]
    coded = 'a<g id="1">b</g><x id="2"/><bx id="3"/>c<ex id="3"/><ph id="4">x</ph><mrk>d</mrk>'
    assert pairs(tmp_path, xliff1(unit1("好", coded))) == [("好", "abcd")]
    coded = (
        'a<pc id="1">b</pc><ph id="2"/><sc id="3"/>c<ec startRef="3"/><mrk>d</mrk><cp hex="0001"/>'
    )
    assert pairs(tmp_path, xliff2(unit2("好", coded))) == [("好", "abcd\x01")]


def test_text_outside_the_segments_is_no_text(tmp_path):
    noisy = (
        "<tu><prop type='x'>no</prop><note>no</note><tuv xml:lang='zh'><note>no</note>"
        "<seg>一</seg></tuv><tuv xml:lang='en'><seg>one</seg><prop type='y'>no</prop></tuv></tu>"
    )
    assert pairs(tmp_path, tmx(noisy)) == [("一", "one")]
    extra = (
        "<trans-unit id='1'><source>一</source><seg-source><mrk>一</mrk></seg-source>"
        "<target>one</target><alt-trans><source>no</source><target>no</target></alt-trans>"
        "<other xmlns='urn:other'><source>no</source></other></trans-unit>"
    )
    assert pairs(tmp_path, xliff1(extra)) == [("一", "one")]
    ignorable = (
        "<unit id='1'><originalData><data id='d'>no</data></originalData><ignorable><source> "
        "</source></ignorable><segment><source>一</source><target>one</target></segment></unit>"
    )
    assert pairs(tmp_path, xliff2(ignorable)) == [("一", "one")]


def test_what_is_not_translated_yet_is_named(tmp_path):
    untranslated, fuzzy = (BadText("untranslated", ""), ""), (BadText("fuzzy", ""), "")
    text = (
        "<trans-unit id='1'><source>一</source></trans-unit>"
        + unit1("一", "一", "translate='no'")
        + unit1("一", "一", target="state='new'")
        + unit1("一", "1", target="state='needs-review-translation'")
        + unit1("一", "one", target="state='final'")
    )
    assert pairs(tmp_path, xliff1(text)) == [untranslated] * 3 + [fuzzy, ("一", "one")]
    text = (
        unit2("一", "一", unit="translate='no'")
        + unit2("一", "一", "state='initial'")
        + unit2("一", "one", "state='final'")
    )
    assert pairs(tmp_path, xliff2(text)) == [untranslated] * 2 + [("一", "one")]


def test_xliff_is_read_in_either_direction_and_needs_no_target_language(tmp_path):
    assert pairs(tmp_path, xliff1(unit1("一", "one")), "en", "zh") == [("one", "一")]
    text = xliff1(unit1("一", "one"), 'source-language="zh"')
    assert pairs(tmp_path, text) == [("一", "one")]
    assert pairs(tmp_path, text, "fr", "de") == [(BadText("missing-language", "zh, *"), "")]
    assert pairs(tmp_path, text, "", "") == [("一", "one")]
    assert xml_languages(tmp_path / "x.xml") == []


def test_a_text_over_the_limit_is_named_and_not_kept(tmp_path):
    text = tmx(tu(zh="好" * 100, en="x") + tu(zh="好", en="good"))
    assert pairs(tmp_path, text, max_bytes=200) == [
        (BadText("too-long", "300 bytes"), "x"),
        ("好", "good"),
    ]


def test_other_xml_is_refused(tmp_path):
    with refuses(f"{tmp_path / 'x.xml'} is XML but neither TMX nor XLIFF: it begins with <html>"):
        pairs(tmp_path, "<html/>")


def test_a_document_type_that_lies_elsewhere_is_not_fetched_and_does_no_harm(tmp_path):
    text = tmx(tu(zh="一", en="one"), '<!DOCTYPE tmx SYSTEM "tmx14.dtd">')
    assert pairs(tmp_path, text) == [("一", "one")]
