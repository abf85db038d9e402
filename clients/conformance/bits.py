"""Tensors as bits, read from JSON and safetensors without any client library.

The bits of a tensor are `{"dtype", "shape", "hex"}`: little-endian, row-major, in lower-case hex.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

Json = dict[str, Any]
Bits = dict[str, Any]
Array = np.ndarray[Any, np.dtype[Any]]

#: dtypes of the wire, with their names in safetensors, empty if it has none
SAFETENSORS: Final = {
    "bool": "BOOL",
    "int8": "I8",
    "uint8": "U8",
    "int16": "I16",
    "int32": "I32",
    "uint32": "U32",
    "int64": "I64",
    "float16": "F16",
    "float32": "F32",
    "float64": "F64",
    "complex64": "C64",
    "complex128": "",
}
#: dtype of the real and imaginary parts, by which complex numbers are written in JSON and files
PARTS: Final = {"complex64": "float32", "complex128": "float64"}
_OF_PARTS: Final = {parts: name for name, parts in PARTS.items()}
#: dtypes of files, by their names in safetensors; complex tensors are written as their parts
_WRITTEN: Final = {spelling: name for name, spelling in SAFETENSORS.items() if name not in PARTS}
METADATA: Final = "__metadata__"
_COMPLEX: Final = "complex"
_MEMBERS: Final = frozenset({"dtype", "shape", "data", "data_b64"})
#: bytes of the length at the start of a safetensors file
LENGTH: Final = 8


class MalformedError(ValueError):
    """Not a valid tensor of the wire, or not a valid safetensors file."""


def bits_of(array: Array) -> Bits:
    """Return the bits of an array."""
    return {"dtype": array.dtype.name, "shape": list(array.shape), "hex": little_endian(array).hex()}


def array_of(bits: Bits) -> Array:
    """Return the array of valid bits."""
    flat = np.frombuffer(bytes.fromhex(bits["hex"]), np.dtype(bits["dtype"]).newbyteorder("<"))
    return flat.reshape(bits["shape"])


def little_endian(array: Array) -> bytes:
    """Return the elements as bytes, in row-major order."""
    return array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()


def from_json(tensor: Any, *, closed: bool = False) -> Bits:
    """Return the bits of a tensor in JSON. Raises MalformedError, if `closed` also for unknown members."""
    if not isinstance(tensor, dict) or tensor.get("dtype") not in SAFETENSORS:
        raise MalformedError(f"no tensor of a known dtype: {str(tensor)[:80]}")
    if closed and (unknown := set(tensor) - _MEMBERS):
        raise MalformedError(f"a tensor with {', '.join(sorted(unknown))}")
    dtype, shape = np.dtype(tensor["dtype"]), tensor.get("shape")
    if not isinstance(shape, list) or not all(type(extent) is int and extent >= 0 for extent in shape):
        raise MalformedError(f"no shape: {shape}")
    raw = _packed(tensor["data_b64"]) if "data_b64" in tensor else _numbers(tensor.get("data", []), dtype)
    return _sized({"dtype": dtype.name, "shape": shape, "hex": raw.hex()})


def to_json(bits: Bits) -> Json:
    """Return a tensor in JSON, as base64."""
    packed = base64.b64encode(bytes.fromhex(bits["hex"])).decode()
    return {"dtype": bits["dtype"], "shape": bits["shape"], "data_b64": packed}


def _packed(text: object) -> bytes:
    try:
        return base64.b64decode(str(text), validate=True)
    except ValueError as error:
        raise MalformedError(f"data_b64 is no base64: {error}") from None


def _numbers(data: object, dtype: np.dtype[Any]) -> bytes:
    """Convert numbers of JSON as the server does.

    `-0` is an integer without a sign, and a complex number is two numbers.
    """
    if not isinstance(data, list) or not all(type(number) in (int, float) for number in data):
        raise MalformedError("data is no list of numbers")
    dtype = np.dtype(PARTS.get(dtype.name, dtype))
    with np.errstate(over="ignore"):
        numbers = np.asarray(data, np.float64).astype(dtype) if dtype.kind == "f" else _whole(data, dtype)
    return little_endian(numbers)


def _whole(data: list[float], dtype: np.dtype[Any]) -> Array:
    low, high = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    if not all(number == int(number) and low <= number <= high for number in data):
        raise MalformedError(f"data has what {dtype} does not hold")
    return np.array([int(number) for number in data], dtype)


def _sized(bits: Bits) -> Bits:
    """Return the bits. Raises MalformedError unless their length matches dtype and shape."""
    count = 1
    for extent in bits["shape"]:
        count *= extent
    if 2 * count * np.dtype(bits["dtype"]).itemsize != len(bits["hex"]):
        raise MalformedError(f"{len(bits['hex']) // 2} bytes are no {bits['dtype']}{bits['shape']}")
    return bits


def from_file(content: bytes) -> tuple[Mapping[str, Any], dict[str, Bits]]:
    """Return `__metadata__` and the tensors, by name, of a safetensors file.

    Raises MalformedError, also for unaligned data. Complex tensors are named in the metadata; `C64` is not accepted.
    """
    data = LENGTH + int.from_bytes(content[:LENGTH], "little")
    if data > len(content) or data % LENGTH:
        raise MalformedError(f"the data begins at byte {data} of {len(content)}")
    try:
        header = json.loads(content[LENGTH:data])
        metadata = header.pop(METADATA, {})
        complex_names = json.loads(metadata.get(_COMPLEX, "[]"))
        if missing := set(complex_names) - set(header):
            raise MalformedError(f"no tensors that are said to be complex: {missing}")
        spans = {name: entry["data_offsets"] for name, entry in header.items()}
        _check_spans(sorted(spans.values()), len(content) - data)
        return metadata, {
            name: _sized(_typed(entry, name in complex_names) | {"hex": content[data + start : data + end].hex()})
            for (name, entry), (start, end) in ((item, spans[item[0]]) for item in header.items())
        }
    except (KeyError, TypeError, AttributeError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise MalformedError(f"no safetensors: {error!r}") from None


def _typed(entry: Json, has_parts: bool) -> Json:
    """Return dtype and shape of an entry of a file."""
    dtype, shape = _WRITTEN[entry["dtype"]], entry["shape"]
    if not has_parts:
        return {"dtype": dtype, "shape": shape}
    if shape[-1:] != [2]:
        raise MalformedError(f"a complex tensor of shape {shape}")
    return {"dtype": _OF_PARTS[dtype], "shape": shape[:-1]}


def _check_spans(spans: list[list[int]], length: int) -> None:
    end = 0
    for start, stop in spans:
        if start != end or stop < start:
            raise MalformedError(f"a tensor lies at {start} to {stop}, behind one that ends at {end}")
        end = stop
    if end != length:
        raise MalformedError(f"tensors take {end} bytes, and the file has {length}")


def to_file(tensors: Mapping[str, Bits], metadata: Mapping[str, str] | None = None, header_bytes: int = 0) -> bytes:
    """Return a safetensors file. Its header is padded with spaces to at least `header_bytes`."""
    complex_names = [name for name, bits in tensors.items() if bits["dtype"] in PARTS]
    stated = dict(metadata or {}) | ({_COMPLEX: json.dumps(complex_names)} if complex_names else {})
    header: Json = {METADATA: stated} if stated else {}
    end = 0
    for name, bits in tensors.items():
        start, end = end, end + len(bits["hex"]) // 2
        axis = [2] if bits["dtype"] in PARTS else []
        spelled = SAFETENSORS[PARTS.get(bits["dtype"]) or bits["dtype"]]
        header[name] = {"dtype": spelled, "shape": bits["shape"] + axis, "data_offsets": [start, end]}
    data = b"".join(bytes.fromhex(bits["hex"]) for bits in tensors.values())
    return file_of(json.dumps(header, separators=(",", ":")).ljust(header_bytes), data)


def file_of(header: Json | str, data: bytes, align: int = LENGTH) -> bytes:
    """Return a safetensors file with this header, which may be invalid."""
    text = (header if isinstance(header, str) else json.dumps(header, separators=(",", ":"))).encode()
    text += b" " * (-len(text) % align)
    return len(text).to_bytes(LENGTH, "little") + text + data
