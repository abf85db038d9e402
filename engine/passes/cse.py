"""Common subexpressions: value numbering, so that what is said twice is computed once."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

from engine.graph.attributes import key
from engine.graph.ir import Graph, Node
from engine.passes.allowance import UNBOUNDED, Allowance


def cse(graph: Graph, allowance: Allowance = UNBOUNDED) -> Graph:
    """`graph` with equal nodes merged. Leaves are never equal; operands of commutative ops may be swapped.

    Raises DeadlineExceeded.
    """
    nodes: list[Node] = []
    seen: dict[Hashable, int] = {}
    stated: dict[int, Hashable] = {}
    renamed: list[int] = []
    for node in allowance.over(graph.nodes):
        op, operands = node.op, tuple([renamed[i] for i in node.operands])
        position = number = len(nodes)
        if not op.is_leaf:
            ordered = tuple(sorted(operands)) if op.commutative else operands
            said = _stated(node.attrs, stated) if node.attrs else ()
            number = seen.setdefault((op.name, ordered, said), position)
        if number == position:
            nodes.append(node.on(operands))
        renamed.append(number)
    return graph.rewritten(nodes, [renamed[i] for i in graph.outputs])


def _stated(attrs: Mapping[str, Any], known: dict[int, Hashable]) -> Hashable:
    """What tells attributes apart: `known` by their address, since many nodes share them while the graph lives."""
    found = known.get(id(attrs))
    if found is None:
        found = known[id(attrs)] = tuple([(name, key(value)) for name, value in attrs.items()])
    return found
