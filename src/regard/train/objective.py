"""What training makes small: the network and its loss as one thing to call, compile and share."""

from torch import Tensor, nn

from regard.data.batch import Batch
from regard.train.loss import label_smoothed_loss


class Objective(nn.Module):
    """The loss of a batch, a sum over its tokens."""

    def __init__(self, network: nn.Module, *, pad: int, smoothing: float) -> None:
        super().__init__()
        self.network = network
        self.pad = pad
        self.smoothing = smoothing

    def forward(self, batch: Batch) -> Tensor:
        """Teacher forcing: every word is predicted from the true ones before it."""
        logits = self.network(batch.src_ids, batch.tgt_ids, batch.src, batch.tgt)
        return label_smoothed_loss(logits, batch.labels, self.pad, self.smoothing)
