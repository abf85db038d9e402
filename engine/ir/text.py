"""Graphs as text, and back: one line per node, for tests of transforms and passes, and for people.

    %0 = input {"feed": 0} : float64[2,3]
    %1 = sum(%0) {"axes": [1], "keepdims": false} : float64[2]
    return %1

A node's id is its line number, attributes are JSON, and the type must equal the one that the op infers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

import numpy as np

from engine.ir.graph import Builder, Graph, Node, Value
from engine.ir.op import Registry
from engine.ir.tensor_type import TensorType

_LINE = re.compile(r"%(?P<id>\d+) = (?P<op>\w+)(\((?P<operands>[^)]*)\))?( (?P<attrs>\{.*\}))? : (?P<types>.*)")
_TYPE = re.compile(r"(?P<dtype>\w+)\[(?P<shape>[\d,]*)\]")


def print_graph(graph: Graph) -> str:
    """Return the text of a graph."""
    lines = [print_node(i, node, _print_attrs(node)) for i, node in enumerate(graph.nodes)]
    return "\n".join([*lines, print_outputs(graph.outputs)]) + "\n"


def print_node(index: int, node: Node, attrs: str = "") -> str:
    """Return the line of a node, by default without its attributes."""
    operands = f"({_references(node.operands)})" if node.operands else ""
    return f"%{index} = {node.op.name}{operands}{attrs} : {', '.join(map(str, node.types))}"


def print_outputs(outputs: Sequence[int]) -> str:
    """Return the last line."""
    return "return " + _references(outputs)


def _print_attrs(node: Node) -> str:
    if node.is_leaf:  # the feed key is not an attribute of the op
        return f" {json.dumps(dict(node.attrs))}" if node.attrs else ""
    printed = {}
    for name, value in node.attrs.items():
        attr = node.op.attrs[name]
        # Omit the default of an attribute added after opset 1, so that texts do not change when an op gains one.
        if attr.since == 1 or value != attr.default:
            printed[name] = None if value is None else attr.definition.printed(value)
    return f" {json.dumps(printed)}" if printed else ""


def _references(indices: Sequence[int]) -> str:
    return ", ".join(f"%{i}" for i in indices)


def parse_graph(text: str, registry: Registry) -> Graph:
    """Return the graph of a text, in ops of `registry`, with types inferred again.

    Raises ValueError for a line that cannot be parsed or states another type.
    """
    *lines, last = [line.strip() for line in text.strip().splitlines() if line.strip()]
    builder = Builder(registry)
    for number, line in enumerate(lines):
        match = _LINE.fullmatch(line)
        if match is None or int(match["id"]) != number:
            raise ValueError(f"line {number}: expected “%{number} = op(…) {{…}} : type”, but got “{line}”")
        value = _parse_node(builder, match)
        stated, inferred = match["types"], ", ".join(map(str, value.node.types))
        if stated != inferred:
            raise ValueError(f"line {number}: states {stated}, but the op gives {inferred}")
    return builder.graph([builder.value(i) for i in _parse_references(last.removeprefix("return"))])


def _parse_node(builder: Builder, match: re.Match[str]) -> Value:
    attrs, stated = json.loads(match["attrs"] or "{}"), _TYPE.match(match["types"])
    if stated is None:
        raise ValueError(f"expected a type such as float64[2,3], but got “{match['types']}”")
    type = TensorType(tuple(int(e) for e in stated["shape"].split(",") if e), np.dtype(stated["dtype"]))
    op = builder.registry.ops[match["op"]]
    if op.is_leaf:
        return builder.leaf(type, attrs["feed"], op.name)
    operands = [builder.value(i) for i in _parse_references(match["operands"] or "")]
    kinds = builder.registry.attributes
    bound = {name: None if value is None else kinds[name].parsed(value, type) for name, value in attrs.items()}
    return builder.emit(op, operands, bound)


def _parse_references(text: str) -> list[int]:
    return [int(reference.strip().removeprefix("%")) for reference in text.split(",") if reference.strip()]
