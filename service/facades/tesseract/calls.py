"""Calls of Tesseract, read and answered: arrays by the names of a model's inputs and outputs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Final

import orjson

from engine import HostArray, Limits, printable
from service.errors import Refusal
from service.facades.facade import ForeignAnswer
from service.facades.foreign_call import ForeignCall, OwnRequest, ReadLimits, ResultArrays
from service.facades.model import Model, Port
from service.facades.tesseract.arrays import decode_array, encode_array, encoded_array_bytes, form_of, stated_type
from service.wire.answers import FIELD_BYTES
from service.wire.json_codec import json_kind, parse_json
from service.wire.validation import Location, pointer

_Json = Mapping[str, Any]


class _Call(ForeignCall):
    """One of them, at `/PATH`. A subclass says what is asked of a model."""

    path: ClassVar[str]
    #: fields beside `inputs`: those that list names, and those that have arrays by name
    lists: ClassVar[Sequence[str]] = ()
    arrays: ClassVar[Sequence[str]] = ()

    def __init_subclass__(cls) -> None:
        cls.name = f"tesseract.{cls.path}"

    def read_request(self, body: bytes, said: str, model: Model, limits: ReadLimits) -> OwnRequest:
        """Read a request; `said` is the Accept header, which states the form of arrays."""
        asked = parse_json(body, limits.json_depth)
        known = ("inputs", *self.lists, *self.arrays)
        for field in asked:
            if field not in known:
                got, expected = printable(field), ", ".join(known)
                raise _wrong(f"there is no field “{got}”; there are {expected}", (got,), expected, got)
        for field in known:
            kind = list if field in self.lists else dict
            if not isinstance(asked.get(field), kind):
                expected = "a list" if kind is list else "an object"
                got = "nothing" if field not in asked else json_kind(asked[field])
                raise _wrong(f"{field} must be {expected}, but is {got}", (field,), expected, got)
        return self.asked(asked, model, form_of(said), limits.tensors)

    @abstractmethod
    def asked(self, asked: _Json, model: Model, form: str, limits: Limits) -> OwnRequest:
        """Translate a request whose fields are of the right kinds. Raises Refusal."""


class _Apply(_Call):
    """The model's outputs."""

    path = "apply"

    def asked(self, asked: _Json, model: Model, form: str, limits: Limits) -> OwnRequest:
        """Values of all outputs."""
        feeds, nodes = _feeds(asked["inputs"], model, limits), _nodes(model.outputs)

        def write_answer(results: ResultArrays) -> ForeignAnswer:
            return _written(_arrays(results, "values", model.outputs, form), form)

        return OwnRequest("forward", {"feeds": feeds, "outputs": nodes}, write_answer)


class _Jacobian(_Call):
    """Whole derivatives of outputs by inputs."""

    path = "jacobian"
    lists = ("jac_inputs", "jac_outputs")

    def asked(self, asked: _Json, model: Model, form: str, limits: Limits) -> OwnRequest:
        """A block for each pair, of the shape of the output and then that of the input."""
        feeds = _feeds(asked["inputs"], model, limits)
        by, of = _chosen(asked, "jac_inputs", model.inputs), _chosen(asked, "jac_outputs", model.outputs)

        def write_answer(results: ResultArrays) -> ForeignAnswer:
            pairs = [(y, x) for y in of for x in by]
            blocks = _encoded(
                results, [(f"{y.name} by {x.name}", results("jacobian", y.node, x.node)) for y, x in pairs], form
            )
            found: dict[str, dict[str, Any]] = {y.name: {} for y in of}
            for (y, x), block in zip(pairs, blocks, strict=True):
                found[y.name][x.name] = block
            return _written(found, form)

        return OwnRequest("jacobian", {"feeds": feeds, "outputs": _nodes(of), "wrt": _nodes(by)}, write_answer)


class _JacobianVectorProduct(_Call):
    """Directions of inputs, carried on to outputs."""

    path = "jacobian_vector_product"
    lists = ("jvp_inputs", "jvp_outputs")
    arrays = ("tangent_vector",)

    def asked(self, asked: _Json, model: Model, form: str, limits: Limits) -> OwnRequest:
        """The tangents of outputs; those of inputs that are not named are zero."""
        feeds = _feeds(asked["inputs"], model, limits)
        by, of = _chosen(asked, "jvp_inputs", model.inputs), _chosen(asked, "jvp_outputs", model.outputs)
        tangents = _vectors(asked, "tangent_vector", by, limits)

        def write_answer(results: ResultArrays) -> ForeignAnswer:
            return _written(_arrays(results, "tangents", of, form), form)

        return OwnRequest("jvp", {"feeds": feeds, "outputs": _nodes(of), "tangents": tangents}, write_answer)


class _VectorJacobianProduct(_Call):
    """Sensitivities of outputs, brought back to inputs."""

    path = "vector_jacobian_product"
    lists = ("vjp_inputs", "vjp_outputs")
    arrays = ("cotangent_vector",)

    def asked(self, asked: _Json, model: Model, form: str, limits: Limits) -> OwnRequest:
        """The gradients by inputs; cotangents of outputs that are not named are zero."""
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


class _AbstractEval(_Call):
    """Types of outputs, from those of inputs; nothing runs."""

    path = "abstract_eval"

    def asked(self, asked: _Json, model: Model, form: str, limits: Limits) -> OwnRequest:
        """A plan."""
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


def _feeds(inputs: _Json, model: Model, limits: Limits) -> list[dict[str, Any]]:
    """The feeds of a request with these inputs. Raises Refusal."""
    _check_names(inputs, model.inputs, "inputs")
    names = (port.name for port in model.inputs)
    arrays = (decode_array(port, inputs[port.name], ("inputs", port.name), limits) for port in model.inputs)
    return model.feeds(dict(zip(names, arrays, strict=True)))


def _vectors(asked: _Json, field: str, ports: Sequence[Port], limits: Limits) -> list[dict[str, Any]]:
    """Arrays for the nodes of these inputs or outputs, one for each. Raises Refusal."""
    _check_names(asked[field], ports, field)
    arrays = [decode_array(port, asked[field][port.name], (field, port.name), limits) for port in ports]
    return [{"node": port.node, "tensor": array} for port, array in zip(ports, arrays, strict=True)]


def _check_names(given: _Json, ports: Sequence[Port], field: str) -> None:
    """Raise Refusal where names are missing, or are none of these."""
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
    """Results of this kind by the names of their inputs or outputs. Raises Refusal and OverBudget."""
    named = [(port.name, results(kind, port.node)) for port in ports]
    return dict(zip((name for name, _ in named), _encoded(results, named, form), strict=True))


def _encoded(results: ResultArrays, named: Sequence[tuple[str, HostArray]], form: str) -> list[dict[str, Any]]:
    """Results in this form, once all of them fit into an answer. Raises Refusal and OverBudget."""
    results.admit(FIELD_BYTES + sum(encoded_array_bytes(name, array, form) for name, array in named), form)
    return [encode_array(name, array, form) for name, array in named]


def _written(found: _Json, form: str) -> ForeignAnswer:
    return ForeignAnswer([orjson.dumps(found)], f"application/{form}")


def _wrong(detail: str, place: Location, expected: str, got: str) -> Refusal:
    return Refusal("invalid_field", detail, expected=expected, got=got, pointer=pointer(place))
