import re

import pytest
import sacrebleu

from regard.errors import DataError
from regard.evaluate import bleu, by_length, examine
from regard.evaluate.outputs import tokenizer_fits

REFERENCES = ["The cat sat.", "It rains, again!", "OK", "", "Goodbye to all of you."]
SOURCES = ["猫坐着。", "又下雨了！", "OK", "", "大家再见。"]


@pytest.mark.parametrize(
    ("hypotheses", "references", "language", "tokenizer"),
    [
        (["The cat.", "It is raining, again!"], REFERENCES[:2], "en", "13a"),
        (["猫坐。", "又开始下雨了！"], SOURCES[:2], "zh-TW", "zh"),
    ],
)
def test_the_length_ratio_is_the_one_bleu_punishes(hypotheses, references, language, tokenizer):
    theirs = sacrebleu.corpus_bleu(hypotheses, [references], tokenize=tokenizer)
    assert examine(hypotheses, references, language).length_ratio == theirs.ratio


def test_empty_outputs_are_named_by_line_unless_nothing_was_to_be_said():
    outputs = examine(["", "It rains.", " \t", "", "Goodbye."], REFERENCES, "en")
    assert outputs.lines == 5
    assert outputs.empty == (1, 3)
    assert outputs.empty_references == (4,)


def test_sources_that_come_back_untranslated_are_named_unless_they_should():
    hypotheses = [SOURCES[0], " 又下雨了！ ", "OK", "", "Goodbye."]
    assert examine(hypotheses, REFERENCES, "en", SOURCES).copied == (1, 2)
    assert examine(hypotheses, REFERENCES, "en").copied is None


def test_outputs_whose_words_were_not_joined_again_are_named():
    hypotheses = ["The cat sat .", "It rains .", "OK .", "", "Goodbye."]
    assert examine(hypotheses, REFERENCES, "en").tokenized == (1, 2, 3)


def test_references_without_any_word_give_a_ratio_of_0():
    assert examine(["a"], [""], "en").length_ratio == 0


@pytest.mark.parametrize(
    ("lines", "language", "fits"),
    [
        (["The cat sat."], "en", True),
        (["猫坐着。"], "en", False),
        (["猫坐着。"], "zh", True),
        (["The cat sat."], "zh_Hans", False),
        (["ねこがいる"], "en", False),
        (["แมวนั่ง"], "th", False),  # 13a has nothing for scripts without spaces
        (["고양이가 앉았다"], "ko", True),
        (["고양이가 앉았다"], "en", True),  # Korean puts spaces
        (["The word 猫 is Chinese."], "en", True),
        (["1, 2, 3"], "zh", True),
        (["1, 2, 3"], "en", True),
    ],
)
def test_a_tokenizer_for_another_script_is_noticed(lines, language, fits):
    assert tokenizer_fits(lines, language) is fits
    assert examine(lines, lines, language).tokenizer_fits is fits


def test_short_and_long_sentences_are_scored_apart():
    references = ["one two three four", "a b c d e f g h", "i j k l m n o p", ""]
    hypotheses = ["one two three four", "a b c d x y z h", "i j k l m n o q", "x"]
    buckets = by_length(hypotheses, references, "en", bounds=(0, 5, 8, 9))
    assert [(b.least, b.most, b.lines) for b in buckets] == [(0, 4, 2), (8, 8, 2)]
    assert buckets[0].score == bleu(hypotheses[::3], references[::3], "en")
    assert buckets[1].score == bleu(hypotheses[1:3], references[1:3], "en")


def test_the_last_bucket_has_no_limit_and_every_line_is_in_one():
    references = [" ".join("abcdefgh"[i % 8] for i in range(n)) for n in range(200)]
    buckets = by_length(references, references, "en")
    assert buckets[-1].most is None
    assert sum(bucket.lines for bucket in buckets) == 200
    assert [bucket.lines for bucket in buckets] == [11, 10, 10, 10, 20, 139]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: examine(["a"], ["a"], "en", ["a", "b"]),
            "there are 2 sources but 1 references; lines are pairs, so they must match",
        ),
        (
            lambda: examine(["a"], ["a", "b"], "en"),
            "there are 1 translations but 2 references; lines are pairs, so they must match",
        ),
        (
            lambda: by_length([], [], "en"),
            "there is nothing to score: no translation and no reference",
        ),
    ],
)
def test_sides_that_do_not_match_are_refused(call, message):
    with pytest.raises(DataError, match=f"^{re.escape(message)}$"):
        call()
