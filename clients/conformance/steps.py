"""Steps of a builder, as cases have them, and the nodes that a client sends for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from clients.conformance.bits import Json, to_json


def leaf(op: str, name: str | None = None, **attrs: Any) -> Json:
    """A step without operands."""
    return {"op": op} | ({} if name is None else {"name": name}) | ({"attrs": attrs} if attrs else {})


def on(op: str, *operands: Any, **attrs: Any) -> Json:
    """A step on others, by their places."""
    return {"op": op, "operands": list(operands)} | ({"attrs": attrs} if attrs else {})


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
