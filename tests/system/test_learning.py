"""The networks learn: a task with one right answer, from nothing, in seconds.

The training loop here is the plainest there is; regard's own comes with its own tests.
"""

import pytest
import torch
from torch.nn import functional as F

from regard.config import ModelConfig
from regard.model import build_model

BOS, N_WORDS, LENGTH = 0, 9, 5


def reversals(n):
    src = torch.randint(1, N_WORDS, (n, LENGTH))
    return src, src.flip(1)


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [
        {"norm": "pre"},
        {"norm": "pre", "score": "dot"},
        {"norm": "pre", "score": "additive"},
        {"norm": "pre", "score": "gaussian"},
        {"kind": "recurrent", "d_model": 64},
    ],
    ids=lambda settings: " ".join(map(str, settings.values())),
)
def test_a_network_learns_to_reverse_and_decodes_step_by_step(settings):
    small = {"d_model": 32, "n_heads": 2, "d_ff": 64, "n_layers": 1, "dropout": 0.0}
    config = ModelConfig(**{**small, **settings})
    model = build_model(config, N_WORDS, N_WORDS)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for _ in range(600):
        src, tgt = reversals(64)
        shifted = torch.cat([torch.full((64, 1), BOS), tgt[:, :-1]], dim=1)
        loss = F.cross_entropy(model(src, shifted).flatten(0, 1), tgt.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    src, tgt = reversals(200)
    assert greedy(model.eval(), src).eq(tgt).all(1).float().mean() > 0.95


@torch.no_grad()
def greedy(model, src):
    state, token = model.start(model.encode(src)), torch.full((len(src),), BOS)
    written = []
    for _ in range(LENGTH):
        logits, state = model.step(token, state)
        token = logits.argmax(-1)
        written.append(token)
    return torch.stack(written, dim=1)
