"""What of each result is ever read, where that is its leading part: what lies beyond need not be computed."""

from __future__ import annotations

from collections.abc import Sequence

from engine.graph.ir import Graph, Node
from engine.graph.tensor_type import Shape


def read_extents(graph: Graph) -> list[Shape]:
    """For each node, extents of the part of its (first) result, from its beginning, that outputs depend on.

    Only views that pick such a part, or move axes, are looked through: all others read everything.
    """
    read: list[Shape] = [(0,) * node.type.ndim for node in graph.nodes]
    for i in graph.outputs:
        read[i] = graph.nodes[i].type.shape
    for i in range(len(graph.nodes) - 1, -1, -1):
        node = graph.nodes[i]
        for operand in node.operands:
            wanted = _through(node, read[i], graph.nodes[operand].type.shape)
            read[operand] = tuple(map(max, read[operand], wanted))
    return read


def _through(node: Node, read: Shape, operand: Shape) -> Sequence[int]:
    """What of an operand a node reads, of whose result this much is read."""
    if node.op.name == "transpose":
        moved = dict(zip(node.attrs["axes"], read, strict=True))
        return [moved[axis] for axis in range(len(operand))]
    if node.op.name == "slice" and not any(node.attrs["starts"]) and set(node.attrs["steps"]) <= {1}:
        return read
    return operand
