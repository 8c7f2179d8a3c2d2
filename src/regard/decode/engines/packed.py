"""Matrices laid out as oneDNN likes them, for a network that will only translate on a CPU.

A step of decoding has few rows, and most of its time goes into reading matrices. In this layout,
made once, a product with 1 to 32 rows takes a half to an eighth of the time. The operator is the
one that torch's compiler uses for weights that are frozen.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

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
        return torch.ops.mkldnn._linear_pointwise(x, self.packed, self.bias, "none", [], "")


def can_pack(device: torch.device) -> bool:
    """Whether there is such a layout on this machine."""
    return device.type == "cpu" and torch.backends.mkldnn.is_available()


def pack(network: nn.Module) -> None:
    """Put a packed layer in the place of every linear one."""
    for module in list(network.modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, nn.Linear):
                setattr(module, name, PackedLinear(child))
