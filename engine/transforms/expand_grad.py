"""`grad` nodes → the nodes of the gradient. Comes before everything else that is done to a graph."""

from __future__ import annotations

from collections.abc import Sequence

from engine.graph.ir import Builder, Graph, Node, Value
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

    def written_out(node: Node, operands: Sequence[Value]) -> Value | None:
        if node.op.name != "grad":
            return None
        y, x, *seeds = operands
        seed = seeds[0] if seeds else y.full_like(1.0)
        (gradient,) = vjp_or_zeros(builder, [(y, seed)], [x])
        return gradient.identity()

    return builder.rewrite(graph, written_out)
