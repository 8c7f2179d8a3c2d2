"""What training makes small: the network and its loss as one thing to call, compile and share."""

from typing import Any

from torch import Tensor, nn

from regard.attention import kernels
from regard.data.batch import Batch
from regard.train.loss import disagreement, label_smoothed_loss, output_and_loss


class Objective(nn.Module):
    """The loss of a batch, a sum over its tokens."""

    def __init__(
        self, network: nn.Module, *, pad: int, smoothing: float, r_drop: float = 0.0
    ) -> None:
        super().__init__()
        self.network = network
        self.pad = pad
        self.smoothing = smoothing
        self.r_drop = r_drop

    def forward(self, batch: Batch) -> Tensor:
        """Teacher forcing: every word is predicted from the true ones before it."""
        if self.r_drop and self.network.training:
            return self.twice(batch)
        if kernels.ARE_HERE and batch.labels.is_cuda:  # elsewhere chunks are no faster
            return self.in_chunks(batch)
        return self.of_logits(self.logits(batch), batch)

    def logits(self, batch: Batch) -> Tensor:
        """What the network says; another time it says something else, while dropout is on."""
        logits: Tensor = self.network(batch.src_ids, batch.tgt_ids, batch.src, batch.tgt)
        return logits

    def of_logits(self, logits: Tensor, batch: Batch) -> Tensor:
        """How wrong that is."""
        return label_smoothed_loss(logits, batch.labels, self.pad, self.smoothing)

    def twice(self, batch: Batch) -> Tensor:
        """R-Drop: the mean loss of two passes, and how far from each other their dropout led.

        (L_1 + L_2) / 2 + r (KL(p_1 || p_2) + KL(p_2 || p_1)) / 4, r = 5 for translation
        (Liang et al. 2021)
        """
        first, second = self.logits(batch), self.logits(batch)
        wrong = self.of_logits(first, batch) + self.of_logits(second, batch)
        apart = disagreement(first, second, batch.labels, self.pad)
        return wrong / 2 + self.r_drop * apart / 4

    def in_chunks(self, batch: Batch) -> Tensor:
        """The same loss, without ever holding all logits."""
        network: Any = self.network
        hidden = network.decode(batch.tgt_ids, network.encode(batch.src_ids, batch.src), batch.tgt)
        output = network.output
        return output_and_loss(
            hidden, output.weight, output.bias, batch.labels, self.pad, self.smoothing
        )
