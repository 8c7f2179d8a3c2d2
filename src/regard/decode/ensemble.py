"""Several networks as one: the mean of their probabilities.

p(word) = 1/n Σ p_i(word);  its logarithm takes the place of a network's logits.

The networks share the vocabulary of either side; who puts them together has seen to that. Whatever
else they are may differ: kind, depth, width.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.attention.layout import Layout
from regard.model.protocol import Explained, Memory
from regard.model.recurrent import Recurrent
from regard.model.transformer import Transformer

Network = Transformer | Recurrent


@dataclass(frozen=True, slots=True)
class EnsembleState:
    """What each of the networks remembers."""

    states: tuple[Any, ...]

    def reorder(
        self, rows: Int[Tensor, "N"], sentences: Int[Tensor, "B"] | None = None
    ) -> "EnsembleState":
        """Each of them reordered."""
        return EnsembleState(tuple(state.reorder(rows, sentences) for state in self.states))


class Ensemble:
    """Networks of one vocabulary that speak with one voice."""

    def __init__(self, networks: Sequence[Network]) -> None:
        self.networks = tuple(networks)

    def __call__(
        self,
        src_ids: Int[Tensor, "B S"],
        tgt_ids: Int[Tensor, "B T"],
        src: Layout | None = None,
        tgt: Layout | None = None,
    ) -> Float[Tensor, "B T V"]:
        """Teacher forcing: log-probabilities of the word after each of `tgt_ids`."""
        return _together([network(src_ids, tgt_ids, src, tgt) for network in self.networks])

    def encode(self, src_ids: Int[Tensor, "B S"], src: Layout | None = None) -> tuple[Memory, ...]:
        """The source, read by each."""
        return tuple(network.encode(src_ids, src) for network in self.networks)

    def start(self, memories: tuple[Memory, ...]) -> EnsembleState:
        """Nothing written yet, a row for each sentence."""
        pairs = zip(self.networks, memories, strict=True)
        return EnsembleState(tuple(network.start(memory) for network, memory in pairs))

    def step(
        self, token: Int[Tensor, "N"], state: EnsembleState
    ) -> tuple[Float[Tensor, "N V"], EnsembleState]:
        """Log-probabilities of the word after `token`, which is now written."""
        pairs = zip(self.networks, state.states, strict=True)
        logits, states = zip(*(network.step(token, one) for network, one in pairs), strict=True)
        return _together(logits), EnsembleState(states)

    def explain(
        self,
        src_ids: Int[Tensor, "B S"],
        tgt_ids: Int[Tensor, "B T"],
        src: Layout | None = None,
        tgt: Layout | None = None,
    ) -> Explained:
        """The same as `__call__`; of the attention to the source the mean, as of one head."""
        parts = [network.explain(src_ids, tgt_ids, src, tgt) for network in self.networks]
        cross = torch.stack([part.cross[-1].mean(dim=-3) for part in parts]).mean(dim=0)
        logits = _together([part.logits for part in parts])
        return Explained(logits, None, None, cross[None, :, None])


def _together(logits: Sequence[Float[Tensor, "... V"]]) -> Float[Tensor, "... V"]:
    """log 1/n Σ p_i."""
    log_p = torch.stack([one.float().log_softmax(-1) for one in logits])
    return log_p.logsumexp(dim=0) - math.log(len(log_p))
