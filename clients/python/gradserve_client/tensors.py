"""Conversion of tensors between NumPy and the wire: exact for every value, without a copy if possible."""

from __future__ import annotations

import binascii
import math
from collections.abc import Iterable, Sequence
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from gradserve_client.errors import InputError, MalformedAnswer

Array = np.ndarray[Any, np.dtype[Any]]
ArrayLike = npt.ArrayLike
#: wire formats of tensors: JSON numbers, base64 of the bytes, or bytes in a safetensors file
Form = Literal["json", "base64", "safetensors"]
Buffer = bytes | bytearray | memoryview

#: the dtypes of the wire with their names in safetensors, or "" if the format has none
DTYPES: Final = {
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
#: the dtype of the real and imaginary parts, as which complex numbers are sent
PARTS: Final = {"complex64": "float32", "complex128": "float64"}
#: the dtypes that are not complex
REALS: Final = tuple(name for name in DTYPES if name not in PARTS)
#: the first opset with a dtype, for dtypes that opset 1 lacks
SINCE: Final = {"int16": 2, "uint32": 2, "complex64": 2, "complex128": 2}
#: size in bytes from which tensors are sent as safetensors by default
SAFETENSORS_THRESHOLD: Final = 4096
#: largest integer that every JSON parser reads exactly
_MAX_EXACT_INTEGER: Final = 2**53
#: the maximum number of axes of a NumPy array
_MAX_AXES: Final = 64
#: exclusive limit on the bytes of a tensor, with extents of 0 counted as 1
_MAX_BYTES: Final = 2**53


def default_form(nbytes: int) -> Form:
    """Return the default wire format for tensors of `nbytes` bytes."""
    return "safetensors" if nbytes >= SAFETENSORS_THRESHOLD else "base64"


def dtype_name(dtype: npt.DTypeLike) -> str:
    """Return the name of a dtype on the wire. A string is returned as it is: a server may support more dtypes.

    Raises InputError for a NumPy dtype that the wire does not support.
    """
    if isinstance(dtype, str):
        return dtype
    return _require_supported(np.dtype(dtype)).name


def as_array(value: ArrayLike, dtype: str | None = None) -> Array:
    """Convert an array-like value to a row-major, little-endian array, without a copy if it is one already.

    `dtype` applies to plain numbers and lists, which otherwise take NumPy's default. Raises InputError for an
    unsupported dtype, and for lists that do not form an array.
    """
    requested = dtype if not isinstance(value, np.ndarray | np.generic) else None
    try:
        array = np.asarray(value, requested)
    except (ValueError, TypeError, OverflowError) as error:
        raise InputError(
            f"cannot convert the value to an array{f' of {requested}' if requested else ''}: {error}"
        ) from None
    return np.asarray(array, _require_supported(array.dtype).newbyteorder("<"), order="C")


def _require_supported(dtype: np.dtype[Any]) -> np.dtype[Any]:
    if dtype.name not in DTYPES:
        raise InputError(f"unsupported dtype {dtype.name}; supported: {', '.join(DTYPES)}")
    return dtype


def bytes_of(array: Array) -> memoryview:
    """Return the bytes of an array from `as_array`, as a view."""
    return array.reshape(-1).view(np.uint8).data


def from_bytes(raw: Buffer, dtype: str, shape: Sequence[int]) -> Array:
    """Return the array with these little-endian bytes, as a view.

    Raises InputError for an unsupported dtype, and if the number of bytes does not match the shape.
    """
    if dtype not in DTYPES:
        raise InputError(f"unsupported dtype {dtype!r}; supported: {', '.join(DTYPES)}")
    element = np.dtype(dtype).newbyteorder("<")
    expected = _size(shape) * element.itemsize
    if math.prod(extent or 1 for extent in shape) * element.itemsize >= _MAX_BYTES:
        raise InputError(f"{dtype} of shape {list(shape)} is too large: its nonzero extents give 2^53 bytes or more")
    if len(raw) != expected:
        raise InputError(f"{dtype} of shape {list(shape)} needs {expected} bytes, got {len(raw)}")
    flat = np.frombuffer(raw, element if expected else np.uint8)
    if element.kind == "b" and (flat.view(np.uint8) > 1).any():
        raise InputError("the bytes of a bool tensor must be 0 or 1")
    return flat.view(element).reshape(shape)


def _size(shape: object) -> int:
    """Return the number of elements. Raises InputError if this is not a shape."""
    if not isinstance(shape, Sequence) or isinstance(shape, str) or len(shape) > _MAX_AXES:
        raise InputError(f"the shape must be a list of at most {_MAX_AXES} extents")
    if not all(isinstance(extent, int) and not isinstance(extent, bool) and 0 <= extent < 2**63 for extent in shape):
        raise InputError(f"the extents of a shape must be non-negative integers, got {list(shape)}")
    return math.prod(shape)


def to_json(array: Array, form: Form = "base64") -> dict[str, Any]:
    """Return an array from `as_array` as a tensor in JSON, in base64 unless `form` is "json".

    Values that JSON numbers cannot hold exactly (NaN, infinities, integers beyond 2⁵³) are always sent as base64. In
    "json", a complex number is its real part followed by its imaginary part.
    """
    tensor: dict[str, Any] = {"dtype": array.dtype.name, "shape": list(array.shape)}
    if form == "json" and _is_exact_in_json(array):
        return tensor | {"data": _json_numbers(array.reshape(-1)).tolist()}
    return tensor | {"data_b64": binascii.b2a_base64(bytes_of(array), newline=False).decode()}


def _json_numbers(flat: Array) -> Array:
    if flat.dtype == np.bool_:
        return flat.view(np.uint8)
    return flat.view(PARTS[flat.dtype.name]) if flat.dtype.kind == "c" else flat


def _is_exact_in_json(array: Array) -> bool:
    if array.dtype.kind in "fc":
        return bool(np.isfinite(array).all())
    if array.dtype.itemsize < 8 or not array.size:
        return True
    return int(array.min()) >= -_MAX_EXACT_INTEGER and int(array.max()) <= _MAX_EXACT_INTEGER


def from_json(tensor: object) -> Array:
    """Return the array of a tensor in JSON. Raises MalformedAnswer."""
    if not isinstance(tensor, dict) or not isinstance(tensor.get("dtype"), str):
        raise MalformedAnswer("a tensor must be an object with dtype and shape")
    dtype, shape = tensor["dtype"], tensor.get("shape")
    data, text = tensor.get("data"), tensor.get("data_b64")
    try:
        if data and text:
            raise MalformedAnswer("the tensor has both data and data_b64")
        raw = _encode_numbers(data, dtype) if data else _decode_base64(text or "")
        return from_bytes(raw, dtype, shape)  # type: ignore[arg-type] # checked there
    except InputError as error:
        raise MalformedAnswer(str(error)) from None


def _decode_base64(text: object) -> bytearray:
    if not isinstance(text, str):
        raise MalformedAnswer("data_b64 must be a string")
    try:
        return bytearray(binascii.a2b_base64(text, strict_mode=True))
    except ValueError:
        raise MalformedAnswer("data_b64 is not valid base64") from None


def _encode_numbers(data: object, dtype: str) -> memoryview:
    """Return the bytes of JSON numbers. Raises MalformedAnswer for a number that the dtype cannot hold."""
    if not isinstance(data, list) or not all(type(number) in (int, float) for number in data):
        raise MalformedAnswer("data must be a list of numbers")
    if dtype not in DTYPES:
        return memoryview(b"")  # from_bytes rejects the dtype
    element = np.dtype(PARTS.get(dtype, dtype)).newbyteorder("<")
    array = _floats(data, element) if element.kind == "f" else _integers(data, element)
    return bytes_of(array)


def _floats(data: list[float], dtype: np.dtype[Any]) -> Array:
    try:
        with np.errstate(over="ignore"):
            array = np.array(data, np.float64).astype(dtype)
    except OverflowError:
        raise MalformedAnswer(f"a number in data is out of range for {dtype.name}") from None
    if not np.isfinite(array).all():
        raise MalformedAnswer(f"a number in data is out of range for {dtype.name}")
    return array


def _integers(data: Iterable[float], dtype: np.dtype[Any]) -> Array:
    low, high = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    integers = [int(number) for number in data if math.isfinite(number) and number == int(number)]
    if len(integers) != len(list(data)) or not all(low <= number <= high for number in integers):
        raise MalformedAnswer(f"a number in data is not a valid {dtype.name}")
    return np.array(integers, dtype)
