"""Ops that run functions, in terms of those that an executor runs.

This comes once nothing is differentiated or batched any more.
"""

from __future__ import annotations

from engine.bodies.runs_functions import RunsFunctions
from engine.graph.ir import Builder, Graph, Node, Value
from engine.graph.limits import NO_DEADLINE, Deadline, Limits


def lower(graph: Graph, limits: Limits, deadline: Deadline = NO_DEADLINE) -> Graph:
    """`graph`, where calls are written out, and maps and fixed points are loops. Raises OverBudget.

    What is written may have such ops in it, which are next.
    """
    while (written := _once(graph, limits, deadline)) is not graph:
        graph = written
    return graph


def _once(graph: Graph, limits: Limits, deadline: Deadline) -> Graph:
    """The graph itself where there is nothing to write."""
    if not any(isinstance(node.op, RunsFunctions) for node in graph.nodes):
        return graph
    builder, is_same = Builder(graph.registry, limits, deadline), True
    values: list[Value] = []
    for node in graph.nodes:
        builder.origin = node.origin
        operands = [values[i] for i in node.operands]
        found = node.op.lowered(*operands, **node.attrs) if isinstance(node.op, RunsFunctions) else None
        is_same &= found is None
        values.append(_copied(builder, node, operands) if found is None else found)
    return graph if is_same else builder.graph([values[i] for i in graph.outputs])


def _copied(builder: Builder, node: Node, operands: list[Value]) -> Value:
    if node.op.name == "get_output":
        return operands[0].output(node.attrs["index"])  # of values that are packed, one of these
    return builder.copy(node, operands)
