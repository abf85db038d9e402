"""Dead code elimination: remove nodes that no output depends on, and results of loops that nobody reads."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from engine.graph.ir import Graph, Node
from engine.graph.op import Narrowed
from engine.passes.allowance import UNBOUNDED, Allowance


def dce(graph: Graph, allowance: Allowance = UNBOUNDED) -> Graph:
    """`graph` without the nodes that its outputs do not need. Raises DeadlineExceeded."""
    nodes = _narrowed(graph, allowance) if any(node.op.narrows for node in graph.nodes) else graph.nodes
    live = [False] * len(nodes)
    for index in graph.outputs:
        live[index] = True
    for index in allowance.over(range(len(live) - 1, -1, -1)):
        if live[index]:
            for operand in nodes[index].operands:
                live[operand] = True
    return graph if nodes is graph.nodes and all(live) else _kept(graph, nodes, live, allowance)


def _kept(graph: Graph, nodes: Sequence[Node], live: list[bool], allowance: Allowance) -> Graph:
    """The `live` nodes."""
    first = len(live) if all(live) else live.index(False)  # what lies before it stays as it is
    kept, renamed = list(nodes[:first]), list(range(first))
    for node, lives in zip(allowance.over(nodes[first:]), live[first:], strict=True):
        renamed.append(len(kept) if lives else -1)
        if lives:
            kept.append(node.on(tuple(map(renamed.__getitem__, node.operands))))
    return graph.rewritten(kept, [renamed[index] for index in graph.outputs])


def _narrowed(graph: Graph, allowance: Allowance) -> Sequence[Node]:
    """The nodes, where those that may do with less work make only results that are read; the same, where all do.

    Nobody reads a `get_output` of another.
    """
    smaller: dict[int, Narrowed] = {}
    nodes, live = list(graph.nodes), set(graph.outputs)
    read: defaultdict[int, set[int]] = defaultdict(set)
    for index in allowance.over(range(len(nodes) - 1, -1, -1)):
        node = nodes[index]
        if index in live:
            if node.op.narrows and read[index]:
                less = node.op.narrowed(node.attrs, len(node.operands), read[index])
                if len(less.operands) < len(node.operands) or len(less.results) < len(node.types):
                    smaller[index] = less
                    node = nodes[index] = node._replace(
                        op=less.op or node.op,
                        operands=tuple([node.operands[i] for i in less.operands]),
                        attrs=less.attrs,
                        types=tuple([node.types[k] for k in less.results]),
                    )
            elif node.op.name == "get_output":
                read[node.operands[0]].add(node.attrs["index"])
            live.update(node.operands)
    for index, node in enumerate(nodes if smaller else ()):
        if node.op.name == "get_output" and index in live and (made := smaller.get(node.operands[0])) is not None:
            nodes[index] = node._replace(attrs={"index": made.results.index(node.attrs["index"])})
    return nodes if smaller else graph.nodes
