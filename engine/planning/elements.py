"""Ops written in elementwise nodes so that they fuse: draws of random numbers join what computes with them."""

from __future__ import annotations

from collections.abc import Sequence

from engine.graph.ir import Builder, Graph, Node, Value
from engine.graph.limits import NO_LIMITS
from engine.graph.op import Kernel


def in_elements(graph: Graph) -> Graph:
    """`graph` with such nodes written in elementwise ones, which have the same bits; itself, where there are none."""
    joining = {op for op in {node.op for node in graph.nodes} if isinstance(op, Kernel) and op.joins_loops_in_elements}
    if not joining:
        return graph

    def written(node: Node, operands: Sequence[Value]) -> Value | None:
        return node.kernel.in_elements(*operands, **node.attrs) if node.op in joining else None

    return Builder(graph.registry, NO_LIMITS).rewrite(graph, written)
