"""Graphs as text, and back: one line a node, for tests of transforms and passes, and for people.

    %0 = input {"feed": 0} : float64[2,3]
    %1 = sum(%0) {"axes": [1], "keepdims": false} : float64[2]
    return %1

An id is a line's number; attributes are JSON; the type is what the op infers, so that a text cannot lie about it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from engine.graph.ir import Builder, Graph, Node, Value
from engine.graph.kinds.kind import AttributeKind
from engine.graph.registry import Registry
from engine.graph.tensor_type import TensorType

_LINE = re.compile(r"%(?P<id>\d+) = (?P<op>\w+)(\((?P<operands>[^)]*)\))?( (?P<attrs>\{.*\}))? : (?P<types>.*)")
_TYPE = re.compile(r"(?P<dtype>\w+)\[(?P<shape>[\d,]*)\]")


def print_graph(graph: Graph) -> str:
    """The text of a graph."""
    lines = [print_node(i, node, _print_attrs(node)) for i, node in enumerate(graph.nodes)]
    return "\n".join([*lines, print_outputs(graph.outputs)]) + "\n"


def print_node(index: int, node: Node, attrs: str = "") -> str:
    """The line of a node, by default without its attributes."""
    operands = f"({_references(node.operands)})" if node.operands else ""
    return f"%{index} = {node.op.name}{operands}{attrs} : {', '.join(map(str, node.types))}"


def print_outputs(outputs: Sequence[int]) -> str:
    """The last line."""
    return "return " + _references(outputs)


def _print_attrs(node: Node) -> str:
    said = {name: _plain(node, name, v) for name, v in node.attrs.items() if not _goes_without_saying(node, name, v)}
    return f" {json.dumps(said)}" if said else ""


def _goes_without_saying(node: Node, name: str, value: Any) -> bool:
    """Whether it is the default of an attribute that an op has gained since."""
    return not node.is_leaf and node.op.attrs[name].since > 1 and value == node.op.attrs[name].default


def _references(indices: Sequence[int]) -> str:
    return ", ".join(f"%{i}" for i in indices)


def _plain(node: Node, name: str, value: Any) -> Any:
    """Absence as such, and where a leaf is fed from, which is no attribute of the op."""
    return value if value is None or node.is_leaf else node.op.attrs[name].definition.printed(value)


def parse_graph(text: str, registry: Registry) -> Graph:
    """The graph of a text, in ops of `registry`.

    Types are inferred anew. Raises ValueError where a line cannot be read or states another type.
    """
    *lines, last = [line.strip() for line in text.strip().splitlines() if line.strip()]
    builder = Builder(registry)
    for number, line in enumerate(lines):
        found = _LINE.fullmatch(line)
        if found is None or int(found["id"]) != number:
            raise ValueError(f"line {number}: expected “%{number} = op(…) {{…}} : type”, but got “{line}”")
        value = _parse_node(builder, found)
        stated, inferred = found["types"], ", ".join(map(str, value.node.types))
        if stated != inferred:
            raise ValueError(f"line {number}: states {stated}, but the op gives {inferred}")
    return builder.graph([builder.value(i) for i in _parse_references(last.removeprefix("return"))])


def _parse_node(builder: Builder, found: re.Match[str]) -> Value:
    attrs, type = json.loads(found["attrs"] or "{}"), _parse_type(found["types"])
    op = builder.registry.ops[found["op"]]
    if op.is_leaf:
        return builder.leaf(type, attrs["feed"], op.name)
    operands = [builder.value(i) for i in _parse_references(found["operands"] or "")]
    return builder.emit(op, operands, _parse_attrs(attrs, type, builder.registry.attributes))


def _parse_attrs(attrs: Mapping[str, Any], type: TensorType, kinds: Mapping[str, AttributeKind]) -> dict[str, Any]:
    return {name: None if v is None else kinds[name].parsed(v, type) for name, v in attrs.items()}


def _parse_references(text: str) -> list[int]:
    return [int(reference.strip().removeprefix("%")) for reference in text.split(",") if reference.strip()]


def _parse_type(text: str) -> TensorType:
    found = _TYPE.match(text)
    if found is None:
        raise ValueError(f"expected a type such as float64[2,3], but got “{text}”")
    return TensorType(tuple(int(e) for e in found["shape"].split(",") if e), np.dtype(found["dtype"]))
