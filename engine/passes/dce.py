"""Dead code: nodes that no output depends on."""

from __future__ import annotations

from engine.graph.ir import Graph
from engine.passes.allowance import UNBOUNDED, Allowance


def dce(graph: Graph, allowance: Allowance = UNBOUNDED) -> Graph:
    """`graph` without the nodes that its outputs do not need. Raises DeadlineExceeded."""
    live = [False] * len(graph.nodes)
    for index in graph.outputs:
        live[index] = True
    for index in allowance.over(range(len(live) - 1, -1, -1)):
        if live[index]:
            for operand in graph.nodes[index].operands:
                live[operand] = True
    return graph if all(live) else _kept(graph, live, allowance)


def _kept(graph: Graph, live: list[bool], allowance: Allowance) -> Graph:
    """The `live` nodes."""
    first = live.index(False)  # what lies before it stays as it is
    nodes, renamed = list(graph.nodes[:first]), list(range(first))
    for node, lives in zip(allowance.over(graph.nodes[first:]), live[first:], strict=True):
        renamed.append(len(nodes) if lives else -1)
        if lives:
            nodes.append(node.on(tuple(map(renamed.__getitem__, node.operands))))
    return graph.rewritten(nodes, [renamed[index] for index in graph.outputs])
