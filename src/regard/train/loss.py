"""How wrong a prediction is, summed over the words that count.

Twice: from logits, which is the definition, and from what the output layer turns into logits,
chunk by chunk. A row of a sentence's loss has a gradient that needs nothing but the row,

    loss = log(sum exp z) - (1 - e) z_label - e mean(z)
    dloss/dz = softmax(z) - (1 - e) [label] - e / V

so the second makes both at once, and no more than one chunk of logits is ever there.
"""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from regard.attention import kernels

if kernels.ARE_HERE:
    from regard.train.loss_rows import losses_and_gradients_on_gpu

CHUNK = 2**29  # logits at once: large enough to keep a GPU busy, a gigabyte in bf16


def label_smoothed_loss(
    logits: Float[Tensor, "*B V"], labels: Int[Tensor, "*B"], pad: int, smoothing: float
) -> Float[Tensor, ""]:
    """Cross-entropy with a share of the target spread over all words; a sum, padding left out."""
    return F.cross_entropy(
        logits.flatten(0, -2).float(),
        labels.flatten(),
        ignore_index=pad,
        reduction="sum",
        label_smoothing=smoothing,
    )


def disagreement(
    one: Float[Tensor, "*B V"], other: Float[Tensor, "*B V"], labels: Int[Tensor, "*B"], pad: int
) -> Float[Tensor, ""]:
    """KL(p || q) + KL(q || p) = sum (p - q) (log p - log q), padding left out."""
    log_p, log_q = (x.float().log_softmax(-1) for x in (one, other))
    apart = ((log_p.exp() - log_q.exp()) * (log_p - log_q)).sum(-1)
    return apart.masked_fill(labels == pad, 0.0).sum()


def output_and_loss(
    hidden: Float[Tensor, "*B D"],
    weight: Float[Tensor, "V D"],
    bias: Float[Tensor, "V"] | None,
    labels: Int[Tensor, "*B"],
    pad: int,
    smoothing: float,
) -> Float[Tensor, ""]:
    """`label_smoothed_loss` of the logits `hidden weight^T + bias`, in the type of `hidden`."""
    loss, *_ = _output_and_loss(
        hidden.flatten(0, -2),
        weight,
        bias,
        labels.flatten(),
        pad,
        smoothing,
        CHUNK,
    )
    return loss


@torch.library.custom_op("regard::output_and_loss", mutates_args=())
def _output_and_loss(
    hidden: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    labels: Tensor,
    pad: int,
    smoothing: float,
    chunk: int,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The loss, and its gradients for hidden, weight and bias, of which the last may be empty."""
    exact = torch.promote_types(hidden.dtype, torch.float32)
    d_hidden = torch.empty_like(hidden, memory_format=torch.contiguous_format)
    d_weight = torch.zeros_like(weight, memory_format=torch.contiguous_format)
    d_bias = weight.new_zeros(0 if bias is None else len(bias))
    losses = hidden.new_empty(len(hidden), dtype=exact)
    weight = weight.to(hidden.dtype)
    bias = None if bias is None else bias.to(hidden.dtype)
    n_rows = max(chunk // len(weight), 1)
    with torch.autocast(hidden.device.type, enabled=False):  # it would narrow what is wide
        for start in range(0, len(hidden), n_rows):
            rows = slice(start, start + n_rows)
            logits = F.linear(hidden[rows], weight, bias)
            losses[rows] = losses_and_gradients(logits, labels[rows], pad, smoothing)
            torch.mm(logits, weight, out=d_hidden[rows])
            _add_product(d_weight, logits.t(), hidden[rows])
            if bias is not None:
                d_bias += logits.sum(0, dtype=d_bias.dtype)
    return losses.sum(), d_hidden, d_weight, d_bias


@_output_and_loss.register_fake
def _(
    hidden: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    labels: Tensor,
    pad: int,
    smoothing: float,
    chunk: int,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    exact = torch.promote_types(hidden.dtype, torch.float32)
    return (
        hidden.new_empty((), dtype=exact),
        torch.empty_like(hidden, memory_format=torch.contiguous_format),
        torch.empty_like(weight, memory_format=torch.contiguous_format),
        weight.new_empty(0 if bias is None else len(bias)),
    )


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    ctx.save_for_backward(*output[1:])
    ctx.has_bias = inputs[2] is not None
    ctx.set_materialize_grads(False)


def _differentiate(ctx: Any, grad: Tensor, *_: None) -> tuple[Tensor | None, ...]:
    d_hidden, d_weight, d_bias = ctx.saved_tensors
    d_bias = grad * d_bias if ctx.has_bias else None
    return grad * d_hidden, grad * d_weight, d_bias, None, None, None, None


_output_and_loss.register_autograd(_differentiate, setup_context=_keep)


def losses_and_gradients(
    logits: Float[Tensor, "B V"], labels: Int[Tensor, "B"], pad: int, smoothing: float
) -> Float[Tensor, "B"]:
    """The loss of each row; its gradient is left where the logits were."""
    if kernels.can_take(logits):
        return losses_and_gradients_on_gpu(logits, labels, pad, smoothing)
    counts = (labels != pad)[:, None]
    log_p = logits.to(torch.promote_types(logits.dtype, torch.float32)).log_softmax(-1)
    right = log_p.gather(-1, labels[:, None])
    losses = -(1.0 - smoothing) * right - smoothing * log_p.mean(-1, keepdim=True)
    gradient = log_p.exp_().sub_(smoothing / logits.shape[-1])
    gradient.scatter_add_(-1, labels[:, None], torch.full_like(right, smoothing - 1.0))
    logits.copy_(gradient.masked_fill_(~counts, 0.0))
    return losses.masked_fill(~counts, 0.0).squeeze(-1)


def _add_product(total: Tensor, a: Tensor, b: Tensor) -> None:
    """total += a b, summed in the total's type however narrow a and b are."""
    if a.dtype is total.dtype:
        total.addmm_(a, b)
    elif a.is_cuda:
        total += torch.mm(a, b, out_dtype=total.dtype)
    else:
        total += a.to(total.dtype) @ b.to(total.dtype)
