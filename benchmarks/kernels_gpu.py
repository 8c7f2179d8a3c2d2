"""The kernels on a GPU: whether they are right, how fast they are, and with which tiles.

    python benchmarks/kernels_gpu.py [--only right,short,loss,norm,additive,tiles]
        [--write]

First every kernel against the definition in float64, values and gradients, for lengths from 1 to
1,024, in bf16 and float32; what is wrong is called WRONG, and the exit code is 1. Then times,
forward and backward, for a few tiles each, beside what torch has: variable-length attention at
lengths like those of news (log-normal, about 24 tokens, 4 to 120), the loss of all logits compiled,
and additive attention as the notes write it, eager and compiled, at length 2,048. Times are medians
by device events.

Without a GPU the same lines run at toy size in Triton's interpreter, which says nothing about
speed: TRITON_INTERPRET=1 python benchmarks/kernels_gpu.py
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
import triton
from kernels_additive import additive_tiles, additive_times
from kernels_norms import norm_times
from kernels_timed import (
    DEVICE,
    GPU,
    HALF,
    HEADS,
    WIDTH,
    Row,
    alone,
    news,
    random_heads,
    timed,
)
from torch import Tensor
from torch.nn import functional as F

from regard.attention import Blocks, Packed, additive_scores, attend, dense, dot_scores
from regard.attention.kernels import additive, short
from regard.attention.kernels.short import Tiles
from regard.attention.kernels.spans import spans_of
from regard.train import loss, loss_rows

BOUNDS = {torch.bfloat16: 3e-2, torch.float32: 1e-4}
RESULTS = Path(__file__).parent / "results" / "kernels_h200_202611.md"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="right,short,loss,norm,additive,tiles")
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    parts = {
        "right": right,
        "short": short_times,
        "loss": loss_times,
        "norm": norm_times,
        "additive": additive_times,
        "tiles": additive_tiles,
    }
    lines = [
        f"# Kernels on {torch.cuda.get_device_name() if GPU else 'a CPU, interpreted'}",
        "",
        f"torch {torch.__version__}, Triton {triton.__version__}; medians; memory is what was "
        "allocated at most above the inputs.",
    ]
    for name in asked.only.split(","):
        start = time.perf_counter()
        lines += ["", f"## {name}", "", *table(parts[name]())]
        print("\n".join(lines[-40:]), f"\n({time.perf_counter() - start:.0f} s)", flush=True)
        text = "\n".join([*lines, ""])  # what there is so far
        if GPU and "OUT" in os.environ:
            (Path(os.environ["OUT"]) / "kernels.md").write_text(text, encoding="utf-8")
        if asked.write:
            RESULTS.write_text(text, encoding="utf-8")
    print("\n" + text)
    sys.exit("WRONG" in text)


def table(rows: Iterator[Row]) -> list[str]:
    lines = ["| what | forward ms | forward + backward ms | |", "|---|--:|--:|---|"]
    for what, forward, both, remark in rows:
        lines.append(f"| {what} | {forward:.3g} | {both:.3g} | {remark} |")
        print(json.dumps([what, round(forward, 4), round(both, 4), remark]), flush=True)
    return lines


# --- right or not ---


def right() -> Iterator[Row]:
    """Each kernel against float64; the numbers are errors, of the output and the worst gradient."""
    for dtype in dict.fromkeys([HALF, torch.float32]):
        for longest in (2, 24, 120, 1024) if GPU else (5, 20):
            for kind in ("self", "causal", "cross"):
                yield short_is_right(kind, longest, dtype)
                yield additive_is_right(kind, longest, dtype)
        yield loss_is_right(dtype)
    yield short_is_right("causal", 60, torch.float32, width=72 if GPU else 20)


def mask_of(kind: str, longest: int) -> tuple[Blocks, int, int]:
    """Sentences of random lengths up to the longest, on the other side also empty ones."""
    n = max(6, (2048 if GPU else 30) // longest)
    lens = [longest, *np.random.default_rng(longest).integers(1, longest + 1, n).tolist()]
    other = np.random.default_rng(longest + 1).integers(0, longest + 1, n + 1).tolist()

    def layout(lens: list[int]) -> Packed:
        n_tokens = sum(lens) + 7
        return Packed.of(
            lens, n_tokens=n_tokens, n_slots=len(lens) + 9, max_len=longest, device=str(DEVICE)
        )

    own = layout(lens)
    key = layout(other) if kind == "cross" else own
    return Blocks(own, key, causal=kind == "causal"), sum(lens) + 7, int(key.offsets[-1])


def compared(what: str, ours: Tensor, inputs: tuple, truth: Tensor, exact: list[Tensor]) -> Row:
    weight = torch.randn_like(truth)
    mine = torch.autograd.grad((ours.double() * weight).sum(), inputs)
    correct = torch.autograd.grad((truth * weight).sum(), exact)
    pairs = list(zip((ours, *mine), (truth, *correct), strict=True))
    errors = [float((a.double() - b).norm() / b.norm().clamp(min=1e-30)) for a, b in pairs]
    is_finite = all(bool(a.isfinite().all()) for a, _ in pairs)
    is_right = is_finite and max(errors) < BOUNDS[inputs[0].dtype]
    return what, errors[0], max(errors[1:]), "relative errors" if is_right else f"WRONG {errors}"


def short_is_right(kind: str, longest: int, dtype: torch.dtype, width: int = WIDTH) -> Row:
    mask, n_queries, n_keys = mask_of(kind, longest)
    inputs = tuple(random_heads(n, width, dtype) for n in (n_queries, n_keys, n_keys))
    spans = spans_of(mask, n_queries, n_keys, DEVICE)
    ours = short.short_attention(*inputs, spans, 0.125, 0.0)
    exact = [x.detach().double().requires_grad_() for x in inputs]
    mask_QK = dense(mask, n_queries, n_keys)
    truth = attend(*exact, lambda q, k: 0.125 * dot_scores(q, k), mask_QK).output
    return compared(f"short, {kind}, up to {longest}, {dtype}", ours, inputs, truth, exact)


def additive_is_right(kind: str, longest: int, dtype: torch.dtype) -> Row:
    mask, n_queries, n_keys = mask_of(kind, min(longest, 120))  # the truth is a large tensor
    query, key, value = (random_heads(n, 16, dtype) for n in (n_queries, n_keys, n_keys))
    v = torch.randn(HEADS, 16, device=DEVICE, requires_grad=True)
    spans = spans_of(mask, n_queries, n_keys, DEVICE)
    output = additive.tiled_additive_attention(
        query[None], key[None], value[None], v, spans, None, 0.0, float(longest), longest
    )
    exact = [x.detach().double().requires_grad_() for x in (query, key, value, v)]
    mask_QK = dense(mask, n_queries, n_keys)
    truth = attend(*exact[:3], lambda q, k: additive_scores(q, k, exact[3]), mask_QK).output
    inputs = query, key, value, v
    return compared(f"additive, {kind}, up to {longest}, {dtype}", output[0], inputs, truth, exact)


def loss_is_right(dtype: torch.dtype) -> Row:
    n_rows, n_words, width = (1000, 32_000, 512) if GPU else (7, 50, 8)
    hidden = torch.randn(n_rows, width, device=DEVICE).to(dtype).requires_grad_()
    weight = (torch.randn(n_words, width, device=DEVICE) / width**0.5).requires_grad_()
    bias = torch.randn(n_words, device=DEVICE, requires_grad=True)
    labels = torch.randint(0, n_words, (n_rows,), device=DEVICE).masked_fill_(
        torch.rand(n_rows, device=DEVICE) < 0.1, 0
    )
    with_chunks = loss._output_and_loss(hidden, weight, bias, labels, 0, 0.1, n_words * 300)[0]
    exact = [x.detach().double().requires_grad_() for x in (hidden, weight, bias)]
    truth = F.cross_entropy(
        F.linear(*exact), labels, ignore_index=0, reduction="sum", label_smoothing=0.1
    )
    return compared(f"loss, {dtype}", with_chunks, (hidden, weight, bias), truth, exact)


# --- how fast ---


def short_times() -> Iterator[Row]:
    for n_tokens in (32_768, 131_072) if GPU else (300,):
        layout = news(n_tokens)
        for kind in ("self", "causal"):
            mask = Blocks(layout, layout, causal=kind == "causal")
            yield from short_times_of(f"{n_tokens:,} tokens, {kind}", mask, n_tokens)
    for length in (64, 128, 256, 512, 1024) if GPU else ():  # where does torch's kernel win?
        n_tokens = 32_768
        layout = Packed.of(
            [length] * (n_tokens // length),
            n_tokens=n_tokens,
            n_slots=n_tokens // length,
            max_len=length,
            device=str(DEVICE),
        )
        yield from short_times_of(
            f"sentences of {length}", Blocks(layout, layout), n_tokens, with_tiles=False
        )


def short_times_of(
    what: str, mask: Blocks, n_tokens: int, *, with_tiles: bool = True
) -> Iterator[Row]:
    qkv = torch.randn(n_tokens, 3, HEADS, WIDTH, device=DEVICE).to(HALF).requires_grad_()
    spans = spans_of(mask, n_tokens, n_tokens, DEVICE)
    n_bytes = 4 * qkv.numel() // 3 * qkv.element_size()

    def rows() -> list[Tensor]:
        return [x.squeeze(1).transpose(0, 1) for x in qkv.chunk(3, dim=1)]

    if GPU:
        from torch.nn.attention.varlen import varlen_attn

        offsets, longest = mask.query.offsets, mask.query.max_len
        window = (-1, 0) if mask.causal else (-1, -1)

        def theirs() -> Tensor:
            q, k, v = (x.squeeze(1) for x in qkv.chunk(3, dim=1))
            return varlen_attn(q, k, v, offsets, offsets, longest, longest, window_size=window)

        forward, both, _ = timed(theirs, (qkv,))
        yield f"{what}: torch varlen_attn", forward, both, ""

    for dropout in (0.0, 0.1) if with_tiles else (0.0,):
        forward, both, _ = timed(
            lambda p=dropout: short.short_attention(*rows(), spans, WIDTH**-0.5, p, is_own=True),
            (qkv,),
        )
        speed = f"{n_bytes / max(forward, 1e-9) / 1e9:.2f} TB/s forward"
        yield f"{what}: ours, dropout {dropout}", forward, both, speed
    if with_tiles:
        yield from short_tiles(what, rows(), spans)


SHORT_FORWARD = [
    Tiles(32, 32, 2, 2), Tiles(32, 32, 4, 2), Tiles(32, 64, 4, 2), Tiles(64, 32, 4, 2),
    Tiles(64, 32, 4, 3), Tiles(64, 64, 4, 2), Tiles(128, 64, 4, 2), Tiles(128, 64, 8, 2),
    Tiles(16, 32, 1, 2),
]  # fmt: skip
SHORT_BACKWARD = [
    Tiles(32, 32, 2, 1), Tiles(32, 32, 2, 2), Tiles(32, 32, 4, 2), Tiles(32, 64, 4, 2),
    Tiles(64, 32, 4, 1), Tiles(64, 32, 4, 2), Tiles(64, 64, 4, 1), Tiles(64, 64, 4, 2),
    Tiles(64, 64, 8, 2),
]  # fmt: skip


def short_tiles(what: str, rows: list[Tensor], spans) -> Iterator[Row]:
    """The launches by themselves, for each choice of tiles."""
    seed, scale = torch.zeros((), dtype=torch.int64, device=DEVICE), WIDTH**-0.5
    query, key, value = (x.detach() for x in rows)
    ends = spans.first_key, spans.end_key
    for tiles in SHORT_FORWARD if GPU else SHORT_FORWARD[:1]:
        run = lambda t=tiles: short.attend_forward(query, key, value, *ends, seed, scale, 0.0, t)  # noqa: E731
        yield f"{what}: forward {tiles}", alone(run), 0.0, ""
    saved = short.attend_forward(query, key, value, *ends, seed, scale, 0.0, Tiles(32, 32, 4, 1))
    grad = torch.randn_like(saved.output)
    for tiles in SHORT_BACKWARD if GPU else SHORT_BACKWARD[:1]:
        run = lambda t=tiles: short.attend_backward(  # noqa: E731
            grad, query, key, value, saved, spans, seed, scale, 0.0, t, 3
        )
        yield f"{what}: backward {tiles}", 0.0, alone(run), "backward alone"


def loss_times() -> Iterator[Row]:
    n_words, width = (32_000, 512) if GPU else (50, 16)
    weight = (torch.randn(n_words, width, device=DEVICE) / width**0.5).requires_grad_()
    for n_rows in (32_768, 131_072) if GPU else (9,):
        hidden = torch.randn(n_rows, width, device=DEVICE).to(HALF).requires_grad_()
        labels = torch.randint(0, n_words, (n_rows,), device=DEVICE)

        def plain(hidden: Tensor = hidden, labels: Tensor = labels) -> Tensor:
            logits = F.linear(hidden, weight.to(HALF))
            return loss.label_smoothed_loss(logits, labels, 0, 0.1)

        runs = {"all logits, eager": plain}
        if GPU:
            runs["all logits, compiled"] = torch.compile(plain, dynamic=False)
        for chunk in (2**26, 2**27, 2**28, 2**29) if GPU else (100,):
            runs[f"chunks of {chunk:,}"] = lambda c=chunk, h=hidden, y=labels: (
                loss._output_and_loss(h, weight, None, y, 0, 0.1, c)[0]
            )
        for name, run in runs.items():
            forward, both, peak = timed(run, (hidden, weight))
            yield f"{n_rows:,} rows, {name}", forward, both, f"{peak:.2f} GB"
    logits = torch.randn(8192 if GPU else 4, n_words, device=DEVICE).to(HALF)
    labels = torch.randint(0, n_words, (len(logits),), device=DEVICE)
    for words, n_warps in ((2048, 4), (4096, 8), (8192, 8), (16384, 16)):
        loss_rows.WORDS, loss_rows.N_WARPS = words, n_warps
        ms = alone(lambda: loss_rows.losses_and_gradients_on_gpu(logits, labels, 0, 0.1))
        speed = 2 * logits.numel() * logits.element_size() / max(ms, 1e-9) / 1e9
        yield f"8,192 rows, {words} words at once, {n_warps} warps", ms, 0.0, f"{speed:.2f} TB/s"


if __name__ == "__main__":
    main()
