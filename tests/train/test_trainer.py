import math
from itertools import count

import numpy as np
import pytest
import torch
from torch import nn

from regard.attention.layout import Packed
from regard.config import ModelConfig
from regard.data.batch import halves, packed_batch, padded_batch
from regard.data.batching import PackedShape
from regard.data.feed import Place
from regard.errors import ModelError, ResourceError
from regard.model import build_model
from regard.model.weights import load_weights
from regard.storage import sha256
from regard.text.vocab import Vocabulary
from regard.train import checkpoint
from regard.train.average import RunningAverage, average
from regard.train.checkpoint import (
    Checkpoint,
    best_checkpoints,
    checkpoints,
    is_whole,
    newest_checkpoint,
    remove_all_but,
    write_checkpoint,
)
from regard.train.objective import Objective
from regard.train.optim import make_optimizer, make_schedule
from regard.train.state import TrainState
from regard.train.trainer import Trainer

VOCAB = Vocabulary(("<pad>", "<s>", "</s>", "<unk>", *"abcdefgh"), pad=0, bos=1, eos=2, unk=3)


def pair(index):
    generator = np.random.default_rng(index)
    src = generator.integers(4, 12, generator.integers(1, 7))
    return src, src[::-1].copy()


def batch_of(indices):
    sources, targets = zip(*map(pair, indices), strict=True)
    return padded_batch(sources, targets, VOCAB, VOCAB, tuple(indices))


def uneven_batches(start=0):
    """Batches of 1, 2, 3, 1, 2, 3 ... pairs, each a function of its number."""
    for n in count(start):
        yield Place(0, n + 1), batch_of(range(10 * n, 10 * n + n % 3 + 1))


def make(dropout=0.0, dtype=torch.float64):
    torch.manual_seed(0)
    small = ModelConfig(d_model=16, n_heads=2, n_layers=1, d_ff=32, dropout=dropout)
    return build_model(small, len(VOCAB), len(VOCAB)).to(dtype)


def trainer(model, batches=None, *, ema=0.0, lr=1e-2, **more):
    schedule = make_schedule("inverse_sqrt", lr, 10, 100)
    objective = Objective(model, pad=VOCAB.pad, smoothing=0.1)
    average = RunningAverage(model, ema) if ema else None
    optimizer = make_optimizer(model.parameters(), lr)
    batches = uneven_batches() if batches is None else batches
    return Trainer(objective, batches, optimizer, schedule, average=average, **more)


def weights(model):
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def test_uneven_accumulation_equals_one_big_batch():
    one, together = make(), make()
    whole = iter([(Place(0, 1), batch_of([0, 10, 11, 20, 21, 22]))])
    trainer(one, accumulate=3).fit(1)
    trainer(together, whole).fit(1)
    torch.testing.assert_close(weights(one), weights(together), rtol=0, atol=1e-6)


def test_the_loss_falls():
    run = trainer(make(dtype=torch.float32), accumulate=3)
    run.fit(1)
    first = run.last_loss
    run.fit(60)
    assert run.last_loss < 0.8 * first


def test_hooks_run_at_their_own_pace_in_their_order_and_at_the_end():
    seen = []
    hooks = [
        (3, lambda t: seen.append(("three", t.state.step))),
        (2, lambda t: seen.append(("two", t.state.step))),
    ]
    trainer(make(), hooks=hooks).fit(7)
    assert seen == [
        ("two", 2), ("three", 3), ("two", 4), ("three", 6), ("two", 6), ("three", 7), ("two", 7),
    ]  # fmt: skip


def test_a_hook_can_stop_the_run():
    def stop(run):
        run.wants_to_stop = run.state.step == 3

    run = trainer(make(), hooks=[(1, stop)])
    run.fit(9)
    assert run.state.step == 3


def test_a_checkpoint_stays_what_it_was_while_the_run_goes_on():
    run = trainer(make(), ema=0.9)
    run.fit(3)
    taken, before = run.checkpoint(), run.checkpoint()
    run.fit(5)
    assert taken.state == before.state != run.state
    for name in ("weights", "moments", "running_average"):
        kept, copied = getattr(taken, name), getattr(before, name)
        assert kept
        assert all(torch.equal(kept[key], copied[key]) for key in copied)
    assert not torch.equal(
        torch.cat([w.flatten() for w in taken.weights.values()]), weights(run.model)
    )


@pytest.mark.parametrize("ema", [0.0, 0.9])
@pytest.mark.parametrize("stopped_at", [1, 4, 7])
def test_a_resumed_run_equals_one_that_never_stopped(tmp_path, stopped_at, ema):
    whole = make(dropout=0.3, dtype=torch.float32)
    losses, again = [], []
    hooks = [(1, lambda t: losses.append(t.last_loss))]
    uninterrupted = trainer(whole, accumulate=2, ema=ema, hooks=hooks)
    uninterrupted.fit(9)

    run = trainer(make(dropout=0.3, dtype=torch.float32), accumulate=2, ema=ema)
    run.fit(stopped_at)
    write_checkpoint(tmp_path, run.checkpoint())

    torch.manual_seed(99)
    model = make(dropout=0.3, dtype=torch.float32)
    found = newest_checkpoint(tmp_path)
    load_weights(model, found.weights)
    hooks = [(1, lambda t: again.append(t.last_loss))]
    batches = uneven_batches(found.state.place.step)
    rest = trainer(model, batches, accumulate=2, ema=ema, hooks=hooks)
    rest.restore(found)
    assert rest.state == run.state
    rest.fit(9)
    assert again == losses[stopped_at:]
    assert torch.equal(weights(model), weights(whole))
    kept, expected = rest.weights(), uninterrupted.weights()
    assert all(torch.equal(kept[name], expected[name]) for name in expected)


def test_dropout_depends_on_the_update_and_not_on_what_was_drawn_between():
    first, second = make(dropout=0.5), make(dropout=0.5)
    trainer(first).fit(4)
    trainer(second, hooks=[(1, lambda t: torch.rand(7))]).fit(4)
    assert torch.equal(weights(first), weights(second))


def test_the_running_average_is_the_recurrence_written_out():
    model = make()
    seen = [weights(model)]
    run = trainer(model, ema=0.5, hooks=[(1, lambda t: seen.append(weights(t.model).clone()))])
    run.fit(5)
    expected = seen[0]
    for step, after in enumerate(seen[1:], start=1):
        decay = min(0.5, (1 + step) / (10 + step))
        expected = decay * expected + (1 - decay) * after
    kept = torch.cat([tensor.flatten() for tensor in run.weights().values()])
    torch.testing.assert_close(kept, expected, rtol=0, atol=1e-12)


def test_the_average_of_checkpoints_is_their_mean():
    sets = [{"w": torch.tensor([1.0, 2.0])}, {"w": torch.tensor([3.0, 2.0])}]
    assert torch.equal(average(sets)["w"], torch.tensor([2.0, 2.0]))


def test_the_newest_whole_checkpoint_is_taken(tmp_path):
    run, warned = trainer(make()), []
    for step in range(1, 5):
        run.fit(step)
        write_checkpoint(tmp_path, run.checkpoint())
        remove_all_but(tmp_path, checkpoints(tmp_path)[:2])
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["step-00000003", "step-00000004"]
    newest = tmp_path / "step-00000004"
    for name in ("model.safetensors", "optimizer.safetensors", "state.json", "MANIFEST.json"):
        path = newest / name
        whole = path.read_bytes()
        for damaged in (whole[:-1], bytes([whole[0] ^ 1]) + whole[1:], b""):
            path.write_bytes(damaged)
            if name == "MANIFEST.json" and is_whole(newest):
                continue  # without its last line break it is as good
            assert newest_checkpoint(tmp_path, warned.append).state.step == 3
            assert warned.pop() == newest
        path.write_bytes(whole)
    assert newest_checkpoint(tmp_path, warned.append).state.step == 4
    assert not warned
    assert newest_checkpoint(tmp_path / "nothing") is None


def test_the_best_checkpoints_are_those_of_the_best_scores(tmp_path):
    run = trainer(make())
    for step, score in enumerate([3.0, math.nan, None, 2.0, 1.0], start=1):
        run.fit(step)
        run.state.score, run.state.score_step = score, step
        write_checkpoint(tmp_path, run.checkpoint())
    low = best_checkpoints(tmp_path, 3, lower_is_better=True)
    assert [int(place.name[5:]) for place in low] == [5, 4, 1]
    high = best_checkpoints(tmp_path, 1, lower_is_better=False)
    assert [int(place.name[5:]) for place in high] == [1]


def test_only_checkpoints_that_come_into_question_are_hashed(tmp_path, monkeypatch):
    for step, score in enumerate([3.0, 1.0, None, 2.0, 1.5], start=1):
        state = TrainState(step=step, score=score, score_step=step)
        write_checkpoint(tmp_path, Checkpoint(state, {"w": torch.ones(2)}, {}))
    hashed = []
    monkeypatch.setattr(
        checkpoint, "sha256", lambda path: (hashed.append(path.parent.name[-1]), sha256(path))[1]
    )
    assert [p.name[-1] for p in best_checkpoints(tmp_path, 1, lower_is_better=True)] == ["2"]
    assert set(hashed) == {"2"}
    hashed.clear()
    (tmp_path / "step-00000002" / "model.safetensors").write_bytes(b"")  # best, but damaged
    (tmp_path / "step-00000001" / "state.json").write_text("{")  # nobody knows its score
    best = best_checkpoints(tmp_path, 2, lower_is_better=True)
    assert [place.name[-1] for place in best] == ["5", "4"]
    assert set(hashed) == {"2", "5", "4"}


class Broken(nn.Module):
    """An objective that fails in a given way from some call on."""

    def __init__(self, run, fail):
        super().__init__()
        self.right, self.fail, self.calls = run.objective, fail, 0
        run.objective = self

    def forward(self, batch):
        self.calls += 1
        return self.fail(self.calls, batch, self.right(batch))


def test_an_update_that_is_not_finite_is_skipped_and_counted():
    run = trainer(make())
    Broken(run, lambda call, batch, loss: loss * (float("nan") if call > 2 else 1.0))
    run.fit(2)
    before = weights(run.model).clone()
    run.fit(4)
    assert torch.equal(weights(run.model), before)
    assert (run.state.skipped, run.state.step) == (2, 4)


def test_too_many_such_updates_stop_the_run_and_name_a_tensor():
    run = trainer(make())
    Broken(run, lambda call, batch, loss: loss * float("nan"))
    with pytest.raises(
        ModelError,
        match=r"^5 updates in a row had a loss or gradient that is not finite, the last at "
        r"update 5 in the gradient of \S+.*; a smaller train\.lr may help$",
    ):
        run.fit(10)


def test_a_weight_that_is_not_finite_is_the_one_named():
    run = trainer(make())
    with torch.no_grad():
        run.model.encoder.layers[0].feed_forward.inner.bias[0] = float("inf")
    with pytest.raises(
        ModelError,
        match=r"update 5 in encoder\.layers\.0\.feed_forward\.inner\.bias; a smaller",
    ):
        run.fit(10)


def test_a_run_that_diverges_stops():
    run = trainer(make())
    Broken(run, lambda call, batch, loss: loss * (50.0 if call > 20 else 1.0))
    with pytest.raises(
        ModelError,
        match=r"^the loss rose from \d\.\d\d to \d+\.\d\d by update 2\d: the run has "
        r"diverged; choose a smaller train\.lr, or a longer train\.warmup$",
    ):
        run.fit(100)


def out_of_memory_above(n_tokens):
    """Memory that a batch of more tokens does not fit into."""

    def fail(call, batch, loss):
        if batch.n_tokens > n_tokens:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to ...")
        return loss

    return fail


def big_batches():
    for n in count():
        yield Place(0, n + 1), batch_of(range(10 * n, 10 * n + 9))


def test_a_batch_that_does_not_fit_is_split_and_the_update_is_the_same():
    whole, split, warned = make(), make(), []
    trainer(whole, big_batches()).fit(3)
    run = trainer(split, big_batches(), tell_split=warned.append)
    broken = Broken(run, out_of_memory_above(20))
    run.fit(3)
    torch.testing.assert_close(weights(split), weights(whole), rtol=0, atol=1e-6)
    assert run.state.split_above <= 20
    assert min(warned) > 20  # told of those alone that did not fit
    calls, seen = broken.calls, len(warned)
    run.fit(4)  # by now it knows what fits
    assert len(warned) == seen
    assert broken.calls - calls < 9


def test_one_pair_that_does_not_fit_stops_the_run():
    run = trainer(make(), big_batches())
    Broken(run, out_of_memory_above(0))
    with pytest.raises(
        ResourceError,
        match=r"^a batch of 1 sentence pairs with \d+ target tokens does not fit in memory; "
        r"choose a smaller train\.tokens, or data\.max_len$",
    ):
        run.fit(1)


def test_another_error_is_not_taken_for_want_of_memory():
    run = trainer(make())

    def fail(call, batch, loss):
        raise RuntimeError("a fault of ours")

    Broken(run, fail)
    with pytest.raises(RuntimeError, match=r"^a fault of ours$"):
        run.fit(1)


def test_halves_hold_the_same_pairs_packed_or_padded():
    sources, targets = zip(*map(pair, range(7)), strict=True)
    shape = PackedShape(64, 64, 20, 10, 10)
    packed = packed_batch(sources, targets, VOCAB, VOCAB, shape, tuple(range(7)))
    for batch in (batch_of(range(7)), packed):
        first, second = halves(batch, VOCAB.pad)
        assert first.pairs + second.pairs == batch.pairs
        assert first.n_tokens + second.n_tokens == batch.n_tokens
        expected = batch_of(range(3)), batch_of(range(3, 7))
        for half, right in zip((first, second), expected, strict=True):
            if isinstance(half.src, Packed):
                row = torch.cat([i[i != 0] for i in right.labels])
                assert torch.equal(half.labels, row)
                assert half.tgt.lens.tolist() == right.tgt.lens.tolist()
            else:
                assert torch.equal(half.labels, right.labels)
                assert torch.equal(half.src_ids, right.src_ids)


def test_weights_that_are_not_finite_are_not_saved(tmp_path):
    run = trainer(make())
    run.fit(1)
    with torch.no_grad():
        run.model.output.weight[0, 0] = float("inf")
    with pytest.raises(
        ModelError, match=r"^\S+ holds numbers that are not finite, so it is not saved$"
    ):
        write_checkpoint(tmp_path, run.checkpoint())
    assert not list(tmp_path.iterdir())


def test_of_many_weights_that_are_not_finite_three_are_named_and_the_others_counted(tmp_path):
    weights = {f"w{n}": torch.full((1,), math.nan) for n in range(5)}
    with pytest.raises(
        ModelError,
        match=r"^w0, w1, w2 and 2 more hold numbers that are not finite, so nothing is saved$",
    ):
        write_checkpoint(tmp_path, Checkpoint(TrainState(step=1), weights, {}))


def test_any_seed_trains_and_draws_as_it_always_did(monkeypatch):
    drawn, seed_all = [], torch.manual_seed
    monkeypatch.setattr(torch, "manual_seed", lambda seed: drawn.append(seed) or seed_all(seed))
    for seed in (1, 5_000_000_000, -5_000_000_000):
        run = trainer(make(dropout=0.1), seed=seed)
        drawn.clear()
        run.fit(2)
        expected = [(seed * 1_000_003 + step) * 8191 for step in (1, 2)]
        assert drawn == [number % 2**64 for number in expected]
        assert math.isfinite(run.last_loss)
        assert seed != 1 or drawn == expected


def test_the_state_comes_back_from_its_table():
    state = TrainState(step=3, place=Place(1, 2), best=0.5, split_above=7)
    assert TrainState.from_table(state.table()) == state
