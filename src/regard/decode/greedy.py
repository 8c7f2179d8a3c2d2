"""The most probable word, again and again. The search knows no model: it is given a step."""

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

Step = Callable[[Int[Tensor, "N"], Any], tuple[Float[Tensor, "N V"], Any]]


@torch.no_grad()
def greedy(
    step: Step, state: Any, n_rows: int, *, bos: int, eos: int, max_len: int, device: torch.device
) -> list[list[int]]:
    """The words of each row up to its end, which is not among them, or up to `max_len`."""
    token = torch.full((n_rows,), bos, device=device)
    is_done = torch.zeros(n_rows, dtype=torch.bool, device=device)
    written = []
    for _ in range(max_len):
        logits, state = step(token, state)
        token = logits.argmax(-1)
        is_done |= token == eos
        written.append(token)
        if bool(is_done.all()):
            break
    rows = torch.stack(written, dim=1).tolist()
    return [row[: row.index(eos)] if eos in row else row for row in rows]
