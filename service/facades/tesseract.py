"""Calls of Tesseract, read and answered: arrays by the names of a model's inputs and outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeGuard, cast

import numpy as np
import orjson
import pybase64

from engine import DTYPES, NO_END, EngineError, HostArray, Limits, TensorType, printable
from schemas import Tensor
from service.api.answers import FIELD_BYTES
from service.api.graphs import with_location
from service.api.json_codec import json_kind, parse_json
from service.api.tensors import Location, decode, encoded_bytes, type_of
from service.core.errors import Refusal, pointer
from service.facades.elements import (
    bad_tensor,
    base64_tensor,
    flat_or_nested,
    nested,
    require_finite,
    shown_shape,
    text_bytes,
)
from service.facades.foreign_call import ForeignCall, OwnRequest, ReadLimits, ResultArrays
from service.facades.model import Model, Port
from service.facades.protocols import ForeignAnswer
from service.store.tables import FREE

JSON_FORM: Final = "json"
BASE64_FORM: Final = "json+base64"
#: supported encodings of elements in requests
_ENCODINGS: Final = ("json", "base64")


def form_of(accept: str) -> str:
    """Return the array encoding for an Accept header: base64, which is exact, unless the header accepts only JSON."""
    kinds = [part.partition(";")[0].strip().lower() for part in accept.split(",")]
    return JSON_FORM if "application/json" in kinds and f"application/{BASE64_FORM}" not in kinds else BASE64_FORM


def decode_array(port: Port, value: object, place: Location, limits: Limits) -> dict[str, Any]:
    """Decode an array of a request into a tensor of the port's dtype. Raises Refusal.

    A number, or nested lists of numbers, are arrays, too.
    """
    array = (
        _decode_object(value, port, place, limits)
        if isinstance(value, dict)
        else _decode_list(value, port, place, limits)
    )
    _checked_type(port.dtype, array.shape, place, limits)
    return base64_tensor(_cast(array, port, place), port.dtype)


def stated_type(port: Port, value: object, place: Location, limits: Limits) -> dict[str, Any]:
    """Read the type of an input, as `abstract_eval` sends it, without allocating anything. Raises Refusal."""
    shape, dtype = (value.get("shape"), value.get("dtype")) if isinstance(value, dict) else (None, None)
    if not _is_shape(shape):
        expected = "an object with shape and dtype"
        raise bad_tensor(f"“{port.name}” must be {expected}", place, expected, json_kind(value), "invalid_field")
    if not isinstance(dtype, str):
        detail, got = f"the dtype of “{port.name}” must be a string", json_kind(dtype)
        raise bad_tensor(detail, (*place, "dtype"), "a string", got, "invalid_field")
    _checked_type(port.dtype, shape, place, replace(limits, bytes=NO_END))
    return {"node": port.node, "dtype": port.dtype, "shape": shape}


def encoded_array_bytes(name: str, array: HostArray, form: str) -> int:
    """Return an upper bound of the bytes of an encoded array."""
    if form == JSON_FORM:
        return text_bytes(array, name, nested=True)
    return len(orjson.dumps(name)) + encoded_bytes([TensorType.of(array)], "base64")


def encode_array(name: str, array: HostArray, form: str) -> dict[str, Any]:
    """Encode a result in this form. Raises Refusal for numbers that JSON cannot represent."""
    fields: dict[str, Any] = {"object_type": "array", "shape": list(array.shape), "dtype": array.dtype.name}
    if form == JSON_FORM:
        require_finite(array, name)
        buffer = array.tolist() if array.size else orjson.Fragment(_empty_lists(array.shape))
        return fields | {"data": {"buffer": buffer, "encoding": "json"}}
    return fields | {"data": {"buffer": base64_tensor(array, array.dtype.name)["data_b64"], "encoding": "base64"}}


def _decode_list(value: object, port: Port, place: Location, limits: Limits) -> HostArray:
    """Decode an array that is a number or nested lists of numbers."""
    shape = _shape_of(value)
    where = f"“{port.name}”"
    if not isinstance(value, int | float | list):
        got = json_kind(value)
        raise bad_tensor(f"{where} must be a list of numbers, but is {got}", place, "a list of numbers", got)
    numbers = nested(value, shape, where, place)
    _require_shape(shape, port, place)
    return _from_numbers(numbers, _dtype_of(value, numbers, port), shape, place, limits)


def _decode_object(value: Mapping[str, Any], port: Port, place: Location, limits: Limits) -> HostArray:
    """Decode an array object with dtype, shape and encoded data."""
    dtype, shape, data = value.get("dtype"), value.get("shape"), value.get("data")
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
    type = _checked_type(dtype, shape, (*place, "shape"), limits)
    encoding = data.get("encoding") if isinstance(data, dict) else None
    if not isinstance(data, dict) or encoding not in _ENCODINGS:
        expected = f"an object whose encoding is one of {', '.join(_ENCODINGS)}"
        got = printable(encoding) if isinstance(encoding, str) else json_kind(data)
        detail = f"the data of “{port.name}” must be {expected}, but is {got}"
        raise bad_tensor(detail, (*place, "data"), expected, got)
    buffer, location = data.get("buffer"), (*place, "data", "buffer")
    if encoding == "base64":
        return _from_base64(buffer, type, port, location)
    where = f"the buffer of “{port.name}”"
    is_scalar = not shape and not isinstance(buffer, list)
    numbers = nested(buffer, (), where, location) if is_scalar else flat_or_nested(buffer, shape, where, location)
    return _from_numbers(numbers, dtype, shape, location, limits)


def _dtype_of(value: object, numbers: list[int | float], port: Port) -> str:
    """Return the dtype of numbers sent without one; for whole numbers the port's dtype if it can hold them."""
    if float in map(type, numbers):
        return "float64"
    if not numbers:
        return port.dtype
    while isinstance(value, list):
        value = value[0]
    if value is True or value is False:
        return "bool"
    return "int64" if port.dtype == "bool" else "float64" if port.dtype.startswith("float") else port.dtype


def _from_numbers(
    numbers: list[int | float], dtype: str, shape: Sequence[int], place: Location, limits: Limits
) -> HostArray:
    tensor = cast("Tensor", {"dtype": dtype, "shape": list(shape), "data": numbers})
    try:
        return decode(tensor, limits)
    except (EngineError, Refusal) as error:
        raise _with_location(error, place) from None


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
    """Cast an array to the dtype of its port. Raises Refusal if the cast would lose values or change their kind."""
    dtype = np.dtype(port.dtype)
    if np.can_cast(array.dtype, dtype, "same_kind"):
        with np.errstate(over="ignore", invalid="ignore"):
            converted = array.astype(dtype)
        # Floats may be rounded, but no finite value may become infinite.
        if dtype.kind == "f":
            is_lossless = bool(np.isfinite(array).sum() == np.isfinite(converted).sum())
        else:
            is_lossless = np.array_equal(converted, array)
        if is_lossless:
            return converted
    got = array.dtype.name
    detail = f"“{port.name}” is {port.dtype}, but the array is {got} and cannot be converted without loss"
    raise bad_tensor(detail, place, port.dtype, got, "dtype_mismatch")


def _require_shape(shape: Sequence[int], port: Port, place: Location) -> None:
    """Raise Refusal if a shape does not match that of its port."""
    if len(shape) != len(port.shape) or any(w not in (FREE, n) for n, w in zip(shape, port.shape, strict=True)):
        expected, got = f"an array of shape {list(port.shape)}", shown_shape(shape)
        raise bad_tensor(f"“{port.name}” must be {expected}, but has {got}", place, expected, got, "shape_mismatch")


def _checked_type(dtype: str, shape: Sequence[int], place: Location, limits: Limits) -> TensorType:
    """Return the type if it is within the limits of one tensor. Raises Refusal."""
    try:
        return type_of(cast("Tensor", {"dtype": dtype, "shape": shape}), limits)
    except (EngineError, Refusal) as error:
        raise _with_location(error, place) from None


def _with_location(error: EngineError | Refusal, place: Location) -> Refusal:
    """Add the location to an error in a tensor, which has no inner places here."""
    return replace(with_location(error, place, None), pointer=pointer(place))


def _is_shape(shape: object) -> TypeGuard[list[int]]:
    return isinstance(shape, list) and all(type(extent) is int and 0 <= extent < 2**63 for extent in shape)


def _shape_of(value: object) -> tuple[int, ...]:
    """Return the shape of nested lists, judged by the first element of each."""
    shape: list[int] = []
    while isinstance(value, list):
        shape.append(len(value))
        value = value[0] if value else None
    return tuple(shape)


def _empty_lists(shape: Sequence[int]) -> bytes:
    """Write the nested lists of an array without elements as JSON, without creating an object for each list."""
    axis = shape.index(0)
    text = b"[]"
    for extent in reversed(shape[:axis]):
        text = b"[" + (text + b",") * (extent - 1) + text + b"]"
    return text


_Json = Mapping[str, Any]


class _Call(ForeignCall):
    """Call at `/PATH` below the path of the model."""

    def __init__(
        self,
        path: str,
        translate: Callable[[_Json, Model, str, Limits], OwnRequest],
        lists: Sequence[str] = (),
        arrays: Sequence[str] = (),
    ) -> None:
        """`translate` turns a request, with the encoding for the response, into a /v1 request. It raises Refusal.

        Besides `inputs`, a request has the fields in `lists`, which list names, and in `arrays`, which map names to
        arrays.
        """
        self.name = f"tesseract.{path}"
        self.path = path
        self._translate = translate
        self._lists = lists
        self._arrays = arrays

    def read_request(self, body: bytes, head: str, model: Model, limits: ReadLimits) -> OwnRequest:
        """Read a request; `head` is the Accept header, which selects the encoding of arrays."""
        fields = parse_json(body, limits.json_depth)
        expected_fields = ("inputs", *self._lists, *self._arrays)
        for field in fields:
            if field not in expected_fields:
                got, expected = printable(field), ", ".join(expected_fields)
                raise _invalid_field(f"there is no field “{got}”; the fields are {expected}", (got,), expected, got)
        for field in expected_fields:
            kind = list if field in self._lists else dict
            if not isinstance(fields.get(field), kind):
                expected = "a list" if kind is list else "an object"
                got = "nothing" if field not in fields else json_kind(fields[field])
                raise _invalid_field(f"{field} must be {expected}, but is {got}", (field,), expected, got)
        return self._translate(fields, model, form_of(head), limits.tensors)


def _apply(request: _Json, model: Model, form: str, limits: Limits) -> OwnRequest:
    """Request the values of all outputs."""
    feeds, nodes = _feeds(request["inputs"], model, limits), _nodes(model.outputs)

    def write_answer(results: ResultArrays) -> ForeignAnswer:
        return _to_response(_arrays(results, "values", model.outputs, form), form)

    return OwnRequest("forward", {"feeds": feeds, "outputs": nodes}, write_answer)


def _jacobian(request: _Json, model: Model, form: str, limits: Limits) -> OwnRequest:
    """Request a Jacobian block for each pair; its shape is that of the output followed by that of the input."""
    feeds = _feeds(request["inputs"], model, limits)
    inputs, outputs = (
        _select_ports(request, "jac_inputs", model.inputs),
        _select_ports(request, "jac_outputs", model.outputs),
    )

    def write_answer(results: ResultArrays) -> ForeignAnswer:
        pairs = [(y, x) for y in outputs for x in inputs]
        blocks = _encode_results(
            results, [(f"{y.name} by {x.name}", results("jacobian", y.node, x.node)) for y, x in pairs], form
        )
        jacobian: dict[str, dict[str, Any]] = {y.name: {} for y in outputs}
        for (y, x), block in zip(pairs, blocks, strict=True):
            jacobian[y.name][x.name] = block
        return _to_response(jacobian, form)

    return OwnRequest("jacobian", {"feeds": feeds, "outputs": _nodes(outputs), "wrt": _nodes(inputs)}, write_answer)


def _jacobian_vector_product(request: _Json, model: Model, form: str, limits: Limits) -> OwnRequest:
    """Request the tangents of outputs; inputs that are not named have zero tangents."""
    feeds = _feeds(request["inputs"], model, limits)
    inputs, outputs = (
        _select_ports(request, "jvp_inputs", model.inputs),
        _select_ports(request, "jvp_outputs", model.outputs),
    )
    tangents = _vectors(request, "tangent_vector", inputs, limits)

    def write_answer(results: ResultArrays) -> ForeignAnswer:
        return _to_response(_arrays(results, "tangents", outputs, form), form)

    return OwnRequest("jvp", {"feeds": feeds, "outputs": _nodes(outputs), "tangents": tangents}, write_answer)


def _vector_jacobian_product(request: _Json, model: Model, form: str, limits: Limits) -> OwnRequest:
    """Request the gradients with respect to inputs; outputs that are not named have zero cotangents."""
    feeds = _feeds(request["inputs"], model, limits)
    inputs, outputs = (
        _select_ports(request, "vjp_inputs", model.inputs),
        _select_ports(request, "vjp_outputs", model.outputs),
    )
    fields = {
        "feeds": feeds,
        "outputs": _nodes(outputs),
        "cotangents": _vectors(request, "cotangent_vector", outputs, limits),
        "wrt": _nodes(inputs),
    }

    def write_answer(results: ResultArrays) -> ForeignAnswer:
        return _to_response(_arrays(results, "gradients", inputs, form), form)

    return OwnRequest("vjp", fields, write_answer)


def _abstract_eval(request: _Json, model: Model, _: str, limits: Limits) -> OwnRequest:
    """Request the types of the outputs for given input types: this is a plan, nothing is executed."""
    inputs = request["inputs"]
    _check_names(inputs, model.inputs, "inputs")
    types = [stated_type(port, inputs[port.name], ("inputs", port.name), limits) for port in model.inputs]
    bound = [{"node": tensor.node, "dtype": tensor.dtype, "shape": list(tensor.shape)} for tensor in model.bound]
    fields = {"types": [*types, *bound], "outputs": _nodes(model.outputs), "call": "forward"}

    def write_answer(results: ResultArrays) -> ForeignAnswer:
        planned = {cost["node"]: cost for cost in orjson.loads(results.body)["nodes"]}
        costs = {port.name: planned[port.node] for port in model.outputs}
        shapes = {name: {"shape": cost["shape"], "dtype": cost["dtype"]} for name, cost in costs.items()}
        return ForeignAnswer([orjson.dumps(shapes)])

    return OwnRequest("plan", fields, write_answer)


TESSERACT_CALLS: Final[Sequence[_Call]] = (
    _Call("apply", _apply),
    _Call("jacobian", _jacobian, lists=("jac_inputs", "jac_outputs")),
    _Call(
        "jacobian_vector_product",
        _jacobian_vector_product,
        lists=("jvp_inputs", "jvp_outputs"),
        arrays=("tangent_vector",),
    ),
    _Call(
        "vector_jacobian_product",
        _vector_jacobian_product,
        lists=("vjp_inputs", "vjp_outputs"),
        arrays=("cotangent_vector",),
    ),
    _Call("abstract_eval", _abstract_eval),
)


def _nodes(ports: Iterable[Port]) -> list[int]:
    return list(dict.fromkeys(port.node for port in ports))


def _feeds(inputs: _Json, model: Model, limits: Limits) -> list[dict[str, Any]]:
    """Build the feeds of a request with these inputs. Raises Refusal."""
    _check_names(inputs, model.inputs, "inputs")
    names = (port.name for port in model.inputs)
    arrays = (decode_array(port, inputs[port.name], ("inputs", port.name), limits) for port in model.inputs)
    return model.feeds(dict(zip(names, arrays, strict=True)))


def _vectors(request: _Json, field: str, ports: Sequence[Port], limits: Limits) -> list[dict[str, Any]]:
    """Read an array for each input or output in `ports`. Raises Refusal."""
    _check_names(request[field], ports, field)
    arrays = [decode_array(port, request[field][port.name], (field, port.name), limits) for port in ports]
    return [{"node": port.node, "tensor": array} for port, array in zip(ports, arrays, strict=True)]


def _check_names(named_values: _Json, ports: Sequence[Port], field: str) -> None:
    """Raise Refusal if names are missing or unknown."""
    expected_names = [port.name for port in ports]
    for name in named_values:
        if name not in expected_names:
            got, expected = printable(name), ", ".join(expected_names) or "no names"
            raise _invalid_field(f"unknown name “{got}”; expected {expected}", (field, got), expected, got)
    for name in expected_names:
        if name not in named_values:
            raise _invalid_field(f"“{name}” is missing", (field, name), f"“{name}”", "nothing")


def _select_ports(request: _Json, field: str, ports: Sequence[Port]) -> list[Port]:
    """Return the inputs or outputs that a field lists, each once. Raises Refusal."""
    by_name = {port.name: port for port in ports}
    selected: dict[str, Port] = {}
    for i, name in enumerate(request[field]):
        port = by_name.get(name) if isinstance(name, str) else None
        if port is None or port.name in selected:
            expected = f"one of {', '.join(by_name)}, each once"
            got = f"“{printable(name)}”" if isinstance(name, str) else json_kind(name)
            raise _invalid_field(f"{field}[{i}] must be {expected}, but is {got}", (field, i), expected, got)
        selected[port.name] = port
    if not selected:
        raise _invalid_field(f"{field} is empty", (field,), "at least one name", "none")
    return list(selected.values())


def _arrays(results: ResultArrays, kind: str, ports: Sequence[Port], form: str) -> dict[str, Any]:
    """Encode results of this kind by the names of their inputs or outputs. Raises Refusal and OverBudget."""
    named = [(port.name, results(kind, port.node)) for port in ports]
    return dict(zip((name for name, _ in named), _encode_results(results, named, form), strict=True))


def _encode_results(results: ResultArrays, named: Sequence[tuple[str, HostArray]], form: str) -> list[dict[str, Any]]:
    """Encode results in this form if all of them fit into a response. Raises Refusal and OverBudget."""
    results.admit(FIELD_BYTES + sum(encoded_array_bytes(name, array, form) for name, array in named), form)
    return [encode_array(name, array, form) for name, array in named]


def _to_response(body: _Json, form: str) -> ForeignAnswer:
    return ForeignAnswer([orjson.dumps(body)], f"application/{form}")


def _invalid_field(detail: str, place: Location, expected: str, got: str) -> Refusal:
    return Refusal("invalid_field", detail, expected=expected, got=got, pointer=pointer(place))


#: schema of an array in a model's OpenAPI document
_ARRAY: Final = {
    "type": "object",
    "properties": {
        "object_type": {"const": "array"},
        "shape": {"type": "array", "items": {"type": "integer"}},
        "dtype": {"type": "string"},
        "data": {"type": "object"},
    },
    "required": ["object_type", "shape", "dtype", "data"],
}


class Health(ForeignCall):
    """Health of a model: an existing model is healthy."""

    name = "tesseract.health"

    def read_request(self, body: bytes, head: str, model: Model, limits: ReadLimits) -> ForeignAnswer:
        """Answer that the model is healthy; a request to a missing model never gets here."""
        return ForeignAnswer([b'{"status":"ok"}'])


class Document(ForeignCall):
    """OpenAPI document for Tesseract clients: the calls, and the differentiable arrays."""

    name = "tesseract.document"

    def read_request(self, body: bytes, head: str, model: Model, limits: ReadLimits) -> ForeignAnswer:
        """Answer with a document whose schemas have the names that clients look for."""
        inputs, outputs = _schema(model.inputs), _schema(model.outputs)
        differentiable = {"differentiable_arrays": inputs["differentiable_arrays"]}
        wrapped = {"type": "object", "properties": {"inputs": inputs}, "required": ["inputs"], **differentiable}
        schemas = {
            "Apply_InputSchema": inputs,
            "Apply_OutputSchema": outputs,
            "ApplyInputSchema": wrapped,
            "ApplyOutputSchema": outputs,
        }
        document: dict[str, Any] = {
            "openapi": "3.1.0",
            "info": {"title": model.name, "version": model.graph_id, "description": model.description},
            "paths": {f"/{path}": {} for path in (*(call.path for call in TESSERACT_CALLS), "health")},
            "components": {"schemas": schemas},
            "x-supported-output-formats": [JSON_FORM, BASE64_FORM],
            "x-supported-gpu-transports": ["none"],
            "x-supported-compressions": ["none"],
        }
        return ForeignAnswer([orjson.dumps(document)])


def _schema(ports: Sequence[Port]) -> dict[str, Any]:
    """Return the schema of inputs or outputs. A free extent is None, as in the Tesseract runtime."""
    return {
        "type": "object",
        "properties": {port.name: _ARRAY for port in ports},
        "required": [port.name for port in ports],
        "differentiable_arrays": {
            port.name: {"shape": [None if extent == FREE else extent for extent in port.shape], "dtype": port.dtype}
            for port in ports
            if port.is_differentiable
        },
    }
