"""`grad` nodes → the nodes of the gradient. Comes before everything else that is done to a graph."""

from __future__ import annotations

from functools import partial
from typing import Final

from engine.graph.ir import Builder, Graph, Value
from engine.graph.limits import NO_DEADLINE, Deadline, Limits
from engine.transforms.sketch import Sketch, look_ahead
from engine.transforms.vjp import vjp_or_zeros

#: of gradients of one another, that are taken to multiply what there is to look at
MOST_LEVELS: Final = 8


def expand_grad(graph: Graph, limits: Limits | None = None, deadline: Deadline = NO_DEADLINE) -> Graph:
    """`graph` without `grad` nodes; inner ones first, so that gradients of gradients follow.

    The result of each stands behind an `identity` of its own: were it the very node that the rule ended on (the
    gradient of `x·w` by `x` is `w`), a later derivative by the one would take in the other.
    """
    grads = sum(node.op.name == "grad" for node in graph.nodes)
    if not grads:
        return graph
    builder = Builder(graph.registry, limits or Limits(), deadline)
    # Each level of gradients has about three times the nodes of the one below.
    look_ahead(builder, len(graph.nodes) * 3 ** min(grads, MOST_LEVELS), partial(_sketched, graph))
    return builder.rewrite(
        graph, lambda node, operands: _gradient(builder, *operands) if node.op.name == "grad" else None
    )


def _sketched(graph: Graph, sketch: Sketch) -> None:
    """Append to a sketch what `expand_grad` writes."""
    values: list[int] = []
    for node in graph.nodes:
        operands = tuple([values[i] for i in node.operands])
        values.append(_sketched_gradient(sketch, *operands) if node.op.name == "grad" else sketch.copy(node, operands))


def _sketched_gradient(sketch: Sketch, y: int, x: int, cotangent: int | None = None) -> int:
    (gradient,) = sketch.vjp([(y, sketch.filled(y) if cotangent is None else cotangent)], [x])
    return sketch.apply("identity", lambda g: g.identity(), sketch.filled(x) if gradient is None else gradient)


def _gradient(builder: Builder, y: Value, x: Value, cotangent: Value | None = None) -> Value:
    seed = y.full_like(1.0) if cotangent is None else cotangent
    (gradient,) = vjp_or_zeros(builder, [(y, seed)], [x])
    return gradient.identity()
