"""Arrays of Tesseract, read and written: their elements as JSON, or as base64 of their bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeGuard, cast

import numpy as np
import orjson
import pybase64

from engine import DTYPES, NO_END, EngineError, HostArray, Limits, TensorType, printable
from schemas import Tensor
from service.errors import Refusal
from service.facades.elements import (
    bad_tensor,
    base64_tensor,
    flat_or_nested,
    nested,
    require_finite,
    shown_shape,
    text_bytes,
)
from service.facades.model import Port
from service.state.models import FREE
from service.wire.json_codec import json_kind
from service.wire.tensors import encoded_bytes, type_of
from service.wire.translate import located, read_array
from service.wire.validation import Location

JSON_FORM: Final = "json"
BASE64_FORM: Final = "json+base64"
#: the encodings of elements that are read
_ENCODINGS: Final = ("json", "base64")


def form_of(accept: str) -> str:
    """The form in which an Accept header wants arrays: as base64, which loses nothing, unless it says JSON alone."""
    kinds = [part.partition(";")[0].strip().lower() for part in accept.split(",")]
    return JSON_FORM if "application/json" in kinds and f"application/{BASE64_FORM}" not in kinds else BASE64_FORM


def decode_array(port: Port, stated: object, place: Location, limits: Limits) -> dict[str, Any]:
    """Decode an array of a request into a tensor of its declared dtype. Raises Refusal.

    list[int | float], and lists of them, are arrays, too.
    """
    array = _encoded(stated, port, place, limits) if isinstance(stated, dict) else _listed(stated, port, place, limits)
    _admitted(port.dtype, array.shape, place, limits)
    return base64_tensor(_cast(array, port, place), port.dtype)


def stated_type(port: Port, stated: object, place: Location, limits: Limits) -> dict[str, Any]:
    """The type of an input, as `abstract_eval` states it; nothing of it is allocated. Raises Refusal."""
    shape, dtype = (stated.get("shape"), stated.get("dtype")) if isinstance(stated, dict) else (None, None)
    if not _is_shape(shape):
        expected = "an object with shape and dtype"
        raise bad_tensor(f"“{port.name}” must be {expected}", place, expected, json_kind(stated), "invalid_field")
    if not isinstance(dtype, str):
        detail, got = f"the dtype of “{port.name}” must be a string", json_kind(dtype)
        raise bad_tensor(detail, (*place, "dtype"), "a string", got, "invalid_field")
    _admitted(port.dtype, shape, place, replace(limits, bytes=NO_END))
    return {"node": port.node, "dtype": port.dtype, "shape": shape}


def encoded_array_bytes(name: str, array: HostArray, form: str) -> int:
    """Bound the bytes that an encoded array takes."""
    if form == JSON_FORM:
        return text_bytes(array, name, nested=True)
    return len(orjson.dumps(name)) + encoded_bytes([TensorType.of(array)], "base64")


def encode_array(name: str, array: HostArray, form: str) -> dict[str, Any]:
    """A result in this form. Raises Refusal for what JSON has no numbers for."""
    told: dict[str, Any] = {"object_type": "array", "shape": list(array.shape), "dtype": array.dtype.name}
    if form == JSON_FORM:
        require_finite(array, name)
        buffer = array.tolist() if array.size else orjson.Fragment(_empty_lists(array.shape))
        return told | {"data": {"buffer": buffer, "encoding": "json"}}
    return told | {"data": {"buffer": base64_tensor(array, array.dtype.name)["data_b64"], "encoding": "base64"}}


def _listed(stated: object, port: Port, place: Location, limits: Limits) -> HostArray:
    """An array that is a number, or lists of them."""
    shape = _shape_of(stated)
    where = f"“{port.name}”"
    if not isinstance(stated, int | float | list):
        got = json_kind(stated)
        raise bad_tensor(f"{where} must be a list of numbers, but is {got}", place, "a list of numbers", got)
    numbers = nested(stated, shape, where, place)
    _require_shape(shape, port, place)
    return _from_numbers(numbers, _dtype_of(stated, numbers, port), shape, place, limits)


def _encoded(stated: Mapping[str, Any], port: Port, place: Location, limits: Limits) -> HostArray:
    """An array with its type, in one of the encodings."""
    dtype, shape, data = stated.get("dtype"), stated.get("shape"), stated.get("data")
    if not isinstance(dtype, str) or dtype not in DTYPES:
        expected, got = f"one of {', '.join(DTYPES)}", printable(dtype) if isinstance(dtype, str) else json_kind(dtype)
        detail = f"the dtype of “{port.name}” must be {expected}, but is {got}"
        raise bad_tensor(detail, (*place, "dtype"), expected, got)
    if not _is_shape(shape):
        expected = "a list of extents of 0 or more"
        raise bad_tensor(
            f"the shape of “{port.name}” must be {expected}", (*place, "shape"), expected, "something else"
        )
    _require_shape(shape, port, place)
    type = _admitted(dtype, shape, (*place, "shape"), limits)
    encoding = data.get("encoding") if isinstance(data, dict) else None
    if not isinstance(data, dict) or encoding not in _ENCODINGS:
        expected = f"an object whose encoding is one of {', '.join(_ENCODINGS)}"
        got = printable(encoding) if isinstance(encoding, str) else json_kind(data)
        detail = f"the data of “{port.name}” must be {expected}, but is {got}"
        raise bad_tensor(detail, (*place, "data"), expected, got)
    buffer, at = data.get("buffer"), (*place, "data", "buffer")
    if encoding == "base64":
        return _from_base64(buffer, type, port, at)
    where = f"the buffer of “{port.name}”"
    of_number = not shape and not isinstance(buffer, list)
    numbers = nested(buffer, (), where, at) if of_number else flat_or_nested(buffer, shape, where, at)
    return _from_numbers(numbers, dtype, shape, at, limits)


def _dtype_of(stated: object, numbers: list[int | float], port: Port) -> str:
    """The dtype that numbers without one have; of whole numbers the port's, where it holds them."""
    if float in map(type, numbers):
        return "float64"
    if not numbers:
        return port.dtype
    if _first(stated) is True or _first(stated) is False:
        return "bool"
    return "int64" if port.dtype == "bool" else "float64" if port.dtype.startswith("float") else port.dtype


def _first(stated: object) -> object:
    while isinstance(stated, list):
        stated = stated[0]
    return stated


def _from_numbers(
    numbers: list[int | float], dtype: str, shape: Sequence[int], place: Location, limits: Limits
) -> HostArray:
    tensor = cast("Tensor", {"dtype": dtype, "shape": list(shape), "data": numbers})
    return read_array(tensor, limits, place, None)


def _from_base64(buffer: object, type: TensorType, port: Port, place: Location) -> HostArray:
    try:
        raw = pybase64.b64decode(buffer, validate=True) if isinstance(buffer, str) else None
    except ValueError:
        raw = None
    if raw is None or len(raw) != type.nbytes:
        got = "something else" if raw is None else f"{len(raw)} bytes"
        detail = f"the buffer of “{port.name}” must be base64 of {type.nbytes} bytes, but is {got}"
        raise bad_tensor(detail, place, f"{type.nbytes} bytes", got)
    if type.dtype == np.bool_ and raw.strip(b"\0\1"):
        raise bad_tensor(f"“{port.name}” has a byte that is neither 0 nor 1", place, "bytes 0 and 1", "another byte")
    return np.frombuffer(raw, type.dtype.newbyteorder("<")).reshape(type.shape)


def _cast(array: HostArray, port: Port, place: Location) -> HostArray:
    """The array in the dtype of its port; a cast that loses a value's kind, or a value, is refused."""
    dtype = np.dtype(port.dtype)
    if np.can_cast(array.dtype, dtype, "same_kind"):
        with np.errstate(over="ignore", invalid="ignore"):
            converted = array.astype(dtype)
        if dtype.kind == "f":
            is_kept = bool(np.isfinite(array).sum() == np.isfinite(converted).sum())
        else:
            is_kept = np.array_equal(converted, array)
        if is_kept:
            return converted
    got = array.dtype.name
    detail = f"“{port.name}” is {port.dtype}, and what came, {got}, cannot be that without loss"
    raise bad_tensor(detail, place, port.dtype, got, "dtype_mismatch")


def _require_shape(shape: Sequence[int], port: Port, place: Location) -> None:
    """Raise Refusal where a shape is not that of its port, before anything is made of it."""
    if len(shape) != len(port.shape) or any(w not in (FREE, n) for n, w in zip(shape, port.shape, strict=True)):
        expected, got = f"an array of the shape {list(port.shape)}", shown_shape(shape)
        raise bad_tensor(f"“{port.name}” must be {expected}, but is {got}", place, expected, got, "shape_mismatch")


def _admitted(dtype: str, shape: Sequence[int], place: Location, limits: Limits) -> TensorType:
    """The type, once it is within the limits of one tensor. Raises Refusal."""
    try:
        return type_of(cast("Tensor", {"dtype": dtype, "shape": shape}), limits)
    except (EngineError, Refusal) as error:
        raise located(error, place, None) from None


def _is_shape(shape: object) -> TypeGuard[list[int]]:
    return isinstance(shape, list) and all(type(extent) is int and 0 <= extent < 2**63 for extent in shape)


def _shape_of(stated: object) -> tuple[int, ...]:
    """The shape of lists within lists, by the first of each."""
    shape: list[int] = []
    while isinstance(stated, list):
        shape.append(len(stated))
        stated = stated[0] if stated else None
    return tuple(shape)


def _empty_lists(shape: Sequence[int]) -> bytes:
    """The lists within lists of an array without elements, as JSON: no object is made for any of them."""
    axis = shape.index(0)
    text = b"[]"
    for extent in reversed(shape[:axis]):
        text = b"[" + (text + b",") * (extent - 1) + text + b"]"
    return text
