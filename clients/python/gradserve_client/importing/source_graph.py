"""The graph that rules write into, and the part of it that outputs need."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from gradserve_client.graph import Graph, GraphFunction, Line, Node
from gradserve_client.importing.budget import Budget

#: attributes that are indices of functions, as docs/wire.md has them
_FUNCTIONS: Final = ("body", "condition", "then", "otherwise", "derivative")


class SourceGraph(Graph):
    """A graph of which a part can be made anew: rules write what nobody reads in the end.

    Its nodes and constants, and those of its functions, are charged to the budget, where there is one.
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

    def again(self, node: Node, operands: Sequence[Node], attrs: Mapping[str, Any]) -> Node:
        """A node of another graph, on operands of this one, and with these attributes."""
        return self._append(node.op, operands, attrs, node.name, node.line)

    def part(self, wanted: Iterable[Node]) -> Part:
        """Another graph of the nodes that these need, and these, with the functions that they run."""
        made = SourceGraph(self.opset)
        needed = _needed(wanted)
        functions = _functions_of(self, needed)
        places = {index: place for place, index in enumerate(sorted(functions))}
        for index in sorted(functions):
            made._copy_function(self.functions[index], functions[index], places)
        return Part(made, made._copy_nodes(needed, places))

    def _copy_nodes(self, nodes: Iterable[Node], places: Mapping[int, int]) -> dict[int, Node]:
        copied: dict[int, Node] = {}
        for node in nodes:
            attrs = {name: places[value] if name in _FUNCTIONS else value for name, value in node.attrs.items()}
            copied[node.id] = self.again(node, [copied[i] for i in node.operands], attrs)
        return copied

    def _copy_function(self, function: GraphFunction, nodes: Sequence[Node], places: Mapping[int, int]) -> None:
        inner = SourceGraph(outer=self)
        copied = inner._copy_nodes(nodes, places)
        self._append_function(inner, [copied[output.id] for output in function.outputs], function.name)


@dataclass(frozen=True)
class Part:
    """A part of a graph, and its nodes by their ids there."""

    graph: SourceGraph
    nodes: Mapping[int, Node]


def _needed(wanted: Iterable[Node]) -> list[Node]:
    """The nodes that these need, and these, in the order of their graph."""
    found: dict[int, Node] = {}
    rest = [*wanted]
    while rest:
        node = rest.pop()
        if node.id not in found:
            found[node.id] = node
            rest += [node.graph.find(i) for i in node.operands]
    return [found[i] for i in sorted(found)]


def _functions_of(graph: Graph, nodes: Iterable[Node]) -> dict[int, list[Node]]:
    """The functions that nodes run, those within them, too, by index, each with the nodes that it needs.

    A function keeps all of its parameters, whether they are read or not.
    """
    found: dict[int, list[Node]] = {}
    rest = [*nodes]
    while rest:
        node = rest.pop()
        for index in (value for name, value in node.attrs.items() if name in _FUNCTIONS):
            if index not in found:
                function = graph.functions[index]
                found[index] = _needed([*function.parameters, *function.outputs])
                rest += found[index]
    return found
