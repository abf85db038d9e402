"""Common subexpressions: value numbering, so that what is said twice is computed once."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

from engine.graph.attributes import keyed
from engine.graph.ir import Graph, Node
from engine.graph.memory import Stated
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
            number = seen.setdefault((op, ordered, _said(attrs) if attrs else ()), position)
        if number == position:
            nodes.append(node.on(operands))
        renamed.append(number)
    return graph.rewritten(nodes, [renamed[i] for i in graph.outputs])


def _said(attrs: Mapping[str, Any]) -> Hashable:
    """What tells attributes apart: known already, but for what is large."""
    known = attrs.key if isinstance(attrs, Stated) else None
    return keyed(attrs) if known is None else known
