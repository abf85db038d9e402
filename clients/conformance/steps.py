"""Steps of a builder, as cases have them, and the nodes that a client sends for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from clients.conformance.bits import Json, to_json
from engine import registry
from engine.graph.dtypes import ELEMENT_TYPES

#: the opset that graphs have a dtype since
_SINCE: Final = {element.name: element.since for element in ELEMENT_TYPES}


def leaf(op: str, name: str | None = None, **attrs: Any) -> Json:
    """A step without operands."""
    return {"op": op} | ({} if name is None else {"name": name}) | ({"attrs": attrs} if attrs else {})


def on(op: str, *operands: Any, **attrs: Any) -> Json:
    """A step on others, by their places."""
    return {"op": op, "operands": list(operands)} | ({"attrs": attrs} if attrs else {})


def graph_of(stated: Json) -> Json:
    """The graph of `steps`, as it is sent: of the `opset` that is stated, or else of the first that has all of it."""
    opset = stated.get("opset") or max(map(_needed_by, stated["steps"]))
    return ({} if opset == 1 else {"opset": opset}) | {"nodes": nodes_of(stated["steps"])}


def _needed_by(step: Json) -> int:
    op, attrs = registry().ops.get(step["op"]), step.get("attrs", {})
    constants = [value["dtype"] for value in attrs.values() if isinstance(value, Mapping) and "dtype" in value]
    dtypes = [*constants, *(stated for name, stated in attrs.items() if name == "dtype")]
    return max([1 if op is None else op.since, *(_SINCE.get(dtype, 1) for dtype in dtypes)])


def nodes_of(steps: Sequence[Json]) -> list[Json]:
    """The nodes of steps: the same, with attributes as they are sent."""
    return [step | {"attrs": _sent(step["attrs"])} if "attrs" in step else step for step in steps]


def _sent(attrs: Json) -> Json:
    return {name: _as_sent(value) for name, value in attrs.items()}


def _as_sent(value: Any) -> Any:
    if isinstance(value, list):
        return [_as_sent(each) for each in value]
    if isinstance(value, Mapping):
        return int(value["int"]) if "int" in value else to_json(dict(value))
    return value
