"""Marked texts through translators: tags where they belong, placeholders kept, sentences joined."""

import re
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from regard.decode.results import Alternative, Translation
from regard.document.markup import aligned_by, translate_marked
from regard.document.parts import HTML, TEXT, Rules

XML = Rules(kind="xml")
WORDS = ["red", "blue", "green", "one", "two", "three", "sun", "moon"]
TAGS = re.compile(r"<[^<>]*>")


@st.composite
def nested(draw, depth=3):
    """A text with tags that nest, each around whole words."""
    parts = []
    for _ in range(draw(st.integers(1, 3))):
        kind = draw(st.sampled_from(["word", "word", "alone", "element"]))
        if kind == "word" or depth == 0:
            parts.append(draw(st.sampled_from(WORDS)))
        elif kind == "alone":
            parts.append(f'<x id="{draw(st.integers(1, 9))}"/>')
        else:
            name = draw(st.sampled_from("bgi"))
            parts.append(f"<{name}>{draw(nested(depth=depth - 1))}</{name}>")
    return " ".join(parts)


@given(marked=nested())
def test_what_is_said_as_it_is_comes_back_as_it_was(marked, identity):
    [one] = translate_marked([marked], identity, XML)
    assert one.text == marked


@given(marked=nested())
def test_with_every_word_elsewhere_each_tag_is_on_its_own_words_and_all_nest(
    marked, reversal, nesting_fault
):
    [one] = translate_marked([marked], reversal, XML)
    assert nesting_fault(one.text) is None
    assert Counter(TAGS.findall(one.text)) == Counter(TAGS.findall(marked))
    assert contents(one.text) == contents(marked)
    assert TAGS.sub(" ", one.text).split() == TAGS.sub(" ", marked).split()[::-1]


def contents(marked):
    """For each pair of tags the words between them, whatever their order."""
    found, opened = Counter(), []
    for token in re.findall(r"<[^<>]*>|[^<>\s]+", marked):
        if token.endswith("/>"):
            continue
        if token.startswith("</"):
            name, words = opened.pop()
            found[name, tuple(sorted(words))] += 1
            if opened:
                opened[-1][1].extend(words)
        elif token.startswith("<"):
            opened.append((token, []))
        elif opened:
            opened[-1][1].append(token)
    return Counter({key: n for key, n in found.items() if key[1]})


def said_by(answers):
    """A translator that knows some texts and has no alignments."""

    def translate(texts):
        return [
            Translation(text, "zh", "en", (Alternative(answers[text], 0.0, True),))
            for text in texts
        ]

    return translate


def one_of(marked, translate, rules=HTML):
    [one] = translate_marked([marked], translate, rules)
    return one


def test_sentences_are_translated_alone_and_joined_as_the_language_writes_them():
    answers = {"我来了。": "I came.", "我看见了。": "I saw."}
    one = one_of("我来了。我看见了。\n我来了。", said_by(answers), TEXT)
    assert one.text == "I came. I saw.\nI came."

    def to_chinese(texts):
        said = {"I came.": "我来了。", "I saw.": "我看见了。"}
        return [Translation(t, "en", "zh", (Alternative(said[t], 0.0, True),)) for t in texts]

    assert one_of("I came. I saw. I came.", to_chinese).text == "我来了。我看见了。我来了。"


def test_a_tag_around_whole_sentences_is_around_whole_sentences_again(identity):
    for marked in (
        "<b>One is here. Two is there.</b> Three goes.",
        "One is here. <b>Two is there. Three</b> goes.",
        "One is here.<br>Two is there.<br/><br/>Three goes.",
        "<p>One is here.</p><p>Two</p>",
        "<ul><li>One</li><li><b>Two</b></li></ul>",
    ):
        assert one_of(marked, identity).text == marked


def test_blanks_before_and_behind_stay_and_those_within_become_one(identity):
    assert one_of("\n  One <b>two</b>\n   three \t", identity).text == "\n  One <b>two</b> three \t"
    assert one_of("  \n", identity).text == "  \n"
    assert one_of("", identity).text == ""


def test_entities_are_read_by_the_model_as_characters_and_written_as_entities():
    asked = []

    def translate(texts):
        asked.extend(texts)
        return said_by({text: text for text in texts})(texts)

    assert (
        one_of("Fish &amp; chips &lt; 3 &copy; x", translate).text == "Fish &amp; chips &lt; 3 © x"
    )
    assert asked == ["Fish & chips < 3 © x"]
    assert one_of("Fish & chips", translate, TEXT).text == "Fish & chips"


def test_code_and_what_says_so_is_never_shown_to_the_model():
    asked = []

    def translate(texts):
        asked.extend(texts)
        return said_by({text: text for text in texts})(texts)

    marked = (
        "Call <code>secret(1)</code> or <kbd>secret</kbd>, not <span translate='no'>secret "
        "<i>x</i></span> or <i class='a notranslate'>secret</i>, %secret_s {secret} "
        "<x id='7'>secret</x> <script>secret</script>!"
    )
    rules = Rules(kind="html", verbatim=HTML.verbatim | {"x"})
    one = one_of(marked, translate, rules)
    assert not any("secret" in text for text in asked)
    assert one.reason == "unaligned"  # a tag in it stands alone, and this translator aligns nothing


def test_a_sentence_that_loses_a_placeholder_is_asked_again_and_then_in_fragments():
    asked = []

    def translate(texts):
        asked.append(texts)
        said = {"你好": "Hello", "，": ","}
        return said_by({text: said.get(text, "Nobody is here.") for text in texts})(texts)

    one = one_of("你好，%s！", translate, TEXT)
    assert one.text == "Hello, %s!"
    assert asked == [["你好，Tom！"], ["你好，Linux！"], ["你好"]]


def test_names_that_stand_in_the_text_stand_for_nothing():
    asked = []

    def translate(texts):
        asked.extend(texts)
        return said_by({text: text for text in texts})(texts)

    assert one_of("Tom and Nancy like {x}", translate, TEXT).text == "Tom and Nancy like {x}"
    assert asked == ["Tom and Nancy like Mary"]


def test_numbers_stand_for_numbers():
    asked = []

    def translate(texts):
        asked.extend(texts)
        return said_by({text: text for text in texts})(texts)

    for text in ("等%d分钟", "{0}个人", "{count} files", "15 of %d"):
        assert one_of(text, translate, TEXT).text == text
    assert asked == ["等15分钟", "15个人", "15 files", "15 of 45"]


def test_what_is_not_translated_says_why_and_is_no_translation():
    def saying(text, is_finished=True):
        def translate(texts):
            alternative = (Alternative(text, 0.0, is_finished),)
            return [Translation(one, "zh", "en", alternative) for one in texts]

        return translate

    for marked, translate, reason in [
        ("好。", saying("Good good good", is_finished=False), "endless"),
        ("好。", saying("  "), "empty"),
        ("<b>好</b>人。", saying("Good man."), "unaligned"),
        ("好。", saying("Good %s."), "lost"),
        ("{n, plural, one {# 个} other {# 个}}", saying("x"), "message"),
    ]:
        one = one_of(marked, translate, TEXT)
        assert (one.text, one.reason) == (None, reason)
        assert one.source == marked


def test_texts_without_words_need_no_model():
    def translate(texts):
        raise AssertionError(texts)

    for marked in ("%s: %d", "<b>12</b> → 3", "{x}", "<x id='1'/>", "…"):
        assert one_of(marked, translate, TEXT).text == marked


def test_equal_sentences_are_asked_once():
    asked = []

    def translate(texts):
        asked.append(list(texts))
        return said_by({text: text for text in texts})(texts)

    translate_marked(["Same here.", "Same here. Same here.", "Other."], translate, TEXT)
    assert asked == [["Same here.", "Other."]]


def test_the_outline_of_xml_ends_sentences_and_tags_named_for_it_do(identity):
    seen = []

    def translate(texts):
        seen.extend(texts)
        return identity(texts)

    marked = "<doc><head>One</head><par>Two <b>three</b></par></doc>"
    assert one_of(marked, translate, Rules(kind="xml", outline=True)).text == marked
    assert seen == ["One", "Two three"]
    seen.clear()
    rules = Rules(kind="xml", breaks=frozenset(["head", "par"]))
    assert one_of(marked, translate, rules).text == marked
    assert seen == ["One", "Two three"]


def test_tags_of_codes_come_in_pairs_by_their_numbers(identity, reversal):
    rules = Rules(kind="xml", codes=frozenset(["bpt", "ept", "ph"]))
    marked = 'one <bpt i="1">&lt;b&gt;</bpt>two<ept i="1">&lt;/b&gt;</ept> <ph x="1">%s</ph>'
    assert one_of(marked, identity, rules).text == marked
    assert one_of(marked, reversal, rules).text == (
        '<ph x="1">%s</ph> <bpt i="1">&lt;b&gt;</bpt>two<ept i="1">&lt;/b&gt;</ept> one'
    )
    pair = 'one <sc id="1"/>two three<ec startRef="1"/> four'
    assert one_of(pair, reversal, XML).text == 'four <sc id="1"/>three two<ec startRef="1"/> one'


GOLD = """
我喜欢吃|苹果|。 > apples?      他昨天去了|学校|。 > school        我的|朋友|很忙。 > friends?
这本|书|很有意思。 > book       你会说|法语|吗？ > French         她的|眼睛|是蓝色的。 > eyes
我在|图书馆|学习。 > library    |我父亲|是医生。 > My father      她母亲在|厨房|里。 > kitchen
他们住在|东京|。 > Tokyo        请打开|窗户|。 > window           我每天早上喝|咖啡|。 > coffee
这只|狗|很大。 > dog            我们明天去|公园|。 > park         他有两个|孩子|。 > children
我想买一辆新|汽车|。 > car      他的|房子|很大。 > house          我|昨天|很忙。 > yesterday
她在学习|英语|。 > English      他会弹|钢琴|。 > piano            我们需要更多的|时间|。 > time
他没有|钱|。 > money            我妹妹是|学生|。 > student        他正在看|报纸|。 > newspaper
我喜欢|吃苹果|。 > eating apples                                  他有|两个孩子|。 > two children
"""


def test_a_planted_tag_lands_on_the_word_that_comes_from_its_own(model):
    """By construction: words of which there is one translation, and which stand there once."""
    gold = re.findall(r"(\S*)\|(\S+)\|(\S*) > (\w+\??(?: \w+)?)", GOLD)
    assert len(gold) == 26
    marked = [f"{before}<b>{word}</b>{after}" for before, word, after, _ in gold]
    said = translate_marked(marked, aligned_by(model), HTML)
    landed = [
        re.search(rf"<b>(?:an? |the )?{true}</b>", one.text) is not None
        for one, (_, _, _, true) in zip(said, gold, strict=True)
    ]
    assert sum(landed) >= 0.85 * len(gold)
