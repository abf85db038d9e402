"""Calls of Open Inference: inference, and metadata of models.

An inference request has named inputs, as JSON or as bytes after the JSON. It asks for named outputs, and for gradients
with respect to the inputs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NotRequired

import numpy as np
import orjson
from pydantic import with_config
from typing_extensions import TypedDict

from engine import EngineError, HostArray, Limits, TensorType, printable
from engine.ir.tensor_type import ELEMENT_TYPES
from schemas import Tensor
from schemas.graph import CLOSED
from service.api.answers import FIELD_BYTES
from service.api.binary import array_bytes
from service.api.graphs import read_array, with_location
from service.api.json_codec import json_kind, parse_json
from service.api.media import JSON, OCTETS
from service.api.tensors import NodePlace, encoded_bytes, type_of, validate
from service.core.errors import Refusal
from service.facades.elements import base64_tensor, flat_or_nested, require_finite, shown_shape, text_bytes
from service.facades.foreign_call import ForeignCall, OwnRequest, ReadLimits, ResultArrays
from service.facades.model import Model, Port
from service.facades.protocols import LENGTH_HEADER, ForeignAnswer
from service.store.tables import FREE

#: Open Inference datatype of each of our dtypes; complex dtypes have none. BYTES, BF16 and 16-bit integers are missing
DATATYPES: Final[Mapping[str, str]] = {
    element.name: f"FP{8 * element.width}" if element.kind == "floating" else element.name.upper()
    for element in ELEMENT_TYPES
    if element.kind != "complex"
}
_DTYPES: Final = {datatype: dtype for dtype, datatype in DATATYPES.items()}


#: name prefix of an output that is the gradient with respect to an input
_GRADIENT: Final = "gradient."


@with_config(CLOSED)
class _Input(TypedDict):
    """Input tensor; its elements are `data`, or bytes after the JSON."""

    name: str
    shape: list[int]
    datatype: str
    parameters: NotRequired[dict[str, Any]]
    data: NotRequired[Any]


@with_config(CLOSED)
class _Output(TypedDict):
    """Requested output."""

    name: str
    parameters: NotRequired[dict[str, Any]]


@with_config(CLOSED)
class _Inference(TypedDict):
    """JSON part of a request."""

    inputs: list[_Input]
    outputs: NotRequired[list[_Output]]
    parameters: NotRequired[dict[str, Any]]
    id: NotRequired[str]
    model_name: NotRequired[str]  # repeats the path; some clients send it
    model_version: NotRequired[str]


@dataclass(frozen=True, slots=True)
class _RequestedOutput:
    """Requested output: kind and node of the result, and whether it is sent as bytes or as JSON."""

    name: str
    kind: str
    node: int
    is_binary: bool


class Infer(ForeignCall):
    """Inference: values of outputs, and gradients as outputs named `gradient.` plus an input's name.

    `parameters.gradient_of` names the output to differentiate if the model has several.
    """

    name = "openinference.infer"

    def read_request(self, body: bytes, head: str, model: Model, limits: ReadLimits) -> OwnRequest:
        """Read an inference request; `head` is the length of the JSON if bytes follow it."""
        text, rest = _split_body(body, head, limits.json_bytes)
        request: Mapping[str, Any] = validate(_Inference, parse_json(text, limits.json_depth))
        _require_names(request, model)
        parameters = request.get("parameters", {})
        for name in ("sequence_id", "sequence_start", "sequence_end"):
            if parameters.get(name):
                detail = (
                    f"parameters.{name} is set, but gradserve does not support sequences: each request is independent"
                )
                raise Refusal("invalid_field", detail, expected="no sequence", got=name)
        feeds, tensors = _values(request["inputs"], rest, model, limits.tensors)
        requested = _requested_outputs(request, model)
        call, fields = _call(request, requested, model)

        def write_answer(results: ResultArrays) -> ForeignAnswer:
            return _to_response(model, request.get("id"), requested, results)

        return OwnRequest(call, {"feeds": feeds, **fields}, write_answer, tensors)


def _split_body(body: bytes, stated_length: str, max_bytes: int) -> tuple[bytes, memoryview]:
    """Split a body into its JSON, of at most `most` bytes, and the bytes after it. Raises Refusal."""
    if stated_length and (
        not (stated_length.isascii() and stated_length.isdecimal())
        or len(stated_length) > 15
        or int(stated_length) > len(body)
    ):
        expected, got = f"a number of bytes up to {len(body)}", printable(stated_length)
        detail = f"{LENGTH_HEADER} must be {expected}, the length of the body, but is {got}"
        raise Refusal("invalid_field", detail, expected=expected, got=got)
    length = int(stated_length) if stated_length else len(body)
    if length > max_bytes:
        expected, got = f"at most {max_bytes} bytes", f"{length} bytes"
        detail = f"the JSON of the body may have {expected}, but has {got}"
        raise Refusal("body_too_large", detail, expected=expected, got=got)
    return body[:length], memoryview(body)[length:]


def _require_names(request: Mapping[str, Any], model: Model) -> None:
    """Raise Refusal if the body names another model or version than the path."""
    for field, expected in (("model_name", model.name), ("model_version", model.graph_id)):
        if request.get(field, expected) != expected:
            got = f"“{printable(request[field])}”"
            detail = f"{field} is {got}, but the path says “{expected}”"
            raise Refusal("invalid_field", detail, expected=f"“{expected}”", got=got, pointer=f"/{field}")


def _values(
    inputs: Sequence[_Input], rest: memoryview, model: Model, limits: Limits
) -> tuple[list[dict[str, Any]], dict[tuple[str, NodePlace], HostArray]]:
    """Read the inputs: return the feeds, and the binary tensors beside them. Raises Refusal."""
    ports = {port.name: port for port in model.inputs}
    tensors: dict[tuple[str, NodePlace], HostArray] = {}
    json_tensors: dict[str, Mapping[str, Any]] = {}
    names_read = set[str]()
    for i, tensor_input in enumerate(inputs):
        where, port = f"inputs[{i}]", _port(tensor_input, i, ports, names_read)
        type = _checked_type(port, tensor_input["shape"], i, limits)
        size = tensor_input.get("parameters", {}).get("binary_data_size")
        if size is None:
            data = flat_or_nested(tensor_input.get("data"), type.shape, f"{where}.data", ("inputs", i, "data"))
            tensor = Tensor(dtype=port.dtype, shape=tensor_input["shape"], data=data)
            json_tensors[port.name] = base64_tensor(read_array(tensor, limits, ("inputs", i), None), port.dtype)
        else:
            array, rest = _split_tensor(rest, size, type, where)
            tensors["feeds", NodePlace(port.node)] = array
    if rest.nbytes:
        raise _bad(f"the body has {rest.nbytes} bytes after the inputs", "no more bytes", f"{rest.nbytes} bytes")
    missing = [name for name in ports if name not in names_read]
    if missing:
        detail = f"the input “{missing[0]}” is missing; the model “{model.name}” takes {', '.join(ports)}"
        raise Refusal("missing_feed", detail, expected=f"the input “{missing[0]}”", got="nothing")
    return model.feeds(json_tensors), tensors


def _port(tensor_input: _Input, i: int, ports: Mapping[str, Port], names_read: set[str]) -> Port:
    """Return the input that a tensor is for, after a check of its type. Raises Refusal."""
    name, where = tensor_input["name"], f"inputs[{i}]"
    port = ports.get(name)
    if port is None or name in names_read:
        got, expected = f"“{printable(name)}”", ", ".join(ports) or "no inputs"
        detail = (
            f"{where} is named {got}, like an earlier input"
            if port
            else f"there is no input {got}; the model has {expected}"
        )
        raise Refusal("unexpected_feed", detail, expected=expected, got=got)
    names_read.add(name)
    datatype = tensor_input["datatype"]
    if datatype not in _DTYPES:
        expected, got = "one of " + ", ".join(_DTYPES), f"“{printable(datatype)}”"
        raise _bad(f"{where}.datatype must be {expected}, but is {got}", expected, got)
    if _DTYPES[datatype] != port.dtype:
        detail = f"the input “{name}” is {DATATYPES[port.dtype]}, but {where} is {datatype}"
        raise Refusal("dtype_mismatch", detail, expected=DATATYPES[port.dtype], got=datatype)
    shape = tensor_input["shape"]
    matches = len(shape) == len(port.shape) and all(w in (FREE, n) for n, w in zip(shape, port.shape, strict=True))
    if not matches or min(shape, default=0) < 0:
        got = shown_shape(shape)
        detail = f"the input “{name}” has shape {list(port.shape)}, but {where} has {got}"
        raise Refusal("shape_mismatch", detail, expected=str(list(port.shape)), got=got)
    return port


def _checked_type(port: Port, shape: list[int], i: int, limits: Limits) -> TensorType:
    """Return the type of an input if it is within the limits of one tensor. Raises Refusal."""
    try:
        return type_of(Tensor(dtype=port.dtype, shape=shape), limits)
    except (EngineError, Refusal) as error:
        raise with_location(error, ("inputs", i, "shape"), None) from None


def _split_tensor(rest: memoryview, size: object, type: TensorType, where: str) -> tuple[HostArray, memoryview]:
    """Split the next tensor off the bytes; return it and the rest. Raises Refusal."""
    dtype, nbytes = type.dtype, type.nbytes
    if isinstance(size, bool) or not isinstance(size, int) or size != nbytes:
        got = printable(str(size)) if isinstance(size, int) else json_kind(size)
        detail = f"{where}.parameters.binary_data_size must be {nbytes}, for {type}, but is {got}"
        raise _bad(detail, str(nbytes), got)
    if rest.nbytes < nbytes:
        raise _bad(
            f"{where} has {rest.nbytes} bytes, but binary_data_size is {nbytes}", f"{nbytes} bytes", str(rest.nbytes)
        )
    if dtype == np.bool_ and bytes(rest[:nbytes]).strip(b"\0\1"):
        raise _bad(f"{where} has a byte that is neither 0 nor 1", "bytes 0 and 1", "another byte")
    little = np.frombuffer(rest[:nbytes], dtype.newbyteorder("<"))
    return little.astype(dtype, copy=False).reshape(type.shape), rest[nbytes:]


def _requested_outputs(request: Mapping[str, Any], model: Model) -> list[_RequestedOutput]:
    """Return the requested outputs, by default all of them. Raises Refusal."""
    parameters = request.get("parameters", {})
    default_binary = bool(parameters.get("binary_data_output", False))
    named: Sequence[_Output] = request.get("outputs") or [_Output(name=port.name) for port in model.outputs]
    outputs, inputs = ({port.name: port for port in ports} for ports in (model.outputs, model.inputs))
    requested = []
    for output in named:
        name = output["name"]
        is_binary = bool(output.get("parameters", {}).get("binary_data", default_binary))
        port = inputs.get(name.removeprefix(_GRADIENT)) if name.startswith(_GRADIENT) else None
        if name in outputs:
            requested.append(_RequestedOutput(name, "values", outputs[name].node, is_binary))
        elif port is not None:
            requested.append(_RequestedOutput(name, "gradients", port.node, is_binary))
        else:
            available = ", ".join((*outputs, *(f"{_GRADIENT}{each}" for each in inputs)))
            detail = f"there is no output “{printable(name)}”; the model has {available}"
            raise Refusal("invalid_field", detail, expected=f"one of {available}", got=printable(name))
    return requested


def _call(
    request: Mapping[str, Any], requested: Sequence[_RequestedOutput], model: Model
) -> tuple[str, dict[str, Any]]:
    """Choose the call, and return it with its fields other than the feeds. Raises Refusal."""
    nodes = list(dict.fromkeys(output_item.node for output_item in requested if output_item.kind == "values"))
    inputs = list(dict.fromkeys(output_item.node for output_item in requested if output_item.kind == "gradients"))
    if not inputs:
        return "forward", {"outputs": nodes}
    outputs, named = {port.name: port.node for port in model.outputs}, request.get("parameters", {}).get("gradient_of")
    if named is None and len(outputs) > 1:
        expected = f"one of {', '.join(outputs)}"
        detail = f"parameters.gradient_of must name the output to differentiate: {expected}"
        raise Refusal("invalid_field", detail, expected=expected, got="nothing")
    output = (
        outputs.get(named) if isinstance(named, str) else None if named is not None else next(iter(outputs.values()))
    )
    if output is None:
        got = f"“{printable(named)}”" if isinstance(named, str) else json_kind(named)
        expected = f"one of {', '.join(outputs)}"
        detail = f"parameters.gradient_of must be {expected}, but is {got}"
        raise Refusal("invalid_field", detail, expected=expected, got=got)
    return "gradients", {"of": output, "wrt": inputs, "outputs": nodes or [output]}


def _to_response(
    model: Model, request_id: str | None, requested: Sequence[_RequestedOutput], results: ResultArrays
) -> ForeignAnswer:
    """Build the response: JSON, followed by the binary outputs. Raises Refusal and OverBudget."""
    arrays = [results(item.kind, item.node) for item in requested]
    nbytes = FIELD_BYTES + len(orjson.dumps(request_id))
    for item, array in zip(requested, arrays, strict=True):
        if item.is_binary:
            nbytes += len(orjson.dumps(item.name)) + encoded_bytes([TensorType.of(array)], "binary")
        else:
            nbytes += text_bytes(array, item.name)
    results.admit(nbytes)
    outputs, blobs = [], []
    for item, array in zip(requested, arrays, strict=True):
        fields: dict[str, Any] = {
            "name": item.name,
            "datatype": DATATYPES[array.dtype.name],
            "shape": list(array.shape),
        }
        if item.is_binary:
            fields["parameters"] = {"binary_data_size": array.nbytes}
            blobs.append(array_bytes(array))
        else:
            require_finite(array, item.name)
            fields["data"] = array.reshape(-1).tolist()
        outputs.append(fields)
    named = {"model_name": model.name, "model_version": model.graph_id}
    text = orjson.dumps({**named, **({} if request_id is None else {"id": request_id}), "outputs": outputs})
    if not any(item.is_binary for item in requested):
        return ForeignAnswer([text], JSON)
    return ForeignAnswer([text, *blobs], OCTETS, ((LENGTH_HEADER, str(len(text))),))


def _bad(detail: str, expected: str, got: str) -> Refusal:
    return Refusal("bad_tensor", detail, expected=expected, got=got)


class Metadata(ForeignCall):
    """Metadata of a model: names, datatypes and shapes of its inputs and outputs."""

    name = "openinference.metadata"

    def read_request(self, body: bytes, head: str, model: Model, limits: ReadLimits) -> ForeignAnswer:
        """Answer with the model's metadata; the protocol also uses -1 for a free extent."""
        metadata = {
            "name": model.name,
            "versions": [model.graph_id],
            "platform": "gradserve_graph",
            "inputs": _tensors(model.inputs),
            "outputs": _tensors(model.outputs),
        }
        return ForeignAnswer([orjson.dumps(metadata)])


class ModelReady(ForeignCall):
    """Readiness of a model: an existing model is ready."""

    name = "openinference.ready"

    def read_request(self, body: bytes, head: str, model: Model, limits: ReadLimits) -> ForeignAnswer:
        """Answer that the model is ready; a request to a missing model never gets here."""
        return ForeignAnswer([orjson.dumps({"name": model.name, "ready": True})])


def _tensors(ports: Sequence[Port]) -> list[dict[str, Any]]:
    return [{"name": port.name, "datatype": DATATYPES[port.dtype], "shape": list(port.shape)} for port in ports]
