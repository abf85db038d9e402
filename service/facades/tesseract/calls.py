"""The calls of Tesseract, read and answered: arrays by the names of a model's inputs and outputs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Final

import orjson

from engine import printable
from service.errors import Refusal
from service.facades.foreign_call import ForeignAnswer, ForeignCall, OwnRequest, ResultArrays
from service.facades.model import Model, Port
from service.facades.tesseract.arrays import decode_array, encode_array, form_of
from service.wire.json_codec import json_kind, parse_json

_Json = Mapping[str, Any]


class _Call(ForeignCall):
    """One of them, at `/PATH`. A subclass says what is asked of a model."""

    path: ClassVar[str]
    #: fields beside `inputs`: those that list names, and those that have arrays by name
    lists: ClassVar[Sequence[str]] = ()
    arrays: ClassVar[Sequence[str]] = ()

    def __init_subclass__(cls) -> None:
        cls.name = f"tesseract.{cls.path}"

    def read_request(self, body: bytes, said: str, model: Model, depth: int) -> OwnRequest:
        """What is asked; `said` is which forms of arrays the answer may have."""
        asked = parse_json(body, depth)
        known = ("inputs", *self.lists, *self.arrays)
        for field in asked:
            if field not in known:
                got, expected = printable(field), ", ".join(known)
                raise _wrong(f"there is no field “{got}”; there are {expected}", f"/{field}", expected, got)
        for field in known:
            kind = list if field in self.lists else dict
            if not isinstance(asked.get(field), kind):
                expected = "a list" if kind is list else "an object"
                got = "nothing" if field not in asked else json_kind(asked[field])
                raise _wrong(f"{field} must be {expected}, but is {got}", f"/{field}", expected, got)
        return self.asked(asked, model, form_of(said))

    @abstractmethod
    def asked(self, asked: _Json, model: Model, form: str) -> OwnRequest:
        """What a request of the right fields asks of a model. Raises Refusal."""


class _Apply(_Call):
    """The model's outputs."""

    path = "apply"

    def asked(self, asked: _Json, model: Model, form: str) -> OwnRequest:
        """Values of all outputs."""
        feeds, nodes = _feeds(asked["inputs"], model), _nodes(model.outputs)

        def write_answer(results: ResultArrays) -> ForeignAnswer:
            found = {port.name: encode_array(port.name, results("values", port.node), form) for port in model.outputs}
            return _written(found, form)

        return OwnRequest("forward", {"feeds": feeds, "outputs": nodes}, write_answer)


class _Jacobian(_Call):
    """Whole derivatives of outputs by inputs."""

    path = "jacobian"
    lists = ("jac_inputs", "jac_outputs")

    def asked(self, asked: _Json, model: Model, form: str) -> OwnRequest:
        """A block for each pair, of the shape of the output and then that of the input."""
        feeds = _feeds(asked["inputs"], model)
        by, of = _chosen(asked, "jac_inputs", model.inputs), _chosen(asked, "jac_outputs", model.outputs)

        def write_answer(results: ResultArrays) -> ForeignAnswer:
            def block(y: Port, x: Port) -> dict[str, Any]:
                return encode_array(f"{y.name} by {x.name}", results("jacobian", y.node, x.node), form)

            return _written({y.name: {x.name: block(y, x) for x in by} for y in of}, form)

        return OwnRequest("jacobian", {"feeds": feeds, "outputs": _nodes(of), "wrt": _nodes(by)}, write_answer)


class _JacobianVectorProduct(_Call):
    """Directions of inputs, carried on to outputs."""

    path = "jacobian_vector_product"
    lists = ("jvp_inputs", "jvp_outputs")
    arrays = ("tangent_vector",)

    def asked(self, asked: _Json, model: Model, form: str) -> OwnRequest:
        """The tangents of outputs; those of inputs that are not named are zero."""
        feeds = _feeds(asked["inputs"], model)
        by, of = _chosen(asked, "jvp_inputs", model.inputs), _chosen(asked, "jvp_outputs", model.outputs)
        tangents = _vectors(asked, "tangent_vector", by)

        def write_answer(results: ResultArrays) -> ForeignAnswer:
            return _written({y.name: encode_array(y.name, results("tangents", y.node), form) for y in of}, form)

        return OwnRequest("jvp", {"feeds": feeds, "outputs": _nodes(of), "tangents": tangents}, write_answer)


class _VectorJacobianProduct(_Call):
    """Sensitivities of outputs, brought back to inputs."""

    path = "vector_jacobian_product"
    lists = ("vjp_inputs", "vjp_outputs")
    arrays = ("cotangent_vector",)

    def asked(self, asked: _Json, model: Model, form: str) -> OwnRequest:
        """The gradients by inputs; cotangents of outputs that are not named are zero."""
        feeds = _feeds(asked["inputs"], model)
        by, of = _chosen(asked, "vjp_inputs", model.inputs), _chosen(asked, "vjp_outputs", model.outputs)
        fields = {
            "feeds": feeds,
            "outputs": _nodes(of),
            "cotangents": _vectors(asked, "cotangent_vector", of),
            "wrt": _nodes(by),
        }

        def write_answer(results: ResultArrays) -> ForeignAnswer:
            return _written({x.name: encode_array(x.name, results("gradients", x.node), form) for x in by}, form)

        return OwnRequest("vjp", fields, write_answer)


class _AbstractEval(_Call):
    """Types of outputs, from those of inputs; nothing runs."""

    path = "abstract_eval"

    def asked(self, asked: _Json, model: Model, form: str) -> OwnRequest:
        """A plan."""
        _check_names(asked["inputs"], model.inputs, "/inputs")
        types = [_type(port, asked["inputs"][port.name]) for port in model.inputs]
        bound = [{"node": one.node, "dtype": one.dtype, "shape": list(one.shape)} for one in model.bound]
        fields = {"types": [*types, *bound], "outputs": _nodes(model.outputs), "call": "forward"}

        def write_answer(results: ResultArrays) -> ForeignAnswer:
            planned = {cost["node"]: cost for cost in orjson.loads(results.body)["nodes"]}
            told = {port.name: planned[port.node] for port in model.outputs}
            shapes = {name: {"shape": cost["shape"], "dtype": cost["dtype"]} for name, cost in told.items()}
            return ForeignAnswer([orjson.dumps(shapes)])

        return OwnRequest("plan", fields, write_answer)


#: all of them
TESSERACT_CALLS: Final[Sequence[_Call]] = (
    _Apply(),
    _Jacobian(),
    _JacobianVectorProduct(),
    _VectorJacobianProduct(),
    _AbstractEval(),
)


def _nodes(ports: Iterable[Port]) -> list[int]:
    return list(dict.fromkeys(port.node for port in ports))


def _feeds(inputs: _Json, model: Model) -> list[dict[str, Any]]:
    """The feeds of a request with these inputs. Raises Refusal."""
    _check_names(inputs, model.inputs, "/inputs")
    given = {port.name: decode_array(port, inputs[port.name], f"/inputs/{port.name}") for port in model.inputs}
    return model.feeds(given)


def _vectors(asked: _Json, field: str, ports: Sequence[Port]) -> list[dict[str, Any]]:
    """Arrays for the nodes of these inputs or outputs, one for each. Raises Refusal."""
    _check_names(asked[field], ports, f"/{field}")
    arrays = [decode_array(port, asked[field][port.name], f"/{field}/{port.name}") for port in ports]
    return [{"node": port.node, "tensor": array} for port, array in zip(ports, arrays, strict=True)]


def _check_names(given: _Json, ports: Sequence[Port], place: str) -> None:
    """Raise Refusal where names are missing, or are none of these."""
    known = [port.name for port in ports]
    for name in given:
        if name not in known:
            got, expected = printable(name), ", ".join(known) or "no names"
            raise _wrong(f"“{got}” is none of {expected}", f"{place}/{got}", expected, got)
    for name in known:
        if name not in given:
            raise _wrong(f"“{name}” is missing", f"{place}/{name}", f"“{name}”", "nothing")


def _chosen(asked: _Json, field: str, ports: Sequence[Port]) -> list[Port]:
    """Those inputs or outputs that a field lists, each once. Raises Refusal."""
    by_name = {port.name: port for port in ports}
    found: dict[str, Port] = {}
    for i, name in enumerate(asked[field]):
        port = by_name.get(name) if isinstance(name, str) else None
        if port is None or port.name in found:
            expected = f"one of {', '.join(by_name)}, each once"
            got = f"“{printable(name)}”" if isinstance(name, str) else json_kind(name)
            raise _wrong(f"{field}[{i}] must be {expected}, but is {got}", f"/{field}/{i}", expected, got)
        found[port.name] = port
    if not found:
        raise _wrong(f"{field} is empty", f"/{field}", "at least one name", "none")
    return list(found.values())


def _type(port: Port, stated: object) -> dict[str, Any]:
    """The type of an input, as `abstract_eval` states it. Raises Refusal."""
    place = f"/inputs/{port.name}"
    shape, dtype = (stated.get("shape"), stated.get("dtype")) if isinstance(stated, dict) else (None, None)
    if not isinstance(shape, list) or not all(type(extent) is int and extent >= 0 for extent in shape):
        expected = "an object with shape and dtype"
        raise _wrong(f"“{port.name}” must be {expected}", place, expected, json_kind(stated))
    if not isinstance(dtype, str):
        raise _wrong(f"the dtype of “{port.name}” must be a string", f"{place}/dtype", "a string", json_kind(dtype))
    return {"node": port.node, "dtype": port.dtype, "shape": shape}


def _written(found: _Json, form: str) -> ForeignAnswer:
    return ForeignAnswer([orjson.dumps(found)], f"application/{form}")


def _wrong(detail: str, place: str, expected: str, got: str) -> Refusal:
    return Refusal("invalid_field", detail, expected=expected, got=got, pointer=place)
