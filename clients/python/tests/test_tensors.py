"""Tensors in JSON: exact round trips, and refusals of invalid tensors."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clients.python.tests.arrays import arrays, same_bits
from engine.ir.tensor_type import ELEMENT_TYPES
from gradserve_client.errors import InputError, MalformedAnswer
from gradserve_client.tensors import (
    DTYPES,
    SAFETENSORS_THRESHOLD,
    SINCE,
    as_array,
    bytes_of,
    default_form,
    dtype_name,
    from_bytes,
    from_json,
    to_json,
)


@given(arrays(), st.sampled_from(["json", "base64"]))
def test_round_trip(array: np.ndarray[Any, Any], form: Any) -> None:
    text = json.dumps(to_json(as_array(array), form), allow_nan=False)
    assert same_bits(from_json(json.loads(text)), array)


@pytest.mark.parametrize(
    ("value", "payload"),
    [
        (np.array([1.5, -0.0]), "data"),
        (np.array([math.nan]), "data_b64"),
        (np.array([math.inf], np.float16), "data_b64"),
        (np.array([2**53]), "data"),
        (np.array([2**53 + 1]), "data_b64"),
        (np.array([-(2**53) - 1]), "data_b64"),
        (np.array([True]), "data"),
        (np.array([0, 2**32 - 1], np.uint32), "data"),
        (np.array([-(2**15), 2**15 - 1], np.int16), "data"),
        (np.array([1 - 2j]), "data"),
        (np.array([complex(math.inf, 1)]), "data_b64"),
        (np.array([complex(0, math.nan)], np.complex64), "data_b64"),
    ],
)
def test_json_uses_base64_for_numbers_that_it_lacks(value: Any, payload: str) -> None:
    assert payload in to_json(as_array(value), "json")


def test_dtypes_match_the_server() -> None:
    assert {element.name: element.safetensors for element in ELEMENT_TYPES} == DTYPES
    assert {element.name: element.since for element in ELEMENT_TYPES if element.since > 1} == SINCE


def test_bool_is_a_number_in_json() -> None:
    assert to_json(as_array([True, False]), "json")["data"] == [1, 0]


def test_complex_number_is_two_numbers_in_json() -> None:
    array = as_array(np.array([[1 - 2j, complex(-0.0, 0.5)]], np.complex64))
    encoded = to_json(array, "json")
    assert encoded == {"dtype": "complex64", "shape": [1, 2], "data": [1.0, -2.0, -0.0, 0.5]}
    assert math.copysign(1, encoded["data"][2]) == -1
    assert from_json(encoded).tobytes() == array.tobytes()
    assert to_json(as_array(1j), "json") == {"dtype": "complex128", "shape": [], "data": [0.0, 1.0]}


def test_default_form_switches_at_four_kibibytes() -> None:
    assert (default_form(SAFETENSORS_THRESHOLD - 1), default_form(SAFETENSORS_THRESHOLD)) == ("base64", "safetensors")
    assert SAFETENSORS_THRESHOLD == 4096


def test_wire_array_is_not_copied() -> None:
    array = np.arange(6.0).reshape(2, 3)
    assert np.shares_memory(as_array(array), array)
    assert np.shares_memory(bytes_of(array), array)


@pytest.mark.parametrize("array", [np.arange(6.0).reshape(2, 3).T, np.arange(3, dtype=">i4"), np.arange(9)[::3]])
def test_other_layouts_have_the_same_elements(array: np.ndarray[Any, Any]) -> None:
    converted = as_array(array)
    assert (converted == array).all()
    assert converted.flags.c_contiguous
    assert bytes_of(converted) == array.astype(array.dtype.newbyteorder("<")).tobytes()


def test_dtype_applies_to_numbers_but_not_to_arrays() -> None:
    assert as_array([1, 2], "float32").dtype == np.float32
    assert as_array(np.array([1, 2]), "float32").dtype == np.int64


@pytest.mark.parametrize(
    "value", ["text", [[1], [1, 2]], np.array([1], np.uint16), np.array([1j], "clongdouble"), np.array([None])]
)
def test_unsupported_values_are_refused(value: Any) -> None:
    with pytest.raises(InputError):
        as_array(value)


def test_dtype_name_may_be_newer_than_the_client() -> None:
    assert dtype_name("bfloat16") == "bfloat16"
    assert dtype_name(np.float16) == "float16"
    with pytest.raises(InputError, match="uint16"):
        dtype_name(np.uint16)


@pytest.mark.parametrize(
    ("raw", "dtype", "shape", "told"),
    [
        (b"\0" * 7, "float64", [1], "8 bytes, got 7"),
        (b"\0" * 8, "float64", [2], "16 bytes"),
        (b"", "float64", [-1], "non-negative"),
        (b"", "float64", [2**40, 2**40], "is too large"),
        (b"", "float64", [2**62, 0], "is too large"),
        (b"", "float64", [0, 2**62, 2**62], "is too large"),
        (b"", "float64", [2**50, 0], "is too large"),
        (b"\0" * 8, "uint64", [1], "unsupported dtype"),
        (b"\0" * 8, "complex128", [1], "16 bytes"),
        (b"\2", "bool", [1], "0 or 1"),
        (b"", "float64", [0] * 65, "64 extents"),
    ],
)
def test_bytes_must_fit_dtype_and_shape(raw: bytes, dtype: str, shape: list[int], told: str) -> None:
    with pytest.raises(InputError, match=told):
        from_bytes(raw, dtype, shape)


F64: dict[str, Any] = {"dtype": "float64", "shape": [1]}


@pytest.mark.parametrize(
    "tensor",
    [
        [],
        {"shape": [1], "data": [1]},
        {"dtype": "float64", "data": [1]},
        {"dtype": "float64", "shape": "1", "data": [1]},
        {"dtype": "float64", "shape": [True], "data": [1]},
        {"dtype": "float64", "shape": [2**62, 0], "data": []},
        {"dtype": "bfloat16", "shape": [1], "data": [1]},
        F64,
        F64 | {"data": [1, 2]},
        F64 | {"data": ["1"]},
        F64 | {"data": [None]},
        F64 | {"data": [True]},
        F64 | {"data": [[1]]},
        F64 | {"data": [math.nan]},
        F64 | {"data": [math.inf]},
        F64 | {"data": [10**400]},
        F64 | {"data": [1], "data_b64": "AAAAAAAA8D8="},
        F64 | {"data_b64": "AAAAAAAA8D8"},
        F64 | {"data_b64": "AAAAAAAA8D8=="},
        F64 | {"data_b64": "AAAA AAAA8D8="},
        F64 | {"data_b64": "AAAAAAAA"},
        F64 | {"data_b64": 1},
        {"dtype": "float32", "shape": [1], "data": [1e39]},
        {"dtype": "complex64", "shape": [1], "data": [1, 1e39]},
        {"dtype": "complex64", "shape": [2], "data": [1, 2]},
        {"dtype": "complex64", "shape": [1], "data": [[1, 2]]},
        {"dtype": "complex128", "shape": [1], "data": [1, 2, 3]},
        {"dtype": "int16", "shape": [1], "data": [2**15]},
        {"dtype": "int8", "shape": [1], "data": [128]},
        {"dtype": "int64", "shape": [1], "data": [2**63]},
        {"dtype": "int32", "shape": [1], "data": [0.5]},
        {"dtype": "bool", "shape": [1], "data": [2]},
        {"dtype": "bool", "shape": [1], "data_b64": "Ag=="},
    ],
)
def test_invalid_tensors_are_refused(tensor: Any) -> None:
    with pytest.raises(MalformedAnswer):
        from_json(tensor)


@pytest.mark.parametrize(
    ("tensor", "value"),
    [
        (F64 | {"data": [1]}, [1.0]),
        (F64 | {"data": [], "data_b64": "AAAAAAAA8D8="}, [1.0]),
        (F64 | {"data": [1], "data_b64": ""}, [1.0]),
        ({"dtype": "int64", "shape": [2], "data": [1.0, 2**63 - 1]}, [1, 2**63 - 1]),
        ({"dtype": "float32", "shape": [0]}, []),
        ({"dtype": "complex64", "shape": [1], "data": [3, -4.0]}, [3 - 4j]),
        ({"dtype": "int8", "shape": [1], "data": [-128], "later": 1}, [-128]),
    ],
)
def test_valid_tensors_are_read(tensor: Any, value: Any) -> None:
    assert from_json(tensor).tolist() == value
