"""Forward mode from two reverse modes: the cotangent map is linear, and its transpose is the tangent map.

No op needs a second rule. The dummy cotangent that the first reverse mode starts from does not occur in the result,
because every rule is linear in its cotangent (J. Townsend, "A new trick for calculating Jacobian vector products").
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from engine.autodiff.vjp import Dependence, vjp
from engine.ir.errors import NotDifferentiable
from engine.ir.graph import Builder, Graph, Value, at_origin

#: pairs of a node and its tangent
Tangents = Sequence[tuple[Value, Value]]
#: appends the derivatives along tangents
Push = Callable[[Tangents], list[Value | None]]


class Dummy(NamedTuple):
    """Key that a cotangent is under that nobody feeds."""

    node: int
    number: int


def check_linear(graph: Graph) -> None:
    """Raise NotDifferentiable where a dummy is left in a graph without dead code.

    Rules are linear in cotangents; what a client says a derivative is need not be.
    """
    dummies = {i for i, node in enumerate(graph.nodes) if node.is_leaf and isinstance(node.attrs["feed"], Dummy)}
    for node in graph.nodes if dummies else ():
        if not dummies.isdisjoint(node.operands):
            said = "a tangent depends on a cotangent here: a `derivative` must be linear in its cotangents"
            error = NotDifferentiable(said, expected="linear in cotangents", got="not linear")
            raise at_origin(error, node.origin)


def jvp(builder: Builder, outputs: Sequence[Value], tangents: Tangents) -> list[Value | None]:
    """Append the derivative of each output along `tangents`.

    An output that does not depend on those nodes has None. All outputs share the two sweeps, each with a dummy of its
    own: what is written does not grow with their number. What the dummies leave behind is dead code.
    """
    return linearise(builder, outputs, [x for x, _ in tangents])(tangents)


def linearise(
    builder: Builder, outputs: Sequence[Value], wrt: Sequence[Value], known: Dependence | None = None
) -> Push:
    """`jvp` along tangents of any nodes of `wrt`, for one choice of them after another: all share the first sweep.

    `known` is `vjp`'s.
    """
    dummies = [builder.leaf(y.type, Dummy(y.index, len(builder.nodes))) for y in outputs]
    cotangents = vjp(builder, list(zip(outputs, dummies, strict=True)), wrt, known)
    pulled = {x.index: g for x, g in zip(wrt, cotangents, strict=True)}

    def push(tangents: Tangents) -> list[Value | None]:
        seeds = [(g, t) for x, t in tangents if (g := pulled[x.index]) is not None]
        return vjp(builder, seeds, dummies)

    return push
