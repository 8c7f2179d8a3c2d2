import math
import subprocess
import sys
from collections import Counter

import pytest
import sacrebleu
import sacremoses

import regard
from regard.errors import DataError
from regard.evaluate import Score, bleu, chrf, exact_match, metrics, scores, ter
from regard.evaluate.metrics import bleu_tokenizer, lowercase_metric, moses_metric

HYPOTHESES = ["the cat sat on the mat today", "a dog barks"]
REFERENCES = ["the cat sat on a mat today", "a dog barked at me"]

# Unsegmented Chinese, as systems write it: close to the references, though never equal to them.
CHINESE = [
    ("我很喜欢在周末听古典音乐。", "我很喜欢在周末听古典的音乐。"),
    ("他昨天坐火车去了北京。", "他昨天乘火车到北京去了。"),
    ("这本书比那本书贵得多。", "这本书比那一本贵得多。"),
    ("如果明天下雨,我们就不去公园了。", "如果明天下雨，我们就不去公园。"),
    ("请把窗户打开一点好吗？", "请你把窗户打开一点，好吗？"),
]


def ngrams(words, n):
    return Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))


def bleu_by_the_formula(hypotheses, references):
    """BLEU = brevity x exp(mean of log p_n), n = 1 to 4, counts summed over the corpus."""
    pairs = [(h.split(), r.split()) for h, r in zip(hypotheses, references, strict=True)]
    n_hypothesis, n_reference = (sum(len(pair[side]) for pair in pairs) for side in (0, 1))
    logs = []
    for n in range(1, 5):
        matched = sum((ngrams(h, n) & ngrams(r, n)).total() for h, r in pairs)
        logs.append(math.log(matched / sum(ngrams(h, n).total() for h, _ in pairs)))
    brevity = min(1.0, math.exp(1 - n_reference / n_hypothesis))
    return 100 * brevity * math.exp(sum(logs) / 4)


def test_bleu_is_the_formula_written_out():
    value = bleu(HYPOTHESES, REFERENCES, "en").value
    assert value == pytest.approx(bleu_by_the_formula(HYPOTHESES, REFERENCES))
    # by hand: 8 of 10 words, 5 of 8 pairs, 2 of 6 triples, 1 of 4 fours; 10 words for 12
    by_hand = 100 * math.exp(1 - 12 / 10) * (8 / 10 * 5 / 8 * 2 / 6 * 1 / 4) ** 0.25
    assert value == pytest.approx(by_hand)


@pytest.mark.parametrize(
    ("language", "options", "edits"),
    [
        ("en", {"tokenize": "13a"}, {}),
        ("de-AT", {"tokenize": "13a"}, {}),
        ("zh", {"tokenize": "zh"}, {"normalized": True, "asian_support": True}),
        ("ko", {"tokenize": "char"}, {}),
    ],
)
def test_values_are_those_of_sacrebleu_called_directly(language, options, edits, monkeypatch):
    monkeypatch.setattr(metrics, "find_spec", lambda name: None)
    hypotheses = [*HYPOTHESES, *(h for h, _ in CHINESE), "Same.", ""]
    references = [*REFERENCES, *(r for _, r in CHINESE), "Same. ", "Not empty."]
    assert {s.name: s.value for s in scores(hypotheses, references, language)} == {
        "bleu": sacrebleu.corpus_bleu(hypotheses, [references], **options).score,
        "chrf": sacrebleu.corpus_chrf(hypotheses, [references]).score,
        "ter": sacrebleu.corpus_ter(hypotheses, [references], **edits).score,
        "exact": pytest.approx(100 * 1 / 9),
    }


def test_values_and_signatures_are_those_of_the_command_sacrebleu(tmp_path):
    for name, lines in (("hyp", HYPOTHESES), ("ref", REFERENCES)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    command = [sys.executable, "-m", "sacrebleu", "ref", "-i", "hyp", "-f", "text", "-w", "6"]
    said = subprocess.run(
        [*command, "-m", "bleu", "chrf", "ter"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    for line, score in zip(said, scores(HYPOTHESES, REFERENCES, "en"), strict=False):
        assert f"|{score.signature} = {score.value:.6f}" in line
    assert len(said) == 3


def test_a_score_carries_sacrebleus_signature_with_its_version():
    version = sacrebleu.__version__
    assert scores(HYPOTHESES, REFERENCES, "zh") == (
        bleu(HYPOTHESES, REFERENCES, "zh"),
        chrf(HYPOTHESES, REFERENCES, "zh"),
        ter(HYPOTHESES, REFERENCES, "zh"),
        exact_match(HYPOTHESES, REFERENCES, "zh"),
    )
    assert [score.signature for score in scores(HYPOTHESES, REFERENCES, "zh")] == [
        f"nrefs:1|case:mixed|eff:no|tok:zh|smooth:exp|version:{version}",
        f"nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:{version}",
        f"nrefs:1|case:lc|tok:tercom|norm:yes|punct:yes|asian:yes|version:{version}",
        f"nrefs:1|case:mixed|strip:yes|version:regard-{regard.__version__}",
    ]


def test_case_counts_in_bleu_unless_it_is_asked_not_to():
    shouted = [line.upper() for line in REFERENCES]
    assert bleu(shouted, REFERENCES, "en").value == 0
    folded = bleu(shouted, REFERENCES, "en", lowercase=True)
    assert folded.value == pytest.approx(100)
    assert "|case:lc|" in folded.signature


GERMAN = [
    ("Ein Mann in einem blauen Hemd, z.B. dieser, putzt ein Fenster.",
     "Ein Mann im blauen Hemd, z.B. dieser hier, putzt gerade ein Fenster."),
    ('Zwei "alte" Hunde & eine Katze-Maus ruhen.', 'zwei "Alte" Hunde & eine Katze-Maus schlafen.'),
    ("", "Nr. 7 gewinnt... oder?"),
]  # fmt: skip


@pytest.mark.parametrize("tag", ["de", "de-AT", "de_DE"])
def test_bleu_in_moses_words_is_that_of_sacremoses_and_sacrebleu_called_directly(tag):
    moses = sacremoses.MosesTokenizer(lang="de")
    hypotheses, references = (
        [
            moses.tokenize(
                line.lower(), aggressive_dash_splits=False, escape=False, return_str=True
            )
            for line in side
        ]
        for side in zip(*GERMAN, strict=True)
    )
    assert hypotheses[0].startswith("ein mann in einem blauen hemd , z.b. dieser , putzt")
    expected = sacrebleu.corpus_bleu(hypotheses, [references], tokenize="none", force=True).score
    hypotheses, references = zip(*GERMAN, strict=True)
    metric = moses_metric(tag)
    assert metric.corpus_score(hypotheses, [references]).score == expected
    own = f"sacremoses-{sacremoses.__version__}-de"
    assert str(metric.get_signature()) == (
        f"nrefs:1|case:lc|eff:no|tok:{own}|smooth:exp|version:{sacrebleu.__version__}"
    )


@pytest.mark.parametrize("tag", ["zh", "zho_Hans", "ja", "ko-KR", "th", "xx", "deu", ""])
def test_where_moses_has_no_rules_there_is_no_such_figure(tag):
    assert moses_metric(tag) is None


def test_without_sacremoses_there_is_no_such_figure(monkeypatch):
    monkeypatch.setattr(metrics, "find_spec", lambda name: None)
    assert moses_metric("de") is None


def test_lower_cased_bleu_is_for_languages_of_13a_alone():
    hypotheses, references = zip(*GERMAN, strict=True)
    found = lowercase_metric("de").corpus_score(hypotheses, [references]).score
    assert found == sacrebleu.corpus_bleu(hypotheses, [references], lowercase=True).score
    assert lowercase_metric("zh") is None


@pytest.mark.parametrize(
    "tag", ["zh", "zh-CN", "zh_Hans", "ZH-hant-TW", "zho", "chi", "cmn", "cmn_Hans", "yue"]
)
def test_every_name_of_chinese_is_scored_in_chinese_characters(tag):
    assert bleu_tokenizer(tag) == "zh"


@pytest.mark.parametrize(
    ("tag", "without", "with_extras"),
    [
        ("ja", "char", "ja-mecab"),
        ("jpn_Jpan", "char", "ja-mecab"),
        ("ko", "char", "ko-mecab"),
        ("kor-KR", "char", "ko-mecab"),
        ("en", "13a", "13a"),
        ("de_DE", "13a", "13a"),
        ("zha", "13a", "13a"),  # Zhuang, which only begins like Chinese
        ("", "13a", "13a"),
    ],
)
def test_the_language_and_what_is_installed_choose_the_tokenizer(
    tag, without, with_extras, monkeypatch
):
    monkeypatch.setattr(metrics, "find_spec", lambda name: None)
    assert bleu_tokenizer(tag) == without
    monkeypatch.setattr(metrics, "find_spec", lambda name: object())
    assert bleu_tokenizer(tag) == with_extras


def test_the_signature_says_when_japanese_was_scored_in_characters(monkeypatch):
    monkeypatch.setattr(metrics, "find_spec", lambda name: None)
    assert "|tok:char|" in bleu(["猫がいる"], ["犬がいる"], "ja").signature


def test_the_wrong_tokenizer_takes_nearly_all_bleu_away_from_chinese():
    hypotheses, references = zip(*CHINESE, strict=True)
    assert bleu(hypotheses, references, "zh").value > 50
    assert bleu(hypotheses, references, "en").value < 1
    # chrF has no words to misread
    assert chrf(hypotheses, references, "zh") == chrf(hypotheses, references, "en")


def test_ter_of_chinese_counts_characters_not_whole_sentences():
    hypothesis, reference = ["他喜欢红色的车"], ["他喜欢蓝色的车"]
    assert ter(hypothesis, reference, "zh").value == pytest.approx(100 / 7)
    assert ter(hypothesis, reference, "en").value == 100


def test_exact_match_ignores_space_at_the_ends_and_nothing_else():
    score = exact_match([" one\t", "Two", "th ree", ""], ["one", "two", "three", " "], "en")
    assert (score.name, score.value) == ("exact", 50.0)


@pytest.mark.parametrize(("lines", "value"), [(REFERENCES, 100), (["", ""], 0)])
def test_perfect_and_empty_outputs_get_the_ends_of_the_scale(lines, value):
    found = {score.name: score.value for score in scores(lines, REFERENCES, "en")}
    assert found.pop("ter") == 100 - value
    assert found == pytest.approx({"bleu": value, "chrf": value, "exact": value})


@pytest.mark.parametrize("metric", [bleu, chrf, ter, exact_match, scores])
def test_different_line_counts_are_refused_with_both(metric):
    with pytest.raises(DataError) as raised:
        metric(["a"], ["a", "b", "c"], "en")
    assert str(raised.value) == (
        "there are 1 translations but 3 references; lines are pairs, so they must match"
    )
    with pytest.raises(DataError, match=r"^there are 0 translations but 3 references; "):
        metric([], ["a", "b", "c"], "en")


@pytest.mark.parametrize("metric", [bleu, chrf, ter, exact_match, scores])
def test_no_lines_are_refused(metric):
    with pytest.raises(DataError) as raised:
        metric([], [], "en")
    assert str(raised.value) == "there is nothing to score: no translation and no reference"


def test_text_that_looks_tokenized_is_scored_without_a_word_on_the_log(caplog):
    assert isinstance(bleu(["a b ."] * 200, ["a b."] * 200, "en"), Score)
    assert not caplog.records


def test_importing_regard_or_its_command_does_not_import_sacrebleu():
    code = "import sys, regard, regard.cli.main; print('sacrebleu' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout == "False\n"
