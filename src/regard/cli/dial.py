"""One dial: how large a network, and all else follows from how much text there is.

The numbers are those that served on the corpora in `recipes/`; each can be overridden.
"""

import math
from typing import Any, Literal

Size = Literal["tiny", "small", "base", "big"]

SIZES: dict[str, dict[str, int]] = {
    "tiny": {"d_model": 128, "n_layers": 2, "n_heads": 4, "d_ff": 512},
    "small": {"d_model": 256, "n_layers": 3, "n_heads": 4, "d_ff": 1024},
    "base": {"d_model": 512, "n_layers": 6, "n_heads": 8, "d_ff": 2048},
    "big": {"d_model": 1024, "n_layers": 6, "n_heads": 16, "d_ff": 4096},
}
RATES = {"tiny": 2e-3, "small": 1e-3, "base": 7e-4, "big": 4e-4}
TOKENS = {"tiny": 4096, "small": 8192, "base": 16384, "big": 16384}
ON_A_CPU = 2048  # tokens to a batch: small updates, and many of them
PAIR_TOKENS = 25  # about what a sentence has
BYTES = 300  # with which every vocabulary begins, and a few special pieces


def derived(
    n_pairs: int,
    n_characters: int,
    size: str | None = None,
    *,
    on_gpu: bool,
    steps: int | None = None,
) -> dict[str, dict[str, Any]]:
    """The settings that suit so many pairs, written in so many different characters.

    The size and the number of updates are those that suit them, unless they are given.
    """
    size = size or fitting_size(n_pairs, on_gpu=on_gpu)
    tokens = TOKENS[size] if on_gpu else ON_A_CPU
    steps = steps or _rounded(n_pairs * PAIR_TOKENS * _epochs(n_pairs) / tokens)
    return {
        "model": {**SIZES[size], "norm": "pre", "dropout": _dropout(n_pairs)},
        "data": {"vocab_size": _vocab_size(n_pairs, n_characters)},
        "train": {
            "steps": steps,
            "tokens": tokens,
            "batching": "packed" if on_gpu else "padded",
            "lr": RATES[size],
            "warmup": min(4000, steps // 10),
            "validate_every": max(1, steps // 20),
            "save_every": max(1, steps // 20),
            "metric": "chrf",  # and not BLEU, which is 0 where no line has four words
            "patience": 5,
            "average": 5,
            "average_of": "best",
        },
    }


def tuned(n_pairs: int, *, on_gpu: bool, steps: int | None = None) -> dict[str, dict[str, Any]]:
    """The settings for a model that has learned already and is to learn a little more."""
    tokens = TOKENS["small"] if on_gpu else ON_A_CPU
    steps = steps or _rounded(n_pairs * PAIR_TOKENS * 10 / tokens, least=200)
    return {
        "train": {
            "steps": steps,
            "tokens": tokens,
            "batching": "packed" if on_gpu else "padded",
            "lr": 3e-4,
            "schedule": "cosine",
            "warmup": steps // 20,
            "validate_every": max(1, steps // 10),
            "save_every": max(1, steps // 10),
            "metric": "chrf",
            "patience": 5,
        },
    }


def fitting_size(n_pairs: int, *, on_gpu: bool) -> Size:
    """As large as so much text can fill; a CPU is spared the large ones."""
    if n_pairs < 20_000:
        return "tiny"
    if n_pairs < 200_000 or not on_gpu:
        return "small"
    return "base" if n_pairs < 20_000_000 else "big"


def _epochs(n_pairs: int) -> int:
    """How often text is read: the less there is, the oftener."""
    bounds = ((20_000, 100), (200_000, 40), (2_000_000, 15), (20_000_000, 6))
    return next((epochs for bound, epochs in bounds if n_pairs < bound), 3)


def _vocab_size(n_pairs: int, n_characters: int) -> int:
    """As many words as so much text can fill, but no fewer beside its characters than those."""
    bounds = ((5_000, 1000), (20_000, 4000), (200_000, 8000), (2_000_000, 16_000))
    size = next((size for bound, size in bounds if n_pairs < bound), 32_000)
    return max(size, math.ceil((BYTES + 2 * n_characters) / 1000) * 1000)


def _dropout(n_pairs: int) -> float:
    return 0.3 if n_pairs < 100_000 else 0.2 if n_pairs < 1_000_000 else 0.1


def _rounded(steps: float, least: int = 1000) -> int:
    """A number of updates that a person would have written."""
    return max(least, round(steps / 100) * 100)
