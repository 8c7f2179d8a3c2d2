"""From text to text: directions, parts, blanks, engines, results."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

import regard
from regard.bundle import write_bundle
from regard.config import ModelConfig
from regard.decode.results import Alternative, Translation, links_of
from regard.decode.search import Search
from regard.decode.translator import Translator, load
from regard.errors import ConfigError, DataError, ModelError
from regard.model.build import build_model
from regard.text.tokenizer import train_tokenizer

TATOEBA = Path(__file__).parents[1] / "models" / "tatoeba-zh-en"
NUMERALS = TATOEBA.with_name("numerals")
TEXTS = ["我喜欢吃苹果。", "你今天去哪里？", "他昨天没有来上班，因为他病了。"]


@pytest.fixture(scope="module", params=["torch", "ctranslate2"])
def translator(request):
    return load(TATOEBA, engine=request.param)


def untrained(path, *, never_ends=False):
    """A model of both directions that has learned nothing."""
    texts = ["我喜欢苹果，你呢？", "I like apples, and you?"] * 20
    tokenizer = train_tokenizer(texts, kind="bpe", size=320, languages=("en", "zh"))
    config = ModelConfig(d_model=16, n_layers=1, n_heads=2, d_ff=16, max_len=40, output_bias=True)
    torch.manual_seed(1)
    network = build_model(config, len(tokenizer.vocab), len(tokenizer.vocab))
    weights = {name: tensor.detach().clone() for name, tensor in network.named_parameters()}
    if never_ends:
        weights["output.bias"][tokenizer.vocab.eos] = -1e4
    write_bundle(
        path, config, (tokenizer, tokenizer), lambda file: save_file(weights, file),
        facts={"directions": [["zh", "en"], ["en", "zh"]]}, card="",
    )  # fmt: skip
    return path


@pytest.fixture(scope="module")
def two_ways(tmp_path_factory):
    return untrained(tmp_path_factory.mktemp("models") / "two-ways")


@pytest.mark.parametrize("beam", [1, 4])
def test_a_text_alone_is_the_text_in_any_batch(translator, beam):
    texts = [*TEXTS, "", "好"]
    together = translator.translate(texts, beam=beam)
    assert [one.text for one in together] == [
        translator.translate(text, beam=beam).text for text in texts
    ]
    assert together[3].text == ""


def test_both_engines_say_the_same():
    said = [load(TATOEBA, engine=engine).translate(TEXTS) for engine in ("torch", "ctranslate2")]
    assert [one.text for one in said[0]] == [one.text for one in said[1]]
    for one, other in zip(*said, strict=True):
        assert one.score == pytest.approx(other.score, abs=1e-4)


@pytest.mark.parametrize("text", ["", "   ", "\u3000", "\u200b", "\t"])
def test_a_blank_never_becomes_words(translator, text):
    assert translator.translate(text).text == ""
    assert translator.translate(text).score == 0.0


def test_lines_stay_lines_and_are_translated_as_if_alone(translator):
    whole = translator.translate("\n\n".join(TEXTS)).text
    assert whole == "\n\n".join(one.text for one in translator.translate(TEXTS))


def test_a_source_longer_than_the_positions_is_split_and_never_cut(translator):
    text = "我喜欢吃苹果。" * 100
    found = translator.translate(text, beam=1, search=Search(wants_attention=True))
    assert len(found.alignment.src_pieces) > translator.bundle.model.max_len
    assert "".join(found.alignment.src_pieces).replace("▁", "") == text
    assert found.text.count("apples") > 50


def test_alternatives_are_the_best_first_and_their_scores_can_be_computed_again(translator):
    found = translator.translate(TEXTS[2], nbest=4)
    scores = [one.score for one in found.alternatives]
    assert scores == sorted(scores, reverse=True)
    assert len({one.text for one in found.alternatives}) == 4
    again = translator.score(TEXTS[2], found.text)
    assert found.score == pytest.approx(again.log_prob / len(again.log_probs), abs=1e-4)


def test_an_alignment_links_each_piece_of_the_target_to_one_of_the_source(translator):
    found = translator.translate("我喜欢吃苹果。", search=Search(wants_attention=True))
    alignment = found.alignment
    assert [tgt for _, tgt in alignment.links] == list(range(len(alignment.tgt_pieces)))
    assert all(0 <= src < len(alignment.src_pieces) for src, _ in alignment.links)
    linked = {alignment.tgt_pieces[t]: alignment.src_pieces[s] for s, t in alignment.links}
    assert linked["▁apples"] == "苹果"
    assert str(alignment).split()[0] == f"{alignment.links[0][0]}-0"


def test_links_go_to_the_heaviest_weight_and_the_end_stands_aside():
    weights = [[0.1, 0.7, 0.2], [0.5, 0.3, 0.2], [0.0, 0.0, 1.0]]
    assert links_of([row[:2] for row in weights], n_src=2, n_tgt=2) == ((1, 0), (0, 1))


def test_a_translation_begins_says_and_leaves_out_what_it_must(translator):
    text = "我喜欢吃苹果。"
    assert translator.translate(text).text == "I like eating apples."
    begun = translator.translate(text, prefix="Apples are", beam=1).text
    assert begun.startswith("Apples are")
    without = translator.translate(text, forbidden=["apples", "apple"], beam=1).text
    assert "apple" not in without


def test_terms_are_said_where_their_words_stand_in_the_source():
    translator = load(TATOEBA)
    terms = {"苹果": "pears", "香蕉": "plums"}
    [apples, nothing] = translator.translate(["我喜欢吃苹果。", "你今天去哪里？"], terms=terms)
    assert "pears" in apples.text
    assert "plums" not in apples.text
    assert nothing.text == translator.translate("你今天去哪里？").text
    with pytest.raises(ConfigError) as refused:
        load(TATOEBA, engine="ctranslate2").translate("我喜欢吃苹果。", terms=terms)
    assert str(refused.value) == "the ctranslate2 engine cannot do terms; choose the torch engine"


def test_a_model_of_both_directions_goes_by_script_unless_told(two_ways):
    translator = load(two_ways)
    found = translator.translate(["我喜欢苹果", "I like apples", "用Python写的程序"])
    assert [(one.src_lang, one.tgt_lang) for one in found] == [
        ("zh", "en"), ("en", "zh"), ("zh", "en"),
    ]  # fmt: skip
    assert translator.translate("Python", tgt_lang="en").src_lang == "zh"
    with pytest.raises(ConfigError) as refused:
        translator.translate("hello", tgt_lang="fr")
    assert str(refused.value) == "this model does not go ? → fr; it goes zh → en, en → zh"


def test_the_language_asked_for_changes_what_the_network_reads(two_ways):
    translator = load(two_ways, engine="torch")
    ways = [("zh", "en"), ("en", "zh")]
    rows = [translator.wording.asked(["apples"], [way])[0].sentences[0].ids for way in ways]
    vocab = translator.wording.src.vocab
    assert [row[0] for row in rows] == [vocab.language("en"), vocab.language("zh")]
    assert rows[0][1:] == rows[1][1:]
    assert rows[0][-1] == vocab.eos


def test_an_ensemble_of_a_model_with_itself_is_that_model():
    alone, twice = load(TATOEBA, engine="torch"), load([TATOEBA, TATOEBA])
    assert [a.text for a in twice.translate(TEXTS)] == [a.text for a in alone.translate(TEXTS)]
    with pytest.raises(ModelError) as refused:
        load([TATOEBA, NUMERALS])
    assert str(refused.value) == (
        f"{TATOEBA} and {NUMERALS} have different vocabularies; an ensemble needs one"
    )


def test_a_score_is_the_sum_of_its_pieces_and_pairs_are_pairs(translator):
    right, wrong = translator.score([TEXTS[0]] * 2, ["I like eating apples.", "Where is Tom?"])
    assert right.log_prob == pytest.approx(sum(right.log_probs))
    assert right.log_prob > wrong.log_prob
    assert right.pieces[-1] == "</s>"
    assert right.perplexity < wrong.perplexity
    with pytest.raises(DataError) as refused:
        translator.score(["a"], ["b", "c"])
    assert str(refused.value) == (
        "there are 1 sources but 2 translations; they are scored in pairs"
    )
    with pytest.raises(DataError) as refused:
        translator.score("苹果" * 500, "apples")
    assert str(refused.value) == (
        "a source of 502 tokens is longer than the 256 that this model has positions for; "
        "give it in parts"
    )
    with pytest.raises(DataError) as refused:
        translator.score("苹果", ["apples"])
    assert str(refused.value) == "a source and a translation are two texts, or two lists of texts"


def test_attention_has_every_weight_of_the_translation(translator):
    found = translator.attend("我喜欢吃苹果。")
    n_src, n_tgt = len(found.src_pieces), len(found.tgt_pieces)
    assert found.text == "I like eating apples."
    assert found.cross.shape == (3, 4, n_tgt, n_src)
    assert found.encoder.shape == (3, 4, n_src, n_src)
    assert found.decoder.shape == (3, 4, n_tgt, n_tgt)
    assert found.cross.sum(-1) == pytest.approx(1.0, abs=1e-5)
    assert found._repr_html_().startswith("<iframe srcdoc=")
    assert translator.attend("我喜欢吃苹果。", "I like pears.").text == "I like pears."
    with pytest.raises(DataError) as refused:
        translator.attend(" ")
    assert str(refused.value) == "there is nothing to attend to in a blank text"


def test_what_cannot_be_asked_for_is_refused(tmp_path):
    with pytest.raises(ConfigError) as refused:
        Translator([])
    assert str(refused.value) == "there is no model to load; name at least one"
    with pytest.raises(ConfigError) as refused:
        load(TATOEBA).translate("好", beam=2, nbest=3)
    assert str(refused.value) == "nbest = 3 translations need as many hypotheses, but beam = 2"
    with pytest.raises(ConfigError) as refused:
        load(TATOEBA, engine="torch", dtype="int8").translate("好")
    assert str(refused.value) == "int8 is for the ctranslate2 engine; torch has float32 and bf16"
    with pytest.raises(ConfigError) as refused:
        load([TATOEBA, TATOEBA], engine="ctranslate2")
    assert str(refused.value) == (
        "the ctranslate2 engine cannot do ensembles; choose the torch engine"
    )
    with pytest.raises(ModelError) as refused:
        load(tmp_path / "nowhere")
    assert str(refused.value) == f"there is no model directory {tmp_path / 'nowhere'}"


@pytest.mark.parametrize("engine", ["torch", "ctranslate2"])
@pytest.mark.parametrize("beam", [1, 3])
def test_a_network_that_never_ends_is_stopped_and_says_so(tmp_path, engine, beam):
    translator = load(untrained(tmp_path / "endless", never_ends=True), engine=engine)
    found = translator.translate("apples", beam=beam, search=Search(wants_attention=True))
    source = translator.wording.asked(["apples"], [("", "")])[0].sentences[0]
    assert not found.is_finished
    assert len(found.alignment.tgt_pieces) == min(2 * len(source.ids) + 20, 40)


def test_a_translation_shows_itself():
    best = Alternative("<b>", -0.5, True)
    one = Translation("源", "zh", "en", (best, replace(best, text="c", score=-1.0)))
    assert str(one) == "<b>"
    assert "&lt;b&gt;" in one._repr_html_()
    assert json.loads(json.dumps(one.as_table())) == {
        "source": "源", "text": "<b>", "from": "zh", "to": "en", "score": -0.5, "finished": True,
        "alternatives": [
            {"text": "<b>", "score": -0.5, "finished": True},
            {"text": "c", "score": -1.0, "finished": True},
        ],
    }  # fmt: skip


def test_the_names_of_the_python_side_are_these():
    import inspect

    assert list(inspect.signature(regard.load).parameters) == [
        "path", "engine", "device", "dtype", "threads",
    ]  # fmt: skip
    assert list(inspect.signature(regard.Translator.translate).parameters) == [
        "self", "text", "src_lang", "tgt_lang", "beam", "nbest", "prefix", "terms", "forbidden",
        "search",
    ]  # fmt: skip
    assert list(inspect.signature(regard.Translator.score).parameters) == [
        "self", "src", "tgt", "tgt_lang",
    ]  # fmt: skip
    assert list(inspect.signature(regard.Translator.attend).parameters) == [
        "self", "text", "target", "tgt_lang",
    ]  # fmt: skip
    assert list(inspect.signature(regard.Search).parameters) == [
        "beam", "nbest", "length_penalty", "coverage_penalty", "groups", "diversity",
        "temperature", "top_k", "top_p", "seed", "no_repeat", "forbidden", "min_len", "max_len",
        "renormalize", "wants_attention",
    ]  # fmt: skip


def test_half_the_bytes_say_the_same():
    texts = ["我喜欢吃苹果。", "今天天气很好。", "你叫什么名字？", "我想去中国。"]
    whole, half = (load(TATOEBA, engine="torch", dtype=dtype) for dtype in ("float32", "bf16"))
    for one, other in zip(whole.translate(texts), half.translate(texts), strict=True):
        assert one.text == other.text
        assert one.score != other.score
        assert one.score == pytest.approx(other.score, abs=0.01)
    assert load(TATOEBA, dtype="bf16").translate(texts[0]) == half.translate(texts[0])  # by torch
