"""Requests and answers in safetensors: an 8-byte length, a JSON header, and the bytes of the tensors.

Arrays are views of the received body, and answers are sent from the arrays' own memory: nothing is copied here. The
format: https://github.com/huggingface/safetensors#format

A complex tensor is stored as its real and imaginary parts along a last axis of 2. `__metadata__.complex` is a JSON list
of the names of complex tensors, as a string. C64, which newer versions of the format have, is read as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeGuard

import numpy as np
import orjson

from engine import EngineError, HostArray, Label, Limits, TensorType, printable
from engine.ir.tensor_type import ELEMENT_TYPES
from service.api.json_codec import parse_json, parse_value
from service.api.json_reader import JsonReader, Message
from service.api.tensors import NodePlace
from service.core.errors import Refusal, from_engine
from service.store.commit_objects import LENGTH, METADATA, safetensors_type

_DTYPES: Final = {element.safetensors: element.name for element in ELEMENT_TYPES if element.safetensors}
#: complex dtypes by the dtype of their parts
_COMPLEX_OF_PARTS: Final = {element.parts: element.name for element in ELEMENT_TYPES if element.parts}
_COMPLEX: Final = "complex"
#: key of the metadata with the versions of resident tensors
_VERSIONS: Final = "versions"
_HEADER: Final = "the header of the safetensors body"
_LIST_OF_COMPLEX: Final = f"{METADATA}.{_COMPLEX}"
_INDEX: Final = r"(0|[1-9][0-9]{0,17})"
_NAME: Final = re.compile(rf"(?:functions\.{_INDEX}\.(?=constants\.))?([a-z]{{1,32}})\.{_INDEX}")


def read_request(
    body: bytes | memoryview | HostArray, max_header_bytes: int, reader: JsonReader, limits: Limits
) -> Message:
    """Read the request in a body, with its tensors as read-only views.

    `max_header_bytes` bounds the header, and `reader` its nesting: it is JSON, and as costly as other JSON. Raises
    Refusal: those of the JSON, body_too_large, invalid_field, bad_tensor, over_budget.
    """
    header, data = _split_body(body, max_header_bytes, reader.depth)
    metadata = header.pop(METADATA, None)
    text = metadata.get("request") if isinstance(metadata, dict) else None
    if not isinstance(metadata, dict) or not isinstance(text, str):
        detail = "has no request: __metadata__.request must be a string with the JSON request, without its tensors"
        raise _malformed(detail, "a string in __metadata__.request", "none")
    request = reader.read_request(text.encode(), "__metadata__.request of the safetensors body")
    places = {name: _place_of_name(name) for name in header}
    _check_layout(header, len(data))
    complex_names = _complex_names(metadata, header)
    tensors = {place: _array(name, header[name], data, limits, name in complex_names) for name, place in places.items()}
    # The etags of resident tensors, as `write_request` writes them; anything else is ignored.
    versions_text = metadata.get(_VERSIONS)
    etags = parse_json(versions_text.encode(), 2, _VERSIONS) if isinstance(versions_text, str) else {}
    versions = {name: etag for name, etag in etags.items() if isinstance(etag, str)}
    return Message(_without_placeholders(request.body, tensors), tensors, request.source, versions)


def read_one(body: bytes | memoryview | HostArray, max_header_bytes: int, depth: int, limits: Limits) -> HostArray:
    """Read the only tensor of a body, under any name. Raises Refusal, as `read_request`."""
    header, data = _split_body(body, max_header_bytes, depth)
    complex_names = _complex_names(header.pop(METADATA, None), header)
    if len(header) != 1:
        raise _malformed(f"must hold one tensor, but holds {len(header)}", "one tensor", str(len(header)))
    (name, entry) = next(iter(header.items()))
    _check_layout({printable(name): entry}, len(data))
    return _array(printable(name), entry, data, limits, name in complex_names)


def write_request(
    fields: Mapping[str, Any], arrays: Mapping[tuple[str, NodePlace], HostArray], versions: Mapping[str, str]
) -> list[bytes | memoryview]:
    """Write the parts of a body with a request and these tensors, the widest dtypes first.

    `versions` are the etags that resident tensors in the request must have.
    """
    ordered = sorted(arrays.items(), key=lambda placed: -placed[1].itemsize)
    metadata = {"request": orjson.dumps(fields).decode(), _VERSIONS: orjson.dumps(versions).decode()}
    return _body_parts({METADATA: metadata}, [(place.tensor_name(role), array) for (role, place), array in ordered])


def write_one(name: str, array: HostArray) -> list[bytes | memoryview]:
    """Write the parts of a body that holds one tensor, under this name."""
    return _body_parts({}, [(name, array)])


def write_response(response: Mapping[str, Any], arrays: Iterable[tuple[Label, HostArray]]) -> list[bytes | memoryview]:
    """Write the parts of a body: a header with `response`, then the arrays, the widest dtypes first for alignment."""
    ordered = sorted(arrays, key=lambda labelled: -labelled[1].itemsize)
    named_arrays = [(".".join((label.kind, *map(str, label.nodes))), array) for label, array in ordered]
    return _body_parts({METADATA: {"response": orjson.dumps(response).decode()}}, named_arrays)


def _body_parts(header: dict[str, Any], named_arrays: Sequence[tuple[str, HostArray]]) -> list[bytes | memoryview]:
    end = 0
    for name, array in named_arrays:
        start, end = end, end + array.nbytes
        header[name] = {**safetensors_type(array.dtype.name, array.shape), "data_offsets": [start, end]}
    if complex_names := [name for name, array in named_arrays if array.dtype.kind == "c"]:
        header[METADATA] = {**header.get(METADATA, {}), _COMPLEX: orjson.dumps(complex_names).decode()}
    text = orjson.dumps(header)
    text += b" " * (-len(text) % LENGTH)
    return [
        len(text).to_bytes(LENGTH, "little") + text,
        *(array_bytes(array) for _, array in named_arrays if array.nbytes),
    ]


def _split_body(
    body: bytes | memoryview | HostArray, max_header_bytes: int, depth: int
) -> tuple[dict[str, Any], memoryview]:
    """Split a body into its header and the data of the tensors. Raises Refusal."""
    view = np.frombuffer(body, np.uint8).data.toreadonly()
    if len(view) < LENGTH:
        raise _malformed("is too short to hold the length of its header", "at least 8 bytes", f"{len(view)} bytes")
    length = int.from_bytes(view[:LENGTH], "little")
    if length > len(view) - LENGTH:
        available = f"{len(view) - LENGTH} bytes"
        raise _malformed(
            f"states a header of {length} bytes, but has {available} after the length", available, f"{length} bytes"
        )
    if length > max_header_bytes:
        expected, got = f"at most {max_header_bytes} bytes", f"{length} bytes"
        raise Refusal("body_too_large", f"{_HEADER} may have {expected}, but has {got}", expected=expected, got=got)
    start = LENGTH + length
    return parse_json(bytes(view[LENGTH:start]), depth, _HEADER), view[start:]


def _complex_names(metadata: object, header: Mapping[str, Any]) -> frozenset[str]:
    """Read the names of the complex tensors. Raises Refusal (bad_tensor)."""
    text = metadata.get(_COMPLEX) if isinstance(metadata, dict) else None
    if text is None:
        return frozenset()
    try:
        names = parse_value(text.encode(), 1, _LIST_OF_COMPLEX) if isinstance(text, str) else None
    except Refusal:
        names = None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        expected = "a JSON list of names, as a string"
        raise _malformed(f"has an invalid {_LIST_OF_COMPLEX}: {expected} is expected", expected, "something else")
    for name in names:
        if name not in header:
            got = printable(name)
            raise _malformed(f"has no tensor “{got}”, but {_LIST_OF_COMPLEX} lists it", "a tensor's name", got)
    return frozenset(names)


def _without_placeholders(
    request: Mapping[str, Any], tensors: Mapping[tuple[str, NodePlace], HostArray]
) -> dict[str, Any]:
    """Remove list entries that are only `{"node": n}`, if their tensor is beside the JSON."""

    def is_placeholder(field: str, entry: object) -> bool:
        if not isinstance(entry, dict) or set(entry) != {"node"} or type(entry["node"]) is not int:
            return False
        return (field, NodePlace(entry["node"])) in tensors

    return {
        field: [entry for entry in value if not is_placeholder(field, entry)] if isinstance(value, list) else value
        for field, value in request.items()
    }


def _place_of_name(name: str) -> tuple[str, NodePlace]:
    place = _parse_name(name)
    if place is None:
        shown_name = printable(name)
        detail = f"the body has a tensor “{shown_name}”; names are ROLE.NODE, such as feeds.0"
        raise Refusal("invalid_field", detail, expected="ROLE.NODE", got=shown_name)
    return place


def _parse_name(name: str) -> tuple[str, NodePlace] | None:
    """Parse the name of a tensor into its role and node; return None if it is malformed."""
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    function, role, node = match.groups()
    return role, NodePlace(int(node), None if function is None else int(function))


def _fields(name: str) -> dict[str, Any]:
    """Return the fields of a report that identify the node of a tensor."""
    place = _parse_name(name)
    return {} if place is None else place[1].fields


def _check_layout(header: Mapping[str, Any], length: int) -> None:
    """Raise bad_tensor unless the tensors fill the data without gaps and overlaps, so that a body has one reading."""
    spans, end = [], 0
    for name, entry in header.items():
        offsets = entry.get("data_offsets") if isinstance(entry, dict) else None
        if not _is_numbers(offsets) or len(offsets) != 2:
            expected = "two whole numbers"
            raise _bad_tensor(name, f"has no data_offsets: {expected} are expected", expected, "something else")
        spans.append((offsets[0], offsets[1], name))
    for start, stop, name in sorted(spans):
        if start != end or stop < start:
            got = f"{start} to {stop}"
            raise _bad_tensor(
                name, f"lies at {got}, but must begin at {end}, where the tensor before it ends", f"from {end}", got
            )
        end = stop
    if end != length:
        raise _malformed(f"has {length} bytes of data, but its tensors take {end}", f"{end} bytes", f"{length} bytes")


def _is_numbers(value: Any) -> TypeGuard[list[int]]:
    return isinstance(value, list) and all(type(n) is int and 0 <= n < 1 << 62 for n in value)


def _array(name: str, entry: Mapping[str, Any], data: memoryview, limits: Limits, has_parts: bool) -> HostArray:
    dtype, shape, (start, stop) = entry.get("dtype"), entry.get("shape"), entry["data_offsets"]
    if not isinstance(dtype, str) or dtype not in _DTYPES:
        supported, got = ", ".join(_DTYPES), printable(str(dtype))
        raise _bad_tensor(name, f"has the dtype {got}; one of {supported} is expected", f"one of {supported}", got)
    if not _is_numbers(shape):
        raise _bad_tensor(
            name, "has no shape: a list of whole numbers is expected", "a list of whole numbers", "something else"
        )
    try:
        limits.admit_rank(len(shape) - has_parts)  # the last axis of a complex tensor is that of its parts
        type = TensorType(tuple(shape), np.dtype(_DTYPES[dtype]))
        if has_parts:
            type = _complex_type(name, type)
        limits.admit_type(type)
    except EngineError as error:
        refusal = from_engine(error)
        raise replace(refusal, detail=f"tensor {name}: {error.detail}", **_fields(name)) from None
    if stop - start != type.nbytes:
        needed, got = f"{type.nbytes} bytes", f"{stop - start} bytes"
        raise _bad_tensor(name, f"must hold {needed} to be {type}, but holds {got}", needed, got)
    return _view_as(name, data[start:stop], type)


def _complex_type(name: str, type: TensorType) -> TensorType:
    """Return the complex type whose parts are of this type. Raises Refusal (bad_tensor)."""
    if type.dtype.name not in _COMPLEX_OF_PARTS or type.shape[-1:] != (2,):
        expected, got = "F32 or F64 with a last axis of 2", str(type)
        raise _bad_tensor(name, f"is listed as complex, so it must be {expected}, but is {got}", expected, got)
    return TensorType(type.shape[:-1], np.dtype(_COMPLEX_OF_PARTS[type.dtype.name]))


def _view_as(name: str, data: memoryview, type: TensorType) -> HostArray:
    """View bytes as an array of this type; copy them only if they are not aligned."""
    flat = np.frombuffer(data, type.dtype.newbyteorder("<"))
    if type.dtype == np.bool_ and flat.size and flat.view(np.uint8).max() > 1:
        raise _bad_tensor(name, "has a byte that is neither 0 nor 1", "bytes 0 and 1", "another byte")
    array = flat.astype(type.dtype, copy=False).reshape(type.shape)
    return array if array.flags.aligned else array.copy()


def array_bytes(array: HostArray) -> memoryview:
    """Return the array's own memory, little-endian and row-major."""
    dense = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    return dense.reshape(-1).view(np.uint8).data


def _bad_tensor(name: str, detail: str, expected: str, got: str) -> Refusal:
    return Refusal("bad_tensor", f"tensor {name} {detail}", expected=expected, got=got, **_fields(name))


def _malformed(detail: str, expected: str, got: str) -> Refusal:
    return Refusal("bad_tensor", f"the safetensors body {detail}", expected=expected, got=got)
