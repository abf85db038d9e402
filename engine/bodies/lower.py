"""Lowering of ops that run functions to those that an executor runs, once nothing is differentiated any more."""

from __future__ import annotations

from collections.abc import Sequence

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

    def lowered(node: Node, operands: Sequence[Value]) -> Value | None:
        return node.op.lowered(*operands, **node.attrs) if isinstance(node.op, RunsFunctions) else None

    return Builder(graph.registry, limits, deadline).rewrite(graph, lowered)
