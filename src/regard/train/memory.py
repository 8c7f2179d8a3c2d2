"""When a batch does not fit: noticing it, and finding out beforehand how much does."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch

from regard.errors import ResourceError

LEAST, MOST = 1024, 65_536  # tokens a side that are tried; larger batches teach no faster
ON_A_CPU = 4096  # there, more tokens are no faster and memory is seldom the limit
SHARE = 0.9  # of the GPU's memory that a batch may take: others want some too


def is_out_of_memory(error: BaseException) -> bool:
    """Whether this is torch's, or Python's, way of saying that memory is used up."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and "can't allocate memory" in str(error)


@contextmanager
def memory_told(tokens: int | str) -> Iterator[None]:
    """Where memory may be used up beside an update, in reading, judging or saving."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        raise ResourceError(
            "memory is used up, with train.tokens = {tokens}; choose a smaller one, or a smaller "
            "model",
            tokens=tokens,
        ) from error


def fitting_tokens(try_update: Callable[[int], None], device: torch.device) -> int:
    """The largest power of two of tokens for which forward and backward fit in memory."""
    if device.type != "cuda":
        return ON_A_CPU
    tokens = LEAST
    while tokens < MOST and _fits(try_update, 2 * tokens, device):
        tokens *= 2
    return tokens


def _fits(try_update: Callable[[int], None], tokens: int, device: torch.device) -> bool:
    torch.cuda.reset_peak_memory_stats(device)
    try:
        try_update(tokens)
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        return False
    finally:
        torch.cuda.empty_cache()
    total: int = torch.cuda.get_device_properties(device).total_memory
    return torch.cuda.max_memory_reserved(device) < SHARE * total
