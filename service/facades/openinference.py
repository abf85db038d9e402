"""Calls of Open Inference: inferences, and metadata of models.

An inference has inputs by name, as JSON or as bytes behind it; outputs, and gradients by the inputs, by name.
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
from service.api.binary import own_bytes
from service.api.graphs import located, read_array
from service.api.json_codec import json_kind, parse_json
from service.api.media import JSON, OCTETS
from service.api.tensors import NodePlace, encoded_bytes, type_of, validate
from service.core.errors import Refusal
from service.facades.elements import base64_tensor, flat_or_nested, require_finite, shown_shape, text_bytes
from service.facades.foreign_call import ForeignCall, OwnRequest, ReadLimits, ResultArrays
from service.facades.model import Model, Port
from service.facades.protocols import LENGTH_HEADER, ForeignAnswer
from service.store.tables import FREE

#: Open Inference's datatypes by our dtypes: complex ones have none; BYTES, BF16 and integers of 16 bits are no dtypes
DATATYPES: Final[Mapping[str, str]] = {
    element.name: f"FP{8 * element.width}" if element.kind == "floating" else element.name.upper()
    for element in ELEMENT_TYPES
    if element.kind != "complex"
}
_DTYPES: Final = {datatype: dtype for dtype, datatype in DATATYPES.items()}


#: prefix of the name of an output that is the gradient with respect to an input
_GRADIENT: Final = "gradient."


@with_config(CLOSED)
class _Input(TypedDict):
    """A tensor that goes in; its elements are `data`, or bytes behind the JSON."""

    name: str
    shape: list[int]
    datatype: str
    parameters: NotRequired[dict[str, Any]]
    data: NotRequired[Any]


@with_config(CLOSED)
class _Output(TypedDict):
    """A requested output."""

    name: str
    parameters: NotRequired[dict[str, Any]]


@with_config(CLOSED)
class _Inference(TypedDict):
    """The JSON of a request."""

    inputs: list[_Input]
    outputs: NotRequired[list[_Output]]
    parameters: NotRequired[dict[str, Any]]
    id: NotRequired[str]
    model_name: NotRequired[str]  # as in the path, which some clients say twice
    model_version: NotRequired[str]


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A requested output as a result of ours, of this kind and node; answered as bytes, or as JSON."""

    name: str
    kind: str
    node: int
    is_binary: bool


class Infer(ForeignCall):
    """Values of outputs, and gradients: outputs that are called `gradient.` and an input.

    `parameters.gradient_of` names the output that is differentiated, where the model has several.
    """

    name = "openinference.infer"

    def read_request(self, body: bytes, said: str, model: Model, limits: ReadLimits) -> OwnRequest:
        """Read an inference; `said` is the length of the JSON if bytes follow it."""
        text, rest = _parts(body, said, limits.json_bytes)
        asked: Mapping[str, Any] = validate(_Inference, _without_nulls(parse_json(text, limits.json_depth)))
        _require_names(asked, model)
        parameters = asked.get("parameters", {})
        for name in ("sequence_id", "sequence_start", "sequence_end"):
            if parameters.get(name):
                detail = f"parameters.{name} is stated, and gradserve has no sequences: each request stands by itself"
                raise Refusal("invalid_field", detail, expected="no sequence", got=name)
        feeds, tensors = _values(asked["inputs"], rest, model, limits.tensors)
        wanted = _wanted(asked, model)
        call, fields = _call(asked, wanted, model)

        def write_answer(results: ResultArrays) -> ForeignAnswer:
            return _written(model, asked.get("id"), wanted, results)

        return OwnRequest(call, {"feeds": feeds, **fields}, write_answer, tensors)


def _parts(body: bytes, said: str, most: int) -> tuple[bytes, memoryview]:
    """Split a body into its JSON, of at most so many bytes, and the bytes behind it. Raises Refusal."""
    if said and (not (said.isascii() and said.isdecimal()) or len(said) > 15 or int(said) > len(body)):
        expected, got = f"a number of bytes up to {len(body)}", printable(said)
        detail = f"{LENGTH_HEADER} must be {expected}, which the body has, but is {got}"
        raise Refusal("invalid_field", detail, expected=expected, got=got)
    length = int(said) if said else len(body)
    if length > most:
        expected, got = f"at most {most} bytes", f"{length} bytes"
        detail = f"the JSON of the body may have {expected}, but has {got}"
        raise Refusal("body_too_large", detail, expected=expected, got=got)
    return body[:length], memoryview(body)[length:]


def _without_nulls(asked: dict[str, Any]) -> dict[str, Any]:
    """Drop fields that are null: clients of the protocol write unset fields so."""
    return {
        key: [{k: v for k, v in one.items() if v is not None} if isinstance(one, dict) else one for one in value]
        if isinstance(value, list)
        else value
        for key, value in asked.items()
        if value is not None
    }


def _require_names(asked: Mapping[str, Any], model: Model) -> None:
    """Raise Refusal if a body names another model, or another version, than its path."""
    for field, wanted in (("model_name", model.name), ("model_version", model.graph_id)):
        if asked.get(field, wanted) != wanted:
            got = f"“{printable(asked[field])}”"
            detail = f"{field} is {got}, and the path says “{wanted}”"
            raise Refusal("invalid_field", detail, expected=f"“{wanted}”", got=got, pointer=f"/{field}")


def _values(
    inputs: Sequence[_Input], rest: memoryview, model: Model, limits: Limits
) -> tuple[list[dict[str, Any]], dict[tuple[str, NodePlace], HostArray]]:
    """Read the inputs: return feeds, and the tensors beside them. Raises Refusal."""
    ports = {port.name: port for port in model.inputs}
    tensors: dict[tuple[str, NodePlace], HostArray] = {}
    given: dict[str, Mapping[str, Any]] = {}
    seen = set[str]()
    for i, one in enumerate(inputs):
        where, port = f"inputs[{i}]", _port(one, i, ports, seen)
        type = _admitted(port, one["shape"], i, limits)
        size = one.get("parameters", {}).get("binary_data_size")
        if size is None:
            data = flat_or_nested(one.get("data"), type.shape, f"{where}.data", ("inputs", i, "data"))
            tensor = Tensor(dtype=port.dtype, shape=one["shape"], data=data)
            given[port.name] = base64_tensor(read_array(tensor, limits, ("inputs", i), None), port.dtype)
        else:
            array, rest = _taken(rest, size, type, where)
            tensors["feeds", NodePlace(port.node)] = array
    if rest.nbytes:
        raise _bad(f"the body has {rest.nbytes} bytes behind the inputs", "no bytes more", f"{rest.nbytes} bytes")
    missing = [name for name in ports if name not in seen]
    if missing:
        detail = f"the input “{missing[0]}” is missing; the model “{model.name}” takes {', '.join(ports)}"
        raise Refusal("missing_feed", detail, expected=f"the input “{missing[0]}”", got="nothing")
    return model.feeds(given), tensors


def _port(one: _Input, i: int, ports: Mapping[str, Port], seen: set[str]) -> Port:
    """Return the input that a tensor is for, if its type is the model's. Raises Refusal."""
    name, where = one["name"], f"inputs[{i}]"
    port = ports.get(name)
    if port is None or name in seen:
        got, expected = f"“{printable(name)}”", ", ".join(ports) or "no inputs"
        detail = f"{where} is called {got}, as another is" if port else f"there is no input {got}; there are {expected}"
        raise Refusal("unexpected_feed", detail, expected=expected, got=got)
    seen.add(name)
    datatype = one["datatype"]
    if datatype not in _DTYPES:
        expected, got = "one of " + ", ".join(_DTYPES), f"“{printable(datatype)}”"
        raise _bad(f"{where}.datatype must be {expected}, but is {got}", expected, got)
    if _DTYPES[datatype] != port.dtype:
        detail = f"the input “{name}” is {DATATYPES[port.dtype]}, but {where} is {datatype}"
        raise Refusal("dtype_mismatch", detail, expected=DATATYPES[port.dtype], got=datatype)
    shape = one["shape"]
    fits = len(shape) == len(port.shape) and all(w in (FREE, n) for n, w in zip(shape, port.shape, strict=True))
    if not fits or min(shape, default=0) < 0:
        got = shown_shape(shape)
        detail = f"the input “{name}” is of the shape {list(port.shape)}, but {where} is of {got}"
        raise Refusal("shape_mismatch", detail, expected=str(list(port.shape)), got=got)
    return port


def _admitted(port: Port, shape: list[int], i: int, limits: Limits) -> TensorType:
    """Return the type of an input if it is within the limits of one tensor. Raises Refusal."""
    try:
        return type_of(Tensor(dtype=port.dtype, shape=shape), limits)
    except (EngineError, Refusal) as error:
        raise located(error, ("inputs", i, "shape"), None) from None


def _taken(rest: memoryview, size: object, type: TensorType, where: str) -> tuple[HostArray, memoryview]:
    """Take the next tensor from the bytes; return it, and the rest. Raises Refusal."""
    dtype, wanted = type.dtype, type.nbytes
    if isinstance(size, bool) or not isinstance(size, int) or size != wanted:
        got = printable(str(size)) if isinstance(size, int) else json_kind(size)
        detail = f"{where}.parameters.binary_data_size must be {wanted}, for {type}, but is {got}"
        raise _bad(detail, str(wanted), got)
    if rest.nbytes < wanted:
        raise _bad(f"{where} has {rest.nbytes} bytes, where {wanted} are stated", f"{wanted} bytes", str(rest.nbytes))
    if dtype == np.bool_ and bytes(rest[:wanted]).strip(b"\0\1"):
        raise _bad(f"{where} has a byte that is neither 0 nor 1", "bytes 0 and 1", "another byte")
    little = np.frombuffer(rest[:wanted], dtype.newbyteorder("<"))
    return little.astype(dtype, copy=False).reshape(type.shape), rest[wanted:]


def _wanted(asked: Mapping[str, Any], model: Model) -> list[_Wanted]:
    """List the outputs to answer: all of them, unless some are named. Raises Refusal."""
    parameters = asked.get("parameters", {})
    usual = bool(parameters.get("binary_data_output", False))
    named: Sequence[_Output] = asked.get("outputs") or [_Output(name=port.name) for port in model.outputs]
    outputs, inputs = ({port.name: port for port in ports} for ports in (model.outputs, model.inputs))
    found = []
    for one in named:
        name = one["name"]
        is_binary = bool(one.get("parameters", {}).get("binary_data", usual))
        of = inputs.get(name.removeprefix(_GRADIENT)) if name.startswith(_GRADIENT) else None
        if name in outputs:
            found.append(_Wanted(name, "values", outputs[name].node, is_binary))
        elif of is not None:
            found.append(_Wanted(name, "gradients", of.node, is_binary))
        else:
            known = ", ".join((*outputs, *(f"{_GRADIENT}{each}" for each in inputs)))
            detail = f"there is no output “{printable(name)}”; there are {known}"
            raise Refusal("invalid_field", detail, expected=f"one of {known}", got=printable(name))
    return found


def _call(asked: Mapping[str, Any], wanted: Sequence[_Wanted], model: Model) -> tuple[str, dict[str, Any]]:
    """Choose the call of ours, and return it with its fields but the feeds. Raises Refusal."""
    nodes = list(dict.fromkeys(one.node for one in wanted if one.kind == "values"))
    by = list(dict.fromkeys(one.node for one in wanted if one.kind == "gradients"))
    if not by:
        return "forward", {"outputs": nodes}
    outputs, named = {port.name: port.node for port in model.outputs}, asked.get("parameters", {}).get("gradient_of")
    if named is None and len(outputs) > 1:
        expected = f"one of {', '.join(outputs)}"
        detail = f"parameters.gradient_of must name the output that gradients are of: {expected}"
        raise Refusal("invalid_field", detail, expected=expected, got="nothing")
    of = outputs.get(named) if isinstance(named, str) else None if named is not None else next(iter(outputs.values()))
    if of is None:
        got = f"“{printable(named)}”" if isinstance(named, str) else json_kind(named)
        expected = f"one of {', '.join(outputs)}"
        detail = f"parameters.gradient_of must be {expected}, but is {got}"
        raise Refusal("invalid_field", detail, expected=expected, got=got)
    return "gradients", {"of": of, "wrt": by, "outputs": nodes or [of]}


def _written(model: Model, stated_id: str | None, wanted: Sequence[_Wanted], results: ResultArrays) -> ForeignAnswer:
    """Write the answer: JSON, and behind it the outputs that are binary. Raises Refusal and OverBudget."""
    arrays = [results(one.kind, one.node) for one in wanted]
    nbytes = FIELD_BYTES + len(orjson.dumps(stated_id))
    for one, array in zip(wanted, arrays, strict=True):
        if one.is_binary:
            nbytes += len(orjson.dumps(one.name)) + encoded_bytes([TensorType.of(array)], "binary")
        else:
            nbytes += text_bytes(array, one.name)
    results.admit(nbytes)
    outputs, behind = [], []
    for one, array in zip(wanted, arrays, strict=True):
        told: dict[str, Any] = {"name": one.name, "datatype": DATATYPES[array.dtype.name], "shape": list(array.shape)}
        if one.is_binary:
            told["parameters"] = {"binary_data_size": array.nbytes}
            behind.append(own_bytes(array))
        else:
            require_finite(array, one.name)
            told["data"] = array.reshape(-1).tolist()
        outputs.append(told)
    named = {"model_name": model.name, "model_version": model.graph_id}
    text = orjson.dumps({**named, **({} if stated_id is None else {"id": stated_id}), "outputs": outputs})
    if not any(one.is_binary for one in wanted):
        return ForeignAnswer([text], JSON)
    return ForeignAnswer([text, *behind], OCTETS, ((LENGTH_HEADER, str(len(text))),))


def _bad(detail: str, expected: str, got: str) -> Refusal:
    return Refusal("bad_tensor", detail, expected=expected, got=got)


class Metadata(ForeignCall):
    """Names, datatypes and shapes of what goes in and comes out."""

    name = "openinference.metadata"

    def read_request(self, body: bytes, said: str, model: Model, limits: ReadLimits) -> ForeignAnswer:
        """Answer with the model's metadata; -1 stands for a free extent in this protocol, too."""
        told = {
            "name": model.name,
            "versions": [model.graph_id],
            "platform": "gradserve_graph",
            "inputs": _tensors(model.inputs),
            "outputs": _tensors(model.outputs),
        }
        return ForeignAnswer([orjson.dumps(told)])


class ModelReady(ForeignCall):
    """Readiness of a model: it may be asked, where it is there."""

    name = "openinference.ready"

    def read_request(self, body: bytes, said: str, model: Model, limits: ReadLimits) -> ForeignAnswer:
        """Answer that the model is ready: one that does not exist never gets here."""
        return ForeignAnswer([orjson.dumps({"name": model.name, "ready": True})])


def _tensors(ports: Sequence[Port]) -> list[dict[str, Any]]:
    return [{"name": port.name, "datatype": DATATYPES[port.dtype], "shape": list(port.shape)} for port in ports]
