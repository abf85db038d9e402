"""The safetensors format: a JSON header followed by the bytes of the tensors, which are read without a copy.

https://github.com/huggingface/safetensors#format

The format has no complex dtypes. A complex tensor is stored as its real and imaginary parts, along a last axis of 2;
`__metadata__.complex` lists the names of these tensors.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from gradserve_client.errors import InputError, MalformedAnswer
from gradserve_client.tensors import DTYPES, PARTS, Array, Buffer, bytes_of, from_bytes

#: maximum length of a header in bytes: the limit of the reference implementation
MAX_HEADER_BYTES: Final = 100_000_000
_METADATA: Final = "__metadata__"
_LENGTH_BYTES: Final = 8
_COMPLEX: Final = "complex"
_DTYPE_NAMES: Final = {spelling: name for name, spelling in DTYPES.items() if spelling}
_COMPLEX_DTYPES: Final = {parts: name for name, parts in PARTS.items()}


class File(NamedTuple):
    """The contents of a file: metadata, without the list of complex tensors, and tensors, as views of its bytes."""

    metadata: dict[str, str]
    tensors: dict[str, Array]


def encode(tensors: Mapping[str, Array], metadata: Mapping[str, str]) -> list[Buffer]:
    """Encode arrays from `as_array` as a file, in pieces that are not copied: the header, then the bytes of each array.

    Tensors with large elements come first, so that all of them are aligned.
    """
    ordered = sorted(tensors.items(), key=lambda item: -item[1].itemsize)
    complex_names = [name for name, array in ordered if array.dtype.name in PARTS]
    file_metadata = dict(metadata) | (
        {_COMPLEX: json.dumps(complex_names, separators=(",", ":"))} if complex_names else {}
    )
    header: dict[str, Any] = {_METADATA: file_metadata} if file_metadata else {}
    end = 0
    for name, array in ordered:
        start, end = end, end + array.nbytes
        header[name] = _dtype_and_shape(array) | {"data_offsets": [start, end]}
    header_bytes = json.dumps(header, separators=(",", ":")).encode()
    header_bytes += b" " * (-len(header_bytes) % _LENGTH_BYTES)
    return [
        len(header_bytes).to_bytes(_LENGTH_BYTES, "little") + header_bytes,
        *(bytes_of(array) for _, array in ordered if array.nbytes),
    ]


def _dtype_and_shape(array: Array) -> dict[str, Any]:
    if parts := PARTS.get(array.dtype.name):
        return {"dtype": DTYPES[parts], "shape": [*array.shape, 2]}
    return {"dtype": DTYPES[array.dtype.name], "shape": list(array.shape)}


def decode(file: Buffer) -> File:
    """Decode a file without copying it. Raises MalformedAnswer."""
    view = memoryview(file)
    length = int.from_bytes(view[:_LENGTH_BYTES], "little")
    if len(view) < _LENGTH_BYTES or length > len(view) - _LENGTH_BYTES:
        raise MalformedAnswer("the safetensors file ends before the end of its header")
    if length > MAX_HEADER_BYTES:
        raise MalformedAnswer(f"the header of the safetensors file has {length} bytes; the limit is {MAX_HEADER_BYTES}")
    header = _parse_header(bytes(view[_LENGTH_BYTES : _LENGTH_BYTES + length]))
    metadata = header.pop(_METADATA, {})
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise MalformedAnswer(f"{_METADATA} of the safetensors file must map names to strings")
    entries = {name: _Entry.parse(name, fields) for name, fields in header.items()}
    complex_names = _complex_names(metadata.pop(_COMPLEX, None), entries)
    data = view[_LENGTH_BYTES + length :]
    _require_contiguous(entries.values(), len(data))
    return File(metadata, {name: entry.read(name, data, name in complex_names) for name, entry in entries.items()})


class _Entry(NamedTuple):
    """The dtype and shape of a tensor, and the range of its bytes."""

    start: int
    end: int
    dtype: str
    shape: list[int]

    @classmethod
    def parse(cls, name: str, fields: object) -> _Entry:
        match fields:
            case {"dtype": str(dtype), "shape": list(shape), "data_offsets": [int(start), int(end)]} if (
                0 <= start <= end
            ):
                return cls(start, end, dtype, shape)
        raise MalformedAnswer(f"{name!r} of the safetensors file needs a dtype, a shape and data_offsets [start, end]")

    def read(self, name: str, data: memoryview, has_parts: bool) -> Array:
        if self.dtype not in _DTYPE_NAMES:
            raise MalformedAnswer(f"{name!r} of the safetensors file has the unsupported dtype {self.dtype}")
        dtype, shape = _DTYPE_NAMES[self.dtype], self.shape
        if has_parts:
            if dtype not in _COMPLEX_DTYPES or shape[-1:] != [2]:
                raise MalformedAnswer(f"{name!r} is listed as complex, but is not F32 or F64 with a last axis of 2")
            dtype, shape = _COMPLEX_DTYPES[dtype], shape[:-1]
        try:
            return from_bytes(data[self.start : self.end], dtype, shape)
        except InputError as error:
            raise MalformedAnswer(f"{name!r} of the safetensors file: {error}") from None


def _parse_header(text: bytes) -> dict[str, Any]:
    try:
        header = json.loads(text.decode(), object_pairs_hook=_reject_duplicates)
    except (ValueError, RecursionError):
        raise MalformedAnswer("the header of the safetensors file is not JSON") from None
    if not isinstance(header, dict):
        raise MalformedAnswer("the header of the safetensors file is not an object")
    return header


def _complex_names(text: str | None, entries: Mapping[str, _Entry]) -> frozenset[str]:
    """Return the names of the complex tensors."""
    if text is None:
        return frozenset()
    try:
        names = json.loads(text)
    except (ValueError, RecursionError):
        names = None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise MalformedAnswer(f"{_METADATA}.{_COMPLEX} of the safetensors file is not a JSON list of names")
    if missing := [name for name in names if name not in entries]:
        raise MalformedAnswer(f"{_METADATA}.{_COMPLEX} lists {missing[0]!r}, which is not the name of a tensor")
    return frozenset(names)


def _reject_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise MalformedAnswer("the header of the safetensors file has a duplicate name")
    return result


def _require_contiguous(entries: Iterable[_Entry], length: int) -> None:
    """Raise MalformedAnswer unless the tensors follow one another without gaps, from the first byte to the last."""
    end = 0
    for entry in sorted(entries):
        if entry.start != end:
            raise MalformedAnswer("the tensors of the safetensors file overlap or leave gaps")
        end = entry.end
    if end != length:
        raise MalformedAnswer(f"the data of the safetensors file has {length} bytes, but its tensors have {end}")
