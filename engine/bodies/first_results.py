"""A body that gives less."""

from __future__ import annotations

from engine.bodies.tidy import tidied, tidy
from engine.graph.body import Body


def first_results(body: Body, count: int) -> Body:
    """A body of the same inputs that gives the first so many results."""
    return body.made(("first results", count), lambda: _first(tidy(body), count))


def _first(body: Body, count: int) -> Body:
    graph = body.graph
    return body.derived(tidied(body, graph.rewritten(graph.nodes, graph.outputs[:count])), body.inputs)
