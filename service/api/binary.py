"""Requests and answers as safetensors: an 8-byte length, a JSON header, and the tensors' bytes as they lie in memory.

Arrays are views of the body that came, and answers are sent from the arrays' own memory: nothing is copied here.
The format: https://github.com/huggingface/safetensors#format

Complex tensors lie in it as their parts, real and imaginary along a last axis of 2: `__metadata__.complex` is a JSON
list of their names, as a string. C64, which the format has since, is read as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeGuard

import numpy as np
import orjson

from engine import EngineError, HostArray, Label, Limits, TensorType, printable
from engine.ir.dtypes import ELEMENT_TYPES
from service.api.json_codec import parse_json, parse_value
from service.api.json_reader import JsonReader, Message
from service.api.validation import NodePlace
from service.core.errors import Refusal, from_engine
from service.store.commit_objects import LENGTH, METADATA, safetensors_type

_DTYPES: Final = {element.safetensors: element.name for element in ELEMENT_TYPES if element.safetensors}
#: dtypes whose numbers may be parts of complex ones, and which these are
_OF_PARTS: Final = {element.parts: element.name for element in ELEMENT_TYPES if element.parts}
_COMPLEX: Final = "complex"
#: where a request says which versions of resident tensors it is about
_VERSIONS: Final = "versions"
_HEADER: Final = "the header of the safetensors body"
_LIST_OF_COMPLEX: Final = f"{METADATA}.{_COMPLEX}"
_INDEX: Final = r"(0|[1-9][0-9]{0,17})"
_NAME: Final = re.compile(rf"(?:functions\.{_INDEX}\.(?=constants\.))?([a-z]{{1,32}})\.{_INDEX}")


def read_request(body: bytes | memoryview | HostArray, most: int, reader: JsonReader, limits: Limits) -> Message:
    """The request that a body holds, its tensors as read-only views of it.

    `most` bounds the bytes of the header, and `reader` its nesting: it is JSON, and as costly as other JSON.
    Raises Refusal: what is wrong with the JSON, body_too_large, invalid_field, bad_tensor, over_budget.
    """
    view = np.frombuffer(body, np.uint8).data.toreadonly()
    start = LENGTH + _header_length(view, most)
    header = parse_json(bytes(view[LENGTH:start]), reader.depth, _HEADER)
    metadata = header.pop(METADATA, None)
    request = _request(metadata, reader)
    places = {name: _place(name) for name in header}
    data = view[start:]
    _check_layout(header, len(data))
    pairs = _complex_names(metadata, header)
    tensors = {place: _array(name, header[name], data, limits, name in pairs) for name, place in places.items()}
    return Message(_without_places(request.body, tensors), tensors, request.source, _versions(metadata))


def read_one(body: bytes | memoryview | HostArray, most: int, depth: int, limits: Limits) -> HostArray:
    """The only tensor that a body holds, whatever it is called there. Raises Refusal, as `read_request`."""
    view = np.frombuffer(body, np.uint8).data.toreadonly()
    start = LENGTH + _header_length(view, most)
    header = parse_json(bytes(view[LENGTH:start]), depth, _HEADER)
    pairs = _complex_names(header.pop(METADATA, None), header)
    if len(header) != 1:
        raise _malformed(f"must hold one tensor, but holds {len(header)}", "one tensor", str(len(header)))
    (name, entry) = next(iter(header.items()))
    _check_layout({printable(name): entry}, len(view) - start)
    return _array(printable(name), entry, view[start:], limits, name in pairs)


def write_request(
    fields: Mapping[str, Any], arrays: Mapping[tuple[str, NodePlace], HostArray], versions: Mapping[str, str]
) -> list[bytes | memoryview]:
    """The parts of a body that is a request with these tensors beside it, the widest dtypes first.

    The resident tensors that it names have to be these `versions`.
    """
    ordered = sorted(arrays.items(), key=lambda placed: -placed[1].itemsize)
    metadata = {"request": orjson.dumps(fields).decode(), _VERSIONS: orjson.dumps(versions).decode()}
    return _body_parts({METADATA: metadata}, [(place.tensor_name(role), array) for (role, place), array in ordered])


def write_one(name: str, array: HostArray) -> list[bytes | memoryview]:
    """The parts of a body that holds one tensor, called by this name."""
    return _body_parts({}, [(name, array)])


def write_response(response: Mapping[str, Any], arrays: Iterable[tuple[Label, HostArray]]) -> list[bytes | memoryview]:
    """The parts of a body: a header with `response`, then the arrays, the widest dtypes first to keep all aligned."""
    ordered = sorted(arrays, key=lambda labelled: -labelled[1].itemsize)
    named = [(".".join((label.kind, *map(str, label.nodes))), array) for label, array in ordered]
    return _body_parts({METADATA: {"response": orjson.dumps(response).decode()}}, named)


def _body_parts(header: dict[str, Any], named: Sequence[tuple[str, HostArray]]) -> list[bytes | memoryview]:
    end = 0
    for name, array in named:
        start, end = end, end + array.nbytes
        header[name] = {**safetensors_type(array.dtype.name, array.shape), "data_offsets": [start, end]}
    if pairs := [name for name, array in named if array.dtype.kind == "c"]:
        header[METADATA] = {**header.get(METADATA, {}), _COMPLEX: orjson.dumps(pairs).decode()}
    text = orjson.dumps(header)
    text += b" " * (-len(text) % LENGTH)
    return [len(text).to_bytes(LENGTH, "little") + text, *(own_bytes(array) for _, array in named if array.nbytes)]


def _header_length(view: memoryview, most: int) -> int:
    if len(view) < LENGTH:
        raise _malformed("is too short to hold the length of its header", "at least 8 bytes", f"{len(view)} bytes")
    length = int.from_bytes(view[:LENGTH], "little")
    if length > len(view) - LENGTH:
        left = f"{len(view) - LENGTH} bytes"
        raise _malformed(f"states a header of {length} bytes, but has {left} after the length", left, f"{length} bytes")
    if length > most:
        wanted, got = f"at most {most} bytes", f"{length} bytes"
        raise Refusal("body_too_large", f"{_HEADER} may have {wanted}, but has {got}", expected=wanted, got=got)
    return length


def _request(metadata: object, reader: JsonReader) -> Message:
    text = metadata.get("request") if isinstance(metadata, dict) else None
    if not isinstance(text, str):
        detail = "has no request: __metadata__.request holds the JSON request without its tensors, as a string"
        raise _malformed(detail, "a string in __metadata__.request", "none")
    return reader.read_request(text.encode(), "__metadata__.request of the safetensors body")


def _complex_names(metadata: object, header: Mapping[str, Any]) -> frozenset[str]:
    """The names of the tensors that are complex. Raises Refusal (bad_tensor)."""
    text = metadata.get(_COMPLEX) if isinstance(metadata, dict) else None
    if text is None:
        return frozenset()
    try:
        names = parse_value(text.encode(), 1, _LIST_OF_COMPLEX) if isinstance(text, str) else None
    except Refusal:
        names = None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        wanted = "a JSON list of names, as a string"
        raise _malformed(f"has something else in {_LIST_OF_COMPLEX} than {wanted}", wanted, "something else")
    for name in names:
        if name not in header:
            got = printable(name)
            raise _malformed(f"has no tensor “{got}”, which its {_LIST_OF_COMPLEX} names", "a tensor's name", got)
    return frozenset(names)


def _versions(metadata: Mapping[str, Any]) -> dict[str, str]:
    """The etags that resident tensors have to have, as `write_request` writes them; of anything else, none."""
    stated = metadata.get(_VERSIONS)
    found = parse_json(stated.encode(), 2, _VERSIONS) if isinstance(stated, str) else {}
    return {name: etag for name, etag in found.items() if isinstance(etag, str)}


def _without_places(request: Mapping[str, Any], tensors: Mapping[tuple[str, NodePlace], HostArray]) -> dict[str, Any]:
    """`request` without list entries that only say `{"node": n}`, where the tensor of that place is there."""
    return {
        field: [entry for entry in value if not _only_a_place(field, entry, tensors)]
        if isinstance(value, list)
        else value
        for field, value in request.items()
    }


def _only_a_place(field: str, entry: object, tensors: Mapping[tuple[str, NodePlace], HostArray]) -> bool:
    if not isinstance(entry, dict) or set(entry) != {"node"} or type(entry["node"]) is not int:
        return False
    return (field, NodePlace(entry["node"])) in tensors


def _place(name: str) -> tuple[str, NodePlace]:
    found = _found(name)
    if found is None:
        shown = printable(name)
        detail = f"the body has a tensor “{shown}”; names are ROLE.NODE, such as feeds.0"
        raise Refusal("invalid_field", detail, expected="ROLE.NODE", got=shown)
    return found


def _found(name: str) -> tuple[str, NodePlace] | None:
    """The role of a tensor and the node that it is for; None where its name does not say that."""
    found = _NAME.fullmatch(name)
    if found is None:
        return None
    function, role, node = found.groups()
    return role, NodePlace(int(node), None if function is None else int(function))


def _fields(name: str) -> dict[str, Any]:
    """The fields of a report that say which node a tensor is for."""
    found = _found(name)
    return {} if found is None else found[1].fields


def _check_layout(header: Mapping[str, Any], length: int) -> None:
    """Raise bad_tensor unless the tensors fill the data without gaps and overlaps: a body has one reading."""
    end = 0
    for start, stop, name in sorted((*_offsets(name, entry), name) for name, entry in header.items()):
        if start != end or stop < start:
            got = f"{start} to {stop}"
            raise _bad(
                name, f"lies at {got}, but must begin at {end}, where the one before it ends", f"from {end}", got
            )
        end = stop
    if end != length:
        raise _malformed(f"has {length} bytes of data, but its tensors take {end}", f"{end} bytes", f"{length} bytes")


def _offsets(name: str, entry: object) -> tuple[int, int]:
    offsets = entry.get("data_offsets") if isinstance(entry, dict) else None
    if not _is_numbers(offsets) or len(offsets) != 2:
        raise _bad(name, "has no data_offsets: two whole numbers are expected", "two whole numbers", "something else")
    return offsets[0], offsets[1]


def _is_numbers(value: Any) -> TypeGuard[list[int]]:
    return isinstance(value, list) and all(type(n) is int and 0 <= n < 1 << 62 for n in value)


def _array(name: str, entry: Mapping[str, Any], data: memoryview, limits: Limits, has_parts: bool) -> HostArray:
    dtype, shape, (start, stop) = entry.get("dtype"), entry.get("shape"), entry["data_offsets"]
    if not isinstance(dtype, str) or dtype not in _DTYPES:
        known, got = ", ".join(_DTYPES), printable(str(dtype))
        raise _bad(name, f"has the dtype {got}; one of {known} is expected", f"one of {known}", got)
    if not _is_numbers(shape):
        raise _bad(
            name, "has no shape: a list of whole numbers is expected", "a list of whole numbers", "something else"
        )
    try:
        limits.admit_rank(len(shape) - has_parts)  # the last axis of complex tensors is none of theirs
        type = TensorType(tuple(shape), np.dtype(_DTYPES[dtype]))
        if has_parts:
            type = _of_parts(name, type)
        limits.admit_type(type)
    except EngineError as error:
        refusal = from_engine(error)
        raise replace(refusal, detail=f"tensor {name}: {error.detail}", **_fields(name)) from None
    if stop - start != type.nbytes:
        needed, got = f"{type.nbytes} bytes", f"{stop - start} bytes"
        raise _bad(name, f"must hold {needed} to be {type}, but holds {got}", needed, got)
    return _viewed(name, data[start:stop], type)


def _of_parts(name: str, type: TensorType) -> TensorType:
    """The complex tensor whose parts are of this type. Raises Refusal (bad_tensor)."""
    if type.dtype.name not in _OF_PARTS or type.shape[-1:] != (2,):
        wanted, got = "F32 or F64 with a last axis of 2", str(type)
        raise _bad(name, f"is said to be complex, and so must be {wanted}, but is {got}", wanted, got)
    return TensorType(type.shape[:-1], np.dtype(_OF_PARTS[type.dtype.name]))


def _viewed(name: str, data: memoryview, type: TensorType) -> HostArray:
    """The array of this type that the bytes are; copied only where they lie askew."""
    flat = np.frombuffer(data, type.dtype.newbyteorder("<"))
    if type.dtype == np.bool_ and flat.size and flat.view(np.uint8).max() > 1:
        raise _bad(name, "has a byte that is neither 0 nor 1", "bytes 0 and 1", "another byte")
    array = flat.astype(type.dtype, copy=False).reshape(type.shape)
    return array if array.flags.aligned else array.copy()


def own_bytes(array: HostArray) -> memoryview:
    """The array's own memory, little-endian and row-major."""
    dense = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    return dense.reshape(-1).view(np.uint8).data


def _bad(name: str, detail: str, expected: str, got: str) -> Refusal:
    return Refusal("bad_tensor", f"tensor {name} {detail}", expected=expected, got=got, **_fields(name))


def _malformed(detail: str, expected: str, got: str) -> Refusal:
    return Refusal("bad_tensor", f"the safetensors body {detail}", expected=expected, got=got)
