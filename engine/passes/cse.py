"""Common subexpression elimination: merge nodes that compute the same."""

from __future__ import annotations

from collections.abc import Hashable

from engine.graph.ir import Graph, Node
from engine.graph.memory import attributes_key
from engine.passes.allowance import UNBOUNDED, Allowance


def cse(graph: Graph, allowance: Allowance = UNBOUNDED) -> Graph:
    """`graph` with equal nodes merged. Leaves are never equal; operands of commutative ops may be swapped.

    Raises DeadlineExceeded.
    """
    nodes: list[Node] = []
    seen: dict[Hashable, int] = {}
    renamed: list[int] = []
    for node in allowance.over(graph.nodes):
        op, operands, attrs, _, _ = node
        operands = tuple(map(renamed.__getitem__, operands))
        position = number = len(nodes)
        if not op.is_leaf:
            ordered = tuple(sorted(operands)) if op.commutative else operands
            number = seen.setdefault((op, ordered, attributes_key(attrs) if attrs else ()), position)
        if number == position:
            nodes.append(node.on(operands))
        renamed.append(number)
    return graph.rewritten(nodes, [renamed[i] for i in graph.outputs])
