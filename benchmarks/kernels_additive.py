"""Additive attention on a GPU beside what others write, and with which tiles it is fastest."""

from collections.abc import Callable, Iterator

import torch
from kernels_timed import DEVICE, GPU, HALF, HEADS, WIDTH, Row, alone, news, random_heads, timed
from torch import Tensor

from regard.attention import Blocks
from regard.attention.kernels import additive, waves
from regard.attention.kernels.short import Tiles
from regard.attention.kernels.spans import spans_of

ADDITIVE_FORWARD = [
    Tiles(16, 32, 1, 1), Tiles(16, 64, 1, 1), Tiles(32, 64, 2, 1), Tiles(32, 32, 1, 1),
    Tiles(32, 64, 4, 1), Tiles(64, 64, 8, 1),
]  # fmt: skip
ADDITIVE_BACKWARD = [
    Tiles(16, 16, 1, 1), Tiles(16, 32, 1, 1), Tiles(16, 64, 1, 1), Tiles(16, 32, 2, 1),
    Tiles(32, 32, 2, 1), Tiles(32, 32, 4, 1),
]  # fmt: skip


def long_rows() -> tuple[Tensor, ...]:
    """Query, key, value and v of the length at which it is held to others."""
    n_batch, length = (8, 2048) if GPU else (1, 20)
    query, key, value = (
        torch.randn(n_batch, HEADS, length, WIDTH, device=DEVICE).to(HALF).requires_grad_()
        for _ in range(3)
    )
    return (
        query,
        key,
        value,
        (torch.randn(HEADS, WIDTH, device=DEVICE) / WIDTH**0.5).requires_grad_(),
    )


def additive_times() -> Iterator[Row]:
    """Ours by both ways, what others write, and sentences as long as those of news."""
    inputs = long_rows()
    n_batch, _, length, _ = inputs[0].shape
    spans = spans_of(None, length, length, DEVICE)
    n_tanh = n_batch * HEADS * length**2 * WIDTH
    in_and_out = 4 * inputs[0].numel() * inputs[0].element_size() / 1e9

    def tiled() -> Tensor:
        return additive.tiled_additive_attention(*inputs, spans, None, 0.0, float(length), length)

    def waved() -> Tensor:
        return waves.wave_attention(*inputs, spans, None, 0.0)

    for name, run in (("waves", waved), ("tiles", tiled)):
        forward, both, peak = timed(run, inputs)
        speed = f"{n_tanh / max(forward, 1e-9) / 1e9:.2f} T tanh/s forward"
        memory = f"{peak:.3f} GB, {peak / in_and_out:.2f} of inputs and outputs"
        yield f"ours, {name}, length {length:,}", forward, both, f"{speed}, {memory}"
    yield from additive_peers(inputs)
    for n_tokens in (32_768,) if GPU else ():
        layout = news(n_tokens)
        yield from additive_news(Blocks(layout, layout), n_tokens)


def additive_tiles() -> Iterator[Row]:
    """The launches by themselves, for each choice of tiles."""
    query, key, value, v = (x.detach() for x in long_rows())
    spans = spans_of(None, query.shape[2], key.shape[2], DEVICE)
    seed = torch.zeros((), dtype=torch.int64, device=DEVICE)
    by_hidden = [additive.exponentials(x) for x in (query, key)]
    ends = spans.first_key, spans.end_key
    for tiles in ADDITIVE_FORWARD if GPU else ADDITIVE_FORWARD[:1]:
        run = lambda t=tiles: additive.attend_forward(  # noqa: E731
            *by_hidden, v, value, *ends, None, seed, 0.0, t
        )
        yield f"forward {tiles}", alone(run), 0.0, ""
    output, log_sum, none = additive.attend_forward(
        *by_hidden, v, value, *ends, None, seed, 0.0, ADDITIVE_FORWARD[0]
    )
    grad = torch.randn_like(output)
    delta = (grad.float() * output.float()).sum(-1)
    known, starts = (log_sum, delta, none), (spans.first_key, spans.first_query, spans.end_query)
    for tiles in ADDITIVE_BACKWARD if GPU else ADDITIVE_BACKWARD[:1]:
        run = lambda t=tiles: additive.attend_backward(  # noqa: E731
            grad, (query, key, *by_hidden), v, value, known, starts, None, seed, 0.0, t
        )
        yield f"backward {tiles}", 0.0, alone(run), "backward alone"


def additive_peers(inputs: tuple[Tensor, ...]) -> Iterator[Row]:
    """What others write, as fast as torch makes it; the whole tensor of tanh is 34 GB in bf16."""

    def notes(q: Tensor, k: Tensor, u: Tensor, v: Tensor) -> Tensor:
        hidden = torch.tanh(q.unsqueeze(-2) + k.unsqueeze(-3))
        scores = (hidden @ v.to(q.dtype)[:, None, :, None]).squeeze(-1)
        return scores.softmax(-1) @ u

    def summed(q: Tensor, k: Tensor, u: Tensor, v: Tensor) -> Tensor:
        weighted = torch.tanh(q.unsqueeze(-2) + k.unsqueeze(-3)) * v.to(q.dtype)[:, None, None]
        return weighted.sum(-1).softmax(-1) @ u

    runs: dict[str, Callable[..., Tensor]] = {"the notes' code, eager": notes}
    if GPU:
        runs["the notes' code, compiled"] = torch.compile(notes, dynamic=False)
        runs["(tanh * w).sum, compiled"] = torch.compile(summed, dynamic=False)
    else:
        runs["(tanh * w).sum, eager"] = summed
    for name, run in runs.items():
        try:
            forward, both, peak = timed(lambda f=run: f(*inputs), inputs)
            yield name, forward, both, f"{peak:.1f} GB"
        except torch.cuda.OutOfMemoryError:
            yield name, float("nan"), float("nan"), "out of memory"
        if GPU:
            torch.cuda.empty_cache()


def additive_news(mask: Blocks, n_tokens: int) -> Iterator[Row]:
    query, key, value = (random_heads(n_tokens, WIDTH, HALF) for _ in range(3))
    v = torch.randn(HEADS, WIDTH, device=DEVICE, requires_grad=True)
    spans = spans_of(mask, n_tokens, n_tokens, DEVICE)
    rows = [x[None] for x in (query, key, value)]
    for is_long in (False, True):
        forward, both, _ = timed(
            lambda long=is_long: additive.tiled_additive_attention(
                *rows, v, spans, None, 0.0, 1e9 if long else 24.0, mask.key.max_len
            ),
            (query, key, value, v),
        )
        kind = "tiles for long ones" if is_long else "tiles for short ones"
        yield f"news, {n_tokens:,} tokens packed, {kind}", forward, both, ""
