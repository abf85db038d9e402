"""Nodes in ops of the registry alone: what the engine writes for itself is written out."""

from __future__ import annotations

from collections.abc import Sequence

from engine.bodies.tidy import derived, tidy
from engine.graph.body import Body
from engine.graph.ir import Builder, Node, Value


class WrittenOut:
    """Nodes of a graph as they are copied into another; `values` says where each went."""

    def __init__(self, builder: Builder) -> None:
        self.builder = builder
        self.values: dict[int, Value] = {}
        self._several: dict[int, Sequence[Value]] = {}

    def copy(self, index: int, node: Node) -> None:
        """Append a node, what it reads being there."""
        operands = [self.values[i] for i in node.operands]
        if node.op.internal:
            self._several[index] = node.op.written_out(*operands, **node.attrs)
            self.values[index] = self._several[index][0]
        elif node.op.name == "get_output" and node.operands[0] in self._several:
            self.values[index] = self._several[node.operands[0]][node.attrs["index"]]
        else:
            self.values[index] = self.builder.copy(node, operands)


def body_written_out(body: Body) -> Body:
    """The body in these ops; what bodies in it run is left as it is."""
    return body.made("written out", lambda: _body(tidy(body)))


def _body(body: Body) -> Body:
    copied = WrittenOut(body.budget.builder(body.graph.registry))
    for index, node in enumerate(body.graph.nodes):
        if node.is_leaf:
            copied.values[index] = copied.builder.leaf(node.type, node.attrs["feed"])
        else:
            copied.copy(index, node)
    graph = copied.builder.graph([copied.values[i] for i in body.graph.outputs])
    return derived(body, graph, body.inputs)
