"""safetensors: compatible with the format's own library; broken files are refused."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given
from hypothesis import strategies as st

from clients.python.tests.arrays import arrays, same_bits
from gradserve_client import safetensors as own
from gradserve_client.errors import MalformedAnswer
from gradserve_client.tensors import DTYPES, PARTS

NAMES = st.text("abc.019", min_size=1, max_size=6)
REALS = [dtype for dtype in DTYPES if dtype not in PARTS]


@given(st.dictionaries(NAMES, arrays(), max_size=4), st.dictionaries(NAMES, st.text(max_size=5), max_size=2))
def test_round_trip(tensors: dict[str, np.ndarray[Any, Any]], metadata: dict[str, str]) -> None:
    read = own.decode(b"".join(own.encode(tensors, metadata)))
    assert read.metadata == metadata
    assert {name for name in tensors if same_bits(read.tensors[name], tensors[name])} == set(tensors)


@given(st.dictionaries(NAMES, arrays(REALS), min_size=1, max_size=3))
def test_matches_the_safetensors_library(tensors: dict[str, np.ndarray[Any, Any]]) -> None:
    theirs = safetensors.numpy.load(b"".join(own.encode(tensors, {"a": "b"})))
    assert {name for name in tensors if same_bits(theirs[name], tensors[name])} == set(tensors)
    read = own.decode(safetensors.numpy.save(tensors)).tensors
    assert {name for name in tensors if same_bits(read[name], tensors[name])} == set(tensors)


def test_encode_and_decode_do_not_copy() -> None:
    array = np.arange(1000.0)
    _, piece = own.encode({"a": array}, {})
    assert np.shares_memory(np.frombuffer(piece, np.uint8), array)
    body = bytearray(b"".join(own.encode({"a": array}, {})))
    read = own.decode(body).tensors["a"]
    assert np.shares_memory(read, np.frombuffer(body, np.uint8))
    assert read.flags.writeable
    assert read.flags.aligned


def test_wide_elements_come_first_for_alignment() -> None:
    body = b"".join(own.encode({"a": np.ones(3, np.int8), "b": np.ones(2), "c": np.ones(1, np.float16)}, {}))
    assert all(array.flags.aligned for array in own.decode(body).tensors.values())


def file(header: Any, data: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def entry(start: int, end: int, dtype: str = "U8", shape: Any = None) -> dict[str, Any]:
    return {"dtype": dtype, "shape": [end - start] if shape is None else shape, "data_offsets": [start, end]}


@given(st.dictionaries(NAMES, arrays([*PARTS]), min_size=1, max_size=3))
def test_safetensors_library_reads_complex_numbers_as_parts(tensors: dict[str, np.ndarray[Any, Any]]) -> None:
    body = b"".join(own.encode(tensors, {"a": "b"}))
    for name, parts in safetensors.numpy.load(body).items():
        whole = tensors[name]
        assert parts.shape == (*whole.shape, 2)
        assert same_bits(parts, whole.reshape(-1).view(PARTS[whole.dtype.name]).reshape(parts.shape))


def test_complex_tensors_are_named_in_the_metadata() -> None:
    body = b"".join(own.encode({"x": np.ones(2), "z": np.ones(2, np.complex64), "é": np.array(1j)}, {"a": "b"}))
    header = json.loads(body[8 : 8 + int.from_bytes(body[:8], "little")])
    assert header["__metadata__"]["a"] == "b"
    assert {*json.loads(header["__metadata__"]["complex"])} == {"z", "é"}
    assert (header["é"]["dtype"], header["é"]["shape"]) == ("F64", [2])
    read = own.decode(bytearray(body))
    assert read.metadata == {"a": "b"}
    assert read.tensors["z"].flags.writeable


def test_c64_is_read() -> None:
    array = np.array([1 - 2j, 0.5j], np.complex64)
    assert same_bits(own.decode(file({"a": entry(0, 16, "C64", [2])}, array.tobytes())).tensors["a"], array)


def named(names: Any, dtype: str, shape: list[int]) -> bytes:
    """A file of 16 bytes whose metadata names complex tensors."""
    return file({"__metadata__": {"complex": names}, "a": entry(0, 16, dtype, shape)}, bytes(16))


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (named('["a"]', "F64", [2, 1]), "last axis of 2"),
        (named('["a"]', "F32", [2, 2, 1]), "last axis of 2"),
        (named('["a"]', "I64", [1, 2]), "last axis of 2"),
        (named('["a"]', "F16", [4, 2]), "last axis of 2"),
        (named('["a"]', "C64", [2]), "last axis of 2"),
        (named('["b"]', "F64", [2]), "lists 'b'"),
        (named('"a"', "F64", [2]), "list of names"),
        (named("a", "F64", [2]), "list of names"),
        (named("[1]", "F64", [2]), "list of names"),
        (named("null", "F64", [2]), "list of names"),
        (named(["a"], "F64", [2]), "strings"),
    ],
)
def test_invalid_complex_metadata_is_refused(body: bytes, told: str) -> None:
    with pytest.raises(MalformedAnswer, match=told):
        own.decode(body)


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b"", "ends before"),
        (b"\0" * 7, "ends before"),
        ((9).to_bytes(8, "little") + b"{}", "ends before"),
        (b"\xff" * 8 + b"{}", "ends before"),
        (file(b"{"), "not JSON"),
        (file(b"\xff\xfe"), "not JSON"),
        (file(b"[" * 100_000), "not JSON"),
        (file([]), "not an object"),
        (file(b'{"a": 1, "a": 2}'), "duplicate name"),
        (file({"__metadata__": {"a": 1}}), "strings"),
        (file({"a": entry(0, 1)}), "has 0 bytes, but its tensors have 1"),
        (file({"a": entry(0, 1)}, b"\0\0"), "has 2 bytes, but its tensors have 1"),
        (file({"a": entry(0, 2), "b": entry(1, 3)}, b"\0" * 3), "overlap"),
        (file({"a": entry(0, 1), "b": entry(2, 3)}, b"\0" * 3), "gaps"),
        (file({"a": entry(1, 2)}, b"\0" * 2), "gaps"),
        (file({"a": entry(0, 2, shape=[3])}, b"\0" * 2), "3 bytes"),
        (file({"a": entry(0, 2, shape=[-2])}, b"\0" * 2), "non-negative"),
        (file({"a": entry(0, 0, shape=[2**62, 2**62])}), "bytes"),
        (file({"a": entry(0, 2, dtype="BF16", shape=[1])}, b"\0" * 2), "BF16"),
        (file({"a": entry(0, 1, dtype="BOOL")}, b"\2"), "0 or 1"),
        (file({"a": {"dtype": "U8", "shape": [1]}}, b"\0"), "data_offsets"),
        (file({"a": {"dtype": "U8", "shape": [1], "data_offsets": [1, 0]}}, b"\0"), "data_offsets"),
        (file({"a": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1, 2]}}, b"\0"), "data_offsets"),
        (file({"a": 1}), "data_offsets"),
    ],
)
def test_broken_files_are_refused(body: bytes, told: str) -> None:
    with pytest.raises(MalformedAnswer, match=told):
        own.decode(body)


def test_header_above_100_megabytes_is_refused_before_reading() -> None:
    length = own.MAX_HEADER_BYTES + 1
    body = memoryview(np.zeros(8 + length, np.uint8))  # pages of zeros, which take no memory until they are read
    body[:8] = length.to_bytes(8, "little")
    with pytest.raises(MalformedAnswer, match="the limit is"):
        own.decode(body)


def test_empty_tensors_may_have_any_offset() -> None:
    body = file({"a": entry(0, 1), "b": entry(1, 1, shape=[0, 5]), "c": entry(1, 2)}, b"\1\2")
    assert {name: array.tolist() for name, array in own.decode(body).tensors.items()} == {"a": [1], "b": [], "c": [2]}
