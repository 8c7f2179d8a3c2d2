import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.attention.layout import Padded
from regard.config import ModelConfig
from regard.decode.engines.torch import TorchEngine
from regard.decode.ensemble import Ensemble
from regard.decode.reference import reference_beam
from regard.decode.search import Search, Sentence
from regard.model.build import build_model

CPU = torch.device("cpu")
SIZES = {"d_model": 16, "n_heads": 2, "d_ff": 32, "max_len": 24}
SOME = [Sentence((5, 6, 7, 2)), Sentence((9, 2)), Sentence((6, 6, 8, 8, 6, 2))]
SEARCHES = {
    "greedy": Search(beam=1),
    "beam": Search(beam=3, nbest=3),
    "diverse": Search(beam=4, groups=2, nbest=2),
    "drawn": Search(temperature=1.0, nbest=2),
    "covering": Search(beam=3, coverage_penalty=0.5, wants_attention=True),
}


def network(kind="transformer", n_layers=2, seed=0):
    torch.manual_seed(seed)
    config = ModelConfig(kind=kind, n_layers=n_layers, **SIZES)
    return build_model(config, 12, 12).eval()


def engine(*networks):
    return TorchEngine(networks, pad=0, bos=1, eos=2, longest=24, device=CPU)


@pytest.mark.parametrize("search", SEARCHES.values(), ids=SEARCHES)
def test_a_network_twice_is_that_network(search):
    model = network()
    once, twice = engine(model).search(SOME, search), engine(model, model).search(SOME, search)
    for own, other in zip(once, twice, strict=True):
        assert [one.ids for one in own] == [one.ids for one in other]
        assert [o.score for o in own] == pytest.approx([o.score for o in other], abs=1e-5)
        for one, two in zip(own, other, strict=True):
            if search.wants_attention:
                np.testing.assert_allclose(one.attention, two.attention, atol=1e-5)


def test_the_scores_of_a_network_twice_are_its_scores():
    model, pairs = network(), [((5, 6, 2), (7, 7, 2)), ((9, 2), (2,)), ((9, 2), (4, 5, 6, 7, 8, 2))]
    once, twice = engine(model).score(pairs), engine(model, model).score(pairs)
    for one, other in zip(once, twice, strict=True):
        assert one.log_probs == pytest.approx(other.log_probs, abs=1e-5)


@given(words=st.lists(st.integers(0, 11), min_size=1, max_size=5))
def test_step_by_step_and_all_at_once_are_the_mean_of_the_probabilities(words):
    parts = [network(seed=1), network("recurrent", 1, seed=2), network(n_layers=1, seed=3)]
    both = Ensemble(parts)
    src_ids, src = torch.tensor([[5, 6, 7, 2], [9, 2, 0, 0]]), Padded(torch.tensor([4, 2]))
    tgt_ids = torch.tensor([[1, *words]] * 2)
    with torch.no_grad():
        expected = torch.stack([part(src_ids, tgt_ids, src).softmax(-1) for part in parts])
        at_once = both(src_ids, tgt_ids, src)
        explained = both.explain(src_ids, tgt_ids, src)
        state, by_steps = both.start(both.encode(src_ids, src)), []
        for place in range(tgt_ids.shape[1]):
            log_p, state = both.step(tgt_ids[:, place], state)
            by_steps.append(log_p)
    for log_p in (at_once, explained.logits, torch.stack(by_steps, dim=1)):
        torch.testing.assert_close(log_p.exp(), expected.mean(dim=0), rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(explained.cross.sum(-1), torch.ones(1, 2, 1, tgt_ids.shape[1]))


def test_a_search_by_several_is_the_one_explained_by_the_mean():
    parts = [network(seed=1), network("recurrent", 1, seed=2)]
    found = engine(*parts).search(SOME, Search(beam=3, nbest=3, max_len=7))
    for sentence, own in zip(SOME, found, strict=True):

        @torch.no_grad()
        def log_probs(ids, sentence=sentence):
            given = torch.tensor([sentence.ids]), torch.tensor([[1, *ids]])
            p = torch.stack([part(*given)[0, -1].softmax(-1) for part in parts]).mean(dim=0)
            return p.log().tolist()

        expected = reference_beam(log_probs, width=3, max_len=7, eos=2)
        assert [one.ids for one in own] == [one.ids for one in expected]
        assert [o.score for o in own] == pytest.approx([o.score for o in expected], abs=1e-5)
