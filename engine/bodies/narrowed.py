"""A body with some of its results, and some of its inputs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from engine.bodies.tidy import derived, tidy
from engine.graph.body import Body
from engine.graph.ir import ancestors
from engine.passes.dce import dce


def reads(body: Body, results: Iterable[int]) -> frozenset[int]:
    """The inputs that these results depend on."""
    graph = tidy(body).graph
    roots = [graph.outputs[k] for k in results]
    needed = ancestors(roots, lambda i: graph.nodes[i].operands)
    return frozenset([graph.nodes[i].attrs["feed"] for i in needed if graph.nodes[i].is_leaf])


def narrowed(body: Body, results: Sequence[int], inputs: Sequence[int]) -> Body:
    """The body that gives these results, of these inputs, which are all that they need."""
    kept = tuple(results), tuple(inputs)
    return body.made(("narrowed", *kept), lambda: _narrowed(body, *kept))


def _narrowed(body: Body, results: tuple[int, ...], inputs: tuple[int, ...]) -> Body:
    graph = tidy(body).graph
    graph = dce(graph.rewritten(graph.nodes, [graph.outputs[k] for k in results]))
    builder = body.budget.builder(graph.registry)
    leaves = {i: builder.leaf(body.inputs[i], place) for place, i in enumerate(inputs)}
    found = Body(graph, body.inputs, body.budget, body.function).write(builder, leaves)
    return derived(body, builder.graph(found), [body.inputs[i] for i in inputs])
