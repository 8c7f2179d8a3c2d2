"""Search by CTranslate2 against the search as it is explained, with networks of torch."""

import math
import random
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
import torch

from regard.bundle import open_bundle, write_bundle
from regard.config import ModelConfig
from regard.decode.engines.ctranslate2 import CTranslate2Engine, cannot
from regard.decode.reference import reference_beam
from regard.decode.search import Search, Sentence
from regard.errors import ConfigError, DataError, ModelError
from regard.interchange.carried import from_bundle, write_regard
from regard.model.build import build_model
from regard.model.weights import save_tensors, weights_of
from regard.text.normalize import Normalizer
from regard.text.tokenizer import CharTokenizer
from regard.text.vocab import Vocabulary

NUMERALS = Path(__file__).parents[1] / "models" / "numerals"
SIZES = {"d_model": 16, "n_layers": 2, "n_heads": 2, "d_ff": 24, "max_len": 40}
NETWORKS = [
    {"norm": "pre", "share": "none", "output_bias": True},
    {"norm": "post", "share": "target", "positions": "rotary", "n_heads": (2, 4)},
    {"norm": "pre", "positions": "learned", "score": "dot", "n_layers": (1, 2)},
]


@pytest.fixture(scope="module", autouse=True)
def caching(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REGARD_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module", params=range(len(NETWORKS)))
def one(request, tmp_path_factory):
    """A random network, and the engine that runs it."""
    torch.manual_seed(request.param)
    return made(tmp_path_factory.mktemp("model") / "model", **NETWORKS[request.param])


def made(place, **settings):
    config = ModelConfig(**{**SIZES, **settings})
    network = build_model(config, 14, 14).eval()
    with torch.no_grad():
        for p in network.parameters():
            p.copy_(2.0 * p if p.ndim > 1 else p + 0.3 * torch.randn_like(p))
    pieces = ("<pad>", "<s>", "</s>", "<unk>", *(chr(97 + i) for i in range(10)))
    tokenizer = CharTokenizer(Vocabulary(pieces, pad=0, bos=1, eos=2, unk=3), Normalizer())
    write_bundle(
        place, config, (tokenizer, tokenizer),
        lambda path: save_tensors(weights_of(network), path), facts={}, card="",
    )  # fmt: skip
    return network, CTranslate2Engine(open_bundle(place), threads=2)


def sources(n=8, longest=9, seed=0):
    draw = random.Random(seed)
    return [
        (*(draw.randrange(4, 14) for _ in range(draw.randint(0, longest))), 2) for _ in range(n)
    ]


def explained(network, sentence, search, rule=lambda log_p, said: log_p):
    """What the definition finds, with no cache, no batch, one word after the other."""

    limit = min(search.max_len or 2 * len(sentence.ids) + 20, SIZES["max_len"])
    return reference_beam(
        lambda said: rule(next_word(network, sentence.ids, said), said),
        width=search.beam, max_len=limit, eos=2, penalty=search.length_penalty,
    )  # fmt: skip


@cache
@torch.no_grad()
def next_word(network, source, said):
    logits = network(torch.tensor([source]), torch.tensor([[1, *said]]))
    return logits[0, -1].double().log_softmax(-1).tolist()


def assert_equal(found, expected, tolerance=1e-4):
    assert [(h.ids, h.is_finished) for h in found] == [(h.ids, h.is_finished) for h in expected]
    assert [h.score for h in found] == pytest.approx([h.score for h in expected], abs=tolerance)


@pytest.mark.parametrize("penalty", [0.0, 0.6, 1.0])
@pytest.mark.parametrize(("beam", "max_len"), [(1, 0), (2, 6), (5, 1), (5, 7), (5, 0)])
def test_the_beam_is_the_one_explained(one, beam, max_len, penalty):
    network, engine = one
    search = Search(beam=beam, nbest=beam, max_len=max_len, length_penalty=penalty)
    sentences = [Sentence(ids) for ids in sources(6 if max_len else 2)]
    for sentence, found in zip(sentences, engine.search(sentences, search), strict=True):
        assert_equal(found, explained(network, sentence, search))


def test_a_search_done_at_its_limit_leaves_out_what_has_not_ended(one):
    """There CTranslate2's own list is another: seen in some of these sentences."""
    network, engine = one
    sentences = [Sentence(ids) for ids in sources(20, longest=2)]
    for max_len in (2, 3, 4):
        search = Search(beam=4, nbest=4, max_len=max_len)
        for sentence, found in zip(sentences, engine.search(sentences, search), strict=True):
            assert_equal(found, explained(network, sentence, search))


def test_no_penalty_finds_what_a_very_small_one_finds(one):
    """With none CTranslate2 would stop at another moment, which a few of so many show."""
    _, engine = one
    sentences = [Sentence(ids) for ids in sources(300, longest=3)]
    none, small = (
        engine.search(sentences, Search(beam=4, nbest=4, length_penalty=penalty, max_len=12))
        for penalty in (0.0, 1e-12)
    )
    for found, expected in zip(none, small, strict=True):
        assert_equal(found, expected)


def begins_with(prefix):
    def rule(log_p, said):
        if len(said) >= len(prefix):
            return log_p
        return [p if word == prefix[len(said)] else -math.inf for word, p in enumerate(log_p)]

    return rule


def without(words_after):
    def rule(log_p, said):
        forbidden = words_after(said)
        return [-math.inf if word in forbidden else p for word, p in enumerate(log_p)]

    return rule


RULES = {
    "prefix": ({}, (5, 9, 5), begins_with((5, 9, 5))),
    "a prefix longer than the limit": ({"max_len": 2}, (5, 9, 5), begins_with((5, 9, 5))),
    "forbidden": (
        {"forbidden": ((7,), (8,), (9, 5), (4, 4, 6))},
        (),
        without(lambda s: {7, 8} | ({5} if s[-1:] == (9,) else {6} if s[-2:] == (4, 4) else set())),
    ),
    "no_repeat": (
        {"no_repeat": 2},
        (),
        without(lambda s: {b for a, b in pairwise(s) if a == s[-1]}),
    ),
    "min_len": ({"min_len": 12}, (), without(lambda s: {2} if len(s) < 12 else set())),
    "min_len past the limit": ({"min_len": 9, "max_len": 5}, (), without(lambda s: {2})),
}  # fmt: skip


@pytest.mark.parametrize("name", RULES)
def test_a_beam_of_one_keeps_the_rules_and_has_the_networks_scores(one, name):
    network, engine = one
    asked, prefix, rule = RULES[name]
    search = Search(beam=1, length_penalty=0.6, **asked)
    sentences = [Sentence(ids, prefix) for ids in sources(4)]
    for sentence, found in zip(sentences, engine.search(sentences, search), strict=True):
        assert_equal(found, explained(network, sentence, search, rule))


def test_sentences_with_and_without_a_prefix_go_together(one):
    _, engine = one
    search = Search(beam=1)
    sentences = [
        Sentence(ids, prefix) for ids in sources(3) for prefix in ((), (5,), (6, 7, 8, 9))
    ]  # fmt: skip
    alone = [engine.search([sentence], search)[0] for sentence in sentences]
    for found, expected in zip(engine.search(sentences, search), alone, strict=True):
        assert_equal(found, expected)


@pytest.mark.parametrize("beam", [1, 4])
def test_a_sentence_alone_equals_the_sentence_in_any_batch(one, beam):
    """Its limit too is its own: the long ones may say more."""
    _, engine = one
    search = Search(beam=beam, nbest=beam)
    sentences = [Sentence(ids) for ids in [*sources(40, longest=4), *sources(10, longest=35)]]
    together = engine.search(sentences, search)
    for sentence, found in zip(sentences, together, strict=True):
        assert_equal(found, engine.search([sentence], search)[0], 1e-5)
        limit = min(2 * len(sentence.ids) + 20, SIZES["max_len"])
        for hypothesis in found:
            assert len(hypothesis.ids) + hypothesis.is_finished <= limit


def test_the_nbest_are_the_first_of_the_beam(one):
    _, engine = one
    sentences = [Sentence(ids) for ids in sources()]
    all_of_them = engine.search(sentences, Search(beam=5, nbest=5))
    assert engine.search(sentences, Search(beam=5, nbest=2)) == [own[:2] for own in all_of_them]


@torch.no_grad()
def attention(network, source, hypothesis):
    said = [1, *hypothesis.ids] if hypothesis.is_finished else [1, *hypothesis.ids[:-1]]
    weights = network.explain(torch.tensor([source]), torch.tensor([said])).cross
    return weights[-1, 0].mean(dim=0)


@pytest.mark.parametrize(("beam", "prefix"), [(1, ()), (1, (5, 6)), (3, ())])
def test_attention_is_the_mean_over_the_heads_of_the_last_layer(one, beam, prefix):
    network, engine = one
    search = Search(beam=beam, nbest=beam, max_len=8, wants_attention=True)
    sentences = [Sentence(ids, prefix) for ids in sources()]
    for sentence, own in zip(sentences, engine.search(sentences, search), strict=True):
        for found in own:
            expected = attention(network, sentence.ids, found)
            assert torch.tensor(found.attention).shape == expected.shape
            torch.testing.assert_close(torch.tensor(found.attention), expected)


@pytest.mark.parametrize("beam", [1, 4])
def test_coverage_is_added_to_what_the_beam_has_found(one, beam):
    network, engine = one
    plain = Search(beam=beam, nbest=beam, max_len=8)
    covering = Search(beam=beam, nbest=beam, max_len=8, coverage_penalty=0.3)
    sentences = [Sentence(ids) for ids in sources()]
    for sentence, found in zip(sentences, engine.search(sentences, covering), strict=True):
        expected = {
            h.ids: h.score
            + 0.3 * float(attention(network, sentence.ids, h).sum(0).clamp(max=1.0).log().sum())
            for h in explained(network, sentence, plain)
        }
        assert [h.ids for h in found] == sorted(expected, key=lambda ids: -expected[ids])
        assert [h.score for h in found] == pytest.approx(
            sorted(expected.values(), reverse=True), abs=1e-4
        )
        assert all(h.attention is None for h in found)


@torch.no_grad()
def log_probs(network, source, target):
    log_p = network(torch.tensor([source]), torch.tensor([[1, *target[:-1]]]))[0].log_softmax(-1)
    return [float(log_p[place, word]) for place, word in enumerate(target)]


def test_every_word_and_the_end_are_scored_as_torch_scores_them(one):
    network, engine = one
    pairs = list(zip(sources(30), sources(30, longest=39, seed=1), strict=True))
    for (source, target), scored in zip(pairs, engine.score(pairs), strict=True):
        assert scored.log_probs == pytest.approx(log_probs(network, source, target), abs=2e-5)


def test_a_target_without_its_end_is_scored_without_it(one):
    _, engine = one
    whole, cut, nothing = engine.score([((5, 2), (6, 7, 2)), ((5, 2), (6, 7)), ((5, 2), ())])
    assert cut.log_probs == pytest.approx(whole.log_probs[:2], abs=1e-6)
    assert nothing.log_probs == ()


@pytest.mark.parametrize(("beam", "penalty"), [(1, 1.0), (5, 0.6)])
def test_the_scores_of_a_search_are_those_of_its_words(one, beam, penalty):
    _, engine = one
    search = Search(beam=beam, nbest=beam, length_penalty=penalty)
    for ids, own in zip(
        sources(), engine.search(list(map(Sentence, sources())), search), strict=True
    ):
        for found in own:
            target = (*found.ids, 2) if found.is_finished else found.ids
            [scored] = engine.score([(ids, target)])
            expected = sum(scored.log_probs) / len(target) ** penalty
            assert found.score == pytest.approx(expected, abs=1e-5)


def test_a_long_source_is_read_to_its_end(tmp_path):
    network, engine = made(tmp_path / "model", max_len=3000)
    [ids] = sources(1, longest=0)
    ids = (*random.Random(0).choices(range(4, 14), k=1999), *ids)
    target = (5, 6, 2)
    [scored] = engine.score([(ids, target)])
    assert scored.log_probs == pytest.approx(log_probs(network, ids, target), abs=1e-4)
    [shortened] = engine.score([(ids[:1024], target)])
    assert scored.log_probs != pytest.approx(shortened.log_probs, abs=1e-4)
    [[found]] = engine.search([Sentence(ids)], Search(beam=1, max_len=4))
    expected = log_probs(network, ids, (*found.ids, 2)[:4] if found.is_finished else found.ids)
    assert found.score == pytest.approx(sum(expected) / len(expected), abs=1e-4)


def test_a_long_translation_is_not_cut(tmp_path):
    _, engine = made(tmp_path / "model", max_len=3000)
    [[found]] = engine.search([Sentence((5, 2))], Search(beam=1, max_len=600, min_len=600))
    assert len(found.ids) == 600
    [scored] = engine.score([((5, 2), (5,) * 1999 + (2,))])
    assert len(scored.log_probs) == 2000


def test_nothing_to_translate_is_nothing_found(one):
    _, engine = one
    assert engine.search([], Search()) == []
    assert engine.score([]) == []


# --- what it cannot do


@pytest.mark.parametrize(
    ("model", "search", "sentence", "name"),
    [
        ({}, {}, {}, None),
        ({"score": "dot"}, {"coverage_penalty": 0.1, "wants_attention": True}, {}, None),
        ({}, {"beam": 1, "no_repeat": 3, "forbidden": ((5,),), "min_len": 2}, {}, None),
        ({}, {"beam": 1}, {"prefix": (5,)}, None),
        ({"score": "additive"}, {}, {}, 'model.score = "additive"'),
        ({"score": "gaussian"}, {}, {}, 'model.score = "gaussian"'),
        ({"kind": "recurrent"}, {}, {}, 'model.kind = "recurrent"'),
        ({}, {}, {"terms": (((5,),),)}, "terms"),
        ({}, {"temperature": 0.7}, {}, "temperature = 0.7"),
        ({}, {"beam": 4, "groups": 2}, {}, "groups = 2"),
        ({}, {}, {"prefix": (5,)}, "prefix, beam = 5"),
        ({}, {"forbidden": ((5,),)}, {}, "forbidden, beam = 5"),
        ({}, {"no_repeat": 3}, {}, "no_repeat = 3, beam = 5"),
        ({}, {"min_len": 2}, {}, "min_len = 2, beam = 5"),
    ],
)
def test_the_first_thing_it_cannot_do_is_named(model, search, sentence, name):
    sentences = [Sentence((5, 2)), Sentence((5, 2), **sentence)]
    assert cannot(ModelConfig(**model), Search(**search), sentences) == name


def test_what_it_cannot_do_is_refused(one):
    _, engine = one
    with pytest.raises(ConfigError) as caught:
        engine.search([Sentence((5, 2))], Search(temperature=0.5))
    assert str(caught.value) == (
        "the ctranslate2 engine cannot do temperature = 0.5; choose the torch engine"
    )


@pytest.mark.parametrize(
    ("sentence", "search", "kind", "words"),
    [
        (
            Sentence((5, 14, 2)), {}, DataError,
            "source id 14 is outside the vocabulary, whose 14 ids are 0 to 13",
        ),
        (
            Sentence((5, 2), (-1,)), {"beam": 1}, DataError,
            "target id -1 is outside the vocabulary, whose 14 ids are 0 to 13",
        ),
        (
            Sentence((5, 2)), {"beam": 1, "forbidden": ((5, 99),)}, DataError,
            "target id 99 is outside the vocabulary, whose 14 ids are 0 to 13",
        ),
        (Sentence(()), {}, DataError, "source has a sentence of length 0"),
        (
            Sentence((5,) * 41), {}, ModelError,
            "the text has 41 tokens but the model's positions end at 40; "
            "split it, or build the model with a larger max_len",
        ),
    ],
)  # fmt: skip
def test_ids_that_cannot_be_right_are_refused(one, sentence, search, kind, words):
    _, engine = one
    with pytest.raises(kind) as caught:
        engine.search([sentence], Search(**search))
    assert str(caught.value) == words


def test_a_target_longer_than_the_positions_is_refused(one):
    _, engine = one
    with pytest.raises(ModelError) as caught:
        engine.score([((5, 2), (5,) * 41)])
    assert str(caught.value) == (
        "the text has 41 tokens but the model's positions end at 40; "
        "split it, or build the model with a larger max_len"
    )


def test_weights_stored_in_int8_are_computed_so_unless_another_type_is_asked_for(tmp_path):
    for stored in ("float16", "int8"):
        write_regard(from_bundle(open_bundle(NUMERALS)), tmp_path / stored, stored)
        bundle = open_bundle(tmp_path / stored)
        assert CTranslate2Engine(bundle).dtype == {"float16": "float32", "int8": "int8"}[stored]
        assert CTranslate2Engine(bundle, "float32").dtype == "float32"
