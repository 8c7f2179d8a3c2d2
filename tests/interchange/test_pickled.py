import argparse
import collections
import enum
import os
import pickle
import zipfile

import numpy as np
import pytest
import torch

from regard.errors import ModelError
from regard.interchange.pickled import Inert, Settings, read_inert, read_trusted

DTYPES = [torch.float32, torch.float16, torch.float64, torch.int64, torch.int32, torch.int16,
          torch.int8, torch.uint8, torch.bool]  # fmt: skip


def saved(place, value, is_zip=True):
    torch.save(value, place / "file.pt", _use_new_zipfile_serialization=is_zip)
    return place / "file.pt"


@pytest.mark.parametrize("is_zip", [True, False])
def test_tensors_are_what_torch_reads(tmp_path, is_zip):
    whole = torch.randn(4, 6)
    value = {
        "whole": whole, "turned": whole.T, "part": whole[1:3, ::2], "one": whole[2, 3],
        "empty": whole[:0], "parameter": torch.nn.Parameter(whole[0]),
        "bf16": whole.to(torch.bfloat16),
        "kinds": [torch.arange(3).to(dtype) for dtype in DTYPES],
        "plain": {"a": [1, 2.5, "x", None, (True,)]},
        "ordered": collections.OrderedDict(b=whole[3]),
    }  # fmt: skip
    found = read_inert(saved(tmp_path, value, is_zip))
    for name in ("whole", "turned", "part", "one", "empty", "parameter"):
        assert np.array_equal(found[name], value[name].detach().numpy())
        assert found[name].dtype == np.float32
    assert np.array_equal(found["bf16"], value["bf16"].float().numpy())
    for array, tensor in zip(found["kinds"], value["kinds"], strict=True):
        assert np.array_equal(array, tensor.numpy())
        assert array.dtype == tensor.numpy().dtype
    assert found["plain"] == {"a": [1, 2.5, "x", None, [True]]}
    assert np.array_equal(found["ordered"]["b"], whole[3].numpy())


class Stranger:
    def __init__(self):
        self.items = [1]


class Evil:
    def __init__(self, place):
        self.place = place

    def __reduce__(self):
        return os.mkdir, (self.place,)


class Choice(enum.Enum):
    ONE = 1


class Growing(list):
    """Filled by the pickle itself, item by item."""


@pytest.mark.parametrize("is_zip", [True, False])
def test_what_would_have_to_be_run_does_nothing(tmp_path, is_zip):
    value = {
        "args": argparse.Namespace(x=1, y="z"), "stranger": Stranger(), "number": np.float64(2.0),
        "evil": Evil(str(tmp_path / "run")), "function": len, "growing": Growing([1, 2]),
        "counted": collections.defaultdict(list, a=[1]), "choice": Choice.ONE,
    }  # fmt: skip
    found = read_inert(saved(tmp_path, value, is_zip))
    assert isinstance(found["args"], Settings)
    assert found["args"].table() == {"x": 1, "y": "z"}
    for name in ("stranger", "number", "evil", "growing", "counted", "choice"):
        assert isinstance(found[name], Inert)
    assert found["function"] is Inert
    assert not (tmp_path / "run").exists()


def said(path):
    with pytest.raises(ModelError) as caught:
        read_inert(path)
    start = f"{path} is no whole file of torch: "
    assert str(caught.value).startswith(start)
    return str(caught.value).removeprefix(start)


@pytest.mark.parametrize("is_zip", [True, False])
def test_a_truncated_file_is_refused(tmp_path, is_zip):
    path = saved(tmp_path, {"a": torch.zeros(100)}, is_zip)
    data = path.read_bytes()
    for n in (0, 10, len(data) // 2, len(data) - 1):
        path.write_bytes(data[:n])
        assert said(path)


def test_a_window_beyond_its_storage_is_refused(tmp_path):
    path = saved(tmp_path, {"a": torch.zeros(3, 5)})
    with zipfile.ZipFile(path) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    [name] = [name for name in files if name.endswith("data.pkl")]
    files[name] = files[name].replace(b"K\x03K\x05\x86", b"K\x09K\x05\x86")
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    assert said(path) == "ValueError: a tensor reaches beyond its storage"


def test_an_archive_that_would_swell_is_refused(tmp_path):
    path = tmp_path / "file.pt"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", pickle.dumps({}))
        archive.writestr("archive/data/0", b"0" * 10_000)
    assert said(path) == "ValueError: torch compresses nothing"


def test_a_plain_pickle_is_no_file_of_torch(tmp_path):
    (tmp_path / "file.pt").write_bytes(b"".join(pickle.dumps(i) for i in range(5)))
    assert said(tmp_path / "file.pt") == "ValueError: it does not begin as torch's files do"


def test_torch_itself_reads_what_is_trusted_and_tensors_alone(tmp_path):
    whole = torch.randn(2, 3)
    found = read_trusted(saved(tmp_path, {"a": whole, "b": whole}))
    assert np.array_equal(found["a"], whole.numpy())
    assert np.array_equal(found["b"], whole.numpy())
    path = saved(tmp_path, {"a": Evil(str(tmp_path / "run"))})
    with pytest.raises(ModelError) as caught:
        read_trusted(path)
    assert str(caught.value) == (
        f"{path} is no file of tensors alone: Trying to load unsupported GLOBAL posix.mkdir whose "
        "module posix is blocked."
    )
    assert not (tmp_path / "run").exists()
