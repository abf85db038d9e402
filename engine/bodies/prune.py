"""Ops that run functions without what serves nobody: results that are not read, and what only these need.

Rules write loops for all that may be wanted. Where a cotangent or a carry is not, the loop goes without it; else a
value that nothing depends on would have to be there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from engine.bodies.runs_functions import Pruned, RunsFunctions
from engine.graph.ir import Builder, Graph, Node, Value
from engine.graph.limits import NO_LIMITS
from engine.passes.allowance import UNBOUNDED, Allowance
from engine.passes.dce import dce


def prune(graph: Graph, allowance: Allowance = UNBOUNDED) -> Graph:
    """`graph` with such ops as small as what reads them allows: the same results. Raises DeadlineExceeded."""
    while True:
        graph = dce(graph, allowance)
        found = _found(graph)
        if not found:
            return graph
        graph = _pruned(graph, found)


def _found(graph: Graph) -> Mapping[int, Pruned]:
    read: dict[int, set[int]] = defaultdict(set)
    for node in graph.nodes:
        if node.op.name == "get_output":
            read[node.operands[0]].add(node.attrs["index"])
    found = {}
    for i, node in enumerate(graph.nodes):
        if isinstance(node.op, RunsFunctions):
            pruned = node.op.pruned(frozenset(read[i]), len(node.operands), **node.attrs)
            if pruned is not None and not _is_all(pruned, node):
                found[i] = pruned
    return found


def _is_all(pruned: Pruned, node: Node) -> bool:
    return len(pruned.operands) == len(node.operands) and len(pruned.results) == len(node.types)


def _pruned(graph: Graph, found: Mapping[int, Pruned]) -> Graph:
    builder = Builder(graph.registry, NO_LIMITS)
    values: list[Value] = []
    for i, node in enumerate(graph.nodes):
        operands = [values[o] for o in node.operands]
        builder.origin = node.origin
        if i in found:
            values.append(builder.emit(node.op, [operands[o] for o in found[i].operands], found[i].attrs))
        elif node.op.name == "get_output" and node.operands[0] in found:
            values.append(operands[0].output(found[node.operands[0]].results.index(node.attrs["index"])))
        else:
            values.append(builder.copy(node, operands))
    return builder.graph([values[o] for o in graph.outputs])
