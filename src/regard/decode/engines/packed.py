"""Matrices laid out as oneDNN likes them, for a network that will only translate on a CPU.

A step of decoding has few rows, and most of its time goes into reading matrices. In this layout,
made once, a product with 1 to 32 rows takes a half to an eighth of the time. The operator is the
one that torch's compiler uses for weights that are frozen.

For every number of rows it meets it keeps something that is never given back: ten thousand lines of
all lengths cost 200 MB. So rows are filled up to one of a few numbers.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import pad

ROWS = 32  # what the layout is made for; more or fewer do as well


class PackedLinear(nn.Module):
    """The same numbers as a linear layer, whose weights can no longer be read or learned."""

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self.in_features, self.out_features = linear.in_features, linear.out_features
        weight = linear.weight.detach()
        self.packed = torch.ops.mkldnn._reorder_linear_weight(weight, ROWS)
        self.bias = None if linear.bias is None else linear.bias.detach()

    def forward(self, x: Float[Tensor, "*T D"]) -> Float[Tensor, "*T _"]:
        """x W^T + b."""
        x_ND = x.reshape(-1, self.in_features)
        n_rows = len(x_ND)
        if n_more := _rounded(n_rows) - n_rows:
            x_ND = pad(x_ND, (0, 0, 0, n_more))
        y_ND = torch.ops.mkldnn._linear_pointwise(x_ND, self.packed, self.bias, "none", [], "")
        return y_ND[:n_rows].view(*x.shape[:-1], self.out_features)


def _rounded(n_rows: int) -> int:
    """So many rows or a few more: one of 46 numbers up to 2,048."""
    grain = 1 if n_rows <= 8 else 8 if n_rows <= 64 else 64
    return -(-n_rows // grain) * grain


def can_pack(device: torch.device) -> bool:
    """Whether there is such a layout on this machine."""
    return device.type == "cpu" and torch.backends.mkldnn.is_available()


def pack(network: nn.Module) -> None:
    """Put a packed layer in the place of every linear one."""
    for module in list(network.modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, nn.Linear):
                setattr(module, name, PackedLinear(child))
