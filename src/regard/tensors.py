"""Weights in a file: float32, float16, or int8 with scales. Numbers of numpy; no torch here.

int8 takes a quarter of float32. Every row of a matrix has a scale of its own, NAME.scale beside
NAME in the file, and what is no matrix, biases and norms, is float16:

    scale_i = max_j |w_ij| / 127,    q_ij = round(w_ij / scale_i),    w_ij ≈ scale_i q_ij
"""

from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from regard.errors import ModelError, ResourceError

StoredDtype = Literal["float32", "float16", "int8"]
Tensors = Mapping[str, NDArray[Any]]

SCALE = ".scale"
MOST = 127  # not 128: a matrix and its negative are then alike
KNOWN = ("F32", "F16", "I8")  # as safetensors calls them


def read_tensors(path: Path) -> dict[str, NDArray[Any]]:
    """Every tensor by name; what was stored in int8 comes back in float32."""
    _check_dtypes(path, {name: dtype for name, (dtype, _) in _heads(path).items()})
    with safe_open(path, framework="np") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    return _dequantized(path, tensors)


def stored_dtype(path: Path) -> StoredDtype:
    """The type that the matrices of a file have, from its head alone."""
    kinds = {dtype for dtype, _ in _heads(path).values()}
    if "I8" in kinds:  # beside float16 for what is no matrix, and float32 for the scales
        return "int8"
    return "float16" if "F16" in kinds else "float32"


def n_stored(path: Path) -> int:
    """How many parameters a file holds, scales not counted, from its head alone."""
    heads = _heads(path)
    scales = {name + SCALE for name, (dtype, _) in heads.items() if dtype == "I8"}
    return sum(prod(shape) for name, (_, shape) in heads.items() if name not in scales)


def as_dtype(tensors: Tensors, dtype: StoredDtype) -> dict[str, NDArray[Any]]:
    """Tensors as they are stored in a type, scales among them."""
    check_finite(tensors)
    match dtype:
        case "float32":
            return {name: tensor.astype(np.float32) for name, tensor in tensors.items()}
        case "float16":
            return _as_float16(tensors)
        case "int8":
            matrices = {name: tensor for name, tensor in tensors.items() if tensor.ndim == 2}
            others = {name: t for name, t in tensors.items() if name not in matrices}
            stored = _as_float16(others)
            for name, matrix in matrices.items():
                stored[name], stored[name + SCALE] = quantized(matrix)
            return stored


def write_tensors(tensors: Tensors, path: Path) -> None:
    """Write tensors as safetensors; a full disk says so in a sentence."""
    try:
        contiguous = {name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}
        save_file(contiguous, path, metadata={"format": "pt"})  # which transformers asks for
    except SafetensorError as error:  # its way of saying what the system said
        raise ResourceError(
            "{path} could not be written: {reason}", path=path, reason=error
        ) from None


def quantized(matrix: NDArray[Any]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """A matrix as small whole numbers, and the scale of each row."""
    matrix = matrix.astype(np.float32)
    scales = np.abs(matrix).max(axis=1, initial=0.0) / np.float32(MOST)
    # A row of zeros has the scale 0, by which nothing can be divided; its numbers are 0 anyway.
    divisors = np.where(scales > 0.0, scales, np.float32(1.0))[:, None]
    numbers = np.rint(matrix / divisors).clip(-MOST, MOST).astype(np.int8)
    return numbers, scales


def check_finite(tensors: Tensors) -> None:
    """Refuse weights that are no numbers; all tensors that hold such are named."""
    bad = [name for name, tensor in tensors.items() if not np.isfinite(tensor).all()]
    if bad:
        raise ModelError(
            "{names} holds numbers that are not finite, so it is not saved",
            names=", ".join(sorted(bad)),
        )


def _heads(path: Path) -> dict[str, tuple[str, list[int]]]:
    """Type and shape of every tensor; no number is read."""
    try:
        with safe_open(path, framework="np") as file:
            slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
            return {name: (one.get_dtype(), one.get_shape()) for name, one in slices.items()}
    except SafetensorError as error:
        with path.open("rb") as file:
            is_pickle = file.read(2) in (b"PK", b"\x80\x02", b"\x80\x04", b"\x80\x05")
        if is_pickle:
            raise ModelError(
                "{path} is a pickle by its first bytes, but should be safetensors", path=path
            ) from None
        raise ModelError(
            "{path} is no whole safetensors file: {reason}", path=path, reason=error
        ) from None


def _as_float16(tensors: Tensors) -> dict[str, NDArray[Any]]:
    largest = int(np.finfo(np.float16).max)
    bad = [name for name, tensor in tensors.items() if np.abs(tensor).max(initial=0.0) > largest]
    if bad:
        raise ModelError(
            "{names} holds numbers above {largest}, which float16 has not; choose float32",
            names=", ".join(sorted(bad)),
            largest=largest,
        )
    return {name: tensor.astype(np.float16) for name, tensor in tensors.items()}


def _check_dtypes(path: Path, dtypes: Mapping[str, str]) -> None:
    bad = sorted({dtype for dtype in dtypes.values() if dtype not in KNOWN})
    if bad:
        raise ModelError(
            "{path} holds numbers of type {found}; weights are float32, float16, or int8 with "
            "scales",
            path=path,
            found=", ".join(bad),
        )


def _dequantized(path: Path, tensors: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    small = [name for name, tensor in tensors.items() if tensor.dtype == np.int8]
    for name in small:
        numbers, scales = tensors[name], tensors.pop(name + SCALE, None)
        if scales is None or scales.shape != numbers.shape[:1] or numbers.ndim != 2:
            raise ModelError(
                "{path} has no scale for each row of {name}, which is int8", path=path, name=name
            )
        tensors[name] = numbers.astype(np.float32) * scales.astype(np.float32)[:, None]
    return tensors
