"""Arrays of Tesseract, read and written: their elements as JSON, or as base64 of their bytes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeGuard

import numpy as np
import pybase64

from engine import DTYPES, HostArray, printable
from service.errors import Refusal
from service.facades.elements import flattened, listed
from service.facades.model import Port
from service.state.models import FREE
from service.wire.json_codec import json_kind

JSON_FORM: Final = "json"
BASE64_FORM: Final = "json+base64"
#: extents of a shape that a sentence shows
_SHOWN: Final = 16
#: the encodings of elements that are read
_ENCODINGS: Final = ("json", "base64")


def form_of(accept: str) -> str:
    """The form in which an Accept header wants arrays: as base64, which loses nothing, unless it says JSON alone."""
    kinds = [part.partition(";")[0].strip().lower() for part in accept.split(",")]
    return JSON_FORM if "application/json" in kinds and f"application/{BASE64_FORM}" not in kinds else BASE64_FORM


def decode_array(port: Port, stated: object, place: str) -> dict[str, Any]:
    """What is stated for an input or output, at this pointer, as a tensor of a request, in its dtype. Raises Refusal.

    Numbers, and lists of them, are arrays, too.
    """
    array = _stated(stated, port, place)
    cast = _cast(array, port, place)
    data = pybase64.b64encode_as_string(np.ascontiguousarray(cast, cast.dtype.newbyteorder("<")).tobytes())
    return {"dtype": port.dtype, "shape": list(array.shape), "data_b64": data}


def encode_array(name: str, array: HostArray, form: str) -> dict[str, Any]:
    """A result in this form. Raises Refusal for what JSON has no numbers for."""
    told: dict[str, Any] = {"object_type": "array", "shape": list(array.shape), "dtype": array.dtype.name}
    if form == JSON_FORM:
        return told | {"data": {"buffer": _in_lists(listed(array, name), array.shape), "encoding": "json"}}
    little = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    return told | {"data": {"buffer": pybase64.b64encode_as_string(little.tobytes()), "encoding": "base64"}}


def _stated(stated: object, port: Port, place: str) -> HostArray:
    if isinstance(stated, dict):
        return _encoded(stated, port, place)
    if isinstance(stated, int | float):
        _require_shape((), port, place)
        return np.asarray(stated)
    shape, numbers = _shape_of(stated), flattened(stated, f"“{port.name}”")
    if len(numbers) != math.prod(shape):
        raise _bad(f"“{port.name}” has rows of different lengths", place, "rows of one length", "others")
    _require_shape(shape, port, place)
    return np.asarray(numbers, np.dtype(port.dtype) if not numbers else None).reshape(shape)


def _encoded(stated: Mapping[str, Any], port: Port, place: str) -> HostArray:
    """An array with its type, in one of the encodings."""
    dtype, shape, data = stated.get("dtype"), stated.get("shape"), stated.get("data")
    if not isinstance(dtype, str) or dtype not in DTYPES:
        expected, got = f"one of {', '.join(DTYPES)}", printable(dtype) if isinstance(dtype, str) else json_kind(dtype)
        raise _bad(f"the dtype of “{port.name}” must be {expected}, but is {got}", f"{place}/dtype", expected, got)
    if not _is_shape(shape):
        expected = "a list of extents of 0 or more"
        raise _bad(f"the shape of “{port.name}” must be {expected}", f"{place}/shape", expected, "something else")
    _require_shape(shape, port, place)
    encoding = data.get("encoding") if isinstance(data, dict) else None
    if not isinstance(data, dict) or encoding not in _ENCODINGS:
        expected = f"an object whose encoding is one of {', '.join(_ENCODINGS)}"
        got = printable(encoding) if isinstance(encoding, str) else json_kind(data)
        raise _bad(f"the data of “{port.name}” must be {expected}, but is {got}", f"{place}/data", expected, got)
    count = math.prod(shape)
    flat = _from_base64(data.get("buffer"), np.dtype(dtype), count, port, place) if encoding == "base64" else None
    if flat is None:
        numbers = [data["buffer"]] if isinstance(data.get("buffer"), int | float) else data.get("buffer")
        flat = _from_numbers(flattened(numbers, f"“{port.name}”"), np.dtype(dtype), port, place)
    if flat.size != count:
        detail = f"“{port.name}” has {flat.size} elements, where its shape has {count}"
        raise _bad(detail, place, str(count), str(flat.size))
    return flat.reshape(shape)


def _from_numbers(numbers: Sequence[int | float], dtype: np.dtype[Any], port: Port, place: str) -> HostArray:
    try:
        array = np.asarray(numbers)
        return _safely(array, dtype)
    except (OverflowError, ValueError):
        expected = f"numbers that {dtype.name} has"
        raise _bad(f"“{port.name}” must hold {expected}", place, expected, "others") from None


def _from_base64(buffer: object, dtype: np.dtype[Any], count: int, port: Port, place: str) -> HostArray:
    try:
        raw = pybase64.b64decode(buffer, validate=True) if isinstance(buffer, str) else None
    except ValueError:
        raw = None
    wanted = count * dtype.itemsize
    if raw is None or len(raw) != wanted:
        got = "something else" if raw is None else f"{len(raw)} bytes"
        detail = f"the buffer of “{port.name}” must be base64 of {wanted} bytes, but is {got}"
        raise _bad(detail, f"{place}/data/buffer", f"{wanted} bytes", got)
    if dtype == np.bool_ and raw.strip(b"\0\1"):
        raise _bad(f"“{port.name}” has a byte that is neither 0 nor 1", place, "bytes 0 and 1", "another byte")
    return np.frombuffer(raw, dtype.newbyteorder("<"))


def _cast(array: HostArray, port: Port, place: str) -> HostArray:
    """The array in the dtype of its port; a cast that loses a value's kind, or a value, is refused."""
    dtype = np.dtype(port.dtype)
    if np.can_cast(array.dtype, dtype, "same_kind"):
        try:
            return _safely(array, dtype)
        except (OverflowError, ValueError):
            pass
    got = array.dtype.name
    detail = f"“{port.name}” is {port.dtype}, and what came, {got}, cannot be that without loss"
    raise _bad(detail, place, port.dtype, got, "dtype_mismatch")


def _safely(array: HostArray, dtype: np.dtype[Any]) -> HostArray:
    """The array in a dtype. Raises ValueError where a finite number becomes infinite, or a whole one another."""
    with np.errstate(over="ignore", invalid="ignore"):
        cast = array.astype(dtype)
    if dtype.kind == "f":
        lost = np.isfinite(array).sum() != np.isfinite(cast).sum() if array.dtype.kind == "f" else False
    else:
        lost = not np.array_equal(cast, array)
    if lost:
        raise ValueError(dtype.name)
    return cast


def _require_shape(shape: Sequence[int], port: Port, place: str) -> None:
    """Raise Refusal where a shape is not that of its port, before anything is made of it."""
    if len(shape) != len(port.shape) or any(w not in (FREE, n) for n, w in zip(shape, port.shape, strict=True)):
        expected, got = f"an array of the shape {list(port.shape)}", str(list(shape[:_SHOWN]))
        raise _bad(f"“{port.name}” must be {expected}, but is {got}", place, expected, got, "shape_mismatch")


def _is_shape(shape: object) -> TypeGuard[list[int]]:
    return isinstance(shape, list) and all(type(extent) is int and 0 <= extent < 2**63 for extent in shape)


def _shape_of(stated: object) -> tuple[int, ...]:
    """The shape of lists within lists, by the first of each."""
    shape: list[int] = []
    while isinstance(stated, list):
        shape.append(len(stated))
        stated = stated[0] if stated else None
    return tuple(shape)


def _in_lists(flat: list[Any], shape: Sequence[int]) -> Any:
    """Elements as lists within lists; the element itself, where there are no axes."""
    if not shape:
        return flat[0]
    if len(shape) == 1:
        return flat
    step = math.prod(shape[1:])
    return [_in_lists(flat[i * step : (i + 1) * step], shape[1:]) for i in range(shape[0])]


def _bad(detail: str, place: str, expected: str, got: str, code: str = "bad_tensor") -> Refusal:
    return Refusal(code, detail, expected=expected, got=got, pointer=place)
