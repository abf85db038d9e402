"""`grad` nodes → the nodes of the gradient. Comes before everything else that is done to a graph."""

from __future__ import annotations

from engine.graph.ir import Builder, Graph, Value
from engine.graph.limits import NO_DEADLINE, Deadline, Limits
from engine.transforms.vjp import vjp_or_zeros


def expand_grad(graph: Graph, limits: Limits | None = None, deadline: Deadline = NO_DEADLINE) -> Graph:
    """`graph` without `grad` nodes; inner ones first, so that gradients of gradients follow.

    The result of each stands behind an `identity` of its own: were it the very node that the rule ended on (the
    gradient of `x·w` by `x` is `w`), a later derivative by the one would take in the other.
    """
    if not any(node.op.name == "grad" for node in graph.nodes):
        return graph
    builder = Builder(graph.registry, limits or Limits(), deadline)
    return builder.rewrite(
        graph, lambda node, operands: _gradient(builder, *operands) if node.op.name == "grad" else None
    )


def _gradient(builder: Builder, y: Value, x: Value, cotangent: Value | None = None) -> Value:
    seed = y.full_like(1.0) if cotangent is None else cotangent
    (gradient,) = vjp_or_zeros(builder, [(y, seed)], [x])
    return gradient.identity()
