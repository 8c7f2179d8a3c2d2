"""The kernels compiled for a GPU that need not be there: registers, spills, memory, instructions.

    python benchmarks/kernels_compiled.py [--chip 90]

What the interpreter takes may still not compile, and what spills is slow: both cost no device time
to know. A stack above 0 is what spilled, in bytes a thread; HGMMA and HMMA are matrix units, LDG
and STG global memory, and `wide` those of 16 bytes.
"""

import argparse
import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
import triton
from torch import Tensor
from triton.backends.compiler import GPUTarget
from triton.runtime import JITFunction, driver

from regard.attention import Blocks, Packed
from regard.attention.kernels import additive, rectified, residual, short, slots, waves
from regard.attention.kernels.spans import spans_of
from regard.train import loss_rows

SHOWN = ("HGMMA", "HMMA", "FFMA", "MUFU", "SHFL", "BAR", "LDG", "STG", "LDGSTS", "REDG")


class Chip:
    """As much of a driver as the compiler asks for."""

    def __init__(self, number: int) -> None:
        self.target = GPUTarget("cuda", number, 32)

    def get_current_target(self) -> GPUTarget:
        """The chip."""
        return self.target

    def get_current_device(self) -> int:
        """The first."""
        return 0

    def get_current_stream(self, device: int) -> int:
        """Nothing is launched."""
        return 0


def compiled(run: Callable[[], object]) -> Iterator[str]:
    """A line for each kernel that this would launch."""
    kernels = []
    launch = JITFunction.run

    def only_compile(self, *arguments, grid, warmup, **options) -> None:
        kernels.append((self, launch(self, *arguments, grid=grid, warmup=True, **options)))

    JITFunction.run = only_compile
    try:
        run()
    finally:
        JITFunction.run = launch
    for function, kernel in kernels:
        yield f"{function.fn.__name__:12} {described(kernel)}"


def described(kernel) -> str:
    tool = Path(triton.__file__).parent / "backends/nvidia/bin/cuobjdump"
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(kernel.asm["cubin"])
        file.flush()
        usage, code = (
            subprocess.run([tool, flag, file.name], capture_output=True, text=True).stdout
            for flag in ("--dump-resource-usage", "--dump-sass")
        )
    registers, stack = re.search(r"REG:(\d+) STACK:(\d+)", usage).groups()
    names = re.findall(r"^\s+/\*[0-9a-f]+\*/\s+(?:@!?\w+ )?([A-Z0-9]+)[.\s;]", code, re.MULTILINE)
    counts = Counter(names)
    wide = len(re.findall(r"(?:LDG|STG|LDGSTS)\.E[.\w]*\.128", code))
    shown = ", ".join(f"{name} {counts[name]}" for name in SHOWN if counts[name])
    return (
        f"registers {registers:>3}, stack {stack:>4}, shared {kernel.metadata.shared:>6}: "
        f"{shown}, wide {wide}"
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--chip", type=int, default=90)
    driver.set_active(Chip(parser.parse_args().chip))
    constants = additive._constants
    additive._constants = lambda *rest: {**constants(*rest), "FAST": True}
    layout = Packed.of([16, 16], n_tokens=32, n_slots=2, max_len=16)
    spans = spans_of(Blocks(layout, layout), 32, 32, torch.device("cpu"))
    for dtype in (torch.bfloat16, torch.float32):
        for width, dropout in ((64, 0.0), (64, 0.1), (128, 0.0)):
            print(f"short, {dtype}, width {width}, dropout {dropout}")
            print(
                *compiled(lambda d=dtype, w=width, p=dropout: run_short(d, w, p, spans)), sep="\n"
            )
        for is_masked in (False, True):
            print(f"additive, {dtype}, masked {is_masked}")
            print(*compiled(lambda d=dtype, m=is_masked: run_additive(d, m, spans)), sep="\n")
            print(f"waves, {dtype}, masked {is_masked}")
            print(*compiled(lambda d=dtype, m=is_masked: run_waves(d, m, spans)), sep="\n")
        logits, labels = torch.randn(16, 32_000).to(dtype), torch.zeros(16, dtype=torch.int64)
        print(f"loss, {dtype}")
        print(*compiled(lambda z=logits, y=labels: run_loss(z, y)), sep="\n")
        for width in (512, 1024):
            print(f"residual and norm, {dtype}, width {width}")
            print(*compiled(lambda d=dtype, w=width: run_residual(d, w)), sep="\n")
        print(f"slots, {dtype}")
        print(*compiled(lambda d=dtype: run_slots(d)), sep="\n")
        print(f"relu backward, {dtype}")
        wide = torch.randn(64, 2048).to(dtype)
        print(*compiled(lambda y=wide: rectified.relu_backward(y, y)), sep="\n")


def run_loss(logits: Tensor, labels: Tensor) -> None:
    loss_rows.losses_and_gradients_on_gpu(logits, labels, 0, 0.1)


def run_residual(dtype: torch.dtype, width: int) -> None:
    x, y = torch.randn(2, 64, width).to(dtype)
    weight, seed = torch.randn(width), torch.zeros((), dtype=torch.int64)
    _, mean, scale = residual._norm(x, y, weight, weight, seed, 0.1, 1e-5)
    residual._norm_backward(x, x, y, weight, seed, mean, scale, 0.1)


def run_short(dtype: torch.dtype, width: int, dropout: float, spans) -> None:
    query, key, value = torch.randn(32, 3, 8, width).to(dtype).permute(1, 2, 0, 3)
    seed = torch.zeros((), dtype=torch.int64)
    tiles = short.forward_tiles(width, dtype.itemsize)
    ends = spans.first_key, spans.end_key
    saved = short.attend_forward(query, key, value, *ends, seed, 0.1, dropout, tiles)
    tiles = short.backward_tiles(width, dtype.itemsize)
    grad: Tensor = torch.randn(32, 8, width).to(dtype)
    short.attend_backward(grad, query, key, value, saved, spans, seed, 0.1, dropout, tiles, 3)


def run_additive(dtype: torch.dtype, is_masked: bool, spans) -> None:
    query, key, value = torch.randn(3, 1, 8, 32, 64).to(dtype)
    mask = torch.ones(1, 8, 32, 32, dtype=torch.bool) if is_masked else None
    seed, v = torch.zeros((), dtype=torch.int64), torch.randn(8, 64)
    by_row = [additive.exponentials(x) for x in (query, key)]
    by_hidden = [x.transpose(-2, -1).contiguous() for x in by_row]
    for is_long in (False, True):
        tiles = additive.forward_tiles(is_long)
        ends = spans.first_key, spans.end_key
        output, log_sum = additive.attend_forward(
            *by_hidden, v, value, *ends, mask, seed, 0.0, tiles
        )
        tiles, ends = additive.backward_tiles(is_long), (spans.first_query, spans.end_query)
        additive.attend_backward(
            output, *by_row, v, value, log_sum, log_sum, ends, mask, seed, 0.0, tiles
        )


def run_waves(dtype: torch.dtype, is_masked: bool, spans) -> None:
    query, key, value = torch.zeros(3, 1, 8, 32, 64).to(dtype)
    mask = torch.ones(1, 8, 32, 32, dtype=torch.bool) if is_masked else None
    seed, v = torch.zeros((), dtype=torch.int64), torch.zeros(8, 64)
    rules = spans.first_query, spans.end_query, spans.first_key, spans.end_key, mask, seed, 0.0
    output, log_sum = waves._attend(query, key, value, v, *rules)
    waves._attend_backward(output, output, log_sum, query, key, value, v, *rules)


def run_slots(dtype: torch.dtype) -> None:
    keys, lengths = torch.zeros(4, 8, 64, 64).to(dtype), torch.zeros(4, dtype=torch.int64)
    owners = torch.zeros(4, 64, dtype=torch.int64)
    slots.slot_attention(keys[:, :, :1], keys, keys, owners, lengths, 0.125)


if __name__ == "__main__":
    main()
