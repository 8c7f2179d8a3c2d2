"""Probabilities of what is allowed that sum to 1: both engines against the search as explained."""

import math
import random
from functools import cache
from itertools import pairwise

import pytest
import torch

from regard.bundle import open_bundle, write_bundle
from regard.config import ModelConfig
from regard.decode.engines.ctranslate2 import CTranslate2Engine
from regard.decode.engines.torch import torch_engine
from regard.decode.reference import reference_beam
from regard.decode.rules import renormalized
from regard.decode.search import Search, Sentence
from regard.model.build import build_model
from regard.model.weights import save_tensors, weights_of
from regard.text.normalize import Normalizer
from regard.text.tokenizer import CharTokenizer
from regard.text.vocab import Vocabulary


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A random network and the engines that run it."""
    torch.manual_seed(3)
    config = ModelConfig(d_model=16, n_layers=1, n_heads=2, d_ff=24, max_len=30, output_bias=True)
    network = build_model(config, 12, 12).eval()
    with torch.no_grad():
        for p in network.parameters():
            p.copy_(2.0 * p if p.ndim > 1 else p + 0.3 * torch.randn_like(p))
    pieces = ("<pad>", "<s>", "</s>", "<unk>", *"abcdefgh")
    tokenizer = CharTokenizer(Vocabulary(pieces, pad=0, bos=1, eos=2, unk=3), Normalizer())
    place = tmp_path_factory.mktemp("model") / "model"
    write_bundle(
        place, config, (tokenizer, tokenizer),
        lambda path: save_tensors(weights_of(network), path), facts={}, card="",
    )  # fmt: skip
    bundle = open_bundle(place)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REGARD_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield network, torch_engine([bundle], torch.device("cpu")), CTranslate2Engine(bundle)


RULES = {
    "forbidden": (
        {"forbidden": ((5,), (0,), (6, 7))},
        lambda said: {5, 0} | ({7} if said[-1:] == (6,) else set()),
    ),
    "no_repeat": (
        {"no_repeat": 2},
        lambda said: {b for a, b in pairwise(said) if (a,) == said[-1:]},
    ),
    "min_len": ({"min_len": 4}, lambda said: {2} if len(said) < 4 else set()),
}


@pytest.mark.parametrize("beam", [1, 4])
@pytest.mark.parametrize("name", RULES)
def test_both_engines_find_what_the_definition_finds(name, beam, model):
    network, *engines = model
    options, never = RULES[name]
    search = Search(beam=beam, nbest=beam, max_len=8, renormalize=True, **options)
    draw = random.Random(0)
    rows = [(*(draw.randrange(4, 12) for _ in range(draw.randint(1, 6))), 2) for _ in range(8)]
    for engine in engines:
        for row, own in zip(
            rows, engine.search([Sentence(row) for row in rows], search), strict=True
        ):
            expected = reference_beam(
                lambda said, row=row: shared(next_words(network, row, said), never(said)),
                width=beam, max_len=8, eos=2,
            )  # fmt: skip
            assert [one.ids for one in own] == [one.ids for one in expected]
            for one, other in zip(own, expected, strict=True):
                assert one.score == pytest.approx(other.score, abs=1e-4)


def shared(log_p, never):
    """The probabilities of the words that may be said, over their sum."""
    total = sum(math.exp(p) for word, p in enumerate(log_p) if word not in never)
    return [-math.inf if w in never else p - math.log(total) for w, p in enumerate(log_p)]


@cache
@torch.no_grad()
def next_words(network, source, said):
    logits = network(torch.tensor([source]), torch.tensor([[1, *said]]))
    return tuple(logits[0, -1].log_softmax(-1).tolist())


def test_without_it_scores_are_the_networks_own(model):
    _, engine, _ = model
    sentence = Sentence((4, 5, 2))
    plain, shared_out = (
        engine.search([sentence], Search(beam=1, forbidden=((5,),), renormalize=renormalize))[0][0]
        for renormalize in (False, True)
    )
    assert plain.ids == shared_out.ids
    assert plain.score < shared_out.score


def test_where_nothing_is_allowed_nothing_becomes():
    never = torch.full((1, 3), -torch.inf)
    assert renormalized(never).tolist() == [[-math.inf] * 3]
    some = torch.tensor([[math.log(0.2), -math.inf, math.log(0.6)]])
    assert renormalized(some).exp().tolist() == [pytest.approx([0.25, 0.0, 0.75])]
