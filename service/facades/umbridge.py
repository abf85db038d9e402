"""Calls of UM-Bridge, read and answered: float64 vectors, in the order of a model's inputs and outputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NotRequired

import numpy as np
import orjson
from pydantic import with_config
from typing_extensions import TypedDict

from engine import HostArray, TensorType
from engine.ir.tensor_type import FLOAT64
from schemas.graph import CLOSED
from service.api.answers import FIELD_BYTES
from service.api.json_codec import json_kind, parse_json
from service.api.tensors import encoded_bytes, validate
from service.core.errors import Refusal
from service.facades.foreign_call import ForeignCall, OwnRequest, ReadLimits, ResultArrays, WeightedSum
from service.facades.model import Model, Port
from service.facades.protocols import SUPPORTED, ForeignAnswer

_Tensor = Mapping[str, Any]


@with_config(CLOSED)
class _Named(TypedDict):
    """Fields that every request has."""

    name: str
    config: NotRequired[dict[str, Any] | None]


class _Point(_Named):
    """Request with the vectors at which a model is evaluated."""

    input: list[Any]


class _GradientRequest(_Point):
    outWrt: int
    inWrt: int
    sens: list[Any]


class _JacobianRequest(_Point):
    outWrt: int
    inWrt: int
    vec: list[Any]


class _HessianRequest(_Point):
    outWrt: int
    inWrt1: int
    inWrt2: int
    sens: list[Any]
    vec: list[Any]


class _Call(ForeignCall):
    """Call at `/PATH`, with requests of the type `message`."""

    def __init__(
        self, path: str, message: type, translate: Callable[[Mapping[str, Any], Model], OwnRequest | ForeignAnswer]
    ) -> None:
        """`translate` turns a valid request into a /v1 request, or into a response. It raises Refusal."""
        self.name = f"umbridge.{path}"
        self.path = path
        self.message = message
        self._translate = translate

    def model_name(self, body: bytes, limits: ReadLimits) -> str:
        """Return the field `name`. Raises Refusal."""
        name = parse_json(body, limits.json_depth).get("name")
        if not isinstance(name, str):
            got = "nothing" if name is None else json_kind(name)
            raise Refusal("invalid_field", f"name must be a string, but is {got}", expected="a string", got=got)
        return name

    def read_request(self, body: bytes, head: str, model: Model, limits: ReadLimits) -> OwnRequest | ForeignAnswer:
        """Validate and translate a request."""
        fields: Mapping[str, Any] = validate(self.message, parse_json(body, limits.json_depth))
        if fields.get("config"):
            raise _unsupported("config must be absent or {}: gradserve models have no configuration", "config")
        return self._translate(fields, model)


def _model_info(_: Mapping[str, Any], model: Model) -> ForeignAnswer:
    """Answer whether the model has derivatives, that is, whether it has a differentiable input and output."""
    differentiable = all(any(port.is_differentiable for port in ports) for ports in (model.inputs, model.outputs))
    derivatives = dict.fromkeys(("Gradient", "ApplyJacobian", "ApplyHessian"), differentiable)
    return _to_response({"support": {"Evaluate": True, **derivatives}})


def _input_sizes(_: Mapping[str, Any], model: Model) -> ForeignAnswer:
    """Answer with the size of each input."""
    return _to_response({"inputSizes": _sizes(model, model.inputs)})


def _output_sizes(_: Mapping[str, Any], model: Model) -> ForeignAnswer:
    """Answer with the size of each output."""
    return _to_response({"outputSizes": _sizes(model, model.outputs)})


def _evaluate(request: Mapping[str, Any], model: Model) -> OwnRequest:
    """Request the values of all outputs, once per node even if several outputs name it."""
    nodes = list(dict.fromkeys(port.node for port in model.outputs))

    def write_answer(results: ResultArrays) -> ForeignAnswer:
        named = [(port.name, results("values", port.node)) for port in model.outputs]
        return _to_response({"output": _vectors(results, named)})

    return OwnRequest("forward", {"feeds": _feeds(model, request["input"]), "outputs": nodes}, write_answer)


def _gradient(request: Mapping[str, Any], model: Model) -> OwnRequest:
    """Request a vector-Jacobian product: `sens` at an output, pulled back to an input."""
    feeds = _feeds(model, request["input"])
    output, input = _select_port(request, "outWrt", model.outputs), _select_port(request, "inWrt", model.inputs)
    cotangents = [{"node": output.node, "tensor": _tensor(output, request["sens"], "sens")}]
    fields = {"feeds": feeds, "outputs": [output.node], "cotangents": cotangents, "wrt": [input.node]}

    def write_answer(results: ResultArrays) -> ForeignAnswer:
        return _to_response({"output": _vectors(results, [(input.name, results("gradients", input.node))])[0]})

    return OwnRequest("vjp", fields, write_answer)


def _apply_jacobian(request: Mapping[str, Any], model: Model) -> OwnRequest:
    """Request a Jacobian-vector product: `vec` at an input, pushed forward to an output."""
    feeds = _feeds(model, request["input"])
    output, input = _select_port(request, "outWrt", model.outputs), _select_port(request, "inWrt", model.inputs)
    tangents = [{"node": input.node, "tensor": _tensor(input, request["vec"], "vec")}]

    def write_answer(results: ResultArrays) -> ForeignAnswer:
        return _to_response({"output": _vectors(results, [(output.name, results("tangents", output.node))])[0]})

    return OwnRequest("jvp", {"feeds": feeds, "outputs": [output.node], "tangents": tangents}, write_answer)


def _apply_hessian(request: Mapping[str, Any], model: Model) -> OwnRequest:
    """Request the Hessian-vector product of an output's sum weighted by `sens`, along `vec` at `inWrt2`.

    The result is read at `inWrt1`, where the vector is zero if it is another input.
    """
    feeds = _feeds(model, request["input"])
    output = _select_port(request, "outWrt", model.outputs)
    first, second = (_select_port(request, name, model.inputs) for name in ("inWrt1", "inWrt2"))
    zeros = {"dtype": first.dtype, "shape": list(first.shape), "data": [0.0] * first.size}
    vectors: dict[int, _Tensor] = {first.node: zeros, second.node: _tensor(second, request["vec"], "vec")}
    fields = {
        "feeds": feeds,
        "wrt": list(vectors),
        "vectors": [{"node": node, "tensor": tensor} for node, tensor in vectors.items()],
    }

    def write_answer(results: ResultArrays) -> ForeignAnswer:
        return _to_response({"output": _vectors(results, [(first.name, results("hvp", first.node))])[0]})

    weighted = WeightedSum(output.node, output.dtype, _tensor(output, request["sens"], "sens"))
    return OwnRequest("hvp", fields, write_answer, weighted=weighted)


UMBRIDGE_CALLS: Final[Sequence[_Call]] = (
    _Call("ModelInfo", _Named, _model_info),
    _Call("InputSizes", _Named, _input_sizes),
    _Call("OutputSizes", _Named, _output_sizes),
    _Call("Evaluate", _Point, _evaluate),
    _Call("Gradient", _GradientRequest, _gradient),
    _Call("ApplyJacobian", _JacobianRequest, _apply_jacobian),
    _Call("ApplyHessian", _HessianRequest, _apply_hessian),
)


def _unsupported(detail: str, field: str | None = None) -> Refusal:
    pointer = None if field is None else f"/{field}"
    return Refusal("invalid_field", detail, expected=SUPPORTED, pointer=pointer)


def _sizes(model: Model, ports: Sequence[Port]) -> list[int]:
    """Return the sizes of inputs or outputs. Raises Refusal for a model with free extents."""
    if model.is_free:
        free = next(port for port in (*model.inputs, *model.outputs) if port.is_free)
        raise _unsupported(
            f"the model “{model.name}” has free extents, such as in “{free.name}” of shape {list(free.shape)}, but "
            "UM-Bridge needs vectors of fixed lengths; store a model of the same graph with fixed extents"
        )
    return [port.size for port in ports]


def _feeds(model: Model, vectors: Sequence[Any]) -> list[dict[str, Any]]:
    """Build the feeds of a request at these vectors. Raises Refusal."""
    _sizes(model, model.inputs)
    if len(vectors) != len(model.inputs):
        names = ", ".join(port.name for port in model.inputs) or "none"
        count = len(model.inputs)
        detail = f"input has {len(vectors)} vectors, but the model “{model.name}” has {count} inputs: {names}"
        raise Refusal("invalid_field", detail, expected=f"{count} vectors", got=str(len(vectors)), pointer="/input")
    pairs = zip(model.inputs, vectors, strict=True)
    return model.feeds({port.name: _tensor(port, vector, f"input[{i}]") for i, (port, vector) in enumerate(pairs)})


def _tensor(port: Port, vector: object, where: str) -> _Tensor:
    """Build a tensor from a vector, in the shape of its input or output. Raises Refusal."""
    if not isinstance(vector, list) or len(vector) != port.size:
        got = f"{len(vector)}" if isinstance(vector, list) else json_kind(vector)
        detail = f"{where}, for “{port.name}”, must have {port.size} numbers, but has {got}"
        raise Refusal("invalid_field", detail, expected=f"{port.size} numbers", got=got)
    for i, number in enumerate(vector):
        if type(number) not in (int, float):
            got = json_kind(number)
            detail = f"{where}, for “{port.name}”, must contain only numbers, but has {got} at {i}"
            raise Refusal("invalid_field", detail, expected="a number", got=got)
    return {"dtype": port.dtype, "shape": list(port.shape), "data": vector}


def _select_port(request: Mapping[str, Any], field: str, ports: Sequence[Port]) -> Port:
    """Return the input or output whose index the field has. Raises Refusal."""
    i: int = request[field]
    if not 0 <= i < len(ports):
        detail = f"{field} must be 0 to {len(ports) - 1}, but is {i}"
        raise Refusal("invalid_field", detail, expected=f"0 to {len(ports) - 1}", got=str(i), pointer=f"/{field}")
    return ports[i]


def _vectors(results: ResultArrays, named: Sequence[tuple[str, HostArray]]) -> list[HostArray]:
    """Convert named results to flat float64 vectors. Raises Refusal for non-finite elements, and OverBudget."""
    types = [TensorType((array.size,), FLOAT64) for _, array in named]
    results.admit(FIELD_BYTES + encoded_bytes(types, "json"))
    vectors = []
    for name, array in named:
        flat = np.ascontiguousarray(array, np.float64).reshape(-1)
        if not np.isfinite(flat).all():
            index = int(np.flatnonzero(~np.isfinite(flat))[0])
            detail = f"“{name}” is {flat[index]} at {index}, but UM-Bridge supports only finite numbers"
            raise Refusal("invalid_field", detail, expected="finite numbers", got=f"{flat[index]} at {index}")
        vectors.append(flat)
    return vectors


def _to_response(answer: Mapping[str, Any]) -> ForeignAnswer:
    return ForeignAnswer([orjson.dumps(answer, option=orjson.OPT_SERIALIZE_NUMPY)])
