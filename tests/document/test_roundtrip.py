"""Every format with a translator that changes nothing: outside of the fields no byte is another.

What a field is, is found here by the standard library, lxml and polib, not by the code under test.
"""

import codecs
import re
from html.parser import HTMLParser

import polib
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from regard.document.document import open_document
from regard.errors import RegardError

XLIFF = """<?xml version="1.0" encoding="UTF-8"?>
<!-- as translate-toolkit and OmegaT write it -->
<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2"
       xmlns:sdl="http://sdl.com/FileTypes/SdlXliff/1.0"  xmlns:xsi='x'>
  <file original='a&amp;b.txt' source-language="en-US" target-language="en" datatype="plaintext">
    <header><sdl:ref uid="1"/><note>Hello there</note></header>
    <body>
      <group id="g1">
        <trans-unit id="1" xml:space="preserve">
          <source>Hello <g id="1">big</g> world &#8212; <x id="7"/>!</source>
          <note from="developer">Keep it</note>
          <alt-trans><source>Hello</source><target>Bonjour</target></alt-trans>
        </trans-unit>
        <trans-unit id="2" translate="no"><source>Never</source></trans-unit>
        <trans-unit id="3" approved="yes"><source>Done</source>
          <target state="final">Ready</target></trans-unit>
        <trans-unit id="4"><source>Open</source>
          <target state='needs-translation' sdl:x="1">Open</target></trans-unit>
        <trans-unit id="5"><source>One. Two.</source><seg-source><mrk mtype="seg" mid="1">One.</mrk>
            <mrk mtype="seg" mid="2">Two.</mrk></seg-source><target><mrk mtype="seg" mid="1"/>
            <mrk mtype="seg" mid="2">Zwei.</mrk></target>
            <sdl:seg-defs><sdl:seg id="1"/></sdl:seg-defs></trans-unit>
        <trans-unit id="6"><source><![CDATA[<p>Fish & <b>chips</b></p>]]></source>
          <target></target></trans-unit>
        <trans-unit id="7"><source>Line one
line two</source></trans-unit>
      </group>
      <group translate="no"><trans-unit id="8"><source>Neither</source></trans-unit></group>
    </body>
  </file>
</xliff>
"""
XLIFF2 = """<?xml version="1.0"?>
<xliff xmlns="urn:oasis:names:tc:xliff:document:2.0" version="2.1" srcLang="en" trgLang="en">
 <file id="f1"><skeleton>Hello</skeleton>
  <unit id="u1" name="greeting"><originalData><data id="d1">&lt;br/&gt;</data></originalData>
   <segment id="s1">
    <source>Press <pc id="1">any <ph id="2"/>key</pc>, <mrk translate="no">Ctrl</mrk> too.</source>
   </segment>
   <ignorable><source> </source></ignorable>
   <segment state="initial"><source>Again.</source><target/></segment>
   <segment state="final"><source>Over.</source><target>Aus.</target></segment>
  </unit>
  <unit id="u2" translate="no"><segment><source>Not me</source></segment></unit>
 </file>
</xliff>
"""
TMX = """<?xml version="1.0"?>
<!DOCTYPE tmx SYSTEM "tmx14.dtd">
<tmx version="1.4">
  <header creationtool="OmegaT" srclang="EN-US" segtype="sentence" o-tmf="OmegaT TMX"/>
  <body>
    <tu tuid="1" srclang="*all*">
      <note>a note</note>
      <tuv xml:lang="EN-US" creationid="x">
        <seg>Hello <bpt i="1">&lt;a&gt;</bpt>world<ept i="1">&lt;/a&gt;</ept> <ph x="2"/>.</seg>
      </tuv>
    </tu>
    <tu><tuv lang="en"><seg>Good &amp; bad</seg></tuv><tuv lang="fr"><seg>Bon</seg></tuv></tu>
    <tu><tuv xml:lang="EN-US"><seg>Known</seg></tuv><tuv xml:lang="DE"><seg>Bekannt</seg></tuv></tu>
    <tu><tuv xml:lang="EN-US"><seg>Empty</seg></tuv><tuv xml:lang="de"><seg/></tuv></tu>
  </body>
</tmx>
"""
PO = r"""# Translators: 一
# SOME DESCRIPTIVE TITLE.
msgid ""
msgstr ""
"Project-Id-Version: x\n"
"Content-Type: text/plain; charset=UTF-8\n"
"Plural-Forms: nplurals=2; plural=(n != 1);\n"

#. extracted
#: src/a.c:10 src/b.c:20
#, c-format, range: 0..10
#| msgid "Old %s"
msgctxt "menu|File"
msgid "Open \"%s\"\tnow\n"
msgstr   ""

#: c.c:1
msgid ""
"First line\n"
"Second <b>line</b>"
msgstr ""

msgid "%d file"
msgid_plural "%d files"
msgstr[0] ""
msgstr[1] ""

#, fuzzy
msgid "Guess"
msgstr "Rate"

msgid "Done"
msgstr "Fertig"

#~ msgid "Obsolete"
#~ msgstr ""
"""
SRT = """1
00:00:01,000 --> 00:00:02,500  X1:1
<i>Hello there,</i>

2
00:00:02,000 --> 00:00:04,000
{\\an8}- Who is it?
- <b>Me</b>!

00:00:05,000 --> 00:00:06,000
No number here
3
00:00:07,000 --> 00:00:08,000
♪ ♪

"""
VTT = """WEBVTT - a title

STYLE
::cue { color: red }

NOTE
not this one

intro
00:01.000 --> 00:02.000 align:start position:10%
<v Bob>Hello <00:01.500><c.yellow>there</c> &amp; you

00:00:03.000 --> 00:00:04.000
Last
"""
HTML = """<!DOCTYPE html>
<html lang="en" class=x>
<head><meta charset="utf-8"><meta name="description" content="A page &amp; more">
<title>A title</title><style>p { color: red }</style>
<script>document.write("<p>Hello</p>");</script></head>
<body onload='go("x > y")'>
<!-- Hello there -->
<h1 title='Tip "one"'>Hello <em>big</em> world</h1>
<p>Press <kbd>Ctrl</kbd>, use <code>ls &lt; x</code>.<br>Then <img src="a.png" alt="a cat"> go!
<p translate="no">Never <b>this</b></p>
<pre>  as  it  is </pre>
<ul><li>One<li>Two</ul>
<input type=submit value=Send><input placeholder="Your name" value="x">
<div class="notranslate"><p>Nor this</p></div>
<textarea>nor this</textarea><span>12 &rarr; 13</span>
</body></html>
"""
FILES = {
    "xliff": XLIFF, "xliff2": XLIFF2, "tmx": TMX, "po": PO, "srt": SRT, "vtt": VTT, "html": HTML,
}  # fmt: skip
SPELLINGS = {
    "plain": lambda text: text.encode(),
    "bom": lambda text: codecs.BOM_UTF8 + text.encode(),
    "crlf": lambda text: text.replace("\n", "\r\n").encode(),
    "utf-16": lambda text: text.replace("UTF-8", "UTF-16").encode("utf-16"),
    "utf-16-be": lambda text: codecs.BOM_UTF16_BE + text.encode("utf-16-be"),
}


def translated(content, kind, identity, to="de"):
    format = kind.rstrip("2")
    directions = [("en", "en"), ("en", to)] if format in ("xliff", "html") else [("en", to)]
    document = open_document(content, format, directions, file="a")
    done = document.filled(document.outcomes(document.units, identity))
    assert not done.left
    return done


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("kind", FILES)
def test_all_that_is_no_field_stays_to_the_byte(kind, spelling, identity):
    content = SPELLINGS[spelling](FILES[kind])
    said = translated(content, kind, identity).content
    encoding = "utf-16-be" if "be" in spelling else "utf-16" if "16" in spelling else "utf-8"
    assert without_fields[kind](said.decode(encoding)) == without_fields[kind](
        content.decode(encoding)
    )
    assert said[:2] == content[:2]  # the mark, where there is one


def xliff_rest(text):
    return re.sub(
        r"\s*<target.*?(?:</target>|/>(?=\s*</(?:trans-unit|segment)))", "", text, flags=re.S
    )


def segments_rest(text):
    text = re.sub(r"(\s*<target>.*?</target>|\s*<target/>)", "", text, flags=re.S)
    return re.sub(r"<segment[^>]*>", "<segment>", text)


def tmx_rest(text):
    text = re.sub(r'\s*<tuv [^>]*creationtool="regard".*?</tuv>', "", text, flags=re.S)
    return re.sub(
        r'<prop type="x-machine-translated">yes</prop>|<seg>Empty</seg>(?=</tuv></tu>)|<seg/>',
        "",
        text,
    )


def po_rest(text):
    text = re.sub(r"#, fuzzy\r?\n(?=msg)", "", text)
    text = re.sub(r"#, fuzzy,", "#,", text)
    return re.sub(r'(msgstr(?:\[\d\])?\s+)"[^\n]*(?:\r?\n"[^\n]*)*', r"\1", text)


without_fields = {
    "xliff": xliff_rest,
    "xliff2": segments_rest,
    "tmx": tmx_rest,
    "po": po_rest,
    "srt": str,  # one line each, so the fields stay as well
    "vtt": str,
    "html": lambda text: re.sub(r"\s+", " ", text).replace("value=Send", 'value="Send"'),
}


def test_html_stays_what_it_is_to_another_reader(identity):
    class Events(HTMLParser):
        def __init__(self, text):
            super().__init__(convert_charrefs=True)
            self.seen = []
            self.feed(text)

        def handle_starttag(self, tag, attrs):
            self.seen.append((tag, attrs))

        def handle_endtag(self, tag):
            self.seen.append(("/", tag))

        def handle_data(self, data):
            self.seen.append(" ".join(data.split()))

        def handle_comment(self, data):
            self.seen.append(("!", data))

    said = translated(HTML.encode(), "html", identity).content.decode()
    assert [one for one in Events(said).seen if one] == [one for one in Events(HTML).seen if one]


def test_what_is_said_in_xliff_is_the_source_and_is_marked_for_review(identity):
    said = translated(XLIFF.encode(), "xliff", identity).content
    space = {"x": "urn:oasis:names:tc:xliff:document:1.2"}
    units = {
        unit.get("id"): unit for unit in etree.fromstring(said).iterfind(".//x:trans-unit", space)
    }
    for number in ("1", "4", "6", "7"):
        source, target = (units[number].find(f"x:{name}", space) for name in ("source", "target"))
        assert "".join(target.itertext()).split() == "".join(source.itertext()).split()
        assert [(one.tag, dict(one.attrib)) for one in target.iter()][1:] == [
            (one.tag, dict(one.attrib)) for one in source.iter()
        ][1:]
        assert target.get("state") == "needs-review-translation"
        assert target.get("state-qualifier") == "leveraged-mt"
    assert units["3"].find("x:target", space).get("state") == "final"
    assert [unit for unit in "28" if units[unit].find("x:target", space) is not None] == []
    marks = units["5"].findall("x:target/x:mrk", space)
    assert [mark.text for mark in marks] == ["One.", "Zwei."]
    assert b"<![CDATA[<p>Fish & <b>chips</b></p>]]></target>" in said


def test_what_is_said_in_xliff_2_is_a_segment_not_yet_reviewed(identity):
    said = etree.fromstring(translated(XLIFF2.encode(), "xliff2", identity).content)
    space = {"x": "urn:oasis:names:tc:xliff:document:2.0"}
    segments = said.findall(".//x:segment", space)
    states = [(one.get("state"), one.get("subState")) for one in segments]
    assert states == [("translated", "regard:machine")] * 2 + [("final", None), (None, None)]
    target = segments[0].find("x:target", space)
    assert "".join(target.itertext()) == "Press any key, Ctrl too."
    assert [one.tag.split("}")[1] for one in target.iter()] == ["target", "pc", "ph", "mrk"]


def test_what_is_said_in_tmx_is_a_variant_and_says_that_a_machine_made_it(identity):
    said = etree.fromstring(translated(TMX.encode(), "tmx", identity).content)
    rows = [
        [(one.get("{http://www.w3.org/XML/1998/namespace}lang") or one.get("lang"),
          "".join(one.find("seg").itertext()), one.findtext("prop")) for one in unit.findall("tuv")]
        for unit in said.iter("tu")
    ]  # fmt: skip
    assert rows[0][1] == ("de", "Hello <a>world</a> .", "yes")
    assert rows[1] == [("en", "Good & bad", None), ("fr", "Bon", None), ("de", "Good & bad", "yes")]
    assert [row[1:] for row in rows[2]] == [("Known", None), ("Bekannt", None)]
    assert [row[1:] for row in rows[3]] == [("Empty", None), ("Empty", "yes")]


def test_what_is_said_in_po_is_fuzzy_and_has_its_plurals(identity, tmp_path):
    said = tmp_path / "a.po"
    said.write_bytes(translated(PO.encode(), "po", identity).content)
    entries = polib.pofile(str(said))
    fuzzy = {entry.msgid: entry for entry in entries if entry.fuzzy}
    assert set(fuzzy) == {
        'Open "%s"\tnow\n', "First line\nSecond <b>line</b>", "%d file", "Guess",
    }  # fmt: skip
    for msgid, entry in fuzzy.items():
        if entry.msgid_plural:
            assert entry.msgstr_plural == {0: "%d file", 1: "%d files"}
        else:
            assert entry.msgstr == ("Rate" if msgid == "Guess" else msgid)
    assert fuzzy['Open "%s"\tnow\n'].flags == ["fuzzy", "c-format", "range: 0..10"]
    assert [entry.msgstr for entry in entries if entry.obsolete] == [""]


@pytest.mark.parametrize("kind", ["xliff", "xliff2", "tmx", "po"])
def test_a_document_that_was_translated_has_nothing_left_to_translate(kind, identity):
    said = translated(FILES[kind].encode(), kind, identity).content
    again = translated(said, kind, identity)
    assert again.n_units == 0
    assert again.content == said


BITS = ["<", "</b>", "<b>", "&", "<!--", "-->", "<![CDATA[", "]]>", '"', "'", "\n\n", "<target>",
        "<source>", "msgid", "msgstr[1]", "#~ ", "00:00:01,000 --> 00:00:02,000", "%s", "{x}", "\0",
        'translate="no"', "<seg/>", '<mrk mtype="seg"/>']  # fmt: skip


@given(
    kind=st.sampled_from(sorted(FILES)),
    faults=st.lists(st.tuples(st.integers(0, 3000), st.sampled_from(BITS), st.integers(0, 20))),
)
def test_a_file_with_faults_is_refused_or_translated_and_stays_readable(kind, faults, reversal):
    text = FILES[kind]
    for place, bit, gone in faults:
        text = text[: place % len(text)] + bit + text[place % len(text) + gone :]
    try:
        document = open_document(text.encode(), kind.rstrip("2"), [("en", "de"), ("en", "en")])
    except RegardError:
        return
    done = document.filled(document.outcomes(document.units, reversal))
    again = open_document(done.content, kind.rstrip("2"), [("en", "de"), ("en", "en")])
    if kind in ("xliff", "xliff2", "tmx", "po"):
        assert len(again.units) == len(done.left)
