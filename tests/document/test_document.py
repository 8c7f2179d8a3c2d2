"""Files in and out: directions, what is left, what a memory knows, each format's own habits."""

import pytest

from regard.decode.results import Alternative, Translation
from regard.document import document as documents
from regard.document.document import format_of, open_document, translate_document
from regard.document.memory import Memory
from regard.document.subtitles import wrapped
from regard.errors import ConfigError, DataError

WAYS = [("zh", "en"), ("en", "zh")]
PO = 'msgid ""\nmsgstr ""\n"Language: {}\\n"\n\nmsgid "{}"\nmsgstr ""\n'


def filled(content, format, translate, directions=(("en", "zh"),), memory=None, **asked):
    content = content.encode() if isinstance(content, str) else content
    document = open_document(content, format, directions, file="a", **asked)
    done = document.filled(document.outcomes(document.units, translate, memory))
    return done.content.decode(), done


def loudly(texts):
    """Every text in capitals, so that what was translated can be seen."""
    return [Translation(t, "en", "zh", (Alternative(t.upper(), 0.0, True),)) for t in texts]


@pytest.mark.parametrize(
    ("content", "format", "asked", "direction"),
    [
        ("你好，世界", "txt", ("", ""), ("zh", "en")),
        ("Hello", "txt", ("", ""), ("en", "zh")),
        ("Hello", "txt", ("zh", ""), ("zh", "en")),
        (PO.format("zh_CN", "Hello"), "po", ("", ""), ("en", "zh")),
        (PO.format("zh_CN", "Hello"), "po", ("", "zh"), ("en", "zh")),
        ('<html lang="zh-Hans"><p>Hello', "html", ("", ""), ("zh", "en")),
        ('<tmx><header srclang="en-GB"/><body/></tmx>', "tmx", ("", ""), ("en", "zh")),
        ('<tmx><header srclang="en-GB"/><body/></tmx>', "tmx", ("zh", ""), ("zh", "en")),
        (
            '<tmx><header srclang="*all*"/><body><seg>好</seg></body></tmx>',
            "tmx",
            ("", ""),
            WAYS[0],
        ),
        ('<html lang="fr"><p>好', "html", ("", ""), ("zh", "en")),  # it is not
        ('<html lang="en"><p>好', "html", ("zh", ""), ("zh", "en")),
        ('<xliff srcLang="zh" trgLang="en"/>', "xliff", ("", ""), ("zh", "en")),
    ],
)
def test_the_direction_is_as_asked_or_as_the_document_says_or_by_its_script(
    content, format, asked, direction
):
    src, tgt = asked
    document = open_document(content.encode(), format, WAYS, src_lang=src, tgt_lang=tgt)
    assert document.direction == direction


def test_a_direction_that_cannot_be_is_refused():
    with pytest.raises(ConfigError) as refused:
        open_document(PO.format("zh", "x").encode(), "po", WAYS, tgt_lang="en")
    assert str(refused.value) == (
        "the document is for ? → zh, not ? → en; leave --from and --to to it"
    )
    with pytest.raises(ConfigError) as refused:
        open_document(PO.format("fr", "x").encode(), "po", WAYS)
    assert str(refused.value) == "this model does not go ? → fr; it goes zh → en, en → zh"


def test_a_document_that_is_too_large_is_refused(monkeypatch):
    monkeypatch.setattr(documents, "MAX_BYTES", 10)
    with pytest.raises(DataError) as refused:
        open_document(b"x" * 11, "txt", WAYS, file="big.txt")
    assert str(refused.value) == (
        "big.txt is larger than 10 bytes; documents are read whole, so split it"
    )


def test_formats_are_known_by_name_or_by_their_beginning():
    names = {"a.PO": "po", "a.sdlxliff": "xliff", "a.htm": "html", "a.vtt": "vtt", "a.zh": None}
    assert {name: format_of(name) for name in names} == names
    assert format_of("a.xml", "<?xml?><tmx version='1.4'>".encode("utf-16")) == "tmx"
    assert format_of("a.xml", b'<x:xliff xmlns:x="u">') == "xliff"
    assert format_of("a", b"\xef\xbb\xbfWEBVTT") == "vtt"
    assert format_of("a", b"<!DOCTYPE HTML>") == "html"
    assert format_of("a", b'#\nmsgid ""') == "po"


def test_what_is_left_is_named_and_stays_empty():
    text, done = filled(
        PO.format("zh", "good")
        + '\nmsgctxt "menu"\nmsgid "{n, plural, one {a} other {b}}"\nmsgstr ""\n',
        "po",
        loudly,
    )
    assert 'msgid "good"\nmsgstr "GOOD"' in text
    [left] = done.left
    assert (left.line, left.name, left.reason) == (9, "menu", "message")
    assert text.endswith('other {b}}"\nmsgstr ""\n')
    assert (done.n_units, done.n_memory) == (2, 0)


def test_what_an_encoding_cannot_say_is_left():
    content = (
        b'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=ISO-8859-1\\n"\n\n'
        b'msgid "good"\nmsgstr ""\n'
    )

    def chinese(texts):
        return [Translation(t, "en", "zh", (Alternative("好", 0.0, True),)) for t in texts]

    _, done = filled(content, "po", chinese)
    assert [one.reason for one in done.left] == ["charset"]
    assert done.content == content


def test_a_memory_comes_first_and_what_it_knows_is_not_marked_as_a_machines():
    memory = Memory([("good", "好"), ("%d file", "文件%d"), ("%d files", "%d个文件")])
    plural = '\nmsgid "%d file"\nmsgid_plural "%d files"\nmsgstr[0] ""\n'
    text, done = filled(PO.format("zh", "good") + plural, "po", loudly, memory=memory)
    assert 'msgid "good"\nmsgstr "好"' in text
    assert 'msgstr[0] "%d个文件"' in text  # one form says the plural
    assert "fuzzy" not in text
    assert done.n_memory == 2
    xliff = (
        '<xliff version="1.2"><file source-language="en"><body><trans-unit id="1"><source>good'
        "</source></trans-unit></body></file></xliff>"
    )
    text, _ = filled(xliff, "xliff", loudly, memory=memory)
    assert (
        '<target xml:lang="zh" state="translated" state-qualifier="exact-match">好</target>' in text
    )


def test_a_document_goes_through_a_real_translator_whole(model):
    done = translate_document("我喜欢吃苹果。\n\n你好，%s！\n".encode(), "txt", model)
    assert done.content == b"I like eating apples.\n\nHello, %s!\n"


# --- XLIFF and TMX


def test_prefixes_of_namespaces_are_kept_and_other_namespaces_are_not_taken_for_our_own():
    xliff = (
        '<x:xliff xmlns:x="urn:oasis:names:tc:xliff:document:1.2" xmlns:o="other" version="1.2">'
        '<x:file source-language="en" target-language="zh"><x:body><x:trans-unit id="1">'
        "<o:source>foreign</o:source><x:source>own</x:source></x:trans-unit></x:body></x:file>"
        "</x:xliff>"
    )
    text, done = filled(xliff, "xliff", loudly)
    assert done.n_units == 1
    assert (
        '<x:source>own</x:source><x:target state="needs-review-translation" '
        'state-qualifier="leveraged-mt">OWN</x:target></x:trans-unit>'
    ) in text


def test_xliff_2_says_its_target_language_once_it_has_targets():
    xliff = (
        '<xliff srcLang="en" version="2.0"><file><unit id="u"><segment><source>good</source>'
        "</segment></unit></file></xliff>"
    )
    text, _ = filled(xliff, "xliff", loudly)
    assert text == (
        '<xliff srcLang="en" version="2.0" trgLang="zh"><file><unit id="u"><segment '
        'state="translated" subState="regard:machine"><source>good</source><target>GOOD</target>'
        "</segment></unit></file></xliff>"
    )
    nothing, _ = filled(xliff.replace("good", " "), "xliff", loudly)
    assert nothing == xliff.replace("good", " ")


def test_text_within_a_code_is_not_translated_behind_anybodys_back():
    tmx = (
        '<tmx><header srclang="en"/><body><tu tuid="7"><tuv xml:lang="en"><seg>see '
        "<ph>&lt;img alt='<sub>a cat</sub>'/&gt;</ph></seg></tuv></tu></body></tmx>"
    )
    text, done = filled(tmx, "tmx", loudly)
    assert text == tmx
    assert [(one.name, one.reason) for one in done.left] == [("7", "subflow")]


def test_segments_of_a_source_are_translated_one_by_one():
    xliff = (
        '<xliff version="1.2"><file source-language="en" target-language="zh"><body>'
        '<trans-unit id="1"><source>a. b.</source><seg-source><g id="1"><mrk mtype="seg" mid="1">a.'
        '</mrk></g> <mrk mtype="seg" mid="2">b.</mrk></seg-source></trans-unit></body></file>'
        "</xliff>"
    )
    text, _ = filled(xliff, "xliff", loudly)
    assert (
        '<target state="needs-review-translation" state-qualifier="leveraged-mt"><g id="1">'
        '<mrk mtype="seg" mid="1">A.</mrk></g> <mrk mtype="seg" mid="2">B.</mrk></target>'
    ) in text


# --- PO


def test_a_line_that_is_no_po_is_refused_by_its_number():
    for content in ('msgid "a"\nmsgstr "b\n', '"alone"\n', "hello\n"):
        with pytest.raises(DataError) as refused:
            filled(content, "po", loudly)
        number = content.count("\n")
        assert str(refused.value) == (
            f"a, line {number} is no line of PO: a comment, a msg... with its text in quotes, or "
            "text in quotes"
        )


def test_po_strings_are_unescaped_for_the_model_and_escaped_again():
    asked = []

    def translate(texts):
        asked.extend(texts)
        return loudly(texts)

    text, _ = filled(PO.format("zh", r"say \"hi\" \\ \x41\101"), "po", translate)
    assert asked == ['say "hi" \\ AA']
    assert r'msgstr "SAY \"HI\" \\ AA"' in text


# --- subtitles


def test_a_long_cue_is_written_in_two_lines_of_like_lengths():
    assert wrapped("Short enough.") == ["Short enough."]
    first, second = wrapped("This is a cue that is much too long for one line of a screen.")
    assert abs(len(first) - len(second)) < 8
    chinese = "这一句字幕实在太长了，一行写不下，所以要写成两行才行，对不对？"
    lines = wrapped(chinese)
    assert "".join(lines) == chinese
    assert all(10 < len(line) < 20 for line in lines)
    tagged = wrapped('<font color="a b c d e f g h i j k l m n o p q r s t u v">Hi there</font>')
    assert len(tagged) == 1
    assert wrapped("x" * 100) == ["x" * 100]


def test_the_lines_of_a_cue_are_one_text_but_two_speakers_are_two():
    asked = []

    def translate(texts):
        asked.extend(texts)
        return loudly(texts)

    srt = (
        "1\n00:00:01,000 --> 00:00:02,000\nto be\ncontinued\n\n"
        "2\n00:00:03,000 --> 00:00:04,000\n- who?\n- me!\n"
    )
    text, _ = filled(srt, "srt", translate)
    assert asked == ["to be continued", "- who?", "- me!"]
    assert text == srt.replace("to be\ncontinued", "TO BE CONTINUED").replace(
        "- who?\n- me!", "- WHO?\n- ME!"
    )


# --- HTML


def test_attributes_that_are_read_are_translated_and_others_are_not():
    page = (
        '<html lang="en-GB"><body><p data-x="no">look <img src="no.png" alt="a cat"> here '
        "<a title='an \"odd\" one' href=no>there</a></p><input type=submit value=go>"
        '<input value="no"><td title=tip translate="no">no</td></body></html>'
    )
    # ALT first, for `loudly` aligns nothing and the tags of the sentence need it.
    text, done = filled(page, "html", loudly)
    assert [one.reason for one in done.left] == ["unaligned"]
    assert '<input type=submit value="GO"><input value="no"><td title=tip' in text
    assert text.startswith('<html lang="zh">')
    text, _ = filled(
        page.replace("look ", "").replace(" here ", "").replace("there", "1"), "html", loudly
    )
    assert '<img src="no.png" alt="A CAT">' in text
    assert "<a title='AN \"ODD\" ONE' href=no>" in text


def test_the_language_of_a_page_follows_only_if_it_was_the_sources():
    assert filled('<html lang="fr"><p>x', "html", loudly, [("fr", "zh")])[0].startswith(
        '<html lang="zh"'
    )
    assert filled("<html><p>x", "html", loudly)[0] == "<html><p>X"


def test_rows_have_one_more_column_and_lines_become_their_translations():
    assert filled("a b\tid\r\n\n%s x\n", "tsv", loudly)[0] == "a b\tid\tA B\r\n\n%s x\t%s X\n"
    assert filled("a b\r\n\n12\n", "txt", loudly)[0] == "A B\r\n\n12\n"
