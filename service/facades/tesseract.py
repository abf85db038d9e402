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
from service.api.graphs import located, read_array
from service.api.json_codec import json_kind, parse_json
from service.api.tensors import Location, encoded_bytes, pointer, type_of
from service.core.errors import Refusal
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
#: the encodings of elements that are read
_ENCODINGS: Final = ("json", "base64")


def form_of(accept: str) -> str:
    """Return the form of arrays for an Accept header: base64, which is exact, unless it accepts JSON alone."""
    kinds = [part.partition(";")[0].strip().lower() for part in accept.split(",")]
    return JSON_FORM if "application/json" in kinds and f"application/{BASE64_FORM}" not in kinds else BASE64_FORM


def decode_array(port: Port, stated: object, place: Location, limits: Limits) -> dict[str, Any]:
    """Decode an array of a request into a tensor of its declared dtype. Raises Refusal.

    list[int | float], and lists of them, are arrays, too.
    """
    array = (
        _decode_object(stated, port, place, limits)
        if isinstance(stated, dict)
        else _decode_list(stated, port, place, limits)
    )
    _admitted(port.dtype, array.shape, place, limits)
    return base64_tensor(_cast(array, port, place), port.dtype)


def stated_type(port: Port, stated: object, place: Location, limits: Limits) -> dict[str, Any]:
    """Read the type of an input, as `abstract_eval` states it, without allocating anything. Raises Refusal."""
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
    """Encode a result in this form. Raises Refusal for numbers that JSON does not have."""
    told: dict[str, Any] = {"object_type": "array", "shape": list(array.shape), "dtype": array.dtype.name}
    if form == JSON_FORM:
        require_finite(array, name)
        buffer = array.tolist() if array.size else orjson.Fragment(_empty_lists(array.shape))
        return told | {"data": {"buffer": buffer, "encoding": "json"}}
    return told | {"data": {"buffer": base64_tensor(array, array.dtype.name)["data_b64"], "encoding": "base64"}}


def _decode_list(stated: object, port: Port, place: Location, limits: Limits) -> HostArray:
    """Decode an array that is a number, or lists of numbers."""
    shape = _shape_of(stated)
    where = f"“{port.name}”"
    if not isinstance(stated, int | float | list):
        got = json_kind(stated)
        raise bad_tensor(f"{where} must be a list of numbers, but is {got}", place, "a list of numbers", got)
    numbers = nested(stated, shape, where, place)
    _require_shape(shape, port, place)
    return _from_numbers(numbers, _dtype_of(stated, numbers, port), shape, place, limits)


def _decode_object(stated: Mapping[str, Any], port: Port, place: Location, limits: Limits) -> HostArray:
    """Decode an array with its type, in one of the encodings."""
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
    """Return the dtype of numbers without a stated one; of whole numbers the port's, if it holds them."""
    if float in map(type, numbers):
        return "float64"
    if not numbers:
        return port.dtype
    while isinstance(stated, list):
        stated = stated[0]
    if stated is True or stated is False:
        return "bool"
    return "int64" if port.dtype == "bool" else "float64" if port.dtype.startswith("float") else port.dtype


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
    """Cast an array to the dtype of its port. Raises Refusal if the cast loses a value, or the kind of values."""
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
    """Raise Refusal if a shape is not that of its port."""
    if len(shape) != len(port.shape) or any(w not in (FREE, n) for n, w in zip(shape, port.shape, strict=True)):
        expected, got = f"an array of the shape {list(port.shape)}", shown_shape(shape)
        raise bad_tensor(f"“{port.name}” must be {expected}, but is {got}", place, expected, got, "shape_mismatch")


def _admitted(dtype: str, shape: Sequence[int], place: Location, limits: Limits) -> TensorType:
    """Return the type if it is within the limits of one tensor. Raises Refusal."""
    try:
        return type_of(cast("Tensor", {"dtype": dtype, "shape": shape}), limits)
    except (EngineError, Refusal) as error:
        raise located(error, place, None) from None


def _is_shape(shape: object) -> TypeGuard[list[int]]:
    return isinstance(shape, list) and all(type(extent) is int and 0 <= extent < 2**63 for extent in shape)


def _shape_of(stated: object) -> tuple[int, ...]:
    """Determine the shape of lists within lists, by the first of each."""
    shape: list[int] = []
    while isinstance(stated, list):
        shape.append(len(stated))
        stated = stated[0] if stated else None
    return tuple(shape)


def _empty_lists(shape: Sequence[int]) -> bytes:
    """Write the lists within lists of an array without elements as JSON, without an object for each."""
    axis = shape.index(0)
    text = b"[]"
    for extent in reversed(shape[:axis]):
        text = b"[" + (text + b",") * (extent - 1) + text + b"]"
    return text


_Json = Mapping[str, Any]


class _Call(ForeignCall):
    """A call at `/PATH` under that of the model."""

    def __init__(
        self,
        path: str,
        translate: Callable[[_Json, Model, str, Limits], OwnRequest],
        lists: Sequence[str] = (),
        arrays: Sequence[str] = (),
    ) -> None:
        """`translate` makes a request, whose arrays are answered in a form, one of ours. It raises Refusal.

        Beside `inputs`, a request has the fields `lists`, which list names, and `arrays`, which have arrays by name.
        """
        self.name = f"tesseract.{path}"
        self.path = path
        self._translate = translate
        self._lists = lists
        self._arrays = arrays

    def read_request(self, body: bytes, said: str, model: Model, limits: ReadLimits) -> OwnRequest:
        """Read a request; `said` is the Accept header, which states the form of arrays."""
        asked = parse_json(body, limits.json_depth)
        known = ("inputs", *self._lists, *self._arrays)
        for field in asked:
            if field not in known:
                got, expected = printable(field), ", ".join(known)
                raise _wrong(f"there is no field “{got}”; there are {expected}", (got,), expected, got)
        for field in known:
            kind = list if field in self._lists else dict
            if not isinstance(asked.get(field), kind):
                expected = "a list" if kind is list else "an object"
                got = "nothing" if field not in asked else json_kind(asked[field])
                raise _wrong(f"{field} must be {expected}, but is {got}", (field,), expected, got)
        return self._translate(asked, model, form_of(said), limits.tensors)


def _apply(asked: _Json, model: Model, form: str, limits: Limits) -> OwnRequest:
    """Ask for the values of all outputs."""
    feeds, nodes = _feeds(asked["inputs"], model, limits), _nodes(model.outputs)

    def write_answer(results: ResultArrays) -> ForeignAnswer:
        return _written(_arrays(results, "values", model.outputs, form), form)

    return OwnRequest("forward", {"feeds": feeds, "outputs": nodes}, write_answer)


def _jacobian(asked: _Json, model: Model, form: str, limits: Limits) -> OwnRequest:
    """Ask for a block for each pair, of the shape of the output and then that of the input."""
    feeds = _feeds(asked["inputs"], model, limits)
    by, of = _chosen(asked, "jac_inputs", model.inputs), _chosen(asked, "jac_outputs", model.outputs)

    def write_answer(results: ResultArrays) -> ForeignAnswer:
        pairs = [(y, x) for y in of for x in by]
        blocks = _encode_results(
            results, [(f"{y.name} by {x.name}", results("jacobian", y.node, x.node)) for y, x in pairs], form
        )
        found: dict[str, dict[str, Any]] = {y.name: {} for y in of}
        for (y, x), block in zip(pairs, blocks, strict=True):
            found[y.name][x.name] = block
        return _written(found, form)

    return OwnRequest("jacobian", {"feeds": feeds, "outputs": _nodes(of), "wrt": _nodes(by)}, write_answer)


def _jacobian_vector_product(asked: _Json, model: Model, form: str, limits: Limits) -> OwnRequest:
    """Ask for the tangents of outputs; those of inputs that are not named are zero."""
    feeds = _feeds(asked["inputs"], model, limits)
    by, of = _chosen(asked, "jvp_inputs", model.inputs), _chosen(asked, "jvp_outputs", model.outputs)
    tangents = _vectors(asked, "tangent_vector", by, limits)

    def write_answer(results: ResultArrays) -> ForeignAnswer:
        return _written(_arrays(results, "tangents", of, form), form)

    return OwnRequest("jvp", {"feeds": feeds, "outputs": _nodes(of), "tangents": tangents}, write_answer)


def _vector_jacobian_product(asked: _Json, model: Model, form: str, limits: Limits) -> OwnRequest:
    """Ask for the gradients of inputs; cotangents of outputs that are not named are zero."""
    feeds = _feeds(asked["inputs"], model, limits)
    by, of = _chosen(asked, "vjp_inputs", model.inputs), _chosen(asked, "vjp_outputs", model.outputs)
    fields = {
        "feeds": feeds,
        "outputs": _nodes(of),
        "cotangents": _vectors(asked, "cotangent_vector", of, limits),
        "wrt": _nodes(by),
    }

    def write_answer(results: ResultArrays) -> ForeignAnswer:
        return _written(_arrays(results, "gradients", by, form), form)

    return OwnRequest("vjp", fields, write_answer)


def _abstract_eval(asked: _Json, model: Model, _: str, limits: Limits) -> OwnRequest:
    """Ask for the types of outputs, from those of inputs: a plan, nothing runs."""
    stated = asked["inputs"]
    _check_names(stated, model.inputs, "inputs")
    types = [stated_type(port, stated[port.name], ("inputs", port.name), limits) for port in model.inputs]
    bound = [{"node": one.node, "dtype": one.dtype, "shape": list(one.shape)} for one in model.bound]
    fields = {"types": [*types, *bound], "outputs": _nodes(model.outputs), "call": "forward"}

    def write_answer(results: ResultArrays) -> ForeignAnswer:
        planned = {cost["node"]: cost for cost in orjson.loads(results.body)["nodes"]}
        told = {port.name: planned[port.node] for port in model.outputs}
        shapes = {name: {"shape": cost["shape"], "dtype": cost["dtype"]} for name, cost in told.items()}
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
    """Make the feeds of a request with these inputs. Raises Refusal."""
    _check_names(inputs, model.inputs, "inputs")
    names = (port.name for port in model.inputs)
    arrays = (decode_array(port, inputs[port.name], ("inputs", port.name), limits) for port in model.inputs)
    return model.feeds(dict(zip(names, arrays, strict=True)))


def _vectors(asked: _Json, field: str, ports: Sequence[Port], limits: Limits) -> list[dict[str, Any]]:
    """Read an array for the node of each of these inputs or outputs. Raises Refusal."""
    _check_names(asked[field], ports, field)
    arrays = [decode_array(port, asked[field][port.name], (field, port.name), limits) for port in ports]
    return [{"node": port.node, "tensor": array} for port, array in zip(ports, arrays, strict=True)]


def _check_names(given: _Json, ports: Sequence[Port], field: str) -> None:
    """Raise Refusal if names are missing or unknown."""
    known = [port.name for port in ports]
    for name in given:
        if name not in known:
            got, expected = printable(name), ", ".join(known) or "no names"
            raise _wrong(f"“{got}” is none of {expected}", (field, got), expected, got)
    for name in known:
        if name not in given:
            raise _wrong(f"“{name}” is missing", (field, name), f"“{name}”", "nothing")


def _chosen(asked: _Json, field: str, ports: Sequence[Port]) -> list[Port]:
    """Return the inputs or outputs that a field lists, each once. Raises Refusal."""
    by_name = {port.name: port for port in ports}
    found: dict[str, Port] = {}
    for i, name in enumerate(asked[field]):
        port = by_name.get(name) if isinstance(name, str) else None
        if port is None or port.name in found:
            expected = f"one of {', '.join(by_name)}, each once"
            got = f"“{printable(name)}”" if isinstance(name, str) else json_kind(name)
            raise _wrong(f"{field}[{i}] must be {expected}, but is {got}", (field, i), expected, got)
        found[port.name] = port
    if not found:
        raise _wrong(f"{field} is empty", (field,), "at least one name", "none")
    return list(found.values())


def _arrays(results: ResultArrays, kind: str, ports: Sequence[Port], form: str) -> dict[str, Any]:
    """Encode results of this kind by the names of their inputs or outputs. Raises Refusal and OverBudget."""
    named = [(port.name, results(kind, port.node)) for port in ports]
    return dict(zip((name for name, _ in named), _encode_results(results, named, form), strict=True))


def _encode_results(results: ResultArrays, named: Sequence[tuple[str, HostArray]], form: str) -> list[dict[str, Any]]:
    """Encode results in this form, if all of them fit into an answer. Raises Refusal and OverBudget."""
    results.admit(FIELD_BYTES + sum(encoded_array_bytes(name, array, form) for name, array in named), form)
    return [encode_array(name, array, form) for name, array in named]


def _written(found: _Json, form: str) -> ForeignAnswer:
    return ForeignAnswer([orjson.dumps(found)], f"application/{form}")


def _wrong(detail: str, place: Location, expected: str, got: str) -> Refusal:
    return Refusal("invalid_field", detail, expected=expected, got=got, pointer=pointer(place))


#: schema of an array in the document of a model
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
    """Health of a model: whether it is there."""

    name = "tesseract.health"

    def read_request(self, body: bytes, said: str, model: Model, limits: ReadLimits) -> ForeignAnswer:
        """Answer that it is well: a model that does not exist never gets here."""
        return ForeignAnswer([b'{"status":"ok"}'])


class Document(ForeignCall):
    """OpenAPI as clients of Tesseract read it: which calls there are, and which arrays are differentiable."""

    name = "tesseract.document"

    def read_request(self, body: bytes, said: str, model: Model, limits: ReadLimits) -> ForeignAnswer:
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
        told: dict[str, Any] = {
            "openapi": "3.1.0",
            "info": {"title": model.name, "version": model.graph_id, "description": model.description},
            "paths": {f"/{path}": {} for path in (*(call.path for call in TESSERACT_CALLS), "health")},
            "components": {"schemas": schemas},
            "x-supported-output-formats": [JSON_FORM, BASE64_FORM],
            "x-supported-gpu-transports": ["none"],
            "x-supported-compressions": ["none"],
        }
        return ForeignAnswer([orjson.dumps(told)])


def _schema(ports: Sequence[Port]) -> dict[str, Any]:
    """Write the schema of inputs or outputs. A free extent is None, as the runtime of Tesseract has it."""
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
