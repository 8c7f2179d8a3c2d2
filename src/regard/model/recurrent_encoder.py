"""An encoder of gated recurrent units, with the interface of the one that attends.

Bahdanau's translator has its own (`recurrent.py`); this one is for comparing the three.
"""

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from regard.attention.masks import Blocks
from regard.model.encoder import Encoded
from regard.model.rows import by_rows


class RecurrentEncoder(nn.Module):
    """A GRU in both directions, each half as wide."""

    def __init__(self, d_model: int, n_layers: int = 1) -> None:
        super().__init__()
        self.gru = nn.GRU(d_model, d_model // 2, n_layers, batch_first=True, bidirectional=True)

    def forward(
        self,
        x: Float[Tensor, "*B S D"],
        mask: Bool[Tensor, "B 1 S"] | Blocks | None = None,
        positions: Int[Tensor, "S"] | None = None,
        *,
        wants_weights: bool = False,
    ) -> Encoded:
        """Every source token in the light of its sentence; there are no weights to ask for."""
        return Encoded(by_rows(self._read, x, mask))

    def _read(self, x: Tensor, mask: Tensor | None) -> Tensor:
        if mask is None:
            return self.gru(x)[0]
        # The backward direction must start at each sentence's own end.
        lens = mask.sum(dim=-1)[:, 0].clamp(min=1).cpu()
        packed = pack_padded_sequence(x, lens, batch_first=True, enforce_sorted=False)
        return pad_packed_sequence(self.gru(packed)[0], batch_first=True, total_length=x.shape[1])[
            0
        ]
