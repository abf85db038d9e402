"""Hints for common mistakes in requests, which end the sentence that refuses them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import engine
from engine import printable
from schemas import Feed, Graph, GraphNode, Tensor
from service.core.spelling import hint

#: names of fields in other systems, with ours; a message has at most one of ours
_FIELD_ALIASES: Final[Mapping[str, tuple[str, ...]]] = {
    "args": ("operands",),
    "input": ("operands",),
    "inputs": ("operands", "feeds", "types"),
    "parents": ("operands",),
    "attr": ("attrs",),
    "attributes": ("attrs",),
    "params": ("attrs",),
    "kind": ("op",),
    "type": ("op", "dtype"),
    "label": ("name",),
    "feed": ("feeds",),
    "feeds": ("types",),
    "types": ("feeds",),
    "values": ("feeds", "types", "data"),
    "value": ("tensor", "data"),
    "dims": ("shape",),
    "size": ("shape",),
    "id": ("node",),
    "index": ("node",),
}
#: fields that hold indices of nodes
_NODE_FIELDS: Final = frozenset({"operands", "of", "wrt", "outputs", "node", "mapped"})


def field_hint(name: str, value: object, model: type, fields: Iterable[str], nodes: object) -> str:
    """Return a hint for the unknown field `name` of a message that is a `model` with these fields; "" if there is none.

    `nodes` are the nodes of the request's graph.
    """
    known, lower_name = {field: field for field in fields}, name.lower()
    if model is Feed and lower_name == "name":
        return node_hint(value, nodes)
    if model is Feed and name in Tensor.__annotations__:
        return f'put {name} in tensor: "tensor": {{"dtype": …, "shape": …, "data": …}}'
    if "graph" in known and name in Graph.__annotations__:
        return f'put {name} in graph: "graph": {{"{name}": …}}'
    if model is GraphNode:
        if lower_name == "id":
            return "a node's id is its index in nodes: leave it out"
        if name in engine.registry().attributes:
            return f'put {name} in attrs: "attrs": {{"{name}": …}}'
    if name == "timeout_ms" and "graph" in known:
        return "it is a query parameter: add ?timeout_ms=… to the path"
    field = next((field for field in _FIELD_ALIASES.get(lower_name, ()) if field in known), lower_name)
    return hint(field, known, "")


def index_hint(field: object, value: object, nodes: object, *, is_list: bool) -> str:
    """Return a hint for a `value` that is no index, or no list of them if `is_list`; "" if the field has neither."""
    if field not in _NODE_FIELDS:
        return ""
    if is_list and type(value) is int:
        return f"write [{value}]"
    if isinstance(value, float) and field == "operands":
        return "a number is a node of its own (constant, full), or an attribute (mul_scalar, add_scalar)"
    return node_hint(value, nodes)


def node_hint(name: object, nodes: object) -> str:
    """Return a hint for a name in place of a node's index."""
    if not isinstance(name, str):
        return ""
    named = [node.get("name") if isinstance(node, dict) else None for node in nodes] if isinstance(nodes, list) else []
    place = f": “{printable(name)}” is node {named.index(name)}" if name in named else ", counted from 0"
    return f"nodes are referenced by index{place}"


def tensor_hint(value: object) -> str:
    """Return a hint for numbers in place of a tensor; "" for other values."""
    numbers: list[Any] = value if isinstance(value, list) else [value]
    if not numbers or not {int, float}.issuperset(map(type, numbers)):
        return ""
    shape, data = ([len(numbers)], "[…]") if isinstance(value, list) else ([], f"[{printable(str(value))}]")
    return f'a tensor has the form {{"dtype": "float64", "shape": {shape}, "data": {data}}}'
