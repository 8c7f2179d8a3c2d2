from itertools import count

import numpy as np
import pytest
import torch

from regard.config import ModelConfig
from regard.data.batch import padded_batch
from regard.data.feed import Place
from regard.errors import ModelError
from regard.model import build_model
from regard.text.vocab import Vocabulary
from regard.train.checkpoint import is_whole, load_newest, save_checkpoint
from regard.train.loss import label_smoothed_loss
from regard.train.optim import make_optimizer, make_schedule
from regard.train.trainer import Trainer

VOCAB = Vocabulary(("<pad>", "<s>", "</s>", "<unk>", *"abcdefgh"), pad=0, bos=1, eos=2, unk=3)


def pair(index):
    generator = np.random.default_rng(index)
    src = generator.integers(4, 12, generator.integers(1, 7))
    return src, src[::-1].copy()


def batch_of(indices):
    sources, targets = zip(*map(pair, indices), strict=True)
    return padded_batch(sources, targets, VOCAB, VOCAB)


def uneven_batches(start=0):
    """Batches of 1, 2, 3, 1, 2, 3 ... pairs, each a function of its number."""
    for n in count(start):
        yield Place(0, n + 1), batch_of(range(10 * n, 10 * n + n % 3 + 1))


def make(dropout=0.0, dtype=torch.float64):
    torch.manual_seed(0)
    small = ModelConfig(d_model=16, n_heads=2, n_layers=1, d_ff=32, dropout=dropout)
    model = build_model(small, len(VOCAB), len(VOCAB)).to(dtype)
    return model, make_optimizer(model.parameters(), 1e-3)


def loss_of(model):
    def loss(batch):
        logits = model(batch.src_ids, batch.tgt_ids, batch.src, batch.tgt)
        return label_smoothed_loss(logits, batch.labels, VOCAB.pad, 0.1)

    return loss


def trainer(model, optimizer, batches, **more):
    schedule = make_schedule("inverse_sqrt", 1e-2, 10, 100)
    return Trainer(model, loss_of(model), batches, optimizer, schedule, **more)


def weights(model):
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def test_uneven_accumulation_equals_one_big_batch():
    one, together = make(), make()
    whole = iter([(Place(0, 1), batch_of([0, 10, 11, 20, 21, 22]))])
    trainer(*one, uneven_batches(), accumulate=3).fit(1)
    trainer(*together, whole).fit(1)
    torch.testing.assert_close(weights(one[0]), weights(together[0]), rtol=0, atol=1e-6)


def test_the_loss_falls():
    model, optimizer = make(dtype=torch.float32)
    run = trainer(model, optimizer, uneven_batches(), accumulate=3)
    run.fit(1)
    first = run.last_loss
    run.fit(60)
    assert run.last_loss < 0.8 * first


def test_hooks_run_at_their_own_pace_and_at_the_end():
    seen = []
    hooks = {
        3: [lambda t: seen.append(("three", t.state.step))],
        5: [lambda t: seen.append(("five", t.state.step))],
    }
    trainer(*make(), uneven_batches(), hooks=hooks).fit(7)
    assert seen == [("three", 3), ("five", 5), ("three", 6), ("three", 7), ("five", 7)]


@pytest.mark.parametrize("stopped_at", [1, 4, 7])
def test_a_resumed_run_equals_one_that_never_stopped(tmp_path, stopped_at):
    whole = make(dropout=0.3, dtype=torch.float32)
    uninterrupted, losses = trainer(*whole, uneven_batches(), accumulate=2), []
    uninterrupted.hooks = {1: [lambda t: losses.append(t.last_loss)]}
    uninterrupted.fit(9)

    first = make(dropout=0.3, dtype=torch.float32)
    run = trainer(*first, uneven_batches(), accumulate=2)
    run.fit(stopped_at)
    save_checkpoint(tmp_path, *first, run.state, keep=2)
    torch.manual_seed(99)
    second = make(dropout=0.3, dtype=torch.float32)
    state = load_newest(tmp_path, *second)
    assert state == run.state
    rest = trainer(*second, uneven_batches(state.place.step), accumulate=2, state=state)
    again = []
    rest.hooks = {1: [lambda t: again.append(t.last_loss)]}
    rest.fit(9)
    assert again == losses[stopped_at:]
    assert torch.equal(weights(second[0]), weights(whole[0]))


def test_the_newest_whole_checkpoint_is_taken_and_older_ones_go(tmp_path):
    model, optimizer = make()
    run = trainer(model, optimizer, uneven_batches())
    for step in range(1, 5):
        run.fit(step)
        save_checkpoint(tmp_path, model, optimizer, run.state, keep=2)
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["step-00000003", "step-00000004"]
    for name in ("model.safetensors", "optimizer.safetensors", "state.json"):
        assert is_whole(tmp_path / "step-00000003")
        path = tmp_path / "step-00000004" / name
        whole = path.read_bytes()
        for damaged in (whole[:-1], bytes([whole[0] ^ 1]) + whole[1:], b""):
            path.write_bytes(damaged)
            assert load_newest(tmp_path, *make()).step == 3
        path.write_bytes(whole)
    (tmp_path / "step-00000004" / "MANIFEST.json").unlink()
    assert load_newest(tmp_path, *make()).step == 3
    assert load_newest(tmp_path / "nothing", *make()) is None


def broken(place, at):
    """Batches whose loss is not a number from some place on."""
    model, optimizer = make()
    run = trainer(model, optimizer, uneven_batches())
    right = run.loss

    def loss(batch):
        return right(batch) * (float("nan") if run.state.step >= at else 1.0)

    run.loss = loss
    return run


def test_an_update_that_is_not_finite_is_skipped_and_counted():
    run = broken(None, at=2)
    run.fit(2)
    before = weights(run.model).clone()
    run.fit(4)
    assert torch.equal(weights(run.model), before)
    assert (run.state.skipped, run.state.step) == (2, 4)


def test_too_many_such_updates_stop_the_run_and_name_a_tensor():
    with pytest.raises(
        ModelError,
        match=r"^5 updates in a row had a loss or gradient that is not finite, the last at "
        r"update 5 in \S+.*; a smaller train\.lr may help$",
    ):
        broken(None, at=0).fit(10)


def test_weights_that_are_not_finite_are_not_saved(tmp_path):
    model, optimizer = make()
    run = trainer(model, optimizer, uneven_batches())
    run.fit(1)
    with torch.no_grad():
        model.output.weight[0, 0] = float("inf")
    with pytest.raises(ModelError, match=r"holds numbers that are not finite, so it is not saved$"):
        save_checkpoint(tmp_path, model, optimizer, run.state, keep=1)
    assert not list(tmp_path.iterdir())


def test_weights_of_another_model_are_refused_with_all_that_is_wrong(tmp_path):
    model, optimizer = make()
    run = trainer(model, optimizer, uneven_batches())
    run.fit(1)
    save_checkpoint(tmp_path, model, optimizer, run.state, keep=1)
    other = build_model(ModelConfig(d_model=16, n_heads=2, n_layers=1, d_ff=8), 12, 12)
    with pytest.raises(ModelError) as caught:
        load_newest(tmp_path, other, make_optimizer(other.parameters(), 1.0))
    assert (
        "decoder.layers.0.feed_forward.inner.weight has shape (32, 16) instead of (8, 16)"
        in str(caught.value)
    )
    assert "encoder.layers.0.feed_forward.outer.weight has shape" in str(caught.value)
    assert str(caught.value).startswith("the weights do not fit the model: ")
