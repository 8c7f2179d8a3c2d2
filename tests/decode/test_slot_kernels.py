"""A step of the search in slots by kernels leaves what the plain one leaves, to the last digit.

By Triton's interpreter where there is no GPU.
"""

import importlib
import random
from importlib.util import find_spec

import numpy as np
import pytest
import torch

from regard.attention import fused, kernels
from regard.config import ModelConfig
from regard.decode import rooms, slots
from regard.decode.engines.torch import TorchEngine
from regard.decode.search import Search, Sentence
from regard.decode.slots import Slots
from regard.model import build_model, layers

pytestmark = [
    pytest.mark.plain,  # the shape checker wraps functions that Triton has to read
    pytest.mark.skipif(find_spec("triton") is None, reason="needs Triton, which is for Linux"),
]

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
PLACES = {
    "choose": (slots, "choose", "MOST_BEAMS"),
    "likeliest": (slots, "likeliest", "can_hold"),
    "short": (fused, "short_attention"),
    "slots": (fused, "slot_attention", "source_attention"),
    "residual": (layers, "residual_norm", "sum_and_norm"),
    "rectified": (layers, "linear_relu"),
}


@pytest.fixture
def use_kernels(monkeypatch):
    """All kernels of a search where they are looked for, and how to say whether they are used."""
    for name, (module, *functions) in PLACES.items():
        found = importlib.import_module(f"regard.attention.kernels.{name}")
        for function in functions:
            monkeypatch.setattr(module, function, getattr(found, function), raising=False)
    return lambda are_used: monkeypatch.setattr(kernels, "can_take", lambda *_: are_used)


def network(n_words=12, norm="post"):
    torch.manual_seed(0)
    config = ModelConfig(
        d_model=16, n_heads=2, n_layers=2, d_ff=16, max_len=24, norm=norm, output_bias=True
    )
    made = build_model(config, n_words, n_words).to(DEVICE).eval()
    with torch.no_grad():
        for weight in made.parameters():
            weight.mul_(3.0 if weight.ndim > 1 else 1.0)  # so that it is sure of some words
        made.output.bias[2] = 3.5
    return made


def some_slots(search, n_slots, max_len, eos):
    return Slots(network(), search, n_slots, 4, max_len, bos=0, eos=eos, device=DEVICE)


def step_after(one, logits):
    """A step as if the network had said so."""
    one.network.step = lambda _, state: (logits, state)
    one.step()


def assert_equal(found, expected, was_open):
    """In all that anybody will read: not what closed slots say, nor who wrote what is not there."""
    for name in ("totals", "is_open", "n_said", "limits", "n_finished"):
        assert torch.equal(getattr(found, name), getattr(expected, name)), name
    words, others = (one.token.view(-1, one.beam)[was_open] for one in (found, expected))
    assert torch.equal(words, others)
    for part, other in zip(found.written.parts, expected.written.parts, strict=True):
        assert torch.equal(part[:, : found.max_len], other[:, : found.max_len])
    assert torch.equal(found.lineage.lengths, expected.lineage.lengths)
    is_there = torch.arange(found.max_len, device=DEVICE) <= found.lineage.lengths[:, None]
    own, theirs = found.lineage.owners, expected.lineage.owners
    assert torch.equal(own[is_there], theirs[is_there])


@torch.no_grad()
@pytest.mark.parametrize("has_ties", [False, True])
@pytest.mark.parametrize(("n_words", "eos"), [(1, 0), (3, 1), (20, 2)])
@pytest.mark.parametrize(("beam", "penalty"), [(1, 1.0), (2, 0.6), (5, 0.0), (5, 0.6)])
def test_the_kernel_chooses_what_torch_chooses(
    monkeypatch, use_kernels, beam, penalty, n_words, eos, has_ties
):
    """Open and closed slots, limits as narrow as one word and as wide as there is room, again."""
    monkeypatch.setattr(slots, "can_hold", lambda *_: False)  # likelihoods to the last digit
    monkeypatch.setattr("regard.attention.kernels.choose.STEP", 4)  # so that there are several
    search = Search(beam=beam, length_penalty=penalty)
    found, expected = (some_slots(search, 6, 8, eos) for _ in range(2))
    is_seen = torch.zeros(4, dtype=torch.bool, device=DEVICE)
    for step in range(15):
        if step % 5 == 0:
            use_kernels(False)
            free = np.flatnonzero(~expected.is_open.cpu().numpy())[:4]
            limits = np.array(random.Random(step).choices([1, 3, 8], k=len(free)))
            for one in (found, expected):
                one.read(free, [(3, 4)] * len(free), limits, 0)
        logits = 2.0 * torch.randn(6 * beam, n_words).to(DEVICE)
        logits[:, eos] += 2.0
        if has_ties:  # within a row and between rows
            logits = logits[:1].round().clamp(-1, 4).expand_as(logits)
        was_open = expected.is_open.clone()
        for one, has_kernels in ((found, True), (expected, False)):
            use_kernels(has_kernels)
            step_after(one, logits)
        assert_equal(found, expected, was_open)
        is_full = (expected.n_said == expected.limits) & (expected.n_finished < beam)
        has_ended, is_closed = expected.n_finished > 0, ~expected.is_open
        is_seen |= torch.stack([x.any() for x in (is_full, has_ended, is_closed, ~is_closed)])
    assert is_seen.all() or n_words == 1


@torch.no_grad()
@pytest.mark.filterwarnings("ignore:invalid value")  # so the interpreter says
@pytest.mark.parametrize("beam", [1, 3])
def test_what_is_no_number_ends_a_sentence_and_harms_no_other(use_kernels, beam):
    use_kernels(False)
    ours = some_slots(Search(beam=beam), 3, 8, eos=2)
    ours.read(np.arange(3), [(3, 4), (5,), (6,)], np.array([8, 8, 8]), 0)
    use_kernels(True)
    logits = torch.randn(3 * beam, 11).to(DEVICE)
    logits[:, 2] = -9.0
    logits[:beam] = torch.nan  # all beams of the first
    step_after(ours, logits)
    logits[-1] = torch.nan  # one beam of the last
    step_after(ours, logits)
    assert ours.is_open.tolist() == [False, True, beam > 1]
    assert ours.lineage.lengths.tolist() == [0] * beam + [2] * beam + [2 * (beam > 1)] * beam
    assert (ours.written.parents[2, 1] < beam - 1).all() or beam == 1
    for words in (ours.token, ours.written.words):
        assert ((words >= 0) & (words < 11)).all()


@pytest.mark.parametrize(("beam", "norm"), [(3, "post"), (1, "pre")])
def test_a_search_with_all_kernels_finds_what_the_plain_search_finds(
    monkeypatch, use_kernels, beam, norm
):
    monkeypatch.setattr(rooms, "ROWS", 2 * beam)
    monkeypatch.setattr(rooms, "LOOK", 2)
    draw = random.Random(1)
    some = [Sentence(tuple(draw.choices(range(3, 12), k=draw.randint(1, 6)))) for _ in range(4)]
    search = Search(beam=beam, nbest=beam, max_len=6)
    found = {}
    for has_kernels in (False, True):
        use_kernels(has_kernels)
        engine = TorchEngine([network(norm=norm)], pad=0, bos=1, eos=2, longest=24, device=DEVICE)
        found[has_kernels] = engine._rooms.search(some, search)
    for own, others in zip(found[True], found[False], strict=True):
        assert [(h.ids, h.is_finished) for h in own] == [(h.ids, h.is_finished) for h in others]
        assert [h.score for h in own] == pytest.approx([h.score for h in others], rel=1e-4)
    ends = [one.is_finished for own in found[True] for one in own]
    assert any(ends), "some come to an end ..."
    assert not all(ends), "... and some are cut off"
