"""Common subexpressions: value numbering, so that what is said twice is computed once."""

from __future__ import annotations

from collections.abc import Hashable

from engine.graph.attributes import key
from engine.graph.ir import Graph, Node
from engine.passes.allowance import UNBOUNDED, Allowance


def cse(graph: Graph, allowance: Allowance = UNBOUNDED) -> Graph:
    """`graph` with equal nodes merged. Leaves are never equal; operands of commutative ops may be swapped.

    Raises DeadlineExceeded.
    """
    nodes: list[Node] = []
    seen: dict[Hashable, int] = {}
    renamed: list[int] = []
    for node in allowance.over(graph.nodes):
        operands = tuple(renamed[i] for i in node.operands)
        number = seen.setdefault(_value_number(node, operands, len(nodes)), len(nodes))
        if number == len(nodes):
            nodes.append(node.on(operands))
        renamed.append(number)
    return graph.rewritten(nodes, (renamed[i] for i in graph.outputs))


def _value_number(node: Node, operands: tuple[int, ...], position: int) -> Hashable:
    if node.is_leaf:
        return position
    ordered = tuple(sorted(operands)) if node.op.commutative else operands
    stated = tuple((name, key(value)) for name, value in node.attrs.items()) if node.attrs else ()
    return node.op.name, ordered, stated
