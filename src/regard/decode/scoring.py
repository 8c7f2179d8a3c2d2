"""How probable a given translation is, and what of its source it looks at: one pass, no search.

The network is given all words of the translation at once, each place seeing only those before it.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Int
from torch import Tensor

from regard.attention.layout import Padded
from regard.decode.coverage import Weights
from regard.decode.ensemble import Ensemble, Network
from regard.decode.ready import padded_ids
from regard.decode.search import Ids, Scored

Pair = tuple[Ids, Ids]


@torch.inference_mode()
def scored(
    network: Network | Ensemble, pairs: Sequence[Pair], *, pad: int, bos: int, device: torch.device
) -> list[Scored]:
    """log p of each word of each target, given its source and the words before it."""
    src_ids, tgt_ids, src, tgt = _given(pairs, pad, bos, device)
    log_p_BTV = network(src_ids, tgt_ids, src, tgt).float().log_softmax(-1)
    words, _ = padded_ids([target or (bos,) for _, target in pairs], bos, device)
    log_p = log_p_BTV.gather(2, words[:, :, None])[:, :, 0].tolist()
    return [
        Scored(tuple(row[: len(target)])) for row, (_, target) in zip(log_p, pairs, strict=True)
    ]


@torch.inference_mode()
def attentions(
    network: Network | Ensemble, pairs: Sequence[Pair], *, pad: int, bos: int, device: torch.device
) -> list[Weights]:
    """What each word of each target looks at: the mean over the heads of the last layer."""
    src_ids, tgt_ids, src, tgt = _given(pairs, pad, bos, device)
    weights_BTS = network.explain(src_ids, tgt_ids, src, tgt).cross[-1].mean(dim=1)
    return [
        weights[: len(target), : len(source)]
        for weights, (source, target) in zip(weights_BTS.float().cpu().numpy(), pairs, strict=True)
    ]


def _given(
    pairs: Sequence[Pair], pad: int, bos: int, device: torch.device
) -> tuple[Int[Tensor, "B S"], Int[Tensor, "B T"], Padded, Padded]:
    """The sources, and the words before each word of the targets."""
    src_ids, src = padded_ids([source for source, _ in pairs], pad, device)
    tgt_ids, tgt = padded_ids([(bos, *target[:-1]) for _, target in pairs], bos, device)
    return src_ids, tgt_ids, src, tgt
