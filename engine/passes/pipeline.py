"""The passes, in their order."""

from __future__ import annotations

from collections.abc import Callable

from engine.ir import Graph
from engine.limits import NO_DEADLINE, Deadline
from engine.passes.cse import cse
from engine.passes.dce import dce

Pass = Callable[[Graph], Graph]

# Dead code goes first: gradient rules emit for every operand, and what nobody asked for need not be numbered.
PASSES: tuple[Pass, ...] = (dce, cse)


def optimise(graph: Graph, deadline: Deadline = NO_DEADLINE) -> Graph:
    """`graph` after all passes: the same results from fewer nodes."""
    for apply in PASSES:
        deadline.check()
        graph = apply(graph)
    return graph
