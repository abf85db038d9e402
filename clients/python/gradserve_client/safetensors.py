"""The safetensors format: a header of JSON, and the bytes of tensors, which are read where they lie.

https://github.com/huggingface/safetensors#format
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from gradserve_client.errors import InputError, MalformedAnswer
from gradserve_client.tensors import DTYPES, Array, Buffer, bytes_of, from_bytes

#: bytes that a header may have: as many as the format's own reader takes
MOST_OF_HEADER: Final = 100_000_000
_METADATA: Final = "__metadata__"
_LENGTH: Final = 8
_NAMES: Final = {spelling: name for name, spelling in DTYPES.items()}


class File(NamedTuple):
    """What a file holds. The tensors are views of its bytes."""

    metadata: dict[str, str]
    tensors: dict[str, Array]


def encode(tensors: Mapping[str, Array], metadata: Mapping[str, str]) -> list[Buffer]:
    """A file, in pieces: the header, and the bytes of arrays that `as_array` gave, which are not copied.

    Tensors of wide elements come first, so that every one is aligned.
    """
    ordered = sorted(tensors.items(), key=lambda item: -item[1].itemsize)
    header: dict[str, Any] = {_METADATA: dict(metadata)} if metadata else {}
    end = 0
    for name, array in ordered:
        start, end = end, end + array.nbytes
        header[name] = {"dtype": DTYPES[array.dtype.name], "shape": list(array.shape), "data_offsets": [start, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % _LENGTH)
    return [len(text).to_bytes(_LENGTH, "little") + text, *(bytes_of(array) for _, array in ordered if array.nbytes)]


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
    data = view[_LENGTH + length :]
    _check_that_they_fill(entries.values(), len(data))
    return File(metadata, {name: entry.read(name, data) for name, entry in entries.items()})


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

    def read(self, name: str, data: memoryview) -> Array:
        if self.dtype not in _NAMES:
            raise MalformedAnswer(f"the safetensors file holds {name!r} in {self.dtype}, which this client cannot read")
        try:
            return from_bytes(data[self.start : self.end], _NAMES[self.dtype], self.shape)
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
