import math

import torch

from regard.train.loss import label_smoothed_loss


def test_the_loss_equals_its_formula_and_leaves_out_padding():
    logits, labels = torch.randn(2, 3, 5), torch.tensor([[1, 4, 0], [2, 0, 0]])
    log_p = logits.log_softmax(-1)
    expected = 0.0
    for b in range(2):
        for t in range(3):
            if labels[b, t] != 0:
                right = -log_p[b, t, labels[b, t]].item()
                spread = -log_p[b, t].mean().item()
                expected += 0.9 * right + 0.1 * spread
    assert math.isclose(label_smoothed_loss(logits, labels, 0, 0.1).item(), expected, rel_tol=1e-5)


def test_without_smoothing_a_certain_right_answer_costs_nothing():
    logits = torch.tensor([[0.0, 100.0]])
    assert label_smoothed_loss(logits, torch.tensor([1]), 0, 0.0).item() == 0.0
