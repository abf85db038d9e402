"""Dead code: nodes that no output depends on."""

from __future__ import annotations

from engine.graph.ir import Graph
from engine.passes.allowance import UNBOUNDED, Allowance


def dce(graph: Graph, allowance: Allowance = UNBOUNDED) -> Graph:
    """`graph` without the nodes that its outputs do not need. Raises DeadlineExceeded."""
    live = set(graph.outputs)
    for index in allowance.over(range(len(graph.nodes) - 1, -1, -1)):
        if index in live:
            live.update(graph.nodes[index].operands)
    kept = sorted(live)
    renamed = {old: new for new, old in enumerate(kept)}
    nodes = (graph.nodes[i].on(tuple(renamed[j] for j in graph.nodes[i].operands)) for i in allowance.over(kept))
    return graph.rewritten(nodes, (renamed[i] for i in graph.outputs))
