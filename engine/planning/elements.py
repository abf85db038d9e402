"""Ops that a loop would have in their elements, written so: what draws random numbers joins what computes with them."""

from __future__ import annotations

from engine.graph.ir import Builder, Graph, Value
from engine.graph.limits import NO_LIMITS
from engine.graph.op import Kernel


def in_elements(graph: Graph) -> Graph:
    """`graph` with such nodes written in elementwise ones, which have the same bits; itself, where there are none."""
    joining = {op for op in {node.op for node in graph.nodes} if isinstance(op, Kernel) and op.joins_loops_in_elements}
    if not joining:
        return graph
    builder = Builder(graph.registry, NO_LIMITS)
    values: list[Value] = []
    for node in graph.nodes:
        operands = [values[i] for i in node.operands]
        builder.origin = node.origin
        written = node.kernel.in_elements(*operands, **node.attrs) if node.op in joining else None
        values.append(builder.copy(node, operands) if written is None else written)
    return builder.graph([values[i] for i in graph.outputs])
