"""Leading-extent analysis: the leading part of each result that is ever read; no more need be computed."""

from __future__ import annotations

from engine.graph.ir import Graph
from engine.graph.op import View
from engine.graph.tensor_type import Shape


def read_extents(graph: Graph) -> list[Shape]:
    """For each node, extents of the part of its (first) result, from its beginning, that outputs depend on.

    Views say what they read of their operand: all others read everything.
    """
    read: list[Shape] = [(0,) * node.type.ndim for node in graph.nodes]
    for i in graph.outputs:
        read[i] = graph.nodes[i].type.shape
    for i in range(len(graph.nodes) - 1, -1, -1):
        node = graph.nodes[i]
        for operand in node.operands:
            wanted = graph.nodes[operand].type.shape
            if isinstance(node.op, View):
                wanted = node.op.leading_part(read[i], wanted, node.attrs)
            read[operand] = tuple(map(max, read[operand], wanted))
    return read
