import numpy as np
import torch

from regard.config import ModelConfig
from regard.model import build_model
from regard.study.learning import (
    DIGITS,
    batch_of,
    digit_task,
    loss_and_accuracy,
    share_exact,
    teach,
    written,
)


def words(ids):
    return "".join(DIGITS.piece(int(id)) for id in ids)


def network():
    torch.manual_seed(1)
    config = ModelConfig(d_model=16, n_layers=1, n_heads=2, d_ff=32, norm="pre", dropout=0.0,
                         max_len=32)  # fmt: skip
    return build_model(config, len(DIGITS), len(DIGITS))


def test_a_task_of_digits_has_the_lengths_asked_for_and_the_right_answers():
    copy, reverse = (digit_task(task, 3, range(2, 5)) for task in ("copy", "reverse"))
    for number in range(50):
        (src, same), (src2, reversed_) = copy(number), reverse(number)
        assert len(src) in range(2, 5)
        assert words(same) == words(src)
        assert words(reversed_) == words(src2)[::-1]
    assert {len(copy(number)[0]) for number in range(50)} == {2, 3, 4}


def test_a_pair_is_a_function_of_its_number_and_test_pairs_are_never_trained_on():
    train, again = digit_task("copy", 3, range(2, 5)), digit_task("copy", 3, range(2, 5))
    assert words(train(7)[0]) == words(again(7)[0])
    test = digit_task("copy", 9, range(2, 5), "test")
    seen = {words(train(number)[0]) for number in range(400)}
    assert not seen & {words(test(number)[0]) for number in range(100)}


def test_a_taught_network_predicts_better_and_the_same_seed_gives_the_same():
    task = digit_task("copy", 1, range(1, 3))
    losses = []
    for _ in range(2):
        taught = network()
        before = loss_and_accuracy(taught, task, 40)[0]
        teach(taught, task, updates=40, lr=1e-2, rows=32, seed=1)
        assert not taught.training
        losses.append(loss_and_accuracy(taught, task, 40)[0])
        assert losses[-1] < 0.7 * before
    assert losses[0] == losses[1]


def test_what_is_written_is_what_stepping_greedily_gives():
    model, task = network().eval(), digit_task("reverse", 2, range(3, 4))
    said = written(model, task, 5)
    for number, (mine, right) in enumerate(said):
        assert words(right) == words(task(number)[1])
        src = batch_of(task, [number]).src_ids
        state, token, expected = model.start(model.encode(src)), DIGITS.bos, []
        while len(expected) < len(mine):
            logits, state = model.step(torch.tensor([token]), state)
            token = int(logits.argmax())
            expected.append(token)
        assert np.array_equal(mine, expected)
    assert share_exact(model, task, 5) == sum(np.array_equal(a, b) for a, b in said) / 5
