"""The safetensors format: a header of JSON, and the bytes of tensors, which are read where they lie.

https://github.com/huggingface/safetensors#format

A complex tensor lies in it as its parts, along a last axis of 2; `__metadata__.complex` names these tensors.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from gradserve_client.errors import InputError, MalformedAnswer
from gradserve_client.tensors import DTYPES, PARTS, Array, Buffer, bytes_of, from_bytes

#: bytes that a header may have: as many as the format's own reader takes
MOST_OF_HEADER: Final = 100_000_000
_METADATA: Final = "__metadata__"
_LENGTH: Final = 8
_COMPLEX: Final = "complex"
_NAMES: Final = {spelling: name for name, spelling in DTYPES.items() if spelling}
_OF_PARTS: Final = {parts: name for name, parts in PARTS.items()}


class File(NamedTuple):
    """What a file holds, its metadata without the list of complex tensors. The tensors are views of its bytes."""

    metadata: dict[str, str]
    tensors: dict[str, Array]


def encode(tensors: Mapping[str, Array], metadata: Mapping[str, str]) -> list[Buffer]:
    """A file, in pieces: the header, and the bytes of arrays that `as_array` gave, which are not copied.

    Tensors of wide elements come first, so that every one is aligned.
    """
    ordered = sorted(tensors.items(), key=lambda item: -item[1].itemsize)
    pairs = [name for name, array in ordered if array.dtype.name in PARTS]
    stated = dict(metadata) | ({_COMPLEX: json.dumps(pairs, separators=(",", ":"))} if pairs else {})
    header: dict[str, Any] = {_METADATA: stated} if stated else {}
    end = 0
    for name, array in ordered:
        start, end = end, end + array.nbytes
        header[name] = _spelled(array) | {"data_offsets": [start, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % _LENGTH)
    return [len(text).to_bytes(_LENGTH, "little") + text, *(bytes_of(array) for _, array in ordered if array.nbytes)]


def _spelled(array: Array) -> dict[str, Any]:
    if parts := PARTS.get(array.dtype.name):
        return {"dtype": DTYPES[parts], "shape": [*array.shape, 2]}
    return {"dtype": DTYPES[array.dtype.name], "shape": list(array.shape)}


def decode(file: Buffer) -> File:
    """What a file holds, without copying. Raises MalformedAnswer."""
    view = memoryview(file)
    length = int.from_bytes(view[:_LENGTH], "little")
    if len(view) < _LENGTH or length > len(view) - _LENGTH:
        raise MalformedAnswer("the safetensors file ends before its header does")
    if length > MOST_OF_HEADER:
        raise MalformedAnswer(f"the header of the safetensors file has {length} bytes, and may have {MOST_OF_HEADER}")
    header = _header_of(bytes(view[_LENGTH : _LENGTH + length]))
    metadata = header.pop(_METADATA, {})
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise MalformedAnswer(f"{_METADATA} of the safetensors file holds something else than strings")
    entries = {name: _Entry.of(name, stated) for name, stated in header.items()}
    pairs = _complex_names(metadata.pop(_COMPLEX, None), entries)
    data = view[_LENGTH + length :]
    _check_that_they_fill(entries.values(), len(data))
    return File(metadata, {name: entry.read(name, data, name in pairs) for name, entry in entries.items()})


class _Entry(NamedTuple):
    """Where a tensor lies."""

    start: int
    end: int
    dtype: str
    shape: list[int]

    @classmethod
    def of(cls, name: str, stated: object) -> _Entry:
        match stated:
            case {"dtype": str(dtype), "shape": list(shape), "data_offsets": [int(start), int(end)]} if (
                0 <= start <= end
            ):
                return cls(start, end, dtype, shape)
        raise MalformedAnswer(f"the safetensors file does not say where {name!r} lies")

    def read(self, name: str, data: memoryview, has_parts: bool) -> Array:
        if self.dtype not in _NAMES:
            raise MalformedAnswer(f"the safetensors file holds {name!r} in {self.dtype}, which this client cannot read")
        dtype, shape = _NAMES[self.dtype], self.shape
        if has_parts:
            if dtype not in _OF_PARTS or shape[-1:] != [2]:
                raise MalformedAnswer(f"{name!r} is said to be complex, and is no F32 or F64 with a last axis of 2")
            dtype, shape = _OF_PARTS[dtype], shape[:-1]
        try:
            return from_bytes(data[self.start : self.end], dtype, shape)
        except InputError as error:
            raise MalformedAnswer(f"{name!r} of the safetensors file: {error}") from None


def _header_of(text: bytes) -> dict[str, Any]:
    try:
        header = json.loads(text.decode(), object_pairs_hook=_each_once)
    except (ValueError, RecursionError):
        raise MalformedAnswer("the header of the safetensors file is not JSON") from None
    if not isinstance(header, dict):
        raise MalformedAnswer("the header of the safetensors file is no object")
    return header


def _complex_names(text: str | None, entries: Mapping[str, _Entry]) -> frozenset[str]:
    """The names of the tensors that are complex."""
    if text is None:
        return frozenset()
    try:
        names = json.loads(text)
    except (ValueError, RecursionError):
        names = None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise MalformedAnswer(f"{_METADATA}.{_COMPLEX} of the safetensors file is no JSON list of names")
    if absent := [name for name in names if name not in entries]:
        raise MalformedAnswer(f"the safetensors file holds no {absent[0]!r}, which its {_METADATA}.{_COMPLEX} names")
    return frozenset(names)


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise MalformedAnswer("the header of the safetensors file has a name twice")
    return found


def _check_that_they_fill(entries: Iterable[_Entry], length: int) -> None:
    """Tensors lie one behind the other, from the first byte to the last."""
    end = 0
    for entry in sorted(entries):
        if entry.start != end:
            raise MalformedAnswer("the tensors of the safetensors file overlap, or leave gaps")
        end = entry.end
    if end != length:
        raise MalformedAnswer("the tensors of the safetensors file do not fill it")
