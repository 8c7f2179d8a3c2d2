import re

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from regard.data.batching import (
    PackedShape,
    n_packed_batches,
    packed_plan,
    packed_shape,
    padded_plan,
)
from regard.errors import ConfigError

lengths = st.lists(st.tuples(st.integers(2, 40), st.integers(2, 40)), min_size=1, max_size=300).map(
    lambda pairs: tuple(np.array(side) for side in zip(*pairs, strict=True))
)


def corpus(n=20_000, seed=0):
    """Lengths like those of real sentences: log-normal, the sides correlated."""
    generator = np.random.default_rng(seed)
    shared = generator.normal(2.8, 0.5, n)
    src, tgt = (np.exp(shared + generator.normal(0, 0.2, n)).clip(2, 200) for _ in range(2))
    return src.astype(np.int64), (1.2 * tgt).astype(np.int64)


def places(plan, src_lens, tgt_lens):
    batches = [plan.batch(i) for i in range(len(plan))]
    return sum(len(b) * int(src_lens[b].max() + tgt_lens[b].max()) for b in batches)


@given(lengths, st.integers(60, 400), st.integers(1, 3), st.integers(0, 5))
def test_packed_batches_hold_every_pair_once_and_fit_their_shape(lens, tokens, ranks, epoch):
    n_batches = n_packed_batches(*lens, tokens, ranks)
    assume(n_batches <= len(lens[0]))
    shape = packed_shape(*lens, n_batches)
    plan = packed_plan(*lens, shape, n_batches, seed=1, epoch=epoch)
    assert sorted(plan.pairs.tolist()) == list(range(len(lens[0])))
    assert len(plan) == n_batches
    assert n_batches % ranks == 0
    for i in range(n_batches):
        pairs = plan.batch(i)
        assert lens[0][pairs].sum() <= shape.n_src
        assert lens[1][pairs].sum() <= shape.n_tgt
        assert len(pairs) <= shape.n_slots


@given(lengths, st.integers(40, 400), st.integers(1, 4), st.integers(0, 5))
def test_padded_batches_hold_every_pair_once_and_keep_the_budget(lens, tokens, ranks, epoch):
    try:
        plan = padded_plan(*lens, tokens, seed=1, epoch=epoch, ranks=ranks)
    except ConfigError:  # only where no batch could be cut in two any more
        plan = padded_plan(*lens, tokens, seed=1, epoch=epoch)
        assert len(lens[0]) < len(plan) + ranks
        return
    assert sorted(plan.pairs.tolist()) == list(range(len(lens[0])))
    for i in range(len(plan)):
        pairs = plan.batch(i)
        assert len(pairs) * max(lens[0][pairs].max(), lens[1][pairs].max()) <= tokens
    assert len(plan) % ranks == 0


def test_packed_batches_waste_less_than_one_percent():
    lens = corpus()
    n_batches = n_packed_batches(*lens, 32_768)
    shape = packed_shape(*lens, n_batches)
    for epoch in range(5):
        assert len(packed_plan(*lens, shape, n_batches, seed=0, epoch=epoch)) == n_batches
    wasted = 1 - (lens[0].sum() + lens[1].sum()) / (n_batches * (shape.n_src + shape.n_tgt))
    assert wasted < 0.01


def test_padded_batches_waste_less_than_six_percent():
    lens = corpus(100_000)
    plan = padded_plan(*lens, 4096, seed=0, epoch=0)
    assert 1 - (lens[0].sum() + lens[1].sum()) / places(plan, *lens) < 0.06


def test_sides_are_sized_by_their_share_of_the_corpus():
    src_lens, tgt_lens = corpus()
    shape = packed_shape(src_lens, tgt_lens, 10)
    assert shape.n_tgt / shape.n_src == pytest.approx(tgt_lens.sum() / src_lens.sum(), rel=0.01)
    assert (shape.max_src_len, shape.max_tgt_len) == (src_lens.max(), tgt_lens.max())


@pytest.mark.parametrize("kind", ["packed", "padded"])
def test_a_plan_depends_on_seed_and_epoch_alone(kind):
    lens = corpus(2000)
    n_batches = n_packed_batches(*lens, 4096)
    shape = packed_shape(*lens, n_batches)

    def plan(seed, epoch):
        if kind == "padded":
            return padded_plan(*lens, 4096, seed, epoch).pairs.tolist()
        return packed_plan(*lens, shape, n_batches, seed, epoch).pairs.tolist()

    assert plan(1, 2) == plan(1, 2)
    assert plan(1, 2) != plan(1, 3)
    assert plan(1, 2) != plan(2, 2)


def test_every_packed_batch_has_long_and_short_sentences():
    lens = corpus(5000)
    n_batches = n_packed_batches(*lens, 8192)
    plan = packed_plan(*lens, packed_shape(*lens, n_batches), n_batches, seed=0, epoch=0)
    means = [lens[0][plan.batch(i)].mean() for i in range(len(plan))]
    assert max(means) < 1.05 * min(means)


def test_a_corpus_that_cannot_be_dealt_evenly_is_refused():
    lens = np.array([50, 1, 1]), np.array([50, 1, 1])
    sentence = (
        "the corpus cannot be dealt evenly into 2 batches of 32 and 32 tokens; "
        "choose more tokens a batch, or padded batches"
    )
    with pytest.raises(ConfigError, match=f"^{re.escape(sentence)}$"):
        packed_plan(*lens, PackedShape(32, 32, 8, 50, 50), 2, seed=0, epoch=0)


@pytest.mark.parametrize("tokens", [512, 1024, 4096])
def test_small_packed_batches_can_be_dealt_from_uneven_sentences(tokens):
    generator = np.random.default_rng(1)
    src, tgt = (np.exp(generator.normal(2.5, 0.9, 5000)).clip(2, 250).astype(int) for _ in "ab")
    n_batches = n_packed_batches(src, tgt, tokens)
    shape = packed_shape(src, tgt, n_batches)
    for epoch in range(4):
        assert len(packed_plan(src, tgt, shape, n_batches, seed=3, epoch=epoch)) == n_batches


@pytest.mark.parametrize("ranks", [2, 4])
def test_more_processes_than_pairs_are_refused(ranks):
    lens = np.array([3]), np.array([3])
    sentence = (
        f"1 pairs are too few for {ranks} batches; choose more tokens a batch, or fewer processes"
    )
    with pytest.raises(ConfigError, match=f"^{re.escape(sentence)}$"):
        padded_plan(*lens, 100, seed=0, epoch=0, ranks=ranks)
    with pytest.raises(ConfigError, match=f"^{re.escape(sentence)}$"):
        packed_plan(*lens, PackedShape(8, 8, 8, 3, 3), ranks, seed=0, epoch=0)
