"""Files that torch has pickled, read with care: a pickle may name any program and have it run.

`read_trusted`   by torch, of tensors alone, in a process of its own: for those whose maker is known
`read_inert`     by no more than is here: whatever a pickle names besides tensors and plain tables
                 becomes a thing that does nothing, so nothing of the file's own is ever run
"""

import io
import pickle
import subprocess
import sys
import tempfile
import zipfile
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from regard.errors import ModelError
from regard.tensors import read_tensors

_READS = """
import sys, torch
from safetensors.torch import save_file
found = torch.load(sys.argv[1], map_location="cpu", weights_only=True)
save_file({name: tensor.clone().contiguous() for name, tensor in found.items()}, sys.argv[2])
"""

DTYPES = {
    "FloatStorage": "<f4", "HalfStorage": "<f2", "DoubleStorage": "<f8", "BFloat16Storage": "bf16",
    "LongStorage": "<i8", "IntStorage": "<i4", "ShortStorage": "<i2", "CharStorage": "<i1",
    "ByteStorage": "<u1", "BoolStorage": "?",
}  # fmt: skip
MAGIC = 0x1950A86A20F9469CFC6C  # of the files that torch wrote before 1.6


def read_trusted(path: Path) -> dict[str, NDArray[Any]]:
    """The tensors of a file by name, read by torch in another process."""
    with tempfile.TemporaryDirectory(prefix="regard-") as folder:
        out = Path(folder) / "model.safetensors"
        done = subprocess.run(
            [sys.executable, "-I", "-c", _READS, str(path), str(out)],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise ModelError(
                "{path} is no file of tensors alone: {reason}",
                path=path,
                reason=_reason(done.stderr),
            )
        return read_tensors(out)


def _reason(traceback: str) -> str:
    """Why torch would not read it: its last words but for its advice."""
    lines = [line.strip() for line in traceback.splitlines() if line.strip()]
    lines = [line for line in lines if not line.startswith("Check the documentation")]
    return (lines or ["?"])[-1][:200]


def read_inert(path: Path) -> Any:
    """What a file holds: tables, lists, numbers, text, `Settings`, and tensors as arrays."""
    try:
        if zipfile.is_zipfile(path):
            return _read_zip(path)
        with path.open("rb") as file:
            return _read_stream(file)
    except OSError:
        raise
    except Exception as error:  # of the many ways in which a pickle can be broken
        raise ModelError(
            "{path} is no whole file of torch: {reason}",
            path=path,
            reason=f"{type(error).__name__}: {error}"[:200],
        ) from None


class Settings:
    """The options of a program, as `argparse` keeps them."""

    def table(self) -> dict[str, Any]:
        """Them by name."""
        return dict(vars(self))


class Inert:
    """What stands for anything that would have to be run."""

    def __new__(cls, *_: object) -> "Inert":
        """Whatever it was to be made of."""
        return super().__new__(cls)

    def __init__(self, *_: object) -> None: ...

    def __call__(self, *_: object) -> "Inert":
        """Itself."""
        return self

    def __setstate__(self, state: object) -> None: ...

    def __setitem__(self, key: object, value: object) -> None: ...

    def append(self, item: object) -> None:
        """Nothing."""

    def extend(self, items: object) -> None:
        """Nothing."""


@dataclass(slots=True)
class _Storage:
    """A row of numbers, whose bytes may come later in the file."""

    dtype: str
    numel: int
    data: bytes = b""

    def numbers(self) -> NDArray[Any]:
        if self.dtype != "bf16":
            return np.frombuffer(self.data, self.dtype, self.numel)
        high = np.frombuffer(self.data, "<u2", self.numel).astype(np.uint32)
        return (high << 16).view(np.float32)  # bfloat16 is the upper half of a float32


@dataclass(frozen=True, slots=True)
class _Tensor:
    """A window on a storage."""

    storage: _Storage
    offset: int
    size: tuple[int, ...]
    strides: tuple[int, ...]

    def array(self) -> NDArray[Any]:
        """The numbers in it; a window that reaches beyond its storage is a broken file."""
        numbers = self.storage.numbers()
        reach = sum((n - 1) * step for n, step in zip(self.size, self.strides, strict=True))
        is_empty = 0 in self.size
        if not is_empty and not 0 <= self.offset <= self.offset + reach < len(numbers):
            raise ValueError("a tensor reaches beyond its storage")
        if any(step < 0 for step in self.strides) or any(n < 0 for n in self.size):
            raise ValueError("a tensor of negative size")
        if is_empty:
            return np.zeros(self.size, numbers.dtype)
        steps = [step * numbers.itemsize for step in self.strides]
        window = np.lib.stride_tricks.as_strided(numbers[self.offset :], self.size, steps)
        return window.copy()


def _tensor(storage: Any, offset: int, size: Any, strides: Any, *_: object) -> Any:
    """In the place of torch's `_rebuild_tensor_v2`."""
    return _Tensor(storage, int(offset), tuple(size), tuple(strides))


def _parameter(tensor: Any, *_: object) -> Any:
    """In the place of torch's `_rebuild_parameter`."""
    return tensor


_KNOWN: dict[tuple[str, str], Any] = {
    ("collections", "OrderedDict"): OrderedDict,
    ("builtins", "set"): set,
    ("builtins", "frozenset"): frozenset,
    ("torch", "Size"): tuple,
    ("torch._utils", "_rebuild_tensor_v2"): _tensor,
    ("torch._utils", "_rebuild_parameter"): _parameter,
    ("argparse", "Namespace"): Settings,
    **{("torch", name): dtype for name, dtype in DTYPES.items()},
}


class _Reader(pickle.Unpickler):  # finds nothing but what is above
    def __init__(self, file: BinaryIO, storage: Callable[[str, str, int], _Storage]) -> None:
        super().__init__(file)
        self.storage = storage

    def find_class(self, module: str, name: str) -> Any:
        return _KNOWN.get((module, name), Inert)

    def persistent_load(self, pid: Any) -> _Storage:
        kind, dtype, key, _, numel, *_ = pid
        if kind != "storage" or not isinstance(dtype, str):
            raise ValueError("a storage of a type that is not known")
        return self.storage(str(key), dtype, int(numel))


def _read_zip(path: Path) -> Any:
    with zipfile.ZipFile(path) as archive:
        [name] = [name for name in archive.namelist() if name.endswith("/data.pkl")]
        root = name.removesuffix("data.pkl")
        if any(info.compress_type != zipfile.ZIP_STORED for info in archive.infolist()):
            raise ValueError("torch compresses nothing")

        def storage(key: str, dtype: str, numel: int) -> _Storage:
            return _Storage(dtype, numel, archive.read(f"{root}data/{key}"))

        return _resolved(_Reader(io.BytesIO(archive.read(name)), storage).load())


def _read_stream(file: BinaryIO) -> Any:
    """The form before 1.6: four pickles, the keys of the storages, and then their bytes."""
    storages: dict[str, _Storage] = {}

    def storage(key: str, dtype: str, numel: int) -> _Storage:
        return storages.setdefault(key, _Storage(dtype, numel))

    magic, _, _, found, keys = (_Reader(file, storage).load() for _ in range(5))
    if magic != MAGIC:
        raise ValueError("it does not begin as torch's files do")
    for key in keys:
        own = storages[str(key)]
        own.numel = int.from_bytes(file.read(8), "little")
        width = 2 if own.dtype == "bf16" else np.dtype(own.dtype).itemsize
        own.data = file.read(own.numel * width)
    return _resolved(found)


def _resolved(found: Any) -> Any:
    """The same with arrays in the place of tensors."""
    match found:
        case _Tensor():
            return found.array()
        case dict():
            return {key: _resolved(value) for key, value in found.items()}
        case list() | tuple():
            return [_resolved(value) for value in found]
        case _:
            return found
