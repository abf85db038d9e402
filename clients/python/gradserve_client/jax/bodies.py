"""Jaxprs as functions of the graph."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from gradserve_client.graph import Graph, GraphFunction, Node
from gradserve_client.importing import Blocked, SourceGraph
from gradserve_client.jax.context import Context
from gradserve_client.jax.values import KnownCall, Scope, Value

#: functions within one another that a graph may have
_DEPTH = 14


def known_places(operands: Sequence[Value], places: Collection[int]) -> set[int]:
    """Those of the places whose operands need not be passed to a function, as it may have them as constants."""
    return {i for i in places if operands[i].is_constant}


def function(
    context: Context,
    scope: Scope,
    closed: Any,
    operands: Sequence[Value],
    inside: Collection[int] = (),
    known: Callable[[Sequence[Value]], Sequence[KnownCall]] | None = None,
) -> GraphFunction:
    """A function of operands of these types, but those `inside` it, which are its constants.

    `known` says, of its values for the operands, which calls it knows the results of. Raises Blocked for functions that
    go too deep.
    """
    if scope.depth >= _DEPTH:
        raise Blocked("its functions go too deep, as those of a rule do that calls what it is a rule of")

    def write(graph: Graph) -> Sequence[Node]:
        assert isinstance(graph, SourceGraph)
        given = [value if i in inside else value.with_node(graph.input()) for i, value in enumerate(operands)]
        inner = Scope(graph, known(given) if known is not None else (), scope.depth + 1, scope.rules)
        return [inner.node_of(result) for result in context.walk(closed, given, inner)]

    name = closed.jaxpr.debug_info.func_name if closed.jaxpr.debug_info is not None else ""
    return scope.graph.function(write, name if name.isidentifier() else None)
