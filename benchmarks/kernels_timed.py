"""How long a kernel takes on a GPU; without one it only runs, in Triton's interpreter."""

from collections.abc import Callable

import numpy as np
import torch
import triton
from torch import Tensor

from regard.attention import Packed

GPU = torch.cuda.is_available()
DEVICE = torch.device("cuda" if GPU else "cpu")
HEADS, WIDTH = (8, 64) if GPU else (2, 16)
HALF = torch.bfloat16 if GPU else torch.float32  # the interpreter's bf16 is wrong
Row = tuple[str, float, float, str]  # what, forward ms, forward and backward ms, a remark


def timed(run: Callable[[], Tensor], inputs: tuple[Tensor, ...]) -> tuple[float, float, float]:
    """Milliseconds forward, milliseconds both ways, and gigabytes at most above the inputs."""

    def both() -> None:
        output = run()
        torch.autograd.grad(output, inputs, torch.ones_like(output))

    if not GPU:
        both()
        return 0.0, 0.0, 0.0
    both()
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    both()
    peak = (torch.cuda.max_memory_allocated() - before) / 1e9
    bench = triton.testing.do_bench
    with torch.no_grad():
        forward = bench(run, warmup=20, rep=60, return_mode="median")
    return forward, bench(both, warmup=20, rep=100, return_mode="median"), peak


def alone(run: Callable[[], object]) -> float:
    """Milliseconds of a launch; not a number if such tiles cannot be compiled or do not fit."""
    if not GPU:
        run()
        return 0.0
    try:
        return triton.testing.do_bench(run, warmup=10, rep=40, return_mode="median")
    except Exception as error:  # the other tiles are still worth their time
        print(f"{type(error).__name__}: {error}"[:300], flush=True)
        return float("nan")


def random_heads(n_rows: int, width: int, dtype: torch.dtype) -> Tensor:
    x = torch.randn(n_rows, HEADS, width, device=DEVICE).to(dtype)
    return x.transpose(0, 1).requires_grad_()


def news(n_tokens: int) -> Packed:
    """A packed row of sentences as long as those of news."""
    generator = np.random.default_rng(1)
    lens = np.clip(generator.lognormal(3.0, 0.6, n_tokens // 8), 4, 120).astype(int)
    lens = lens[np.cumsum(lens) <= n_tokens].tolist()
    return Packed.of(
        lens, n_tokens=n_tokens, n_slots=len(lens) + 8, max_len=120, device=str(DEVICE)
    )
