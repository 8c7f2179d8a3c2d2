import numpy as np
import pytest
from safetensors.numpy import save_file

from regard.errors import ModelError, ResourceError
from regard.tensors import (
    as_dtype,
    n_stored,
    quantized,
    read_tensors,
    stored_dtype,
    write_tensors,
)


def some(seed=0):
    draw = np.random.default_rng(seed)
    return {
        "source.weight": draw.normal(size=(40, 16)).astype(np.float32),
        "norm.weight": draw.normal(size=16).astype(np.float32),
        "small.weight": (1e-6 * draw.normal(size=(3, 5))).astype(np.float32),
    }


def written(tmp_path, dtype, tensors=None):
    path = tmp_path / "model.safetensors"
    write_tensors(as_dtype(tensors or some(), dtype), path)
    return path


def test_float32_comes_back_as_it_was(tmp_path):
    path = written(tmp_path, "float32")
    found = read_tensors(path)
    assert all(np.array_equal(found[name], tensor) for name, tensor in some().items())
    assert found.keys() == some().keys()


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8"])
def test_a_file_says_its_type_and_how_many_numbers_it_holds(tmp_path, dtype):
    path = written(tmp_path, dtype)
    assert stored_dtype(path) == dtype
    assert n_stored(path) == 40 * 16 + 16 + 15
    assert read_tensors(path).keys() == some().keys()


def test_an_int8_matrix_is_its_numbers_times_the_scale_of_their_row(tmp_path):
    weight = some()["source.weight"]
    expected = np.empty_like(weight)
    for i, row in enumerate(weight):  # the formula, row by row
        scale = np.float32(max(abs(x) for x in row)) / np.float32(127)
        expected[i] = [np.float32(round(float(x / scale))) * scale for x in row]
    found = read_tensors(written(tmp_path, "int8"))
    assert found["source.weight"].dtype == np.float32
    assert np.array_equal(found["source.weight"], expected)
    assert np.array_equal(found["norm.weight"], some()["norm.weight"].astype(np.float16))


def test_no_number_is_further_off_than_half_a_step_of_its_row(tmp_path):
    found = read_tensors(written(tmp_path, "int8"))
    for name in ("source.weight", "small.weight"):
        weight = some()[name]
        step = np.abs(weight).max(axis=1, keepdims=True) / 127
        assert (np.abs(found[name] - weight) <= 0.5001 * step).all()


def test_what_was_int8_is_the_same_in_int8_again():
    numbers, scales = quantized(some()["source.weight"])
    again, _ = quantized(numbers.astype(np.float32) * scales[:, None])
    assert np.array_equal(again, numbers)


def test_a_row_of_zeros_stays_one(tmp_path):
    found = read_tensors(written(tmp_path, "int8", {"w": np.zeros((2, 3), np.float32)}))
    assert np.array_equal(found["w"], np.zeros((2, 3)))


def test_int8_takes_little_more_than_a_byte_for_each_number(tmp_path):
    wide = {"w": np.random.default_rng(0).normal(size=(512, 256)).astype(np.float32)}
    assert written(tmp_path, "int8", wide).stat().st_size < 1.03 * 512 * 256


def test_numbers_that_are_not_finite_are_not_stored():
    bad = {"b": np.array([np.nan]), "a": np.array([[np.inf]]), "c": np.ones(1)}
    for dtype in ("float32", "float16", "int8"):
        with pytest.raises(ModelError) as caught:
            as_dtype(bad, dtype)
        assert str(caught.value) == "a, b holds numbers that are not finite, so it is not saved"


def test_numbers_too_large_for_float16_are_not_stored_as_such():
    with pytest.raises(ModelError) as caught:
        as_dtype({"a": np.array([7e4], np.float32)}, "float16")
    assert str(caught.value) == (
        "a holds numbers above 65504, which float16 has not; choose float32"
    )


def test_a_cut_file_is_refused(tmp_path):
    path = written(tmp_path, "float32")
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ModelError) as caught:
        read_tensors(path)
    assert str(caught.value).startswith(f"{path} is no whole safetensors file: ")


def test_types_that_weights_do_not_have_are_named(tmp_path):
    path = tmp_path / "model.safetensors"
    save_file({"a": np.ones(1, np.float64), "b": np.ones(1, np.int64)}, path)
    with pytest.raises(ModelError) as caught:
        read_tensors(path)
    assert str(caught.value) == (
        f"{path} holds numbers of type F64, I64; weights are float32, float16, or int8 with scales"
    )


@pytest.mark.parametrize("scales", [{}, {"a.scale": np.ones(3, np.float32)}])
def test_int8_without_its_scales_is_refused(tmp_path, scales):
    path = tmp_path / "model.safetensors"
    save_file({"a": np.ones((2, 2), np.int8), **scales}, path)
    with pytest.raises(ModelError) as caught:
        read_tensors(path)
    assert str(caught.value) == f"{path} has no scale for each row of a, which is int8"


def test_a_place_that_cannot_be_written_is_said(tmp_path):
    path = tmp_path / "nowhere" / "model.safetensors"
    with pytest.raises(ResourceError) as caught:
        write_tensors(some(), path)
    assert str(caught.value).startswith(f"{path} could not be written: ")
