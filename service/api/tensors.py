"""Tensors on the wire to arrays and back, without losing a bit.

Shapes and counts are compared before anything is allocated. No message ever contains an element.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pybase64

from engine import DTYPES, HostArray, Limits, TensorType, printable
from engine.ir.dtypes import ELEMENT_TYPES, real_dtype
from engine.ir.tensor_type import DType, dtype_name
from schemas import NodeType, Tensor
from service.api.json_codec import LongList, json_kind
from service.api.validation import OR_LEFT_OUT
from service.core.errors import Refusal

Numbers = list[int | float] | LongList

_EXACT: Final = 2**53  # up to here every reader of JSON keeps integers apart
_JSON_CHARACTERS: Final = {element.name: element.json_characters for element in ELEMENT_TYPES}
_ENVELOPE: Final = 96  # a tensor's braces, keys, dtype and node; extents come on top
_EXTENT: Final = 21
_PLACES: Final = 80  # in safetensors on top: a name, offsets, and the place in the response


def decode(tensor: Tensor, limits: Limits) -> HostArray:
    """Decode a tensor. Raises Refusal (bad_tensor) and the engine's OverBudget."""
    wanted = type_of(tensor, limits)
    data, packed = tensor.get("data"), tensor.get("data_b64")
    if "data_b64" not in tensor or (packed == "" and data):
        numbers = _checked(data, "data" in tensor, wanted)
        with np.errstate(over="ignore"):
            return _from_numbers(numbers, wanted)
    if "data" in tensor and data != []:
        raise _bad("has both data and data_b64; one of them is expected", "one payload", "two payloads")
    return _from_base64(packed, wanted)


def decode_again(payload: tuple[str | None, Any], wanted: TensorType) -> HostArray:
    """Decode a payload, which is `data` or `data_b64`, of a known type. Raises Refusal (bad_tensor).

    The caller suppresses NumPy's overflow warnings.
    """
    name, data = payload
    if name == "data":
        return _from_numbers(_checked(data, True, wanted), wanted)
    return _from_base64(data, wanted)


def encode(array: HostArray, encoding: str) -> dict[str, Any]:
    """Encode an array as a tensor; in base64 if asked for, and if JSON would change elements."""
    tensor: dict[str, Any] = {"dtype": dtype_name(array.dtype), "shape": list(array.shape)}
    if encoding == "base64" or not _json_keeps(array):
        little_endian = array.astype(array.dtype.newbyteorder("<"), copy=False)
        return tensor | {"data_b64": pybase64.b64encode_as_string(little_endian.tobytes())}
    return tensor | {"data": np.ascontiguousarray(numbers_of(array))}


def _json_keeps(array: HostArray) -> bool:
    if array.dtype.kind in "fc":
        return bool(np.isfinite(array).all())
    if array.dtype != np.int64 or not array.size:
        return True
    return int(array.min()) >= -_EXACT and int(array.max()) <= _EXACT


def has_plain_numbers(t: TensorType) -> bool:
    """Return whether JSON has the elements as they are: `numbers_of` then returns the array, flat."""
    return t.dtype.kind not in "bc"


def numbers_of(array: HostArray) -> HostArray:
    """Return the elements as in JSON, flat: bool as 0 and 1, complex numbers as real and imaginary part in a row."""
    flat, kind = array.reshape(-1), array.dtype.kind
    if kind == "b":
        return flat.view(np.uint8)
    return np.ascontiguousarray(flat).view(real_dtype(flat.dtype)) if kind == "c" else flat


def encoded_bytes(types: Sequence[TensorType], encoding: str) -> int:
    """Bound the bytes of tensors of these types in an answer, without the fields that every answer has.

    `encoding` is json, base64 or, for safetensors, binary.
    """
    nbytes = 0
    for t in types:
        nbytes += _ENVELOPE + _EXTENT * t.ndim
        base64 = 4 * -(-t.nbytes // 3)
        if encoding == "binary":
            nbytes += _PLACES + t.nbytes
        elif encoding == "base64":
            nbytes += base64
        else:
            nbytes += max(base64, t.size * _JSON_CHARACTERS[dtype_name(t.dtype)])
    return nbytes


def _bad(detail: str, expected: str | None = None, got: str | None = None) -> Refusal:
    return Refusal("bad_tensor", detail, expected=expected, got=got)


def type_of(tensor: Tensor | NodeType, limits: Limits) -> TensorType:
    """Read the type that a message states. Raises Refusal (bad_tensor) and the engine's OverBudget."""
    dtype, shape = tensor["dtype"], tensor["shape"]
    if dtype not in DTYPES:
        known, got = "one of " + ", ".join(DTYPES), printable(dtype)
        raise _bad(f"has the dtype “{got}”; {known} is expected", known, got)
    if shape and min(shape) < 0:
        raise _bad("has a negative extent in its shape", "extents of 0 or more", str(min(shape)))
    limits.admit_rank(len(shape))
    t = TensorType(tuple(shape), np.dtype(dtype))
    limits.admit_type(t)
    return t


def _miscounted(wanted: TensorType, expected: int, got: int, unit: str) -> Refusal:
    needed = f"{expected} {unit}" if expected == 1 else f"{expected} {unit}s"
    return _bad(f"must hold {needed} to be {wanted}, but holds {got}", needed, str(got))


def _miscounted_numbers(wanted: TensorType, expected: int, got: int) -> Refusal:
    return _miscounted(wanted, expected, got, "number" if wanted.is_complex else "element")


def _checked(data: object, stated: bool, wanted: TensorType) -> Numbers:
    """Return `data` if it is a list of as many numbers as the type has. Raises Refusal."""
    elements = data if stated else []
    count = 2 * wanted.size if wanted.is_complex else wanted.size
    if isinstance(elements, LongList):
        if len(elements) != count:
            raise _miscounted_numbers(wanted, count, len(elements))
        return elements
    if not isinstance(elements, list):
        got = json_kind(elements)
        instead = f"; {OR_LEFT_OUT}" if elements is None else ""
        raise _bad(f"has data that is {got}; a flat list of numbers is expected{instead}", "a list of numbers", got)
    if len(elements) != count or not {int, float}.issuperset(map(type, elements)):
        raise _misfit(elements, wanted, count)
    return elements


def _misfit(elements: list[Any], wanted: TensorType, count: int) -> Refusal:
    """Return the refusal of a malformed list. Nested rows are reported as such, before elements are counted."""
    if list in map(type, elements):
        detail = "has nested lists in data; data is one flat list of numbers, row by row (row-major)"
        return _bad(detail, "a flat list of numbers", "nested lists")
    if len(elements) != count:
        return _miscounted_numbers(wanted, count, len(elements))
    position = next(i for i, x in enumerate(elements) if type(x) not in (int, float))
    got = json_kind(elements[position])
    return _bad(f"has {got} at data[{position}]; data is a flat list of numbers", "a number", got)


def _from_numbers(numbers: Numbers, wanted: TensorType) -> HostArray:
    if wanted.is_float:
        flat = _floats(numbers, wanted, wanted.dtype)
    elif wanted.is_complex:
        flat = _floats(numbers, wanted, real_dtype(wanted.dtype)).view(wanted.dtype)
    else:
        flat = _integers(numbers, wanted)
    return flat.reshape(wanted.shape)


def _floats(numbers: Numbers, wanted: TensorType, dtype: DType) -> HostArray:
    try:
        values = numbers.array if isinstance(numbers, LongList) else numbers
        flat = np.asarray(values, np.float64).astype(dtype, copy=False)
    except OverflowError:
        raise _out_of_range(wanted) from None
    if b"\0" in np.isfinite(flat).tobytes():  # for few elements, `all` takes twice as long
        raise _out_of_range(wanted)
    return flat


def _integers(numbers: Numbers, wanted: TensorType) -> HostArray:
    """Convert whole numbers exactly; 1.0 is one, as some languages write it."""
    flat = _whole_numbers(numbers, wanted)
    low, high = _range(wanted)
    if flat.size and (flat.min() < low or flat.max() > high):
        raise _out_of_range(wanted)
    return flat.astype(wanted.dtype, copy=False)


def _whole_numbers(numbers: Numbers, wanted: TensorType) -> HostArray:
    if isinstance(numbers, LongList):
        if numbers.is_whole:
            return numbers.array
        numbers = numbers.numbers()
    if float in set(map(type, numbers)):
        if any(type(x) is float and (not x.is_integer() or abs(x) > _EXACT) for x in numbers):
            raise _bad(f"has a fraction in data, but holds whole numbers ({wanted})", "whole numbers", "a fraction")
        numbers = list(map(int, numbers))
    try:
        return np.array(numbers, np.int64)
    except OverflowError:
        raise _out_of_range(wanted) from None


def _range(wanted: TensorType) -> tuple[int, int]:
    if wanted.dtype == np.bool_:
        return 0, 1
    info = np.iinfo(wanted.dtype)
    return int(info.min), int(info.max)


def _out_of_range(wanted: TensorType) -> Refusal:
    name = wanted.dtype.name
    if wanted.is_float or wanted.is_complex:
        return _bad(f"has a number in data that is beyond {name}", f"finite {name} numbers", "a larger one")
    low, high = _range(wanted)
    return _bad(f"has a number in data that {name} does not hold", f"{low} to {high}", "a number outside")


def _from_base64(packed: object, wanted: TensorType) -> HostArray:
    if not isinstance(packed, str):
        got = json_kind(packed)
        raise _bad(f"has data_b64 that is {got}; a base64 string is expected", "a base64 string", got)
    try:
        raw = pybase64.b64decode(packed, validate=True)
    except ValueError:
        raise _bad("has data_b64 that is not base64 (RFC 4648, padded)", "base64", "something else") from None
    if len(raw) != wanted.nbytes:
        raise _miscounted(wanted, wanted.nbytes, len(raw), "byte")
    if wanted.dtype == np.bool_ and raw.strip(b"\0\1"):
        raise _bad("has a byte in data_b64 that is neither 0 nor 1", "bytes 0 and 1", "another byte")
    flat = np.frombuffer(raw, wanted.dtype.newbyteorder("<"))
    return flat.astype(wanted.dtype, copy=False).reshape(wanted.shape)
