"""Who owns memory while a graph runs: which results are views, what lies densely, how much is live at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from engine.ir import Graph, Node
from engine.op import View


class Storage:
    """The blocks behind the nodes of a graph.

    A view shares its operand's block, which lives as long as anything that looks at it. `is_view`, `owner` and
    `contiguous` say, for each node, whether it is one, whose block it is in, and whether it lies there densely.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.is_view: list[bool] = []
        self.owner: list[int] = []
        self.contiguous: list[bool] = []
        for i, node in enumerate(graph.nodes):
            self._place(i, node)

    def _place(self, i: int, node: Node) -> None:
        shares = isinstance(node.op, View) and (not node.op.reshapes or self.contiguous[node.operands[0]])
        self.is_view.append(shares)
        self.owner.append(self.owner[node.operands[0]] if shares else i)
        self.contiguous.append(not shares or (isinstance(node.op, View) and node.op.reshapes))

    def peak(self, dead: Mapping[int, Iterable[int]], workspaces: Sequence[int]) -> int:
        """The most bytes that are live at once: feeds (which the caller holds throughout), results, workspaces.

        `dead` has, for each node, the nodes whose value nobody reads after it.
        """
        nodes = self.graph.nodes
        sizes = [sum(t.nbytes for t in node.types) for node in nodes]
        watchers = [0] * len(nodes)
        for owner in self.owner:
            watchers[owner] += 1
        live = peak = sum(size for node, size in zip(nodes, sizes, strict=True) if node.is_leaf)
        for i, node in enumerate(nodes):
            if not node.is_leaf and not self.is_view[i]:
                live += sizes[i]
            peak = max(peak, live + workspaces[i])
            for owner in map(self.owner.__getitem__, dead.get(i, ())):
                watchers[owner] -= 1
                if not watchers[owner] and not nodes[owner].is_leaf:
                    live -= sizes[owner]
        return peak
