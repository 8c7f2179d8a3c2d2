"""Tags and placeholders that are meant to hurt: all come back, or it is said why not."""

import re
import time
from collections import Counter
from pathlib import Path

import pytest

from regard.decode.results import Alignment, Alternative, Translation
from regard.decode.translator import load
from regard.document.document import open_document
from regard.document.markup import aligned_by, translate_marked
from regard.document.parts import HTML, TEXT, Rules
from regard.errors import DataError

TATOEBA = Path(__file__).parents[1] / "models" / "tatoeba-zh-en"

SOUND = [  # tags that nest
    "我喜欢吃<b>苹果</b>。",
    "<b>我喜欢吃苹果。</b>",
    "<b>我</b>喜欢<i>吃</i><u>苹果</u>。",
    "<b><i>我的朋友</i></b>很忙。",
    "<b>我的<b>朋友</b></b>很忙。",
    "<b><b><b>书</b></b></b>很有意思。",
    "<div><p><span><a><em>他</em></a></span></p></div>住在东京。",
    "我父亲是<b>医生。我母亲</b>是老师。",
    "<b>你好！</b><i>再见！</i><u>谢谢。</u>",
    "第一行<br>第二行<br/>第三行",
    "这只<img src='a.png' alt='x > y'>猫是白色的。",
    '请打开<a href="http://a.b/?q=1&amp;r=2" title="x">窗户</a>。',
    "<b></b>我昨天很忙。",
    "我昨天<b></b>很忙。",
    "我昨天很忙。<b></b>",
    "<b> 我 </b> <i> 你 </i>",
    "他<!-- a comment -->昨天去了学校。",
    "他<!-- <b>not a tag</b> -->昨天<b>去了</b>学校。",
    '<x id="1"/>我们<x id="2"/>明天<x id="3"/>去<x id="4"/>公园<x id="5"/>。',
    '<x id="7"/>',
    '<g id="1">她<g id="2">母亲</g></g>在厨房里。',
    "<p>我不知道。</p><p>你知道吗？</p>",
    "<ul><li>苹果</li><li>面包</li></ul>",
    "请用<code>ls -l</code>看。",
    "<code>a &lt; b</code>是什么？",
    '<span translate="no">Kubernetes</span>很难。',
    '这是<span class="notranslate">regard</span>。',
    "<b>1</b>、<b>2</b>、<b>3</b>",
    "<sup>1</sup>我们需要更多的时间<sub>2</sub>。",
    "他们<b>住在<i>东</i>京</b>。",
    "<wbr>我<wbr>想<wbr>买<wbr>一<wbr>辆<wbr>新<wbr>车<wbr>。",
    "<ruby>汉<rt>han</rt></ruby>字很难。",
    "<B>我</B>喜欢<I>音乐</I>。",
    "我&amp;你&nbsp;<b>&lt;好&gt;</b>",
    "<b>" * 40 + "好" + "</b>" * 40,
]
BROKEN = [  # tags that do not
    "<b><i>我喜欢</b>苹果</i>。",
    "<b><i>x</b></i>",
    "<b>我的朋友很忙。",
    "我的朋友</b>很忙。",
    "</b>我的<b>朋友很忙。",
    "<a><b><c>我</a></b></c>喜欢你。",
    "<i>一<b>二<u>三</i>四</b>五</u>",
    "我的 < 你的，他的 > 她的。",
    "我喜欢<b吃苹果",
    "<<b>>我<</b>>很忙",
    "<p>我不知道。<p>你知道吗？",
]
PLACEHOLDERS = [
    "你好，%s！",
    "%1$s已经被%2$s删除了。",
    "%2$s给%1$s写了一封信。",
    "您有%d条新消息。",
    "已完成%.2f%%。",
    "{0}喜欢{1}。",
    "欢迎{name}来到{place}。",
    "{{user}}是{{friend}}的朋友。",
    "${path}不存在。",
    "%(count)d个文件，%(size)s字节。",
    "%s%s%s",
    "{a}{b}{c}{d}{e}{f}{g}{h}{i}{j}{k}{l}",
    "请看 https://example.com/a?b=%20c 。",
    "请写信给 tom.smith@example.com 。",
    "<b>%s</b>和<i>{name}</i>是朋友。",
    "<a href='%s'>{0}</a>在<code>{{x}}</code>里。",
    "从<x id=\"7\"/>到{end}要多久？",
    "汤姆说%s很忙，玛丽说%s不忙。",
    "Tom喜欢%s，Nancy喜欢{x}。",
    "100%是对的，50%不是。",
    "%sKB，%dMB，v{version}",
    "错误：%s",
    "%s",
    "[[link]]和%@和%ld",
    "%1和%2在一起。",
    "我 {{ user.name }} 你 {% if x %} 他",
]  # fmt: skip
ALL = SOUND + BROKEN + PLACEHOLDERS

# Every tag and placeholder, found by a pattern that knows nothing of the code.
KEPT = re.compile(
    r"<!--.*?-->|</?[A-Za-z](?:[^<>\"']|\"[^\"]*\"|'[^']*')*>|\{\{.*?\}\}|\{%.*?%\}|\$\{\w+\}|\{\w+\}"
    r"|%\(\w+\)[ds]|%(?:\d\$)?(?:\.\d)?[sdf@]|%ld|%%|%\d|\[\[\w+\]\]|https?://\S*\w|\S+@\S+\.com"
)
TAG = re.compile(r"<(/?)([A-Za-z][\w:.-]*)[^<>]*?(/?)>")


def kept(text):
    return Counter(KEPT.findall(text))


def is_nested(text):
    """Whether every tag closes the one that was opened last; void ones aside."""
    opened = []
    for closes, name, alone in TAG.findall(re.sub("<!--.*?-->", "", text)):
        if not alone and name not in ("br", "img", "wbr"):
            if not closes:
                opened.append(name)
            elif not opened or opened.pop() != name:
                return False
    return not opened


def opens_first(text):
    """Whether no tag closes more than was opened before it."""
    counts = Counter()
    for closes, name, alone in TAG.findall(text):
        counts[name] += 0 if alone else -1 if closes else 1
        if counts[name] < 0:
            return False
    return True


def test_the_torture_set_is_as_large_as_it_should_be_and_its_sound_part_is_sound():
    assert len(set(ALL)) == len(ALL) >= 60
    assert all(map(is_nested, SOUND))
    assert sum(bool(kept(text)) for text in ALL) >= 60


@pytest.mark.parametrize("engine", ["ctranslate2", "torch"])
def test_every_tag_and_placeholder_comes_back_and_nests_as_it_did(engine):
    translate = aligned_by(load(TATOEBA, engine=engine), beam=1)
    said = translate_marked(ALL, translate, HTML)
    left = [one for one in said if one.text is None]
    for one in said:
        if one.text is None:
            assert one.reason in ("lost", "endless", "empty")
            continue
        assert kept(one.text) == kept(one.source), (one.source, one.text)
        if one.source in SOUND:
            assert is_nested(one.text), (one.source, one.text)
        if opens_first(one.source):
            assert opens_first(one.text), (one.source, one.text)
    assert len(left) <= 1, left  # what is left is told; it is not much
    changed = [one for one in said if one.text is not None and one.text != one.source]
    assert len(changed) > 0.8 * len(ALL)


def said_as_it_is(texts):
    said = []
    for text in texts:
        links = tuple((n, n) for n in range(len(text)))
        alignment = Alignment(tuple(text), tuple(text), links)
        said.append(Translation(text, "en", "en", (Alternative(text, 0.0, True, alignment),)))
    return said


HOSTILE = ['<a "', '<a ="', "<", "<!--", "<b>", "</b>", "<b><i></b>", "{", "{{", "%", "&", "&#",
           "&amp;", "<x/>", "<code>", "<a b='", "<![CDATA[", "<?", "<script>", "a <b", "%s", "{x}",
           "<p>好。", "<b>x</b> ", "%s a. "]  # fmt: skip


@pytest.mark.parametrize("bit", HOSTILE)
def test_markup_that_is_meant_to_take_for_ever_does_not(bit):
    """Ten times as much may take ten times as long, and some more; not a hundred times."""
    took = []
    for size in (1000, 10_000):
        start = time.process_time()
        for rules in (HTML, TEXT):
            translate_marked([bit * (size // len(bit))], said_as_it_is, rules)
        took.append(time.process_time() - start)
    assert took[1] < 40 * took[0] + 0.5


BOMB = """<?xml version="1.0"?>
<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]>
<xliff version="1.2"><file source-language="zh"><body><trans-unit id="1"><source>&b;</source>
</trans-unit></body></file></xliff>"""
DEEP = '<xliff version="1.2">' + "<group>" * 100_000 + "</group>" * 100_000 + "</xliff>"
OUTSIDE = """<!DOCTYPE tmx SYSTEM "file:///etc/passwd">
<tmx><header srclang="zh"/><body><tu><tuv xml:lang="zh"><seg>&x;</seg></tuv></tu></body></tmx>"""


@pytest.mark.parametrize(
    ("content", "format", "message"),
    [
        (
            BOMB,
            "xliff",
            "a.xml, line 2: declarations within <!DOCTYPE> are refused, since an entity can grow "
            "without end; remove all between [ and ]",
        ),
        (DEEP, "xliff", "a.xml, line 1: elements nest more than 200 deep"),
        (
            OUTSIDE,
            "tmx",
            "a.xml, line 2: the entity &x; is not defined; write the character itself",
        ),
        ("<tmx><b></tmx>", "tmx", "a.xml, line 1: the XML cannot be read: mismatched tag"),
    ],
)
def test_xml_that_is_meant_to_hurt_is_refused_by_its_line(content, format, message):
    with pytest.raises(DataError) as refused:
        open_document(content.encode(), format, [("zh", "en")], file="a.xml")
    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("<b>x", "mismatched tag"),
        ("a < b", "not well-formed (invalid token)"),
        ("&nbsp;", "undefined entity"),
        ("</r><r>", "junk after document element"),
    ],
)
def test_a_text_that_is_no_xml_is_refused_where_xml_is_meant(text, reason):
    with pytest.raises(DataError) as refused:
        translate_marked([text], said_as_it_is, Rules(kind="xml"))
    assert str(refused.value) == (
        f"the text is no well-formed XML: {reason}; close every tag, and write &lt; and &amp; for "
        "< and &"
    )
