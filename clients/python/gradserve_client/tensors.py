"""Tensors of the wire, from and to NumPy: every value exactly, without a copy where that is possible."""

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
#: how tensors travel: as numbers, as base64 of their bytes, or as bytes in a safetensors file
Form = Literal["json", "base64", "safetensors"]
Buffer = bytes | bytearray | memoryview

#: the dtypes of the wire, each as safetensors spells it, if it has the dtype
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
#: the dtype of real and imaginary parts, which are how complex numbers travel
PARTS: Final = {"complex64": "float32", "complex128": "float64"}
#: the other dtypes: those that recorded functions and imported models compute with
REALS: Final = tuple(name for name in DTYPES if name not in PARTS)
#: the opset that graphs have a dtype since, where it is not the first
SINCE: Final = {"int16": 2, "uint32": 2, "complex64": 2, "complex128": 2}
#: from so many bytes on, tensors travel as safetensors unless told otherwise
LARGE: Final = 4096
#: whole numbers that every reader of JSON reads exactly
_EXACT: Final = 2**53
#: NumPy has no more axes
_MOST_AXES: Final = 64
#: the extents of a shape that are not 0 make fewer bytes than this
_MOST_BYTES: Final = 2**53


def default_form(nbytes: int) -> Form:
    """How tensors of so many bytes travel, where nobody says."""
    return "safetensors" if nbytes >= LARGE else "base64"


def dtype_name(dtype: npt.DTypeLike) -> str:
    """What the wire calls a dtype. A string is taken as it is: a server may know more dtypes than this client.

    Raises InputError for a dtype of NumPy that the wire lacks.
    """
    if isinstance(dtype, str):
        return dtype
    return _checked(np.dtype(dtype)).name


def as_array(value: ArrayLike, dtype: str | None = None) -> Array:
    """Something array-like as the wire has it: row-major and little-endian; itself, where it is so already.

    `dtype` is that of plain numbers and lists; without one, they have NumPy's. Raises InputError for a dtype that the
    wire lacks, and for lists that are no array.
    """
    stated = dtype if not isinstance(value, np.ndarray | np.generic) else None
    try:
        array = np.asarray(value, stated)
    except (ValueError, TypeError, OverflowError) as error:
        raise InputError(f"this is no array{f' of {stated}' if stated else ''}: {error}") from None
    return np.asarray(array, _checked(array.dtype).newbyteorder("<"), order="C")


def _checked(dtype: np.dtype[Any]) -> np.dtype[Any]:
    if dtype.name not in DTYPES:
        raise InputError(f"{dtype.name} is no dtype of the wire, which has {', '.join(DTYPES)}")
    return dtype


def bytes_of(array: Array) -> memoryview:
    """The bytes of an array that `as_array` gave, which they remain a part of."""
    return array.reshape(-1).view(np.uint8).data


def from_bytes(raw: Buffer, dtype: str, shape: Sequence[int]) -> Array:
    """The array that these little-endian bytes are, without copying them.

    Raises InputError for a dtype that the wire lacks, and where the bytes are more or fewer than the shape has.
    """
    if dtype not in DTYPES:
        raise InputError(f"{dtype!r} is no dtype of the wire, which has {', '.join(DTYPES)}")
    element = np.dtype(dtype).newbyteorder("<")
    wanted = _size(shape) * element.itemsize
    if math.prod(extent or 1 for extent in shape) * element.itemsize >= _MOST_BYTES:
        raise InputError(
            f"{dtype} of shape {list(shape)} is too large: its extents other than 0 make 2^53 bytes or more"
        )
    if len(raw) != wanted:
        raise InputError(f"{dtype} of shape {list(shape)} has {wanted} bytes, and these are {len(raw)}")
    flat = np.frombuffer(raw, element if wanted else np.uint8)
    if element.kind == "b" and (flat.view(np.uint8) > 1).any():
        raise InputError("the bytes of bool are 0 and 1, and these are others, too")
    return flat.view(element).reshape(shape)


def _size(shape: object) -> int:
    """The number of elements. Raises InputError where this is no shape."""
    if not isinstance(shape, Sequence) or isinstance(shape, str) or len(shape) > _MOST_AXES:
        raise InputError(f"a shape is a list of at most {_MOST_AXES} extents")
    if not all(isinstance(extent, int) and not isinstance(extent, bool) and 0 <= extent < 2**63 for extent in shape):
        raise InputError("the extents of a shape are whole numbers of at least 0")
    return math.prod(shape)


def to_json(array: Array, form: Form = "base64") -> dict[str, Any]:
    """An array that `as_array` gave as a tensor in JSON: in base64, unless `form` is "json".

    Even then where JSON has no such numbers: NaN, infinities, whole numbers beyond 2⁵³. A complex number is two in
    "json": its real part, then its imaginary one.
    """
    tensor: dict[str, Any] = {"dtype": array.dtype.name, "shape": list(array.shape)}
    if form == "json" and _exact_in_json(array):
        return tensor | {"data": _plain(array.reshape(-1)).tolist()}
    return tensor | {"data_b64": binascii.b2a_base64(bytes_of(array), newline=False).decode()}


def _plain(flat: Array) -> Array:
    if flat.dtype == np.bool_:
        return flat.view(np.uint8)
    return flat.view(PARTS[flat.dtype.name]) if flat.dtype.kind == "c" else flat


def _exact_in_json(array: Array) -> bool:
    if array.dtype.kind in "fc":
        return bool(np.isfinite(array).all())
    if array.dtype.itemsize < 8 or not array.size:
        return True
    return int(array.min()) >= -_EXACT and int(array.max()) <= _EXACT


def from_json(tensor: object) -> Array:
    """The array that a tensor in JSON is. Raises MalformedAnswer."""
    if not isinstance(tensor, dict) or not isinstance(tensor.get("dtype"), str):
        raise MalformedAnswer("a tensor is an object with dtype and shape")
    dtype, shape = tensor["dtype"], tensor.get("shape")
    data, text = tensor.get("data"), tensor.get("data_b64")
    try:
        if data and text:
            raise MalformedAnswer("a tensor has data or data_b64, and this one has both")
        raw = _numbers(data, dtype) if data else _decoded(text or "")
        return from_bytes(raw, dtype, shape)  # type: ignore[arg-type] # checked there
    except InputError as error:
        raise MalformedAnswer(str(error)) from None


def _decoded(text: object) -> bytearray:
    if not isinstance(text, str):
        raise MalformedAnswer("data_b64 is a string")
    try:
        return bytearray(binascii.a2b_base64(text, strict_mode=True))
    except ValueError:
        raise MalformedAnswer("data_b64 is not base64") from None


def _numbers(data: object, dtype: str) -> memoryview:
    """The bytes of numbers, each of which the dtype has to hold."""
    if not isinstance(data, list) or not all(type(number) in (int, float) for number in data):
        raise MalformedAnswer("data is a list of numbers")
    if dtype not in DTYPES:
        return memoryview(b"")  # refused by its dtype
    element = np.dtype(PARTS.get(dtype, dtype)).newbyteorder("<")
    array = _floats(data, element) if element.kind == "f" else _integers(data, element)
    return bytes_of(array)


def _floats(data: list[float], dtype: np.dtype[Any]) -> Array:
    try:
        with np.errstate(over="ignore"):
            array = np.array(data, np.float64).astype(dtype)
    except OverflowError:
        raise MalformedAnswer(f"data holds numbers beyond {dtype.name}") from None
    if not np.isfinite(array).all():
        raise MalformedAnswer(f"data holds numbers beyond {dtype.name}")
    return array


def _integers(data: Iterable[float], dtype: np.dtype[Any]) -> Array:
    low, high = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    whole = [int(number) for number in data if math.isfinite(number) and number == int(number)]
    if len(whole) != len(list(data)) or not all(low <= number <= high for number in whole):
        raise MalformedAnswer(f"data holds numbers that are no {dtype.name}")
    return np.array(whole, dtype)
