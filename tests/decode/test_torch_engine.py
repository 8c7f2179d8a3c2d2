"""Search by real networks: cached and batched against no cache and one by one."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from regard.bundle import open_bundle
from regard.config import ModelConfig
from regard.decode.engines import torch as engines
from regard.decode.engines.torch import TorchEngine, load_network, torch_engine
from regard.decode.reference import reference_beam
from regard.decode.scoring import attentions
from regard.decode.search import Hypothesis, Search, Sentence
from regard.decode.terms import lacking
from regard.errors import ConfigError
from regard.model.build import build_model

TATOEBA = Path(__file__).parents[1] / "models" / "tatoeba-zh-en"
CPU = torch.device("cpu")
TEXTS = [
    "好", "我不知道。", "我喜欢吃苹果。", "你今天去哪里？", "他昨天没有来上班，因为他病了。",
    "请把门关上。", "这本书很有意思。", "我们明天早上八点出发。", "她会说三种语言。",
    "你能帮我一个忙吗？", "外面在下雨。", "汤姆正在学习法语。", "这是我第一次来北京。",
    "我的手机坏了，我得买一部新的。", "谢谢你的帮助！", "他们住在一个小村子里。",
    "如果明天天气好，我们就去公园。", "你叫什么名字？", "我从来没见过这么大的狗。",
    "孩子们在花园里玩。",
]  # fmt: skip


@pytest.fixture(scope="module")
def bundle():
    return open_bundle(TATOEBA)


@pytest.fixture(scope="module")
def engine(bundle):
    return torch_engine([bundle], CPU)


@pytest.fixture(scope="module")
def some(bundle):
    src = bundle.src_tokenizer
    return [Sentence((*src.encode(text), src.vocab.eos)) for text in TEXTS]


def assert_same(found, other):
    for own, others in zip(found, other, strict=True):
        assert [(h.ids, h.is_finished) for h in own] == [(h.ids, h.is_finished) for h in others]
        assert [h.score for h in own] == pytest.approx([h.score for h in others], abs=1e-4)


def uncached(network, sentence, bos):
    @torch.no_grad()
    def log_probs(ids):
        logits = network(torch.tensor([sentence.ids]), torch.tensor([[bos, *ids]]))
        return logits[0, -1].log_softmax(-1).tolist()

    return log_probs


def test_a_cached_batched_beam_is_the_one_explained(bundle, engine, some):
    tgt, few = bundle.tgt_tokenizer.vocab, some[2:5]
    network = engines.build_model(bundle.model, len(tgt), len(tgt)).eval()
    engines.load_weights(network, engines.read_weights(bundle))
    expected = [
        reference_beam(uncached(network, one, tgt.bos), width=3, max_len=12, eos=tgt.eos)
        for one in few
    ]
    assert_same(engine.search(few, Search(beam=3, nbest=3, max_len=12)), expected)


@pytest.mark.parametrize(
    "model",
    [
        {"kind": "recurrent", "n_layers": (2, 1)},
        {"score": "gaussian", "positions": "rotary"},
        {"positions": "learned", "norm": "pre"},
    ],
    ids=["recurrent", "gaussian", "learned"],
)
def test_every_kind_of_network_is_searched_alike(model):
    config = ModelConfig(**{"d_model": 16, "n_heads": 2, "n_layers": 2, "d_ff": 32, **model})
    network = build_model(config, 12, 12).eval()
    engine = TorchEngine([network], pad=0, bos=1, eos=2, longest=8, device=CPU)
    few = [Sentence((5, 6, 7, 2)), Sentence((9, 2)), Sentence((4, 4, 4, 8, 2))]
    found = engine.search(few, Search(beam=3, nbest=3))
    expected = [reference_beam(uncached(network, s, 1), width=3, max_len=8, eos=2) for s in few]
    assert_same(found, expected)


@pytest.mark.parametrize(
    "search",
    [Search(beam=1), Search(beam=4, nbest=2), Search(beam=4, groups=2), Search(temperature=0.7)],
    ids=["greedy", "beam", "diverse", "drawn"],
)
def test_a_sentence_alone_is_the_sentence_in_any_batch(engine, some, search):
    together = engine.search(some, search)
    assert_same(together, [engine.search([one], search)[0] for one in some])
    assert_same(together[::-1], engine.search(some[::-1], search))


def test_batches_are_cut_where_they_get_too_large_and_nothing_changes(engine, some, monkeypatch):
    search = Search(beam=3)
    expected = engine.search(some, search)
    seen, read = [], engine._read
    monkeypatch.setattr(engines, "TOKENS", 60)
    monkeypatch.setattr(engine, "_read", lambda few: seen.append(few) or read(few))
    assert_same(engine.search(some, search), expected)
    assert sorted(one.ids for few in seen for one in few) == sorted(one.ids for one in some)
    assert all(len(few) == 1 or 3 * sum(len(few[-1].ids) for _ in few) <= 60 for few in seen)
    assert max(map(len, seen)) > 1
    seen.clear()
    monkeypatch.setattr(engines, "TOKENS", 10_000)
    monkeypatch.setattr(engines, "SENTENCES", 2)
    assert_same(engine.search(some, search), expected)
    assert [len(few) for few in seen] == [2] * 10


def test_a_beam_of_one_is_greedy_and_what_is_finished_ends(bundle, engine, some):
    [found] = engine.search(some[:1], Search(beam=1))
    one = Search(beam=1, min_len=1)  # a rule that says nothing new
    assert_same([found], engine.search(some[:1], one))
    assert bundle.tgt_tokenizer.vocab.eos not in found[0].ids
    assert found[0].is_finished


@pytest.mark.parametrize("penalty", [0.0, 1.0, 1.4])
def test_scores_are_those_of_the_scorer(bundle, engine, some, penalty):
    eos = bundle.tgt_tokenizer.vocab.eos
    found = engine.search(some, Search(beam=4, nbest=4, length_penalty=penalty))
    pairs = [
        (sentence.ids, (*one.ids, eos))
        for sentence, own in zip(some, found, strict=True)
        for one in own
    ]
    scores = [sum(each.log_probs) / len(each.log_probs) ** penalty for each in engine.score(pairs)]
    assert scores == pytest.approx([one.score for own in found for one in own], abs=1e-4)


def test_attention_has_a_row_for_each_word_and_the_end(engine, some):
    found = engine.search(some, Search(beam=2, nbest=2, wants_attention=True))
    cut_off = engine.search(some, Search(beam=1, max_len=2, wants_attention=True))
    for sentence, own in zip(some * 2, found + cut_off, strict=True):
        for one in own:
            assert len(one.attention) == len(one.ids) + one.is_finished
            for row in one.attention:
                assert len(row) == len(sentence.ids)
                assert sum(row) == pytest.approx(1.0, abs=1e-4)
    assert all(len(one.attention) == 2 and not one.is_finished for [one] in cut_off[2:])
    plain = engine.search(some, Search(beam=2, nbest=2))
    assert [[replace(one, attention=None) for one in own] for own in found] == plain


def test_coverage_is_added_to_the_scores_of_all_hypotheses(engine, some):
    search = Search(beam=4, nbest=4, wants_attention=True)
    plain = engine.search(some, search)
    covering = engine.search(some, replace(search, coverage_penalty=0.3))
    changed = 0
    for own, again in zip(plain, covering, strict=True):
        scores = {one.ids: one.score + 0.3 * coverage(one.attention) for one in own}
        assert {one.ids: one.score for one in again} == pytest.approx(scores, abs=1e-4)
        assert [one.ids for one in again] == sorted(scores, key=lambda ids: -scores[ids])
        changed += own[0].ids != again[0].ids
    assert changed  # else this has shown nothing


def coverage(attention):
    return sum(math.log(min(1.0, sum(column))) for column in zip(*attention, strict=True))


def test_a_term_that_is_said_anyway_costs_nothing(engine, some, monkeypatch):
    search = Search(beam=4)
    plain = engine.search(some, search)
    seen, read = [], engine._read
    monkeypatch.setattr(engine, "_read", lambda few: seen.extend(few) or read(few))
    said = [
        Sentence(one.ids, (), ((own[0].ids[:2],),)) for one, own in zip(some, plain, strict=True)
    ]
    assert_same(engine.search(said, search), plain)
    assert sorted(one.ids for one in seen) == sorted(one.ids for one in some)
    assert not any(one.terms for one in seen)


def test_terms_are_said_in_one_of_their_spellings(bundle, engine, some):
    tgt, search = bundle.tgt_tokenizer, Search(beam=4)
    wanted = [tuple(tgt.encode(word)) for word in ("bananas", "very old", "Peking")]
    asked = [Sentence(one.ids, (), ((wanted[n % 3], (3, 3, 3)),)) for n, one in enumerate(some)]
    found = engine.search(asked, search)
    for sentence, [one] in zip(asked, found, strict=True):
        assert not lacking(one.ids, sentence.terms)
        assert one.is_finished
    assert_same(found[:3], engine.search(asked[:3], search))
    for beam in (1, 2):
        for sentence, [one] in zip(asked, engine.search(asked, Search(beam=beam)), strict=True):
            assert not lacking(one.ids, sentence.terms)


def test_a_free_sentence_beside_one_with_terms_is_as_free_as_before(engine, some):
    asked = [some[2], replace(some[3], terms=(((9, 8, 7),),)), some[4]]
    found = engine.search(asked, Search(beam=3))
    assert_same([found[0], found[2]], engine.search([some[2], some[4]], Search(beam=3)))


def test_the_limit_is_the_sentence_s_own_and_the_positions_are_the_last(bundle, some):
    network = load_network(bundle, CPU)
    vocab = bundle.tgt_tokenizer.vocab
    endless = Search(beam=2, min_len=10_000)
    engine = TorchEngine(
        [network], pad=vocab.pad, bos=vocab.bos, eos=vocab.eos, longest=34, device=CPU
    )
    found = engine.search(some[:3], endless)
    assert [len(own[0].ids) for own in found] == [
        min(2 * len(one.ids) + 20, 34) for one in some[:3]
    ]
    assert not any(own[0].is_finished for own in found)
    capped = engine.search(some[:3], replace(endless, max_len=5))
    assert [len(own[0].ids) for own in capped] == [5, 5, 5]


def test_nothing_to_translate_or_to_score_is_nothing(engine):
    assert engine.search([], Search()) == []
    assert engine.score([]) == []


def test_scores_come_in_the_order_of_the_pairs(engine, some, monkeypatch):
    pairs = [(one.ids, (40 + n, 2)) for n, one in enumerate(some)]
    together = engine.score(pairs)
    monkeypatch.setattr(engines, "SCORED", 20)
    for one, other in zip(together, engine.score(pairs), strict=True):
        assert one.log_probs == pytest.approx(other.log_probs, abs=1e-4)
    assert together[7].log_probs == pytest.approx(engine.score(pairs[7:8])[0].log_probs, abs=1e-4)


def test_several_models_speak_with_one_voice_as_far_as_all_their_positions_go(bundle, engine, some):
    shorter = replace(bundle, model=replace(bundle.model, max_len=99))
    both = torch_engine([bundle, shorter], CPU)
    assert (engine.longest, both.longest) == (256, 99)
    search = Search(beam=3, nbest=2)
    assert_same(both.search(some[:6], search), engine.search(some[:6], search))


@pytest.mark.parametrize(
    ("search", "sentence", "message"),
    [
        (
            Search(beam=5, groups=2),
            Sentence((5, 2)),
            "beam = 5 is not a multiple of groups = 2",
        ),
        (
            Search(temperature=0.5),
            Sentence((5, 2), (), (((7,),),)),
            "words cannot be drawn, as temperature = 0.5 asks, where terms are to be said; "
            "set it to 0, or leave the terms out",
        ),
    ],
)
def test_what_cannot_be_asked_is_refused(engine, search, sentence, message):
    with pytest.raises(ConfigError) as caught:
        engine.search([sentence], search)
    assert str(caught.value) == message


def test_every_weight_of_one_translation_is_explained(bundle, engine, some):
    (source, target), bos = (some[4].ids, (40, 50, 60)), bundle.tgt_tokenizer.vocab.bos
    cross, encoder, decoder = engine.explain(source, (bos, *target[:-1]))
    n_layers, n_heads, n = 3, 4, len(source)
    assert cross.shape == (n_layers, n_heads, 3, n)
    assert encoder.shape == (n_layers, n_heads, n, n)
    assert decoder.shape == (n_layers, n_heads, 3, 3)
    [weights] = attentions(engine.network, [(source, target)], pad=0, bos=bos, device=CPU)
    np.testing.assert_allclose(cross[-1].mean(axis=0), weights, atol=1e-5)
    both = torch_engine([bundle, bundle], CPU).explain(source, (bos, *target[:-1]))
    np.testing.assert_allclose(both[0][0, 0], weights, atol=1e-5)
    assert both[1:] == (None, None)


@pytest.mark.gpu
def test_a_gpu_says_the_same(bundle, engine, some):
    cuda = torch_engine([bundle], torch.device("cuda"))
    for search in (Search(beam=1), Search(beam=4, nbest=2), Search(beam=4, groups=2)):
        assert_same(cuda.search(some, search), engine.search(some, search))
    asked = [replace(one, prefix=(9, 8), terms=(((40, 41),),)) for one in some]
    search = Search(beam=2, no_repeat=2, coverage_penalty=0.1, wants_attention=True)
    assert_same(cuda.search(asked, search), engine.search(asked, search))
    assert all(own for own in cuda.search(some, Search(temperature=0.8, top_k=9, top_p=0.9)))


def test_more_may_be_drawn_than_there_are_beams(engine, some):
    [own] = engine.search(some[4:5], Search(beam=1, temperature=1.0, nbest=7))
    assert len(own) == 7
    assert all(isinstance(one, Hypothesis) for one in own)
