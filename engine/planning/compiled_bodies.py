"""Bodies of loops as machine code makes them: all that can be fused is, since a step in Python costs more than many."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from engine.graph.ir import Graph
from engine.graph.limits import NO_LIMITS
from engine.planning.fit import compiled_within
from engine.planning.looped import RunsPlans
from engine.planning.plan import Plan, graph_of, make_plan

#: bytes that a body may take in any case: its kernels work in some
_FREE_BYTES: Final = 1 << 16


def with_compiled_bodies(graph: Graph, *, microkernels: bool = True) -> Graph:
    """`graph` with all bodies planned for kernels, each within the memory that it was planned for; or itself."""
    if not any(isinstance(node.op, RunsPlans) for node in graph.nodes):
        return graph
    made: dict[Plan, Plan] = {}

    def compiled(plan: Plan) -> Plan:
        if plan not in made:
            made[plan] = _compiled(graph_of(plan, graph.registry), plan.peak_bytes, microkernels=microkernels)
        return made[plan]

    nodes = [
        node._replace(op=replace(node.op, plans=tuple(map(compiled, node.op.plans))))
        if isinstance(node.op, RunsPlans)
        else node
        for node in graph.nodes
    ]
    return graph.rewritten(nodes, graph.outputs)


def _compiled(graph: Graph, most_bytes: int, *, microkernels: bool) -> Plan:
    graph = with_compiled_bodies(graph, microkernels=microkernels)
    within = compiled_within(graph, max(most_bytes, _FREE_BYTES), 1, microkernels=microkernels, all_pay=True)
    return within.plan if within else make_plan(graph, NO_LIMITS, tight=True)
