"""Padded rows for encoders that read along a sentence, whatever way the sentences came."""

from collections.abc import Callable

from jaxtyping import Bool, Float
from torch import Tensor

from regard.attention.masks import Blocks

Read = Callable[[Tensor, Tensor | None], Tensor]
"""Rows and the padding mask in, rows of the same shape out."""


def by_rows(
    read: Read, x: Float[Tensor, "*B S D"], mask: Bool[Tensor, "B 1 S"] | Blocks | None
) -> Float[Tensor, "*B S D"]:
    """Read padded rows as they are, and packed ones sentence by sentence."""
    if not isinstance(mask, Blocks):
        return read(x, mask)
    layout, n_tokens = mask.query, x.shape[-2]
    rows = layout.unpack(x)
    return layout.pack(read(rows, mask.padded(rows.shape[-2], rows.shape[-2])), n_tokens)
