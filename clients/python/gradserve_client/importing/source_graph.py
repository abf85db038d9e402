"""The graph that rules append to, and the extraction of the subgraph that outputs depend on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from gradserve_client.graph import Graph, GraphFunction, Line, Node
from gradserve_client.importing.budget import Budget

#: attributes whose values are indices of functions; see docs/wire.md
_FUNCTIONS: Final = ("body", "condition", "then", "otherwise", "derivative")


class SourceGraph(Graph):
    """A graph from which a subgraph can be extracted, since rules may append nodes that nothing reads in the end.

    Its nodes and constants, and those of its functions, are charged to the budget, if there is one.
    """

    def __init__(self, opset: int | None = None, outer: Graph | None = None, budget: Budget | None = None) -> None:
        super().__init__(opset, outer)
        self.budget: Budget | None = outer.budget if isinstance(outer, SourceGraph) else budget

    def _append(
        self, op: str, operands: Sequence[Node | None], attrs: Mapping[str, Any], name: str | None, line: Line
    ) -> Node:
        if self.budget is not None:
            self.budget.add_node()
            self.budget.hold(sum(value.nbytes for value in attrs.values() if isinstance(value, np.ndarray)))
        return super()._append(op, operands, attrs, name, line)

    def copy_node(self, node: Node, operands: Sequence[Node], attrs: Mapping[str, Any]) -> Node:
        """Append a copy of a node of another graph, with operands of this graph and the given attributes."""
        return self._append(node.op, operands, attrs, node.name, node.line)

    def subgraph(self, outputs: Iterable[Node]) -> Subgraph:
        """Return a new graph of the nodes that `outputs` depend on, with the functions that these run."""
        result = SourceGraph(self.opset)
        needed = _dependencies(outputs)
        functions = _functions_of(self, needed)
        new_indices = {index: position for position, index in enumerate(sorted(functions))}
        for index in sorted(functions):
            result._copy_function(self.functions[index], functions[index], new_indices)
        return Subgraph(result, result._copy_nodes(needed, new_indices))

    def _copy_nodes(self, nodes: Iterable[Node], new_indices: Mapping[int, int]) -> dict[int, Node]:
        copies: dict[int, Node] = {}
        for node in nodes:
            attrs = {name: new_indices[value] if name in _FUNCTIONS else value for name, value in node.attrs.items()}
            copies[node.id] = self.copy_node(node, [copies[i] for i in node.operands], attrs)
        return copies

    def _copy_function(self, function: GraphFunction, nodes: Sequence[Node], new_indices: Mapping[int, int]) -> None:
        inner = SourceGraph(outer=self)
        copies = inner._copy_nodes(nodes, new_indices)
        self._append_function(inner, [copies[output.id] for output in function.outputs], function.name)


@dataclass(frozen=True)
class Subgraph:
    """The extracted subgraph, and its nodes by their ids in the original graph."""

    graph: SourceGraph
    nodes: Mapping[int, Node]


def _dependencies(outputs: Iterable[Node]) -> list[Node]:
    """Return the nodes that `outputs` depend on, including themselves, in the order of their graph."""
    dependencies: dict[int, Node] = {}
    pending = [*outputs]
    while pending:
        node = pending.pop()
        if node.id not in dependencies:
            dependencies[node.id] = node
            pending += [node.graph.find(i) for i in node.operands]
    return [dependencies[i] for i in sorted(dependencies)]


def _functions_of(graph: Graph, nodes: Iterable[Node]) -> dict[int, list[Node]]:
    """Return the functions that nodes run, directly or through other functions: by index, with the nodes that they
    need.

    All parameters of a function are included, even if they are not read.
    """
    required_nodes: dict[int, list[Node]] = {}
    pending = [*nodes]
    while pending:
        node = pending.pop()
        for index in (value for name, value in node.attrs.items() if name in _FUNCTIONS):
            if index not in required_nodes:
                function = graph.functions[index]
                required_nodes[index] = _dependencies([*function.parameters, *function.outputs])
                pending += required_nodes[index]
    return required_nodes
