"""Input that cannot be right, refused in one sentence that names the value."""

import torch
from torch import Tensor, nn

from regard.errors import ModelError


def check_same_width(query: Tensor, key: Tensor) -> None:
    """Queries and keys are compared coordinate by coordinate, so they need one width."""
    if query.shape[-1] != key.shape[-1]:
        raise ModelError(
            "query is {query} wide but key is {key}; this score compares them coordinate by "
            "coordinate, so project both to one width first",
            query=query.shape[-1],
            key=key.shape[-1],
        )


def check_values(key: Tensor, value: Tensor) -> None:
    """Every key has its value."""
    if key.shape[-2] != value.shape[-2]:
        raise ModelError(
            "there are {keys} keys but {values} values; each key needs its own value",
            keys=key.shape[-2],
            values=value.shape[-2],
        )


def check_mask(mask: Tensor, n_queries: int, n_keys: int) -> None:
    """A mask is boolean and covers exactly the scores, or one row of it serves every query."""
    if mask.dtype != torch.bool:
        raise ModelError(
            "mask is {dtype} but must be torch.bool, True where a query may attend; "
            "for a 0/1 mask write mask.bool()",
            dtype=mask.dtype,
        )
    if mask.shape[-1] != n_keys:
        raise ModelError(
            "mask covers {covered} keys but there are {keys} (mask {shape})",
            covered=mask.shape[-1],
            keys=n_keys,
            shape=tuple(mask.shape),
        )
    if mask.ndim > 1 and mask.shape[-2] not in (1, n_queries):
        raise ModelError(
            "mask covers {covered} queries but there are {queries} (mask {shape}); "
            "give one row for each query, or one row for all",
            covered=mask.shape[-2],
            queries=n_queries,
            shape=tuple(mask.shape),
        )


def check_width(x: Tensor, linear: nn.Linear, name: str) -> None:
    """The input of a linear map is as wide as the map expects."""
    if x.shape[-1] != linear.in_features:
        raise ModelError(
            "{name} is {width} wide but must be {expected}",
            name=name,
            width=x.shape[-1],
            expected=linear.in_features,
        )


def check_max_len(positions: Tensor, max_len: int) -> None:
    """A table of positions has a last row."""
    # A compiled step cannot stop to look, nor a GPU without waiting; the lookup itself fails there.
    if torch.compiler.is_compiling() or positions.is_cuda or not positions.numel():
        return
    longest = int(positions.max()) + 1
    if longest > max_len:
        raise ModelError(
            "the text has {longest} tokens but the model's positions end at {max_len}; "
            "split it, or build the model with a larger max_len",
            longest=longest,
            max_len=max_len,
        )
