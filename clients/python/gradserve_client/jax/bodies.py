"""Translation of nested jaxprs to functions of the graph."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from gradserve_client.graph import Graph, GraphFunction, Node
from gradserve_client.importing import Blocked, SourceGraph
from gradserve_client.jax.context import Context
from gradserve_client.jax.values import KnownCall, Scope, Value

#: maximum nesting depth of functions in a graph
_MAX_DEPTH = 14


def constant_positions(operands: Sequence[Value], positions: Collection[int]) -> set[int]:
    """Return the positions of constant operands, which a function can contain instead of taking as parameters."""
    return {i for i in positions if operands[i].is_constant}


def build_function(
    context: Context,
    scope: Scope,
    closed: Any,
    operands: Sequence[Value],
    constants: Collection[int] = (),
    known_calls: Callable[[Sequence[Value]], Sequence[KnownCall]] | None = None,
) -> GraphFunction:
    """Translate a jaxpr to a function of the graph.

    Its parameters have the types of the operands; the operands at the positions `constants` become constants in its
    body. `known_calls` receives the values of the operands inside the body and returns the calls whose results the body
    already has. Raises Blocked if functions are nested too deeply.
    """
    if scope.depth >= _MAX_DEPTH:
        raise Blocked("its functions are nested too deeply, as if a rule called the function that it belongs to")

    def write(graph: Graph) -> Sequence[Node]:
        assert isinstance(graph, SourceGraph)
        inner = [value if i in constants else value.with_node(graph.input()) for i, value in enumerate(operands)]
        inner_scope = Scope(graph, known_calls(inner) if known_calls is not None else (), scope.depth + 1, scope.rules)
        return [inner_scope.node_of(result) for result in context.walk(closed, inner, inner_scope)]

    name = closed.jaxpr.debug_info.func_name if closed.jaxpr.debug_info is not None else ""
    return scope.graph.function(write, name if name.isidentifier() else None)
