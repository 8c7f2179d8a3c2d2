"""What training makes small: the network and its loss as one thing to call, compile and share."""

from typing import Any

from torch import Tensor, nn

from regard.attention import kernels
from regard.data.batch import Batch
from regard.train.loss import label_smoothed_loss, output_and_loss


class Objective(nn.Module):
    """The loss of a batch, a sum over its tokens."""

    def __init__(self, network: nn.Module, *, pad: int, smoothing: float) -> None:
        super().__init__()
        self.network = network
        self.pad = pad
        self.smoothing = smoothing

    def forward(self, batch: Batch) -> Tensor:
        """Teacher forcing: every word is predicted from the true ones before it."""
        if kernels.ARE_HERE and batch.labels.is_cuda:  # elsewhere chunks are no faster
            return self.in_chunks(batch)
        logits = self.network(batch.src_ids, batch.tgt_ids, batch.src, batch.tgt)
        return label_smoothed_loss(logits, batch.labels, self.pad, self.smoothing)

    def in_chunks(self, batch: Batch) -> Tensor:
        """The same loss, without ever holding all logits."""
        network: Any = self.network
        hidden = network.decode(batch.tgt_ids, network.encode(batch.src_ids, batch.src), batch.tgt)
        output = network.output
        return output_and_loss(
            hidden, output.weight, output.bias, batch.labels, self.pad, self.smoothing
        )
