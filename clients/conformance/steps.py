"""Steps of a graph builder as cases state them, and the nodes that a client sends for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from clients.conformance.bits import Json, to_json
from engine import registry
from engine.ir.tensor_type import ELEMENT_TYPES

#: first opset with functions
_FUNCTIONS: Final = 2
#: first opset with each dtype
_SINCE: Final = {element.name: element.since for element in ELEMENT_TYPES}


def leaf(op: str, name: str | None = None, **attrs: Any) -> Json:
    """Return a step without operands."""
    return {"op": op} | ({} if name is None else {"name": name}) | ({"attrs": attrs} if attrs else {})


def on(op: str, *operands: Any, **attrs: Any) -> Json:
    """Return a step on earlier steps, given by position."""
    return {"op": op, "operands": list(operands)} | ({"attrs": attrs} if attrs else {})


def graph_of(stated: Json) -> Json:
    """Return the graph of `steps` and `functions` as it is sent.

    Its opset is the stated one, or else the first that has all its ops, attributes and dtypes.
    """
    functions = functions_of(stated.get("functions", ()))
    opset = stated.get("opset") or _opset_of(stated)
    functions_member = {"functions": functions} if functions else {}
    return ({} if opset == 1 else {"opset": opset}) | functions_member | {"nodes": nodes_of(stated["steps"])}


def functions_of(stated: Sequence[Json]) -> list[Json]:
    """Return functions as they are sent."""
    return [
        {name: function[name] for name in ("name",) if name in function}
        | {"nodes": nodes_of(function["steps"]), "outputs": function["outputs"]}
        for function in stated
    ]


def _opset_of(stated: Json) -> int:
    functions = stated.get("functions", ())
    steps = [*stated["steps"], *(step for function in functions for step in function["steps"])]
    return max([_FUNCTIONS if functions else 1, *map(_needed_by, steps)])


def _needed_by(step: Json) -> int:
    op, attrs = registry().ops.get(step["op"]), step.get("attrs", {})
    constants = [value["dtype"] for value in attrs.values() if isinstance(value, Mapping) and "dtype" in value]
    dtypes = [*constants, *(value for name, value in attrs.items() if name == "dtype")]
    return max([1 if op is None else op.since, *(_SINCE.get(dtype, 1) for dtype in dtypes)])


def nodes_of(steps: Sequence[Json]) -> list[Json]:
    """Return the nodes of steps, with attributes as they are sent."""
    return [step | {"attrs": _wire_attrs(step["attrs"])} if "attrs" in step else step for step in steps]


def _wire_attrs(attrs: Json) -> Json:
    return {name: _wire_value(value) for name, value in attrs.items()}


def _wire_value(value: Any) -> Any:
    if isinstance(value, list):
        return [_wire_value(each) for each in value]
    if isinstance(value, Mapping):
        return to_json(dict(value)) if "dtype" in value else int(value.get("int", value.get("function")))
    return value
